#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "msdbg/tensor.h"

namespace msdbg {
namespace {

struct Part {
  int64_t begin = 0, end = 0, step = 1;
  bool drop_axis = false;

  int64_t size() const { return (end - begin + step - 1) / step; }
};

// Parses the slice of one axis; negative positions count from the end, as in NumPy.
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
    return Part{at, at + 1, 1, true};
  }
  const size_t second = text.find(':', colon + 1);
  const std::string_view left = trim(text.substr(0, colon)), right = trim(text.substr(colon + 1, second - colon - 1));
  const std::string_view stride = second == std::string_view::npos ? "" : trim(text.substr(second + 1));
  const auto step = stride.empty() ? std::optional<int64_t>(1) : parse_int(stride);
  if (step && *step < 1) return fail("a step is 1 or more");
  const auto low = left.empty() ? std::optional<int64_t>(0) : parse_int(left);
  const auto high = right.empty() ? std::optional<int64_t>(length) : parse_int(right);
  if (!low || !high || !step) return fail("write a range like 0:2, 1:, :-1, ::2 or :");
  const auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + length : at, 0, length); };
  const int64_t begin = place(*low);
  return Part{begin, std::max(begin, place(*high)), std::min(*step, std::max<int64_t>(length, 1)), false};
}

/// Reads short consecutive runs of elements through a buffer, because each read may be a system call. Runs that are far apart are
/// read one by one.
class Runs {
 public:
  Runs(const ReadElements& read, size_t item_size, uint64_t count) : read_(read), size_(item_size), count_(count) {}

  Status copy(uint64_t first, std::span<std::byte> out) {
    const uint64_t n = out.size() / size_;
    if (out.size() >= kBuffer) return read_(first, out);
    if (first < begin_ || first + n > begin_ + held_) {
      const bool near = held_ > 0 && first >= begin_ && (first - begin_ - held_ + n) * size_ < kBuffer;
      begin_ = first;
      held_ = near ? std::min<uint64_t>(std::max<uint64_t>(kBuffer / size_, n), count_ - first) : n;
      buffer_.resize(held_ * size_);
      const Status status = read_(begin_, buffer_);
      if (!status.ok()) return held_ = 0, status;
    }
    std::memcpy(out.data(), buffer_.data() + (first - begin_) * size_, out.size());
    return {};
  }

 private:
  static constexpr size_t kBuffer = 256 * 1024;

  const ReadElements& read_;
  const size_t size_;
  const uint64_t count_;
  uint64_t begin_ = 0, held_ = 0;  ///< elements in the buffer
  std::vector<std::byte> buffer_;
};

/// The parts of a slice, with `...` replaced by as many `:` as there is room for.
Result<std::vector<std::string_view>> parts_of(std::string_view text, std::span<const int64_t> lengths) {
  std::vector<std::string_view> words;
  if (!trim(text).empty()) words = split(text, ',');
  const auto is_rest = [](std::string_view word) { return trim(word) == "..."; };
  const auto rest = std::find_if(words.begin(), words.end(), is_rest);
  if (rest != words.end()) {
    if (std::any_of(std::next(rest), words.end(), is_rest))
      return Status(Code::kInvalidArgument, fmt::format("slice: '{}' has '...' twice; once stands for all axes left", text));
    const size_t named = words.size() - 1, at = static_cast<size_t>(rest - words.begin());
    words.erase(rest);
    if (named < lengths.size()) words.insert(words.begin() + static_cast<ptrdiff_t>(at), lengths.size() - named, ":");
  }
  if (words.size() > lengths.size()) {
    return Status(Code::kInvalidArgument, fmt::format("slice: '{}' has {} parts, the tensor {} has {} axes", text, words.size(),
                                                      shape_text(lengths), lengths.size()));
  }
  return words;
}

}  // namespace

Result<TensorPtr> slice(const TensorView& view, std::string_view text) {
  const size_t size = item_size(view.dtype);
  return slice(view.dtype, view.shape, text, [&](uint64_t first, std::span<std::byte> out) {
    if (!out.empty()) std::memcpy(out.data(), view.data + first * size, out.size());
    return Status();
  });
}

Result<TensorPtr> slice(DType dtype, std::span<const int64_t> lengths, std::string_view text, const ReadElements& read) {
  const size_t size = item_size(dtype);
  if (size == 0) return Status(Code::kUnsupported, fmt::format("slice: elements of type {} have no fixed size", dtype_name(dtype)));
  const auto words = parts_of(text, lengths);
  if (!words) return words.status();
  std::vector<Part> parts;
  Shape shape;
  uint64_t count = 1, all = 1;
  for (size_t axis = 0; axis < lengths.size(); ++axis) {
    const auto part = parse_part(axis < words->size() ? trim((*words)[axis]) : ":", axis, lengths[axis]);
    if (!part) return part.status();
    parts.push_back(*part);
    if (!part->drop_axis) shape.push_back(part->size());
    count *= static_cast<uint64_t>(part->size());
    all *= static_cast<uint64_t>(lengths[axis]);
  }
  std::vector<std::byte> bytes(count * size);
  if (parts.empty()) parts.push_back({0, 1, 1, true});  // a scalar has one element
  std::vector<uint64_t> strides(parts.size(), 1);
  for (size_t axis = parts.size() - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * static_cast<uint64_t>(lengths[axis]);
  // Rows are contiguous, and so are complete inner axes: copy run by run, and count the other axes like an odometer.
  size_t last = parts.size() - 1;
  while (last > 0 && parts[last].begin == 0 && parts[last].end == lengths[last] && parts[last].step == 1) --last;
  const bool spread = parts[last].step > 1;  // the positions of the last axis are runs of their own
  const size_t run_bytes = static_cast<size_t>(spread ? 1 : parts[last].size()) * strides[last] * size;
  std::vector<int64_t> at;
  for (const Part& part : parts) at.push_back(part.begin);
  Runs runs(read, size, all);
  for (size_t out = 0; out < bytes.size(); out += run_bytes) {
    uint64_t flat = 0;
    for (size_t axis = 0; axis < parts.size(); ++axis) flat += static_cast<uint64_t>(at[axis]) * strides[axis];
    if (const Status status = runs.copy(flat, std::span(bytes).subspan(out, run_bytes)); !status.ok()) return status;
    for (size_t axis = last + (spread ? 1 : 0); axis-- > 0;) {
      if ((at[axis] += parts[axis].step) < parts[axis].end) break;
      at[axis] = parts[axis].begin;
    }
  }
  return TensorBuffer::create(dtype, std::move(shape), std::move(bytes));
}

}  // namespace msdbg
