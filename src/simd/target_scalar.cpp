// The target without vector instructions: runs everywhere, and processes the elements after the last full batch for the other
// targets.
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
bool finite(const void* data, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (!std::isfinite(widen(load<T>(data, i)))) return false;
  }
  return true;
}

template <typename T>
void masked_sums(const void* data, size_t n, BlockSums* out) {
  BlockSums sums = {};
  sums.min = HUGE_VAL;
  sums.max = -HUGE_VAL;
  for (size_t i = 0; i < n; ++i) {
    const double x = widen(load<T>(data, i));
    if (!std::isfinite(x)) {
      sums.pos_inf += x > 0;
      sums.neg_inf += x < 0;
      continue;
    }
    ++sums.finite;
    sums.sum += x;
    sums.abs_sum += std::fabs(x);
    sums.squares += x * x;
    sums.min = x < sums.min ? x : sums.min;
    sums.max = x > sums.max ? x : sums.max;
    sums.zeros += x == 0;
    sums.negatives += x < 0;
  }
  *out = sums;
}

template <typename T>
void centred(const void* data, size_t n, double centre, Centred* out) {
  Centred result = {};
  for (size_t i = 0; i < n; ++i) {
    const double x = widen(load<T>(data, i));
    if (!std::isfinite(x)) continue;
    const double d = x - centre;
    result.sum += d;
    result.squares += d * d;
  }
  *out = result;
}

template <typename T>
void ranges(const void* data, size_t n, const Bounds* bounds, size_t bounds_count, uint64_t* counts) {
  for (size_t i = 0; i < n; ++i) {
    const double x = widen(load<T>(data, i));
    for (size_t r = 0; r < bounds_count; ++r) counts[r] += x >= bounds[r].low && x <= bounds[r].high;
  }
}

template <typename T>
void masked_pairs(const void* data, const void* previous, size_t n, const Tolerance* tolerance, PairSums* out) {
  PairSums sums = {};
  for (size_t i = 0; i < n; ++i) {
    const double x = widen(load<T>(data, i)), p = widen(load<T>(previous, i));
    const bool p_finite = std::isfinite(p);
    sums.prev_finite += p_finite;
    if (!p_finite || !std::isfinite(x)) continue;
    const double diff = std::fabs(x - p);
    ++sums.pairs;
    sums.diff += diff;
    sums.prev_abs += std::fabs(p);
    if (tolerance) sums.close += diff <= tolerance->atol + tolerance->rtol * std::fabs(p);
  }
  *out = sums;
}

template <typename T>
constexpr Kernel kernel() {
  return {1, finite<T>, masked_sums<T>, masked_sums<T>, centred<T>, centred<T>, ranges<T>, masked_pairs<T>, masked_pairs<T>};
}

constexpr KernelTable table() {
  KernelTable rows = {};
#define MSDBG_ROW(NAME, TYPE) rows.at[static_cast<size_t>(DType::NAME)] = kernel<TYPE>();
  MSDBG_EVALUABLE_TYPES(MSDBG_ROW)
#undef MSDBG_ROW
  return rows;
}
constexpr KernelTable kStats = table();

}  // namespace

const Target kScalarTarget = {"scalar", &kStats, &kScalarPairs, &kScalarFloats, &kScalarDoubles};

}  // namespace msdbg::simd
