#include "msdbg/log.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>

namespace msdbg {
namespace {

constexpr double kLeastForRate = 1e-3;  // seconds

std::atomic<LogLevel> g_least{LogLevel::kWarning};

}  // namespace

bool log_wanted(LogLevel level) { return level >= g_least.load(std::memory_order_relaxed); }
void want_log(LogLevel least) { g_least.store(least, std::memory_order_relaxed); }

std::string format_duration(double seconds) {
  if (std::isnan(seconds)) return "unknown";
  if (seconds < 0) return "-" + format_duration(-seconds);
  if (seconds < 0.9995e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  if (seconds >= static_cast<double>(std::numeric_limits<int64_t>::max())) return "forever";
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string format_reading(uint64_t bytes, double seconds) {
  std::string out = fmt::format("{} in {}", format_bytes(bytes), format_duration(seconds));
  if (bytes == 0 || !(seconds >= kLeastForRate)) return out;
  return out + fmt::format(" ({}/s)", format_bytes(static_cast<uint64_t>(static_cast<double>(bytes) / seconds)));
}

}  // namespace msdbg
