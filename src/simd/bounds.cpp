#include "simd/bounds.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace msdbg::simd {
namespace {

// Floats are compared in float lanes: the ends move to the nearest float inside the range, which changes no answer.
double float_at_least(double low) {
  const auto rounded = static_cast<float>(low);
  return static_cast<double>(rounded) < low ? std::nextafter(rounded, std::numeric_limits<float>::infinity()) : rounded;
}
double float_at_most(double high) {
  const auto rounded = static_cast<float>(high);
  return static_cast<double>(rounded) > high ? std::nextafter(rounded, -std::numeric_limits<float>::infinity())
                                             : rounded;
}

template <typename T>
uint64_t count_equal(const std::byte* data, size_t n, T low, T high) {
  uint64_t count = 0;
  for (size_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof value, sizeof value);
    count += value == low || value == high;
  }
  return count;
}

template <typename T>
uint64_t count_limits(const std::byte* data, size_t n) {
  using Limits = std::numeric_limits<T>;
  // Zero is no limit that arithmetic runs into.
  return count_equal<T>(data, n, std::is_unsigned_v<T> ? Limits::max() : Limits::lowest(), Limits::max());
}

double smallest(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return 0;
    case DType::kInt8:
      return std::numeric_limits<int8_t>::min();
    case DType::kInt16:
      return std::numeric_limits<int16_t>::min();
    case DType::kInt32:
      return std::numeric_limits<int32_t>::min();
    case DType::kInt64:
      return -0x1p63;
    default:
      return -dtype_max(dtype);
  }
}

}  // namespace

std::optional<Bounds> bounds_for(DType dtype, const RangeRequest& range) {
  const double limit = dtype == DType::kBool ? 1.0 : dtype_max(dtype);
  if (!(range.low <= limit) || !(range.high >= smallest(dtype))) return std::nullopt;
  Bounds bounds = {std::max(range.low, smallest(dtype)), std::min(range.high, limit)};
  if (dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16) {
    bounds = {float_at_least(bounds.low), float_at_most(bounds.high)};
  } else if (dtype != DType::kFloat64) {
    bounds = {std::ceil(bounds.low), std::floor(bounds.high)};
  }
  if (!(bounds.low <= bounds.high)) return std::nullopt;
  return bounds;
}

uint64_t count_extreme(DType dtype, const std::byte* data, size_t n) {
  switch (dtype) {
    case DType::kInt8:
      return count_limits<int8_t>(data, n);
    case DType::kInt16:
      return count_limits<int16_t>(data, n);
    case DType::kInt32:
      return count_limits<int32_t>(data, n);
    case DType::kInt64:
      return count_limits<int64_t>(data, n);
    case DType::kUInt8:
      return count_limits<uint8_t>(data, n);
    case DType::kUInt16:
      return count_limits<uint16_t>(data, n);
    case DType::kUInt32:
      return count_limits<uint32_t>(data, n);
    case DType::kUInt64:
      return count_limits<uint64_t>(data, n);
    case DType::kFloat16:
      return count_equal<uint16_t>(data, n, 0x7bff, 0xfbff);
    case DType::kBFloat16:
      return count_equal<uint16_t>(data, n, 0x7f7f, 0xff7f);
    case DType::kFloat32:
      return count_limits<float>(data, n);
    case DType::kFloat64:
      return count_limits<double>(data, n);
    default:
      return 0;
  }
}

bool may_be_extreme(DType dtype, double min, double max) {
  if (dtype == DType::kBool) return false;
  return max >= dtype_max(dtype) || (smallest(dtype) < 0 && min <= smallest(dtype));
}

}  // namespace msdbg::simd
