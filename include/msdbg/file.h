// The only way to read files: a regular file at offsets, a whole text with a limit, a window for parsers. Also the unlinked
// temporary file for data too large for memory.
//
// Every Status starts with the path. Tests inject faults below these functions (src/base/disk.h).
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/wire_fields.h"

namespace msdbg {

/// What tells whether a file or a directory is still the same.
struct FileStamp {
  uint64_t size = 0, inode = 0;
  int64_t modified = 0, changed = 0;  ///< nanoseconds: of the content, and of the content or the inode

  static FileStamp of(const struct stat& info);
  int64_t youngest() const { return modified > changed ? modified : changed; }
};

/// A regular file that is read at offsets, or a temporary file. Any thread may call read(); functions that change a temporary file
/// must not run while others use it.
class File {
 public:
  /// Never blocks, whatever the path is. Error: kNotFound; kIoError, also for anything that is not a regular file.
  static Result<File> open(const std::string& path);
  /// An unlinked file in TMPDIR; messages start with `name`. Error: kIoError with a hint about TMPDIR.
  static Result<File> temporary(const std::string& name);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  const std::string& path() const { return path_; }
  /// For an opened file its size at that time, for a temporary file the bytes written.
  uint64_t size() const { return stamp_.size; }
  /// Of an opened file at that time.
  const FileStamp& stamp() const { return stamp_; }

  /// Fills all of `out` from `offset` on. Error: kIoError, also if the file became shorter; kInterrupted.
  Status read(uint64_t offset, std::span<std::byte> out) const;
  /// The whole file. Error: as for read(); kCorrupt if it is longer than `limit` bytes.
  Result<std::string> text(uint64_t limit) const;
  /// Tells the operating system that the file will be read from front to back.
  void expect_sequential() const;

  // ---- only for temporary() ----
  /// Error: kIoError with a hint about TMPDIR.
  Status append(std::span<const std::byte> bytes);
  /// Drops everything after `size`.
  Status truncate(uint64_t size);
  /// Makes the file `size` bytes long and allocates the space on disk: a full disk is an error here, not a signal when a mapping is
  /// touched.
  Status reserve(uint64_t size);
  int descriptor() const { return descriptor_; }

 private:
  File(std::string path, std::string directory, int descriptor)
      : path_(std::move(path)), directory_(std::move(directory)), descriptor_(descriptor) {}
  Status failure(std::string_view what, int error) const;

  std::string path_;
  std::string directory_;  // of a temporary file, else ""
  int descriptor_ = -1;
  FileStamp stamp_;
};

/// The whole text of a regular file. Error: kNotFound, kIoError, kInterrupted; kCorrupt if it is longer than `limit` bytes.
Result<std::string> read_text(const std::string& path, uint64_t limit = uint64_t{1} << 30);
/// The same for paths that users type: also reads a pipe or a device, and waits for it.
Result<std::string> read_input(const std::string& path, uint64_t limit = uint64_t{1} << 30);
/// The lines of a file without their ends, \n or \r\n; a last line without an end is included.
Result<std::vector<std::string>> read_lines(const std::string& path, uint64_t limit = uint64_t{1} << 30);
/// For callers that handle the path separately: the Status without its leading path.
Status without_path(const Status& status, const std::string& path);

/// A file as a parser's source: small reads come from a window, large ones go directly to their destination. The file must live
/// longer. One thread.
class FileWindow : public ByteSource {
 public:
  /// After a jump, a quarter of the window precedes the requested offset, because parsers go back slightly.
  explicit FileWindow(const File& file, size_t window_bytes = 4096) : file_(file), window_(window_bytes) {}
  uint64_t size() const override { return file_.size(); }
  Status read(uint64_t offset, std::span<std::byte> out) override;

 private:
  const File& file_;
  std::vector<std::byte> window_;
  uint64_t begin_ = 0, end_ = 0;  // the contents of the window
};

}  // namespace msdbg
