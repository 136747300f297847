#include <fmt/format.h>

#include <limits>

#include "msdbg/tensor.h"

namespace msdbg {

std::optional<uint64_t> element_count(std::span<const int64_t> shape) {
  constexpr auto kLimit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t count = 1;
  bool empty = false;
  for (const int64_t length : shape) {
    if (length < 0) return std::nullopt;
    empty = empty || length == 0;
  }
  if (empty) return 0;
  for (const int64_t length : shape) {
    const auto factor = static_cast<uint64_t>(length);
    if (count > kLimit / factor) return std::nullopt;
    count *= factor;
  }
  return count;
}

std::string shape_text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

std::vector<int64_t> coordinates(uint64_t flat, std::span<const int64_t> shape) {
  std::vector<int64_t> at(shape.size(), 0);
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] <= 0) continue;
    const auto length = static_cast<uint64_t>(shape[axis]);
    at[axis] = static_cast<int64_t>(flat % length);
    flat /= length;
  }
  return at;
}

Result<TensorPtr> TensorBuffer::create(DType dtype, Shape shape, std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> view(*owner);
  return create(dtype, std::move(shape), view, std::move(owner));
}

Result<TensorPtr> TensorBuffer::create(DType dtype, Shape shape, std::span<const std::byte> bytes,
                                       std::shared_ptr<const void> owner) {
  const std::optional<uint64_t> count = element_count(shape);
  if (!count) {
    return Status(Code::kInvalidArgument,
                  fmt::format("tensor: shape {} has a negative axis or too many elements", shape_text(shape)));
  }
  const size_t size = item_size(dtype);
  // Types without a fixed size are shown as raw bytes of any number.
  if (size != 0 && (*count > std::numeric_limits<uint64_t>::max() / size || *count * size != bytes.size())) {
    return Status(Code::kInvalidArgument,
                  fmt::format("tensor: {} {} needs {} elements of {} bytes, {} bytes were given", dtype_name(dtype),
                              shape_text(shape), *count, size, bytes.size()));
  }
  return TensorPtr(new TensorBuffer(dtype, std::move(shape), bytes, std::move(owner), *count));
}

}  // namespace msdbg
