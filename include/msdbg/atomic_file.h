// The one way to write a finished file: what lies under the path is the old file or the whole new one, never half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "msdbg/base.h"

namespace msdbg {

/// A file that is written beside its place and takes that place when it is complete. Every Status begins with the path.
/// Devices and pipes are never replaced: they take the bytes directly.
class AtomicFile {
 public:
  /// `path` may name a link: what it points at is replaced then. Error: kIoError.
  static Result<AtomicFile> create(const std::string& path);
  /// Without commit() nothing has happened.
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  Status append(std::span<const std::byte> bytes);
  Status append(std::string_view text) { return append(std::as_bytes(std::span(text.data(), text.size()))); }
  /// The bytes are on the disk, then the name changes hands. A file that is replaced passes on its permissions; a new one
  /// gets those of the umask.
  Status commit();

 private:
  AtomicFile() = default;
  Status failure(std::string_view what, int error) const;

  std::string path_;    // as the caller spelled it
  std::string target_;  // what is replaced: path_ with links followed
  std::string beside_;
  int descriptor_ = -1;
  bool special_ = false;  // a device or a pipe
  uint64_t size_ = 0;
};

/// Replaces a file by `text`, whole or not at all.
Status write_file(const std::string& path, std::string_view text);

/// Adds to the end of a file, which is made where there is none. Error: kIoError, with the path.
Status append_to_file(const std::string& path, std::string_view text);

}  // namespace msdbg
