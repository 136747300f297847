#include "session/dump/tensor_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "session/dump/element_order.h"

namespace msdbg::dump {
namespace {

/// Small tensors come with their header in one read.
constexpr size_t kHeadBytes = 16 << 10;
/// Headers of the second and third version may be long; no real one comes near this.
constexpr uint64_t kMaxHeader = 1 << 20;
/// Between two looks at the interrupt flag.
constexpr size_t kChunkBytes = 16 << 20;
constexpr std::string_view kMagic = "\x93NUMPY";

class OpenFile {
 public:
  OpenFile() = default;
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(OpenFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_), path_(std::move(other.path_)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  Status open(const std::string& path) {
    path_ = path;
    // Non-blocking, so that a pipe under the name of a tensor cannot hold us; regular files do not mind.
    do {
      descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) return error("cannot be opened", errno);
    struct stat status;
    if (fstat(descriptor_, &status) != 0) return error("cannot be examined", errno);
    if (S_ISDIR(status.st_mode)) return Status(Code::kIoError, "cannot be read: it is a directory, not a file");
    if (!S_ISREG(status.st_mode)) return Status(Code::kIoError, "cannot be read: it is not a regular file");
    size_ = static_cast<uint64_t>(status.st_size);
    return {};
  }

  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  void expect_sequential() const { posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL); }

  Status read(uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const size_t wanted = std::min(out.size(), kChunkBytes);
      const ssize_t n = pread(descriptor_, out.data(), wanted, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return error("cannot be read", errno);
      if (n == 0) return Status(Code::kIoError, "shrank while it was read; is the run still writing?");
      out = out.subspan(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
      if (!out.empty() && interrupt_requested())
        return Status(Code::kInterrupted, "interrupted while reading a tensor");
    }
    return {};
  }

 private:
  static Status error(const char* what, int number) {
    return Status(Code::kIoError, fmt::format("{}: {}", what, std::generic_category().message(number)));
  }

  int descriptor_ = -1;
  uint64_t size_ = 0;
  std::string path_;
};

Status unsupported(DType dtype) {
  return Status(Code::kUnsupported, fmt::format("{} elements are not evaluated", dtype_name(dtype)));
}

/// Header of 2 bytes length in version 1, of 4 in later ones.
uint64_t header_end(std::span<const std::byte> head) {
  if (head.size() < 12) return 0;
  const auto byte = [&](size_t i) { return std::to_integer<uint64_t>(head[i]); };
  if (byte(6) <= 1) return 10 + (byte(8) | byte(9) << 8);
  return 12 + (byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24);
}

void compare_size(FileContent& content, uint64_t file_bytes, std::string_view who) {
  const uint64_t there = file_bytes - std::min(file_bytes, content.data_offset);
  if (there < content.bytes) {
    content.problem = Status(
        Code::kCorrupt, fmt::format("file is cut off: {} promises {} bytes, {} are there", who, content.bytes, there));
  } else if (there > content.bytes) {
    content.note = fmt::format("the file holds {} bytes more than {} promises", there - content.bytes, who);
  }
}

FileContent examine_npy(const OpenFile& file, std::vector<std::byte>& head) {
  FileContent content;
  if (file.size() == 0) {
    content.problem = Status(Code::kCorrupt, "file is empty (0 bytes)");
    return content;
  }
  const size_t known = std::min(head.size(), kMagic.size());
  if (std::memcmp(head.data(), kMagic.data(), known) != 0) {
    std::string bytes;
    for (size_t i = 0; i < std::min<size_t>(4, head.size()); ++i) {
      bytes += fmt::format("{}{:02x}", i ? " " : "", std::to_integer<int>(head[i]));
    }
    content.problem = Status(Code::kCorrupt, fmt::format("not an npy file (starts with {})", bytes));
    return content;
  }
  const uint64_t end = header_end(head);
  if (end > head.size() && end <= file.size() && end <= kMaxHeader) {
    head.resize(end);
    content.problem = file.read(0, head);
    if (!content.problem.ok()) return content;
  } else if (end > file.size() || file.size() < 12) {
    content.problem =
        Status(Code::kCorrupt, fmt::format("file is cut off inside its header ({} bytes are there)", file.size()));
    return content;
  }
  Result<NpyHeader> header = parse_npy_header(head);
  if (!header) {
    content.problem = header.status();
    return content;
  }
  content.dtype = header->dtype;
  content.shape = std::move(header->shape);
  content.count = header->count;
  content.bytes = header->count * item_size(header->dtype);
  content.data_offset = header->data_offset;
  content.big_endian = header->big_endian;
  content.fortran_order = header->fortran_order;
  if (item_size(content.dtype) > 0) compare_size(content, file.size(), "header");
  if (content.problem.ok() && !is_evaluable(content.dtype)) content.problem = unsupported(content.dtype);
  return content;
}

FileContent examine_raw(const OpenFile& file, const FileHints& hints) {
  FileContent content;
  content.dtype = hints.dtype;
  const size_t item = item_size(hints.dtype);
  if (item == 0 || !is_evaluable(hints.dtype)) {
    content.problem = unsupported(hints.dtype);
    return content;
  }
  if (hints.shape) {
    content.shape = *hints.shape;
  } else if (file.size() / item != 1) {
    content.shape = {static_cast<int64_t>(file.size() / item)};
  }
  const std::optional<uint64_t> count = element_count(content.shape);
  if (!count || *count > (uint64_t{1} << 60) / item) {
    content.problem = Status(Code::kCorrupt, fmt::format("no file can hold the shape {}", shape_text(content.shape)));
    return content;
  }
  content.count = *count;
  content.bytes = *count * item;
  compare_size(content, file.size(), "file name");
  return content;
}

FileContent examine(OpenFile& file, const std::string& path, const FileHints& hints, std::vector<std::byte>& head) {
  FileContent content;
  content.dtype = hints.dtype;
  content.problem = file.open(path);
  if (!content.problem.ok()) return content;
  head.resize(std::min<uint64_t>(file.size(), kHeadBytes));
  content.problem = file.read(0, head);
  if (!content.problem.ok()) return content;
  FileContent found = hints.kind == FileKind::kRaw ? examine_raw(file, hints) : examine_npy(file, head);
  if (found.dtype == DType::kUnknown) found.dtype = hints.dtype;
  return found;
}

class FileReader : public ElementReader {
 public:
  FileReader(OpenFile file, FileContent content, std::vector<std::byte> head)
      : ElementReader(content.dtype, content.count), file_(std::move(file)), content_(std::move(content)), head_(std::move(head)) {
    if (content_.data_offset + content_.bytes > head_.size()) file_.expect_sequential();
  }

 private:
  Status fill(uint64_t first, std::span<std::byte> out) override {
    const size_t item = item_size(content_.dtype);
    if (content_.fortran_order && content_.shape.size() > 1) {
      if (Status status = load_rows(); !status.ok()) return status;
      if (!out.empty()) std::memcpy(out.data(), rows_.data() + first * item, out.size());
      return {};
    }
    if (Status status = read_bytes(content_.data_offset + first * item, out); !status.ok()) return named(status);
    if (content_.big_endian) swap_bytes(out, item);
    return {};
  }

  Status named(const Status& status) const {
    return Status(status.code(), fmt::format("{}: {}", file_.path(), status.message()));
  }

  Status read_bytes(uint64_t offset, std::span<std::byte> out) {
    if (offset < head_.size() && !out.empty()) {
      const size_t n = std::min<uint64_t>(out.size(), head_.size() - offset);
      std::memcpy(out.data(), head_.data() + offset, n);
      out = out.subspan(n);
      offset += n;
    }
    return file_.read(offset, out);
  }

  /// Column-major files are turned once, in memory; only tools other than MindSpore write them.
  Status load_rows() {
    if (!rows_.empty() || content_.bytes == 0) return {};
    const size_t item = item_size(content_.dtype);
    std::vector<std::byte> columns(content_.bytes);
    if (Status status = read_bytes(content_.data_offset, columns); !status.ok()) return named(status);
    if (content_.big_endian) swap_bytes(columns, item);
    rows_ = to_row_major(columns, content_.shape, item);
    return {};
  }

  OpenFile file_;
  FileContent content_;
  std::vector<std::byte> head_;  // the first bytes of the file, header included
  std::vector<std::byte> rows_;
};

}  // namespace

TensorFile open_tensor_file(const std::string& path, const FileHints& hints) {
  OpenFile file;
  std::vector<std::byte> head;
  TensorFile opened;
  opened.content = examine(file, path, hints, head);
  if (opened.content.problem.ok())
    opened.reader = std::make_unique<FileReader>(std::move(file), opened.content, std::move(head));
  return opened;
}

}  // namespace msdbg::dump
