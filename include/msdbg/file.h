// The only way to read files: a regular file at offsets, a whole text with a limit, a window for parsers. And the unlinked
// temporary file for data that memory should not hold.
//
// Every Status begins with the path. Tests inject faults below these functions (src/base/disk.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/wire_fields.h"

namespace msdbg {

/// A regular file that is read at offsets, or a temporary file. read() may be called from any thread; the functions that
/// change a temporary file may not be called while others use it.
class File {
 public:
  /// Never blocks, whatever the path is. Error: kNotFound; kIoError, also for anything but a regular file.
  static Result<File> open(const std::string& path);
  /// An unlinked file below TMPDIR; messages begin with `name`. Error: kIoError with a hint at TMPDIR.
  static Result<File> temporary(const std::string& name);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  const std::string& path() const { return path_; }
  /// For an opened file its size at that time, for a temporary one what was written.
  uint64_t size() const { return size_; }

  /// Fills all of `out` from `offset` on. Error: kIoError, also when the file became shorter; kInterrupted.
  Status read(uint64_t offset, std::span<std::byte> out) const;
  /// All of it. Error: as read(); kCorrupt when it is longer than `limit` bytes.
  Result<std::string> text(uint64_t limit) const;
  /// Tells the operating system that the file will be read from front to back.
  void expect_sequential() const;

  // ---- only for temporary() ----
  /// Error: kIoError with a hint at TMPDIR.
  Status append(std::span<const std::byte> bytes);
  /// Drops everything after `size`.
  Status truncate(uint64_t size);
  /// Makes the file `size` bytes long, on the disk too: a full disk is an error here, not a signal when a mapping is touched.
  Status reserve(uint64_t size);
  int descriptor() const { return descriptor_; }

 private:
  File(std::string path, std::string directory, int descriptor)
      : path_(std::move(path)), directory_(std::move(directory)), descriptor_(descriptor) {}
  Status failure(std::string_view what, int error) const;

  std::string path_;
  std::string directory_;  // of a temporary file, else ""
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

/// The whole text of a regular file. Error: kNotFound, kIoError, kInterrupted; kCorrupt when it is longer than `limit` bytes.
Result<std::string> read_text(const std::string& path, uint64_t limit = uint64_t{1} << 30);
/// The same for paths that people type: a pipe or a device is read too, and waited for.
Result<std::string> read_input(const std::string& path, uint64_t limit = uint64_t{1} << 30);
/// The lines of a file without their ends, \n or \r\n; a last line without one is kept.
Result<std::vector<std::string>> read_lines(const std::string& path, uint64_t limit = uint64_t{1} << 30);
/// For callers that keep the path apart: the Status without the path that it begins with.
Status without_path(const Status& status, const std::string& path);

/// A file as a parser's source: small reads are served from a window, large ones go straight to their place. The file must
/// live longer. For one thread.
class FileWindow : public ByteSource {
 public:
  /// After a jump a quarter of the window is before the place that was asked for, because parsers go back a little.
  explicit FileWindow(const File& file, size_t window_bytes = 4096) : file_(file), window_(window_bytes) {}
  uint64_t size() const override { return file_.size(); }
  Status read(uint64_t offset, std::span<std::byte> out) override;

 private:
  const File& file_;
  std::vector<std::byte> window_;
  uint64_t begin_ = 0, end_ = 0;  // what the window holds
};

}  // namespace msdbg
