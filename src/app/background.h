// The process that stays behind when the user leaves msdbg while the training runs on. It takes over the port and releases the
// training at every suspension until the training ends.
#pragma once

#include <sys/types.h>

#include "app/options.h"
#include "msdbg/live.h"

namespace msdbg::app {

/// Starts it in the background and returns once it is listening. The training connects to it as soon as `session` is destroyed.
/// Precondition: `session` is detached. Error: kUnsupported when `session` has no port; kIoError when the process does not start.
Result<pid_t> answer_in_background(LiveSession& session);

/// `msdbg listen --answer-only`.
int run_answer_only(const Options& options);

}  // namespace msdbg::app
