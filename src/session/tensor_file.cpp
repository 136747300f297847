#include "msdbg/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "msdbg/file.h"
#include "msdbg/pt_file.h"
#include "session/file_reader.h"

namespace msdbg {
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

FileContent examine_torch(const File& file, std::span<const std::byte> head) {
  FileContent content;
  Result<PtTensor> tensor = read_pt_header(file, head);
  if (!tensor) {
    content.problem = Status(tensor.status().code(), "the file " + tensor.status().message());
    return content;
  }
  content.dtype = tensor->dtype;
  content.shape = std::move(tensor->shape);
  content.count = tensor->count;
  content.bytes = tensor->count * item_size(tensor->dtype);
  content.data_offset = tensor->first_byte;
  content.big_endian = tensor->big_endian;
  if (!tensor->contiguous) {
    content.strides = std::move(tensor->strides);
    content.extent = tensor->extent;
  }
  content.negative = tensor->negative;
  if (!is_evaluable(content.dtype)) {
    content.problem = Status(Code::kUnsupported, fmt::format("{} elements are not evaluated", tensor->type));
  } else if (content.negative && !is_float(content.dtype)) {
    content.problem = Status(Code::kUnsupported, fmt::format("negated {} elements are not evaluated", tensor->type));
  }
  return content;
}

FileContent examine(const File& file, const FileHints& hints, std::vector<std::byte>& head) {
  FileContent content;
  content.dtype = hints.dtype;
  head.resize(std::min<uint64_t>(file.size(), kHeadBytes));
  content.problem = without_path(file.read(0, head), file.path());
  if (!content.problem.ok()) return content;
  FileContent found = hints.form == FileForm::kRaw     ? examine_raw(file, hints)
                      : hints.form == FileForm::kTorch ? examine_torch(file, head)
                                                       : examine_npy(file, head);
  if (found.dtype == DType::kUnknown) found.dtype = hints.dtype;
  return found;
}

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
    opened.reader = make_file_reader(std::move(*file), opened.content, std::move(head));
  return opened;
}

}  // namespace msdbg
