// Makes the Script that the commands share: turns options into defaults, and registers the readers of dumps and recordings and the
// listener.
#pragma once

#include <memory>

#include "app/command.h"
#include "msdbg/dump.h"
#include "msdbg/script.h"

namespace msdbg::app {

class EventPrinter;

/// `events` prints what live sessions report; null discards it.
Result<std::unique_ptr<Script>> make_script(const Options& options, EventPrinter* events = nullptr);
/// Opens a dump, a checkpoint or a recording. Damage to a checkpoint is logged.
Result<std::unique_ptr<Session>> open_any(const std::string& path, const DumpOptions& options, const CheckpointOptions& checkpoint = {});

/// Declares -e, -x, --batch and the other options of the commands with a prompt.
void declare_entries(const Declaration& to);
/// Runs the entries of -x and -e, then the prompt unless --batch ends there; at the end trainings are detached or terminated.
/// `greeting` is shown before the first interactive prompt.
int run_entries_and_prompt(const Options& options, Script& script, EventPrinter* events, const std::string& greeting);

}  // namespace msdbg::app
