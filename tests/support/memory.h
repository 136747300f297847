// The memory and the descriptors of a process, for tests of limits.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "msdbg/sanitizers.h"

namespace msdbg::test {

/// A line of /proc/PID/status in bytes: "VmRSS", "VmHWM" (the peak), "RssAnon". 0 if it cannot be read.
inline uint64_t memory_of(const std::string& pid, const std::string& what) {
  std::ifstream status("/proc/" + pid + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(what + ":", 0) == 0) return std::stoull(line.substr(what.size() + 1)) * 1024;
  }
  return 0;
}
inline uint64_t memory_of_this(const std::string& what) { return memory_of("self", what); }

/// The open descriptors of this process. Asks for each number: to read /proc/self/fd takes a descriptor, whose number a library without
/// the thread sanitizer may just have closed, which that takes for a race.
inline int open_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kMost = 1 << 16;
  int open = 0;
  for (int number = 0; number < static_cast<int>(limit.rlim_cur < kMost ? limit.rlim_cur : kMost); ++number) {
    if (::fcntl(number, F_GETFD) >= 0) ++open;
  }
  return open;
}

/// The growth that a test accepts. Sanitizers keep freed memory and add shadow memory; with them, only unbounded growth shows.
inline uint64_t allowed(uint64_t bytes) {
#if defined(MSDBG_ASAN) || defined(MSDBG_TSAN)
  return bytes + (uint64_t{1} << 30);
#else
  return bytes;
#endif
}

}  // namespace msdbg::test
