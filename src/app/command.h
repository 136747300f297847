// A command of the program that lives in a file of its own: what it takes, and what it does.
//
// To add one: write cmd_<name>.cpp with a declare_<name>() and list it in commands.cpp. Options that many commands
// share (--format, -o, --steps, --ranks, --semantics, ...) are declared and checked by options.cpp.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "app/options.h"

namespace CLI {
class App;
}

namespace msdbg::app {

/// Runs the command; called once, after the whole command line was understood. Gives the exit status.
using Action = std::function<int(const Options& common)>;

struct CommandEntry {
  std::string_view name, summary;
  /// Adds the command's own words to `app`. The action owns what they are read into (a shared_ptr in its capture).
  Action (*declare)(CLI::App& app);
  bool takes_steps = false;      ///< --steps and --ranks go to Options::steps and ranks
  bool takes_formats = true;     ///< --format and -o
  Format last_format = Format::kJsonl;  ///< formats after it are refused
  std::string_view formats = "table, json or jsonl";  ///< for the help
};

/// In the order of the help, after the commands that options.cpp knows itself.
std::span<const CommandEntry> command_table();

}  // namespace msdbg::app
