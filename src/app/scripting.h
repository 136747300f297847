// The Script that the commands share: options turned into defaults, the readers of dumps and recordings and the listener registered.
#pragma once

#include <memory>

#include "app/command.h"
#include "msdbg/dump.h"
#include "msdbg/script.h"

namespace msdbg::app {

class EventPrinter;

/// `events` shows what live sessions report; null drops it.
Result<std::unique_ptr<Script>> make_script(const Options& options, EventPrinter* events = nullptr);
/// A dump, a checkpoint or a recording. Damage of a checkpoint is logged.
Result<std::unique_ptr<Session>> open_any(const std::string& path, const DumpOptions& options, const CheckpointOptions& checkpoint = {});

/// -e, -x, --batch and what else the commands with a prompt take.
void declare_entries(const Declaration& to);
/// The entries of -x and -e, then the prompt unless --batch ends there; at the end trainings are detached or terminated. `greeting` is
/// shown to a person before the first prompt.
int run_entries_and_prompt(const Options& options, Script& script, EventPrinter* events, const std::string& greeting);

}  // namespace msdbg::app
