#include "agent/value_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <limits>

namespace msdbg::agent {
namespace {

constexpr uint64_t kMostBytes = std::numeric_limits<int64_t>::max();

/// The distance of the last element from the first, in bytes, stays within the address space.
bool fits(const Shape& shape, std::span<const int64_t> strides, size_t item) {
  int64_t reach = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t step = 0, bytes = 0;
    // The smallest number has no positive counterpart.
    if (strides[i] == std::numeric_limits<int64_t>::min()) return false;
    const int64_t stride = strides[i] < 0 ? -strides[i] : strides[i];
    if (__builtin_mul_overflow(shape[i] - 1, stride, &step) || __builtin_mul_overflow(step, static_cast<int64_t>(item), &bytes) ||
        __builtin_add_overflow(reach, bytes, &reach)) {
      return false;
    }
  }
  return true;
}

/// Whether the elements lie row by row; dimensions of size 1 have no say.
bool is_contiguous(const Shape& shape, std::span<const int64_t> strides) {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

}  // namespace

Result<uint64_t> checked_bytes(DType dtype, const Shape& shape) {
  if (item_size(dtype) == 0) return Status(Code::kInvalidArgument, "a type that is not known: use a name such as float32");
  const std::optional<uint64_t> count = element_count(shape);
  uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, uint64_t{item_size(dtype)}, &bytes) || bytes > kMostBytes) {
    return Status(Code::kInvalidArgument, fmt::format("a shape that no tensor has: [{}]", fmt::join(shape, ", ")));
  }
  return bytes;
}

Result<std::vector<std::byte>> gather(DType dtype, const Shape& shape, std::span<const int64_t> strides, const void* data) {
  const Result<uint64_t> bytes = checked_bytes(dtype, shape);
  if (!bytes) return bytes.status();
  if (data == nullptr && *bytes > 0) return Status(Code::kInvalidArgument, "no memory: data is null");
  const size_t item = item_size(dtype);
  std::vector<std::byte> out(*bytes);
  if (out.empty()) return out;
  if (!strides.empty() && strides.size() != shape.size()) {
    return Status(Code::kInvalidArgument, fmt::format("{} strides for {} dimensions", strides.size(), shape.size()));
  }
  if (!strides.empty() && !fits(shape, strides, item)) {
    return Status(Code::kInvalidArgument, fmt::format("strides that lead out of memory: [{}]", fmt::join(strides, ", ")));
  }
  const auto* from = static_cast<const std::byte*>(data);
  if (strides.empty() || is_contiguous(shape, strides)) {
    std::memcpy(out.data(), from, out.size());
    return out;
  }
  Shape at(shape.size(), 0);
  const auto inner = static_cast<size_t>(shape.back());
  const int64_t step = strides.back() * static_cast<int64_t>(item);
  std::byte* to = out.data();
  while (true) {
    int64_t offset = 0;
    for (size_t i = 0; i + 1 < shape.size(); ++i) offset += at[i] * strides[i];
    const std::byte* row = from + offset * static_cast<int64_t>(item);
    if (strides.back() == 1) {
      std::memcpy(to, row, inner * item);
    } else {
      for (size_t i = 0; i < inner; ++i) std::memcpy(to + i * item, row + static_cast<int64_t>(i) * step, item);
    }
    to += inner * item;
    size_t dimension = shape.size() - 1;
    while (dimension > 0 && ++at[dimension - 1] == shape[dimension - 1]) at[--dimension] = 0;
    if (dimension == 0) return out;
  }
}

}  // namespace msdbg::agent
