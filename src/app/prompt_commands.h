// The prompt's reader of the commands.
#pragma once

#include "app/options.h"
#include "msdbg/script.h"

namespace msdbg::app {

/// `options`: the options that the program was started with; they apply to each command unless its own words override them.
PromptCommands prompt_commands(const Options& options);

}  // namespace msdbg::app
