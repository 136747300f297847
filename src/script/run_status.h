// The progress of a running command as text.
#pragma once

#include <string>

#include "msdbg/live.h"

namespace msdbg::script {

/// `step 1234: 412 steps, 53.1 a second, 3 % of the time in msdbg`
std::string status_text(const RunProgress& progress);

}  // namespace msdbg::script
