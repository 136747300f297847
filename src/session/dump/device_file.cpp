#include "session/dump/device_file.h"

#include <fmt/format.h>

#include "session/dump/container_value.h"
#include "session/dump/dump_session.h"

namespace msdbg::dump {
namespace {

/// How the file's elements become the tensor's; nullopt if that is not certain.
std::optional<DeviceLayout> layout_of(std::string_view format, const FileContent& content, uint64_t bytes, const Shape* shape) {
  const size_t item = item_size(content.dtype);
  const auto fits = [&](const Result<DeviceLayout>& layout) {
    return layout.ok() && layout->device_count() == bytes / item && bytes % item == 0;
  };
  const bool header_has_own_shape = shape != nullptr ? *shape == content.shape : bytes != content.count * item;
  if (header_has_own_shape) {
    // Without the graph, only padding proves that the header does not have the device's shape.
    Result<DeviceLayout> layout = DeviceLayout::create(format, {}, content.shape, content.dtype);
    if (fits(layout)) return std::move(*layout);
  } else if (shape != nullptr) {
    Result<DeviceLayout> layout = DeviceLayout::create(format, content.shape, *shape, content.dtype);
    if (fits(layout)) return std::move(*layout);
  }
  return std::nullopt;
}

}  // namespace

TensorFile open_device_file(const std::string& path, std::string_view format, const FileHints& hints, const Shape* shape) {
  TensorFile opened = open_tensor_file(path, hints);
  FileContent& content = opened.content;
  opened.reader.reset();
  if (!content.problem.ok()) return opened;
  content.problem = content_problem(FileKind::kNpy, format);
  Result<File> file = File::open(path);
  const size_t item = item_size(content.dtype);
  if (!file || content.big_endian || content.fortran_order || item == 0 || item > 8 || file->size() < content.data_offset) return opened;
  ContainerTensor stored;
  stored.offset = content.data_offset;
  stored.bytes = stored.present = file->size() - content.data_offset;
  std::optional<DeviceLayout> layout = layout_of(format, content, stored.bytes, shape);
  if (!layout || layout->host_count() == 0) return opened;
  content.shape = shape != nullptr ? *shape : content.shape;
  content.count = layout->host_count();
  content.bytes = content.count * item;
  content.note.clear();  // about the padding
  content.problem = {};
  ContainerValue value;
  value.content = content;
  value.elements = std::make_unique<DeviceElements>(std::move(*file), stored, std::move(*layout), item, false);
  opened.reader = make_container_reader(std::move(value));
  return opened;
}

}  // namespace msdbg::dump
