// Several msdbg processes that mpirun started together, and share the reading of dumps (docs/scale.md).
#pragma once

#include <functional>

namespace msdbg::app {

/// Runs `command` in process 0 of the job; the other processes read for it. Without mpirun, just runs it. Returns the exit status.
int run_in_job(const std::function<int()>& command);

}  // namespace msdbg::app
