#include "simd/block_pass.h"

#include <algorithm>
#include <cmath>

#include "simd/sums.h"

namespace msdbg::simd {
namespace {

// If the squares are this much larger than the remainder after subtracting the mean, the difference has lost too many digits for
// the standard deviation; the block is read again around its mean while it is in the cache.
constexpr double kWorstCancellation = 32;

// Above this, joining sums of blocks could overflow double.
constexpr double kHugeSum = 0x1p900;

BlockSums join(const BlockSums& a, const BlockSums& b) {
  return {a.sum + b.sum,          a.abs_sum + b.abs_sum, a.squares + b.squares,     std::min(a.min, b.min),
          std::max(a.max, b.max), a.zeros + b.zeros,     a.negatives + b.negatives, a.finite + b.finite,
          a.pos_inf + b.pos_inf,  a.neg_inf + b.neg_inf};
}

PairSums join(const PairSums& a, const PairSums& b) {
  return {a.diff + b.diff, a.prev_abs + b.prev_abs, a.pairs + b.pairs, a.prev_finite + b.prev_finite,
          a.close + b.close};
}

// For float64 whose squares or sums overflow double. Rare, therefore element by element.
BlockMoments scaled_moments(DType dtype, const std::byte* data, size_t n, uint64_t finite, int shift) {
  const double factor = std::ldexp(1.0, -shift);
  const size_t item = item_size(dtype);
  BlockMoments block;
  block.n = finite;
  block.shift = shift;
  for (size_t i = 0; i < n; ++i) {
    const double raw = element_as_double(dtype, data + i * item);
    if (!std::isfinite(raw)) continue;
    const double x = raw * factor;
    block.sum += x;
    block.abs_sum += std::fabs(x);
    block.squares += x * x;
  }
  const double mean = block.sum / static_cast<double>(finite);
  for (size_t i = 0; i < n; ++i) {
    const double raw = element_as_double(dtype, data + i * item);
    if (std::isfinite(raw)) block.m2 += (raw * factor - mean) * (raw * factor - mean);
  }
  return block;
}

}  // namespace

BlockPass::BlockPass(const Target& target, DType dtype)
    : fast_(stats_kernel(target, dtype)),
      tail_(stats_kernel(kScalarTarget, dtype)),
      item_(item_size(dtype)),
      dtype_(dtype) {}

bool BlockPass::finite(const std::byte* data, size_t n) const {
  const size_t full = body(n);
  return fast_.finite(data, full) && (full == n || tail_.finite(data + full * item_, n - full));
}

BlockSums BlockPass::sums(const std::byte* data, size_t n, bool masked) const {
  const size_t full = body(n);
  BlockSums sums = {};
  if (full > 0 && !masked) {
    fast_.sums(data, full, &sums);
    masked = !std::isfinite(sums.abs_sum);
  }
  if (full > 0 && masked) fast_.masked_sums(data, full, &sums);
  if (full == n) return sums;
  BlockSums rest;
  tail_.masked_sums(data + full * item_, n - full, &rest);
  return full == 0 ? rest : join(sums, rest);
}

Centred BlockPass::centred(const std::byte* data, size_t n, double centre, bool masked) const {
  const size_t full = body(n);
  Centred sums = {}, rest = {};
  if (full > 0) (masked ? fast_.masked_centred : fast_.centred)(data, full, centre, &sums);
  if (full < n) tail_.masked_centred(data + full * item_, n - full, centre, &rest);
  return {sums.sum + rest.sum, sums.squares + rest.squares};
}

BlockMoments BlockPass::moments(const std::byte* data, size_t n, const BlockSums& sums) const {
  if (dtype_ == DType::kFloat64) {
    const int shift = unit_shift(std::max(std::fabs(sums.min), std::fabs(sums.max)));
    if (shift != 0) return scaled_moments(dtype_, data, n, sums.finite, shift);
  }
  BlockMoments block = {sums.finite, sums.sum, sums.abs_sum, sums.squares, 0, 0};
  if (sums.min == sums.max) return block;
  const auto count = static_cast<double>(sums.finite);
  const double mean = sums.sum / count;
  block.m2 = sums.squares - sums.sum * mean;
  if (!(sums.squares <= kWorstCancellation * block.m2)) {
    const Centred around = centred(data, n, mean, sums.finite != n);
    // The mean is rounded; the sum contains the remainder.
    block.m2 = around.squares - around.sum * (around.sum / count);
  }
  return block;
}

void BlockPass::ranges(const std::byte* data, size_t n, const Bounds* bounds, size_t count, uint64_t* counts) const {
  const size_t full = body(n);
  if (full > 0) fast_.ranges(data, full, bounds, count, counts);
  if (full < n) tail_.ranges(data + full * item_, n - full, bounds, count, counts);
}

ScaledPairs BlockPass::pairs(const std::byte* data, const std::byte* previous, size_t n, const Tolerance* tolerance,
                             bool masked) const {
  const size_t full = body(n);
  PairSums sums = {};
  if (full > 0 && !masked) {
    fast_.pairs(data, previous, full, tolerance, &sums);
    masked = !std::isfinite(sums.prev_abs) || !std::isfinite(sums.diff);
  }
  if (full > 0 && masked) fast_.masked_pairs(data, previous, full, tolerance, &sums);
  if (full < n) {
    PairSums rest;
    tail_.masked_pairs(data + full * item_, previous + full * item_, n - full, tolerance, &rest);
    sums = join(sums, rest);
  }
  if (sums.diff < kHugeSum && sums.prev_abs < kHugeSum) return {sums, 0};

  const double factor = std::ldexp(1.0, -kUnitShift);
  sums.diff = sums.prev_abs = 0;
  for (size_t i = 0; i < n; ++i) {
    const double x = element_as_double(dtype_, data + i * item_), p = element_as_double(dtype_, previous + i * item_);
    if (!std::isfinite(x) || !std::isfinite(p)) continue;
    sums.diff += std::fabs(x * factor - p * factor);
    sums.prev_abs += std::fabs(p * factor);
  }
  return {sums, kUnitShift};
}

}  // namespace msdbg::simd
