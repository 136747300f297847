// Walks two tensors block by block and joins the results of the kernels. Definitions of the measures: docs/diff.md.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "msdbg/compare.h"
#include "simd/kernels.h"
#include "simd/sums.h"

namespace msdbg {
namespace {

using simd::PairErrors;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

PairErrors join(const PairErrors& a, const PairErrors& b) {
  return {a.diff + b.diff,           a.diff_squares + b.diff_squares,  a.a_squares + b.a_squares,      a.b_squares + b.b_squares,
          a.product + b.product,     std::max(a.max_abs, b.max_abs),  a.pairs + b.pairs,        a.close + b.close,
          std::max(a.max_ulp, b.max_ulp), a.above || b.above};
}

/// Squares and products of doubles can overflow or underflow; unless they are safely inside the range, they are summed in scaled
/// units.
bool fits(const PairErrors& sums) {
  constexpr double kHuge = 0x1p900, kTiny = 0x1p-900;
  const auto inside = [](double squares) { return squares > kTiny && squares < kHuge; };
  return sums.diff < kHuge && inside(sums.a_squares) && inside(sums.b_squares) && (sums.diff == 0 || inside(sums.diff_squares));
}

struct Sums {
  simd::ScaledSum diff, diff_squares, a_squares, b_squares, product;

  /// A block in its own units: 2^shift_a for a, and so on.
  void add(const PairErrors& block, int shift_a, int shift_b, int shift_diff) {
    diff.add(block.diff, shift_diff);
    diff_squares.add(block.diff_squares, 2 * shift_diff);
    a_squares.add(block.a_squares, 2 * shift_a);
    b_squares.add(block.b_squares, 2 * shift_b);
    product.add(block.product, shift_a + shift_b);
  }
};

}  // namespace

double Comparison::relative_error() const {
  if (nan_mismatch + inf_mismatch > 0) return kInfinity;
  if (pairs == 0 || norm_error == 0) return 0;
  return norm_b == 0 ? kInfinity : norm_error / norm_b;
}

struct ComparePass::State {
  State(DType a, DType b, CloseRequest tolerance)
      : item_a(item_size(a)),
        item_b(item_size(b)),
        same(a == b),
        wide(a == DType::kFloat64 || b == DType::kFloat64),
        limits{tolerance.rtol, tolerance.atol} {
    const simd::Target& target = simd::current_target();
    const DType common = same ? a : DType::kFloat64;
    fast = simd::pair_kernel(target, common);
    tail = simd::pair_kernel(simd::kScalarTarget, common);
    widen_a = simd::pair_kernel(target, a);
    widen_b = simd::pair_kernel(target, b);
    tail_a = simd::pair_kernel(simd::kScalarTarget, a);
    tail_b = simd::pair_kernel(simd::kScalarTarget, b);
    item = item_size(common);
    type = common;
    result.dtype_a = a;
    result.dtype_b = b;
    result.tolerance = tolerance;
    if (!same) {
      result.bit_equal = false;
      room.resize(2 * kBlock);
    }
    if (same && is_float(a)) result.max_ulp = 0;
  }

  void add_block(const std::byte* a, const std::byte* b, size_t n);
  PairErrors errors(const std::byte* a, const std::byte* b, size_t n) const;
  double largest_ratio(const std::byte* a, const std::byte* b, size_t n) const;
  template <typename Visit>
  void each_part(const std::byte* a, const std::byte* b, size_t n, Visit visit) const;
  void count_bad(const std::byte* a, const std::byte* b, size_t n);
  void count_bad_pair(double x, double y);
  void add_scaled(const std::byte* a, const std::byte* b, size_t n);
  void find_abs(const std::byte* a, const std::byte* b, size_t n, double wanted);
  void find_rel(const std::byte* a, const std::byte* b, size_t n, double wanted);
  void find_first_difference(const std::byte* a, const std::byte* b, size_t n);
  double value(const std::byte* data, size_t i) const { return element_as_double(type, data + i * item); }

  size_t item_a, item_b, item = 0;
  bool same;
  bool wide;  // squares may overflow or underflow double
  DType type = DType::kUnknown;  // of the blocks as the kernels see them
  simd::Tolerance limits;
  simd::PairKernel fast, tail, widen_a, widen_b, tail_a, tail_b;
  Comparison result;
  Sums sums;
  double max_abs = 0, max_rel = 0;
  mutable bool masked = false;  // a NaN rarely comes alone: the next block starts with the masking kernel
  std::vector<double> room;     // both blocks, when their types differ
};

PairErrors ComparePass::State::errors(const std::byte* a, const std::byte* b, size_t n) const {
  const size_t full = n - n % fast.step;
  PairErrors block = {};
  if (full > 0 && !masked) {
    fast.errors(a, b, full, &limits, max_rel, &block);
    masked = !std::isfinite(block.diff);
  }
  if (full > 0 && masked) fast.masked_errors(a, b, full, &limits, max_rel, &block);
  if (full < n) {
    PairErrors rest;
    tail.masked_errors(a + full * item, b + full * item, n - full, &limits, max_rel, &rest);
    block = full > 0 ? join(block, rest) : rest;
  }
  masked = block.pairs != n;
  return block;
}

void ComparePass::State::add_block(const std::byte* a, const std::byte* b, size_t n) {
  if (!same) {
    const auto widen = [n](const simd::PairKernel& body, const simd::PairKernel& rest, const std::byte* from, size_t size, double* to) {
      const size_t full = n - n % body.step;
      if (full > 0) body.widen(from, full, to);
      if (full < n) rest.widen(from + full * size, n - full, to + full);
    };
    widen(widen_a, tail_a, a, item_a, room.data());
    widen(widen_b, tail_b, b, item_b, room.data() + kBlock);
    a = reinterpret_cast<const std::byte*>(room.data());
    b = reinterpret_cast<const std::byte*>(room.data() + kBlock);
  }
  const PairErrors block = errors(a, b, n);
  if (!result.first_difference) find_first_difference(a, b, n);
  result.pairs += block.pairs;
  result.within += block.close;
  if (result.max_ulp) result.max_ulp = std::max(*result.max_ulp, block.max_ulp);
  if (block.pairs != n) count_bad(a, b, n);
  if (block.pairs > 0) {
    // The maxima of a block show whether it contains a new one; only then search for the position.
    if (block.max_abs > max_abs) find_abs(a, b, n, block.max_abs);
    if (block.above && block.max_abs > 0) {
      if (const double most = largest_ratio(a, b, n); most > max_rel) find_rel(a, b, n, most);
    }
    if (wide && !fits(block)) {
      add_scaled(a, b, n);
    } else {
      sums.add(block, 0, 0, 0);
    }
  }
  result.count += n;
}

double ComparePass::State::largest_ratio(const std::byte* a, const std::byte* b, size_t n) const {
  const size_t full = n - n % fast.step;
  const double most = full > 0 ? fast.max_rel(a, b, full, max_rel) : max_rel;
  return full < n ? tail.max_rel(a + full * item, b + full * item, n - full, most) : most;
}

void ComparePass::State::find_first_difference(const std::byte* a, const std::byte* b, size_t n) {
  // For different types, compare values: a widened value has other bits anyway.
  if (std::memcmp(a, b, n * item) == 0) return;
  result.bit_equal = false;
  for (size_t i = 0; i < n; ++i) {
    if (std::memcmp(a + i * item, b + i * item, item) == 0) continue;
    if (!same && value(a, i) == value(b, i)) continue;
    if (!same && std::isnan(value(a, i)) && std::isnan(value(b, i))) continue;
    result.first_difference = result.count + i;
    return;
  }
}

// Calls visit(first, x, y, count) for one part after another until it returns false. The kernels widen a whole part at a time:
// dispatching on the type of each element would cost ten times the comparison itself.
template <typename Visit>
void ComparePass::State::each_part(const std::byte* a, const std::byte* b, size_t n, Visit visit) const {
  constexpr size_t kPart = 256;
  double x[kPart], y[kPart];
  for (size_t at = 0; at < n; at += kPart) {
    const size_t part = std::min(kPart, n - at), full = part - part % fast.step;
    for (const auto& [from, to] : {std::pair(a + at * item, x), std::pair(b + at * item, y)}) {
      if (full > 0) fast.widen(from, full, to);
      if (full < part) tail.widen(from + full * item, part - full, to + full);
    }
    if (!visit(at, x, y, part)) return;
  }
}

void ComparePass::State::count_bad(const std::byte* a, const std::byte* b, size_t n) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  each_part(a, b, n, [&](size_t, const double* x, const double* y, size_t part) {
    for (size_t i = 0; i < part; ++i) {
      if ((std::fabs(x[i]) <= kLargest) & (std::fabs(y[i]) <= kLargest)) continue;
      count_bad_pair(x[i], y[i]);
    }
    return true;
  });
}

void ComparePass::State::count_bad_pair(double x, double y) {
  result.nan_a += std::isnan(x);
  result.nan_b += std::isnan(y);
  result.inf_a += std::isinf(x);
  result.inf_b += std::isinf(y);
  if (std::isnan(x) != std::isnan(y)) {
    ++result.nan_mismatch;
  } else if (!std::isnan(x) && x != y) {
    ++result.inf_mismatch;
  } else {
    ++result.within;
  }
}

void ComparePass::State::find_abs(const std::byte* a, const std::byte* b, size_t n, double wanted) {
  each_part(a, b, n, [&](size_t at, const double* x, const double* y, size_t part) {
    for (size_t i = 0; i < part; ++i) {
      // Infinite only if the difference itself overflows double.
      if (std::fabs(x[i] - y[i]) != wanted || !std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
      max_abs = wanted;
      result.max_abs_at = result.count + at + i;
      return false;
    }
    return true;
  });
}

void ComparePass::State::find_rel(const std::byte* a, const std::byte* b, size_t n, double wanted) {
  const double least = std::min(wanted * (1 - 1e-6), std::numeric_limits<double>::max());  // wanted may be infinite
  each_part(a, b, n, [&](size_t at, const double* x, const double* y, size_t part) {
    for (size_t i = 0; i < part; ++i) {
      const double error = std::fabs(x[i] - y[i]), size = std::fabs(y[i]);
      if (error < size * least || size == 0 || error / size != wanted || !std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
      max_rel = wanted;
      result.max_rel_at = result.count + at + i;
      return false;
    }
    return true;
  });
}

// For squares or sums that overflow or underflow double. Rare, therefore element by element.
void ComparePass::State::add_scaled(const std::byte* a, const std::byte* b, size_t n) {
  const auto each_pair = [&](auto visit) {
    for (size_t i = 0; i < n; ++i) {
      const double x = value(a, i), y = value(b, i);
      if (std::isfinite(x) && std::isfinite(y)) visit(x, y);
    }
  };
  double largest_a = 0, largest_b = 0, largest_diff = 0;
  each_pair([&](double x, double y) {
    largest_a = std::max(largest_a, std::fabs(x));
    largest_b = std::max(largest_b, std::fabs(y));
    largest_diff = std::max(largest_diff, std::fabs(x - y));
  });
  const int shift_a = simd::unit_shift(largest_a), shift_b = simd::unit_shift(largest_b), shift_diff = simd::unit_shift(largest_diff);
  const double unit_a = std::ldexp(1.0, -shift_a), unit_b = std::ldexp(1.0, -shift_b), unit_diff = std::ldexp(1.0, -shift_diff);
  PairErrors block = {};
  each_pair([&](double x, double y) {
    // Large differences are scaled before the subtraction can overflow, others after it.
    const double error = shift_diff > 0 ? x * unit_diff - y * unit_diff : (x - y) * unit_diff;
    x *= unit_a;
    y *= unit_b;
    block.diff += std::fabs(error);
    block.diff_squares += error * error;
    block.a_squares += x * x;
    block.b_squares += y * y;
    block.product += x * y;
  });
  sums.add(block, shift_a, shift_b, shift_diff);
}

ComparePass::ComparePass(DType a, DType b, CloseRequest tolerance) : state_(std::make_unique<State>(a, b, tolerance)) {}
ComparePass::~ComparePass() = default;
ComparePass::ComparePass(ComparePass&&) noexcept = default;
ComparePass& ComparePass::operator=(ComparePass&&) noexcept = default;

void ComparePass::update(const std::byte* a, const std::byte* b, size_t n) {
  State& state = *state_;
  for (size_t done = 0; done < n; done += kBlock) {
    state.add_block(a + done * state.item_a, b + done * state.item_b, std::min(kBlock, n - done));
  }
}

Comparison ComparePass::finish() {
  State& state = *state_;
  Comparison& result = state.result;
  if (result.pairs == 0) return std::move(result);
  const Sums& sums = state.sums;
  result.norm_a = sums.a_squares.root();
  result.norm_b = sums.b_squares.root();
  result.norm_error = sums.diff_squares.root();
  result.mean_abs_error = sums.diff.mean(result.pairs);
  const int shift_a = sums.a_squares.shift(), shift_b = sums.b_squares.shift();
  const double a = std::sqrt(sums.a_squares.in_units(shift_a)), b = std::sqrt(sums.b_squares.in_units(shift_b));
  if (a > 0 && b > 0) {
    result.cosine = std::clamp(sums.product.in_units((shift_a + shift_b) / 2) / a / b, -1.0, 1.0);
  } else if (a == 0 && b == 0) {
    result.cosine = 1;
  }
  result.max_abs_error = state.max_abs;
  result.max_rel_error = state.max_rel;
  return std::move(result);
}

Comparison compare_tensors(const TensorView& a, const TensorView& b, CloseRequest tolerance) {
  MSDBG_CHECK(a.count == b.count);
  ComparePass pass(a.dtype, b.dtype, tolerance);
  pass.update(a.data, b.data, a.count);
  return pass.finish();
}

}  // namespace msdbg
