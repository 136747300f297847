#include "app/signals.h"

#include <unistd.h>

#include <csignal>

#include "app/options.h"
#include "msdbg/base.h"

namespace msdbg::app {
namespace {

void on_interrupt(int) {
  if (interrupt_requested()) ::_exit(kExitInterrupted);
  request_interrupt();
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: Ctrl-C makes a blocking read at the prompt return
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace msdbg::app
