#include "session/dump/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "msdbg/file.h"
#include "msdbg/log.h"
#include "session/dump/element_order.h"

namespace msdbg::dump {
namespace {

/// Reads a small tensor and its header at once.
constexpr size_t kHeadBytes = 16 << 10;
/// Headers of versions 2 and 3 may be long; no real one comes near this.
constexpr uint64_t kMaxHeader = 1 << 20;
constexpr std::string_view kMagic = "\x93NUMPY";

Status unsupported(DType dtype) {
  return Status(Code::kUnsupported, fmt::format("{} elements are not evaluated", dtype_name(dtype)));
}

/// The length of the header takes 2 bytes in version 1, 4 in later ones.
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

/// MindSpore 2.10 on a CPU may compute half precision in float32 and write that under the header of a float16 tensor.
void widen_if_written_in_single(FileContent& content, uint64_t file_bytes) {
  if (content.dtype != DType::kFloat16 || content.count == 0 || file_bytes != content.data_offset + 2 * content.bytes) return;
  content.dtype = DType::kFloat32;
  content.bytes *= 2;
  content.note = "the header says float16, but the file holds four bytes for each element: read as float32";
}

FileContent examine_npy(const File& file, std::vector<std::byte>& head) {
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
    content.problem = without_path(file.read(0, head), file.path());
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
  widen_if_written_in_single(content, file.size());
  if (item_size(content.dtype) > 0) compare_size(content, file.size(), "header");
  if (content.problem.ok() && !is_evaluable(content.dtype)) content.problem = unsupported(content.dtype);
  return content;
}

FileContent examine_raw(const File& file, const FileHints& hints) {
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

FileContent examine(const File& file, const FileHints& hints, std::vector<std::byte>& head) {
  FileContent content;
  content.dtype = hints.dtype;
  head.resize(std::min<uint64_t>(file.size(), kHeadBytes));
  content.problem = without_path(file.read(0, head), file.path());
  if (!content.problem.ok()) return content;
  FileContent found = hints.kind == FileKind::kRaw ? examine_raw(file, hints) : examine_npy(file, head);
  if (found.dtype == DType::kUnknown) found.dtype = hints.dtype;
  return found;
}

class FileReader : public ElementReader {
 public:
  FileReader(File file, FileContent content, std::vector<std::byte> head)
      : ElementReader(content.dtype, content.count), file_(std::move(file)), content_(std::move(content)), head_(std::move(head)) {
    if (content_.data_offset + content_.bytes > head_.size()) file_.expect_sequential();
  }
  ~FileReader() override {
    if (!log_wanted(LogLevel::kDebug)) return;
    log(LogLevel::kDebug, fmt::format("read {}: {}", file_.path(), format_reading(content_.bytes, watch_.seconds())));
  }
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

 private:
  Status fill(uint64_t first, std::span<std::byte> out) override {
    const size_t item = item_size(content_.dtype);
    if (content_.fortran_order && content_.shape.size() > 1) {
      if (Status status = load_rows(); !status.ok()) return status;
      if (!out.empty()) std::memcpy(out.data(), rows_.data() + first * item, out.size());
      return {};
    }
    if (Status status = read_bytes(content_.data_offset + first * item, out); !status.ok()) return status;
    if (content_.big_endian) swap_bytes(out, item);
    return {};
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

  /// Transposes a column-major file in memory; only tools other than MindSpore write them.
  Status load_rows() {
    if (!rows_.empty() || content_.bytes == 0) return {};
    const size_t item = item_size(content_.dtype);
    std::vector<std::byte> columns(content_.bytes);
    if (Status status = read_bytes(content_.data_offset, columns); !status.ok()) return status;
    if (content_.big_endian) swap_bytes(columns, item);
    rows_ = to_row_major(columns, content_.shape, item);
    return {};
  }

  File file_;
  FileContent content_;
  std::vector<std::byte> head_;  // the first bytes of the file, header included
  std::vector<std::byte> rows_;
  Stopwatch watch_;
};

}  // namespace

TensorFile open_tensor_file(const std::string& path, const FileHints& hints) {
  TensorFile opened;
  Result<File> file = File::open(path);
  if (!file) {
    opened.content.dtype = hints.dtype;
    // A file deleted after the directory was listed is an error, not a tensor that was never dumped.
    opened.content.problem = Status(Code::kIoError, without_path(file.status(), path).message());
    return opened;
  }
  std::vector<std::byte> head;
  opened.content = examine(*file, hints, head);
  if (opened.content.problem.ok())
    opened.reader = std::make_unique<FileReader>(std::move(*file), opened.content, std::move(head));
  return opened;
}

}  // namespace msdbg::dump
