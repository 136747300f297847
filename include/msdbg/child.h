// Runs other programs with a text as their input: a pager, a filter after `|`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"

namespace msdbg {

/// Runs `words` (a program, looked up in PATH, and its arguments) with `text` as its standard input, and waits until it ends. It writes
/// where this process writes. Ctrl-C goes to it alone. It may stop reading at any time. The settings of the terminal are restored
/// afterwards. Returns the exit status, 128 + N after signal N. For the owner's thread. Error: kNotFound when it cannot be started.
Result<int> feed_program(const std::vector<std::string>& words, std::string_view text);

/// The same for a command line of the shell.
Result<int> feed_shell(const std::string& command, std::string_view text);

}  // namespace msdbg
