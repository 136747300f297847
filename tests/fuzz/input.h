// Shared by the fuzz targets: an input that is read from front to back, a file without a directory, and reporting of findings.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "msdbg/base.h"

namespace msdbg::fuzz {

/// Ends the process; libFuzzer writes the input to a file.
[[noreturn]] inline void finding(const std::string& what) {
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::abort();
}
inline void require(bool holds, const char* what) {
  if (!holds) finding(what);
}

/// Any error is fine except that of a defect.
inline void expect_no_defect(const Status& status) {
  if (status.code() == Code::kInternal) finding(status.message());
}
template <typename T>
bool good(const Result<T>& result) {
  expect_no_defect(result.status());
  return result.ok();
}

/// After its end, everything is zero or empty.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  uint8_t byte() {
    if (rest_.empty()) return 0;
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return static_cast<uint8_t>(c);
  }
  uint16_t word() {
    const unsigned low = byte();
    return static_cast<uint16_t>(low | unsigned{byte()} << 8);
  }
  size_t below(size_t n) { return n == 0 ? 0 : (n <= 256 ? byte() : word()) % n; }
  std::string_view take(size_t n) {
    const std::string_view part = rest_.substr(0, n);
    rest_.remove_prefix(part.size());
    return part;
  }
  /// Two length bytes, lowest first, and that many bytes.
  std::string_view chunk() { return take(word()); }
  /// Up to the next newline, which is skipped.
  std::string_view line() {
    const std::string_view part = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(rest_.size(), part.size() + 1));
    return part;
  }
  std::string_view rest() { return take(rest_.size()); }

 private:
  std::string_view rest_;
};

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

/// One for the whole run; each input overwrites the previous one.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("input", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(descriptor_)) {}
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& write(std::string_view content) {
    const bool written = ::ftruncate(descriptor_, 0) == 0 &&
                         ::pwrite(descriptor_, content.data(), content.size(), 0) == static_cast<ssize_t>(content.size());
    if (!written) finding("the input cannot be written to a file in memory");
    return path_;
  }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace msdbg::fuzz
