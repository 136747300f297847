// Comparison without vector instructions: runs everywhere, and processes the elements after the last full batch for the other
// targets.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "simd/kernels.h"
#include "simd/scalar_elements.h"

namespace msdbg::simd {
namespace {

using namespace scalar;

template <typename T>
constexpr bool kIsFloat = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// Two's complement of the bits: adjacent values become adjacent integers, and -0 equals 0.
template <typename T>
int64_t ordered(T value) {
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t, std::conditional_t<sizeof(T) == 4, int32_t, int16_t>>;
  Bits bits;
  std::memcpy(&bits, &value, sizeof bits);
  const int64_t wide = bits;
  return wide < 0 ? static_cast<int64_t>(std::numeric_limits<Bits>::min()) - wide : wide;
}

template <typename T>
uint64_t ulp_distance(T a, T b) {
  const int64_t x = ordered(a), y = ordered(b);
  return x < y ? static_cast<uint64_t>(y) - static_cast<uint64_t>(x) : static_cast<uint64_t>(x) - static_cast<uint64_t>(y);
}

template <typename T>
void errors(const void* a, const void* b, size_t n, const Tolerance* tolerance, double known, PairErrors* out) {
  PairErrors sums = {};
  for (size_t i = 0; i < n; ++i) {
    const T left = load<T>(a, i), right = load<T>(b, i);
    const double x = widen(left), y = widen(right);
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    const double error = std::fabs(x - y), size = std::fabs(y);
    ++sums.pairs;
    sums.diff += error;
    sums.diff_squares += error * error;
    sums.a_squares += x * x;
    sums.b_squares += y * y;
    sums.product += x * y;
    if (error > sums.max_abs) sums.max_abs = error;
    sums.above |= size != 0 && error / size > known;
    sums.close += error <= tolerance->atol + tolerance->rtol * size;
    if constexpr (kIsFloat<T>) {
      const uint64_t distance = ulp_distance(left, right);
      if (distance > sums.max_ulp) sums.max_ulp = distance;
    }
  }
  *out = sums;
}

template <typename T>
double largest_ratio(const void* a, const void* b, size_t n, double known) {
  for (size_t i = 0; i < n; ++i) {
    const double x = widen(load<T>(a, i)), y = widen(load<T>(b, i));
    if (!std::isfinite(x) || !std::isfinite(y) || y == 0) continue;
    known = std::max(known, std::fabs(x - y) / std::fabs(y));
  }
  return known;
}

template <typename T>
void widen_block(const void* data, size_t n, double* out) {
  for (size_t i = 0; i < n; ++i) out[i] = widen(load<T>(data, i));
}

template <typename T>
constexpr PairKernel kernel() {
  return {1, errors<T>, errors<T>, widen_block<T>, largest_ratio<T>};
}

constexpr PairTable table() {
  PairTable rows = {};
#define MSDBG_ROW(NAME, TYPE) rows.at[static_cast<size_t>(DType::NAME)] = kernel<TYPE>();
  MSDBG_EVALUABLE_TYPES(MSDBG_ROW)
#undef MSDBG_ROW
  return rows;
}

}  // namespace

const PairTable kScalarPairs = table();

}  // namespace msdbg::simd
