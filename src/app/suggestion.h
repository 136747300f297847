// Suggestions for a command line that cannot be parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace msdbg::app {

/// The message of `error`, with the wrong word and the closest valid one.
std::string with_suggestion(const CLI::App& app, const CLI::ParseError& error);

}  // namespace msdbg::app
