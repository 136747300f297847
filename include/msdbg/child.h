// Runs other programs with a text as their input: a pager, or a filter after `|`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"

namespace msdbg {

/// Runs `words` (a program, looked up in PATH, and its arguments) with `text` as its standard input, and waits until it ends. Its
/// output goes where ours does. Only the program receives Ctrl-C. It may stop reading at any time. Restores the terminal settings
/// afterwards. Returns the exit status, 128 + N after signal N. The owner's thread only. Error: kNotFound if the program cannot be
/// started.
Result<int> feed_program(const std::vector<std::string>& words, std::string_view text);

/// The same for a shell command line.
Result<int> feed_shell(const std::string& command, std::string_view text);

}  // namespace msdbg
