#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "msdbg/tensor.h"

namespace msdbg {
namespace {

struct Part {
  int64_t begin = 0, end = 0;
  bool drop_axis = false;
};

// Reads one axis' part; negative positions count from the end, as in NumPy.
Result<Part> parse_part(std::string_view text, size_t axis, int64_t length) {
  const auto fail = [&](std::string_view why) {
    return Status(Code::kInvalidArgument, fmt::format("slice: '{}' does not fit axis {} of length {}: {}", text, axis, length, why));
  };
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    const auto index = parse_int(text);
    if (!index) return fail("write an index like 3, a range like 0:2, or :");
    const int64_t at = *index < 0 ? *index + length : *index;
    if (at < 0 || at >= length) return fail(fmt::format("indices run from 0 to {}", length - 1));
    return Part{at, at + 1, true};
  }
  const std::string_view left = trim(text.substr(0, colon)), right = trim(text.substr(colon + 1));
  const auto low = left.empty() ? std::optional<int64_t>(0) : parse_int(left);
  const auto high = right.empty() ? std::optional<int64_t>(length) : parse_int(right);
  if (!low || !high) return fail("write a range like 0:2, 1:, :-1 or :");
  const auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + length : at, 0, length); };
  const int64_t begin = place(*low);
  return Part{begin, std::max(begin, place(*high)), false};
}

}  // namespace

Result<TensorPtr> slice(const TensorView& view, std::string_view text) {
  const size_t size = item_size(view.dtype);
  if (size == 0) return Status(Code::kUnsupported, fmt::format("slice: elements of type {} have no fixed size", dtype_name(view.dtype)));
  std::vector<std::string_view> words;
  if (!trim(text).empty()) words = split(text, ',');
  if (words.size() > view.shape.size()) {
    return Status(Code::kInvalidArgument, fmt::format("slice: '{}' has {} parts, the tensor {} has {} axes", text, words.size(),
                                                      shape_text(view.shape), view.shape.size()));
  }
  std::vector<Part> parts;
  Shape shape;
  for (size_t axis = 0; axis < view.shape.size(); ++axis) {
    const auto part = parse_part(axis < words.size() ? trim(words[axis]) : ":", axis, view.shape[axis]);
    if (!part) return part.status();
    parts.push_back(*part);
    if (!part->drop_axis) shape.push_back(part->end - part->begin);
  }
  uint64_t count = 1;
  for (const Part& part : parts) count *= static_cast<uint64_t>(part.end - part.begin);
  std::vector<std::byte> bytes(count * size);
  if (count == 0) return TensorBuffer::create(view.dtype, std::move(shape), std::move(bytes));
  if (parts.empty()) {
    std::memcpy(bytes.data(), view.data, size);
    return TensorBuffer::create(view.dtype, std::move(shape), std::move(bytes));
  }

  // Rows of the last axis are contiguous: copy row by row, the other axes counted like an odometer.
  std::vector<int64_t> strides(parts.size(), 1);
  for (size_t axis = parts.size() - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * view.shape[axis];
  std::vector<int64_t> at;
  for (const Part& part : parts) at.push_back(part.begin);
  const size_t row_bytes = static_cast<size_t>(parts.back().end - parts.back().begin) * size;
  for (size_t out = 0; out < bytes.size(); out += row_bytes) {
    int64_t flat = 0;
    for (size_t axis = 0; axis < parts.size(); ++axis) flat += at[axis] * strides[axis];
    std::memcpy(bytes.data() + out, view.data + static_cast<size_t>(flat) * size, row_bytes);
    for (size_t axis = parts.size() - 1; axis-- > 0;) {
      if (++at[axis] < parts[axis].end) break;
      at[axis] = parts[axis].begin;
    }
  }
  return TensorBuffer::create(view.dtype, std::move(shape), std::move(bytes));
}

}  // namespace msdbg
