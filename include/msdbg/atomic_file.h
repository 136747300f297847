// The only way to write a finished file: the path holds the old file or the complete new one, never a part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "msdbg/base.h"

namespace msdbg {

/// A file that is written next to its final path and moved there when it is complete. Every Status begins with the path.
/// Devices and pipes are never replaced: they take the bytes directly.
class AtomicFile {
 public:
  /// If `path` is a link, its target is replaced. Error: kIoError.
  static Result<AtomicFile> create(const std::string& path);
  /// Without commit() nothing changes.
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
  std::string temporary_path_;
  int descriptor_ = -1;
  bool special_ = false;  // a device or a pipe
  uint64_t size_ = 0;
};

/// Replaces a file by `text`, whole or not at all.
Status write_file(const std::string& path, std::string_view text);

/// Adds to the end of a file, which is made where there is none. Error: kIoError, with the path.
Status append_to_file(const std::string& path, std::string_view text);

}  // namespace msdbg
