// The process that stays behind when a person leaves msdbg and the training runs on: it takes the port over and lets the training go
// at every suspension, until it has ended.
#pragma once

#include <sys/types.h>

#include "app/options.h"
#include "msdbg/live.h"

namespace msdbg::app {

/// Starts it in the background; it listens when this returns. The training comes to it as soon as `session` is destroyed.
/// Precondition: `session` is detached. Error: kUnsupported when `session` has no port; kIoError when the process does not start.
Result<pid_t> answer_in_background(LiveSession& session);

/// `msdbg listen --answer-only`.
int run_answer_only(const Options& options);

}  // namespace msdbg::app
