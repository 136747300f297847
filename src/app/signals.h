// Ctrl-C for commands that run no Lua; the script module installs its own handler while Lua runs.
#pragma once

namespace msdbg::app {

/// The first SIGINT stops the current work with partial results; the second ends the process.
void install_interrupt_handler();

}  // namespace msdbg::app
