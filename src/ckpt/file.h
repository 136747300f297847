// A file that is read at offsets, or the unlinked temporary file that holds what was decrypted.
//
// Immutable once filled; read() may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "msdbg/base.h"

namespace msdbg::ckpt {

class File {
 public:
  /// Error: kNotFound, kIoError; for what is no regular file kIoError.
  static Result<std::shared_ptr<File>> open(const std::string& path);
  /// An unlinked file below TMPDIR; messages name `path`.
  static Result<std::shared_ptr<File>> temporary(const std::string& path);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// All of `out`, from `offset` on. Error: kIoError, kInterrupted.
  Status read(uint64_t offset, std::span<std::byte> out) const;
  /// Only for temporary().
  Status append(std::span<const std::byte> bytes);
  /// Only for temporary(): forgets what lies behind `size`.
  Status truncate(uint64_t size);

 private:
  File(std::string path, int descriptor, uint64_t size) : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

  std::string path_;
  int descriptor_;
  uint64_t size_;
};

/// Little-endian numbers of the formats.
inline uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

}  // namespace msdbg::ckpt
