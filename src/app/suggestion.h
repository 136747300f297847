// What was probably meant by a command line that is not understood.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace msdbg::app {

/// The message of `error` with the word that is wrong and the nearest one that would do.
std::string with_suggestion(const CLI::App& app, const CLI::ParseError& error);

}  // namespace msdbg::app
