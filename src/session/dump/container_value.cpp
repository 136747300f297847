#include "session/dump/container_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "msdbg/log.h"

namespace msdbg::dump {
namespace {

/// Bytes of the device's memory that are read at once: fewer make many short reads, more leave a second-level cache of 1 MiB before they
/// are converted.
constexpr uint64_t kBandBytes = 832 << 10;

Status container_unsupported(std::string text) { return Status(Code::kUnsupported, std::move(text)); }

std::string_view host_format(const Shape& shape) { return shape.size() == 4 ? "NCHW" : "ND"; }

/// What the tensor's own shape is, and how its elements get there.
struct Arrangement {
  Shape shape;
  std::optional<DeviceLayout> layout;
  bool device_order = false;
  std::string note;
};

Arrangement as_on_the_device(const ContainerTensor& tensor, DType dtype, std::string note) {
  Arrangement out;
  out.shape = tensor.device_shape;
  out.note = std::move(note);
  out.device_order = true;
  if (auto layout = DeviceLayout::create("ND", out.shape, out.shape, dtype); layout) out.layout = std::move(*layout);
  return out;
}

Arrangement arrange(const ContainerTensor& tensor, DType dtype) {
  const std::string_view format = container_format_name(tensor.format);
  const bool plain = is_plain_device_format(format);
  if (!tensor.host_shape || (tensor.host_shape->empty() && !tensor.device_shape.empty())) {
    if (!plain) {
      return as_on_the_device(tensor, dtype,
                              fmt::format("in the order of the device, {}: the container does not know the tensor's own shape", format));
    }
    Arrangement out = as_on_the_device(tensor, dtype, "");
    out.device_order = false;
    return out;
  }
  const uint64_t groups = tensor.sub_format > 1 ? static_cast<uint64_t>(tensor.sub_format) : 1;
  Result<DeviceLayout> layout = DeviceLayout::create(format, tensor.device_shape, *tensor.host_shape, dtype, groups);
  if (!layout) return as_on_the_device(tensor, dtype, fmt::format("in the order of the device: {}", layout.status().message()));
  Arrangement out;
  out.shape = *tensor.host_shape;
  out.layout = std::move(*layout);
  return out;
}

std::string slot_text(Slot slot) { return fmt::format("{} {}", slot.io == Io::kInput ? "input" : "output", slot.index); }

class ContainerElements final : public ElementReader {
 public:
  ContainerElements(DType dtype, std::unique_ptr<DeviceElements> elements)
      : ElementReader(dtype, elements->count()), elements_(std::move(elements)) {}
  const FileStamp* file() const override { return &elements_->file().stamp(); }

 private:
  Status fill(uint64_t first, std::span<std::byte> out) override { return elements_->read(first, out); }

  std::unique_ptr<DeviceElements> elements_;
};

}  // namespace

DeviceElements::DeviceElements(File file, const ContainerTensor& tensor, DeviceLayout layout, size_t item, bool packed)
    : file_(std::move(file)), offset_(tensor.offset), layout_(std::move(layout)), item_(item), packed_(packed) {
  if (tensor.bytes > kBandBytes) file_.expect_sequential();
}

/// Elements as they are on the device.
Status DeviceElements::read_device(uint64_t first, std::span<std::byte> out) {
  if (!packed_) return file_.read(offset_ + first * item_, out);
  // Two elements in a byte, the lower four bits first.
  const uint64_t begin = first / 2, end = (first + out.size() + 1) / 2;
  nibbles_.resize(end - begin);
  if (Status status = file_.read(offset_ + begin, nibbles_); !status.ok()) return status;
  for (uint64_t i = 0; i < out.size(); ++i) {
    const uint64_t at = first + i;
    const unsigned byte = std::to_integer<unsigned>(nibbles_[at / 2 - begin]);
    const unsigned four = at % 2 == 0 ? byte & 15 : byte >> 4;
    out[i] = static_cast<std::byte>((four ^ 8) - 8);
  }
  return {};
}

std::span<std::byte> DeviceElements::Buffer::room(size_t bytes) {
  constexpr size_t kLine = 64;
  if (size_ < bytes + kLine) {
    size_ = bytes + kLine;
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(size_);
  }
  void* at = bytes_.get();
  size_t space = size_;
  return {static_cast<std::byte*>(std::align(kLine, bytes, at, space)), bytes};
}

/// A large block of channels, a part of its places at a time: the parts stay in the cache until they are converted.
Status DeviceElements::load_columns(const DeviceLayout::Columns& columns) {
  const uint64_t most = std::max<uint64_t>(1, kBandBytes / 4 / item_ / columns.step);
  const auto stored = stored_.room(most * columns.step * item_);
  converted_ = whole_.room((band_.end - band_.first) * item_);
  for (uint64_t first = 0; first < columns.places; first += most) {
    const uint64_t count = std::min(most, columns.places - first);
    const auto part = stored.first(count * columns.step * item_);
    if (Status status = read_device(band_.start + first * columns.step, part); !status.ok()) {
      band_ = {};
      return status;
    }
    layout_.convert_columns(columns, part, item_, first, count, converted_);
  }
  return {};
}

Status DeviceElements::load(uint64_t host) {
  band_ = layout_.band_at(host, kBandBytes / item_);
  if (const DeviceLayout::Columns columns = layout_.columns_of(band_); columns.places > 0) return load_columns(columns);
  loaded_ = stored_.room(band_.elements() * item_);
  for (uint64_t piece = 0; piece < band_.pieces; ++piece) {
    const auto to = loaded_.subspan(piece * band_.stored_pitch * item_, band_.piece * item_);
    if (Status status = read_device(band_.start + piece * band_.pitch, to); !status.ok()) {
      band_ = {};
      return status;
    }
  }
  if (!layout_.wants_whole_bands()) return {};
  converted_ = whole_.room((band_.end - band_.first) * item_);
  layout_.convert(band_, loaded_, item_, band_.first, converted_);
  return {};
}

Status DeviceElements::read(uint64_t first, std::span<std::byte> out) {
  if (layout_.is_identity()) return out.empty() ? Status() : read_device(first, out);
  while (!out.empty()) {
    if (!band_.holds(first)) {
      if (Status status = load(first); !status.ok()) return status;
    }
    const uint64_t count = std::min<uint64_t>(out.size() / item_, band_.end - first);
    const auto part = out.first(count * item_);
    if (layout_.wants_whole_bands()) std::memcpy(part.data(), converted_.data() + (first - band_.first) * item_, part.size());
    else layout_.convert(band_, loaded_, item_, first, part);
    first += count;
    out = out.subspan(part.size());
  }
  return {};
}

ContainerValue open_container_value(File file, const ContainerTensor& tensor) {
  ContainerValue value;
  FileContent& content = value.content;
  value.format = container_format_name(tensor.format);
  content.dtype = container_dtype(tensor.type);
  content.bytes = tensor.bytes;
  const bool packed = content.dtype == DType::kInt4;
  const size_t item = packed ? 1 : item_size(content.dtype);
  if (item == 0) {
    content.shape = tensor.host_shape.value_or(tensor.device_shape);
    content.count = element_count(content.shape).value_or(0);
    content.problem = container_unsupported(fmt::format("{} elements are not evaluated", container_type_name(tensor.type)));
    return value;
  }
  Arrangement arrangement = arrange(tensor, content.dtype);
  if (packed) content.dtype = DType::kInt8;
  content.shape = std::move(arrangement.shape);
  content.note = std::move(arrangement.note);
  value.device_order = arrangement.device_order;
  if (!arrangement.device_order) value.format = host_format(content.shape);
  if (!arrangement.layout) {
    content.problem = Status(Code::kCorrupt, fmt::format("no device can hold the shape {}", shape_text(content.shape)));
    return value;
  }
  DeviceLayout& layout = *arrangement.layout;
  content.count = layout.host_count();
  const uint64_t elements = layout.device_count();
  if (elements > UINT64_MAX / 16) {
    content.problem = Status(Code::kCorrupt, fmt::format("no device can hold the shape {}", shape_text(content.shape)));
    return value;
  }
  const uint64_t needed = packed ? (elements + 1) / 2 : elements * item;
  content.bytes = content.count * item;
  if (tensor.bytes < needed) {
    content.problem = Status(Code::kCorrupt, fmt::format("the container has {} bytes for {}, its shape {} needs {}", tensor.bytes,
                                                         slot_text(tensor.slot), shape_text(layout.device_shape()), needed));
  } else if (tensor.present < needed) {
    content.problem = Status(Code::kCorrupt, fmt::format("file is cut off: {} should have {} bytes, {} are there", slot_text(tensor.slot),
                                                         tensor.bytes, tensor.present));
  } else if (item > 8 && !layout.is_identity()) {
    content.problem = container_unsupported(fmt::format("{} elements are not converted from the order of the device",
                                                        dtype_name(content.dtype)));
  } else {
    if (tensor.bytes > needed) {
      content.note += fmt::format("{}the container holds {} bytes more than the shape needs", content.note.empty() ? "" : "; ",
                                  tensor.bytes - needed);
    }
    value.elements = std::make_unique<DeviceElements>(std::move(file), tensor, std::move(layout), item, packed);
    if (!is_evaluable(content.dtype)) {
      content.problem = container_unsupported(fmt::format("{} elements are not evaluated", dtype_name(content.dtype)));
    }
  }
  return value;
}

std::string_view container_host_format(const ContainerTensor& tensor) {
  const Arrangement arrangement = arrange(tensor, container_dtype(tensor.type));
  return arrangement.device_order ? container_format_name(tensor.format) : host_format(arrangement.shape);
}

ContainerValue open_container_value(const std::string& path, Slot slot) {
  ContainerValue value;
  Result<File> file = File::open(path);
  if (!file) {
    value.content.problem = Status(Code::kIoError, without_path(file.status(), path).message());
    return value;
  }
  const Result<Container> container = read_container(*file);
  if (!container) {
    value.content.problem = Status(container.status().code(), "the container " + container.status().message());
    return value;
  }
  for (const ContainerTensor& tensor : container->tensors) {
    if (tensor.slot == slot) return open_container_value(std::move(*file), tensor);
  }
  value.content.problem = Status(Code::kCorrupt, fmt::format("the container has no {}", slot_text(slot)));
  return value;
}

std::unique_ptr<ElementReader> make_container_reader(ContainerValue value) {
  return std::make_unique<ContainerElements>(value.content.dtype, std::move(value.elements));
}

}  // namespace msdbg::dump
