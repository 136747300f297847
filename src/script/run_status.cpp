#include "script/run_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace msdbg::script {

std::string status_text(const RunProgress& progress) {
  const double seconds = std::chrono::duration<double>(progress.elapsed).count();
  const double held = std::chrono::duration<double>(progress.held).count();
  const double rate = seconds > 0 ? static_cast<double>(progress.steps_run) / seconds : 0;
  const double share = seconds > 0 ? std::min(100.0, std::round(100 * held / seconds)) : 0;
  const std::string late = progress.late.empty() ? "" : fmt::format(", waiting for {}", progress.late);
  return fmt::format("step {}: {} step{}, {} a second, {} % of the time in msdbg{}", progress.step, progress.steps_run,
                     progress.steps_run == 1 ? "" : "s", format_short(rate, 3), share, late);
}

}  // namespace msdbg::script
