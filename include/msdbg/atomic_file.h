// The only way to write a finished file: the path holds either the old file or the complete new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "msdbg/base.h"

namespace msdbg {

/// A file that is written next to its final path and renamed when it is complete. Every Status starts with the path. Devices and
/// pipes are never replaced: they are written directly.
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
  /// Syncs the bytes to disk, then renames the file. A new file gets the permissions of the replaced one, or those of the umask.
  Status commit();

 private:
  AtomicFile() = default;
  Status failure(std::string_view what, int error) const;

  std::string path_;    // as given by the caller
  std::string target_;  // the file to replace: path_ with links resolved
  std::string temporary_path_;
  int descriptor_ = -1;
  bool special_ = false;  // a device or a pipe
  uint64_t size_ = 0;
};

/// Replaces the contents of a file by `text`, atomically.
Status write_file(const std::string& path, std::string_view text);

/// Appends to a file, which is created if necessary. Error: kIoError, with the path.
Status append_to_file(const std::string& path, std::string_view text);

}  // namespace msdbg
