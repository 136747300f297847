#include "agent/value_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "msdbg/simd.h"

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

/// Calls `visit` with the distance of each index of these dimensions, the last one fastest, until it returns false; then false.
template <typename Visit>
bool for_each_row(std::span<const int64_t> shape, std::span<const int64_t> strides, Visit visit) {
  Shape at(shape.size(), 0);
  while (true) {
    int64_t offset = 0;
    for (size_t i = 0; i < at.size(); ++i) offset += at[i] * strides[i];
    if (!visit(offset)) return false;
    size_t dimension = at.size();
    while (dimension > 0 && ++at[dimension - 1] == shape[dimension - 1]) at[--dimension] = 0;
    if (dimension == 0) return true;
  }
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

Result<ValueLayout> ValueLayout::create(DType dtype, const Shape& shape, std::span<const int64_t> strides, const void* data) {
  const Result<uint64_t> bytes = checked_bytes(dtype, shape);
  if (!bytes) return bytes.status();
  if (data == nullptr && *bytes > 0) return Status(Code::kInvalidArgument, "no memory: data is null");
  if (!strides.empty() && strides.size() != shape.size()) {
    return Status(Code::kInvalidArgument, fmt::format("{} strides for {} dimensions", strides.size(), shape.size()));
  }
  ValueLayout layout{dtype, shape, {}, static_cast<const std::byte*>(data), *bytes};
  if (strides.empty() || *bytes == 0) return layout;
  if (!fits(shape, strides, item_size(dtype))) {
    return Status(Code::kInvalidArgument, fmt::format("strides that lead out of memory: [{}]", fmt::join(strides, ", ")));
  }
  if (!is_contiguous(shape, strides)) layout.strides.assign(strides.begin(), strides.end());
  return layout;
}

void ValueLayout::gather(std::span<std::byte> out) const {
  if (out.empty()) return;
  if (strides.empty()) {
    std::memcpy(out.data(), data, out.size());
    return;
  }
  const size_t item = item_size(dtype);
  const auto inner = static_cast<size_t>(shape.back());
  const int64_t step = strides.back() * static_cast<int64_t>(item);
  std::byte* to = out.data();
  for_each_row(std::span(shape).first(shape.size() - 1), strides, [&](int64_t offset) {
    const std::byte* row = data + offset * static_cast<int64_t>(item);
    if (strides.back() == 1) {
      std::memcpy(to, row, inner * item);
    } else {
      for (size_t i = 0; i < inner; ++i) std::memcpy(to + i * item, row + static_cast<int64_t>(i) * step, item);
    }
    to += inner * item;
    return true;
  });
}

std::span<const std::byte> ValueLayout::extent() const {
  if (strides.empty() || bytes == 0) return {data, bytes};
  const auto item = static_cast<int64_t>(item_size(dtype));
  int64_t first = 0, last = 0;
  for (size_t i = 0; i < shape.size(); ++i) (strides[i] < 0 ? first : last) += (shape[i] - 1) * strides[i];
  return {data + first * item, static_cast<size_t>((last - first + 1) * item)};
}

bool ValueLayout::is_finite() const {
  if (bytes == 0) return true;
  if (strides.empty()) return all_finite({dtype, shape, data, bytes / item_size(dtype)});
  // Dimensions in the order of the memory; those that repeat elements have no say.
  std::vector<std::pair<int64_t, int64_t>> dimensions;  // stride, length
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 1 && strides[i] != 0) dimensions.emplace_back(strides[i], shape[i]);
  }
  std::sort(dimensions.rbegin(), dimensions.rend());
  int64_t run = 1;
  while (!dimensions.empty() && dimensions.back().first == run) {
    run *= dimensions.back().second;
    dimensions.pop_back();
  }
  Shape outer, steps;
  for (const auto& [stride, length] : dimensions) outer.push_back(length), steps.push_back(stride);
  const Shape row = {run};
  const auto item = static_cast<int64_t>(item_size(dtype));
  return for_each_row(outer, steps, [&](int64_t offset) {
    return all_finite({dtype, row, data + offset * item, static_cast<uint64_t>(run)});
  });
}

}  // namespace msdbg::agent
