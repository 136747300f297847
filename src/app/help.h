// Help and descriptions, built from the declarations of the commands.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/command.h"

namespace msdbg::app {

/// Declares everything that `entry` accepts: its own words and those that the readers add.
Action declare_command(const CommandEntry& entry, const Declaration& to);
/// What --help prints for a command that was declared to `app`, or for the verb that was typed.
std::string command_help(const CommandEntry& entry, const CLI::App& app, Place place);
/// What `msdbg --help` prints.
std::string program_help();
/// What each exit status means: "0" and "clean".
std::vector<std::pair<std::string, std::string>> exit_statuses();
/// All commands with their words, options and examples, for manual pages and shell completion.
std::string commands_json();

}  // namespace msdbg::app
