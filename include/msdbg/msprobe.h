// Sessions over dumps of msprobe (package mindstudio-probe): the calls of a PyTorch or MindSpore program with what they took and gave.
#pragma once

#include <memory>
#include <string>

#include "msdbg/dump.h"

namespace msdbg {

/// Whether `path` is a dump of msprobe: the folder with its steps, one step<N>, one rank<R> or proc<pid> with a dump.json, or that
/// file.
bool is_msprobe_dump(const std::string& path);

/// Opens it: reads the table of each step and rank, and no tensor. Each call is a node of a graph with recorded_calls(), the union of
/// all steps. What a damaged table lost is an unreadable tensor of its step, and among the problems of Session::inspect().
/// `options`: only `ranks` counts. Error: kNotFound; kCorrupt if no table has a call; kInterrupted.
Result<std::unique_ptr<Session>> open_msprobe(const std::string& path, const DumpOptions& options);

}  // namespace msdbg
