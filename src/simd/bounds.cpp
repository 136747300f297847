#include "simd/bounds.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace msdbg::simd {
namespace {

// Floats are compared in float lanes: rounding the ends to the nearest float inside the range changes no result.
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

struct Bool {};
struct Half {};
struct BFloat16 {};

template <typename T>
uint64_t count_limits(const std::byte* data, size_t n) {
  using Limits = std::numeric_limits<T>;
  // Zero is not a limit at which arithmetic saturates.
  return count_equal<T>(data, n, std::is_unsigned_v<T> ? Limits::max() : Limits::lowest(), Limits::max());
}
template <>
uint64_t count_limits<Bool>(const std::byte*, size_t) {
  return 0;
}
template <>
uint64_t count_limits<Half>(const std::byte* data, size_t n) {
  return count_equal<uint16_t>(data, n, 0x7bff, 0xfbff);
}
template <>
uint64_t count_limits<BFloat16>(const std::byte* data, size_t n) {
  return count_equal<uint16_t>(data, n, 0x7f7f, 0xff7f);
}

}  // namespace

std::optional<Bounds> bounds_for(DType dtype, const RangeRequest& range) {
  const double limit = dtype == DType::kBool ? 1.0 : dtype_max(dtype);
  if (!(range.low <= limit) || !(range.high >= dtype_lowest(dtype))) return std::nullopt;
  Bounds bounds = {std::max(range.low, dtype_lowest(dtype)), std::min(range.high, limit)};
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
#define MSDBG_ROW(NAME, TYPE) \
  case DType::NAME:           \
    return count_limits<TYPE>(data, n);
    MSDBG_EVALUABLE_TYPES(MSDBG_ROW)
#undef MSDBG_ROW
    default:
      return 0;
  }
}

bool may_be_extreme(DType dtype, double min, double max) {
  if (dtype == DType::kBool) return false;
  return max >= dtype_max(dtype) || (dtype_lowest(dtype) < 0 && min <= dtype_lowest(dtype));
}

}  // namespace msdbg::simd
