// Completion of msdbg's words in bash, zsh and fish. The scripts ask the program, so they never fall behind its commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"

namespace msdbg::app {

/// The script that a shell reads. Error: kInvalidArgument for a shell other than bash, zsh and fish.
Result<std::string> completion_script(std::string_view shell);

/// What can stand in place of the last word, one candidate per line: `WORD<tab>description`. The line `:files` asks the shell for file
/// names, too.
std::string complete_words(const std::vector<std::string>& words);

}  // namespace msdbg::app
