// The prompt as the second reader of the commands.
#pragma once

#include "app/options.h"
#include "msdbg/script.h"

namespace msdbg::app {

/// `options`: what the program was started with; it holds for each command unless its own words say otherwise.
PromptCommands prompt_commands(const Options& options);

}  // namespace msdbg::app
