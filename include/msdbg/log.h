// Messages of -v and --log besides warnings: what was read, and how long it took. A message without a reader costs one load.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "msdbg/base.h"

namespace msdbg {

/// Whether messages of this level are read: check before composing one. Any thread.
bool log_wanted(LogLevel level);
/// Sets the lowest level to be read; until then, only warnings and errors are.
void want_log(LogLevel least);

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// "850 us", "12.3 ms", "4.2 s", "3:07 min", "2:05:10 h".
std::string format_duration(double seconds);
/// "3.4 MiB in 20 ms (170 MiB/s)"; without a rate if the time is too short.
std::string format_reading(uint64_t bytes, double seconds);

}  // namespace msdbg
