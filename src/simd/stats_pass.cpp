// Walks a tensor block by block and joins the results of the kernels. Definitions of the statistics: docs/conditions.md.
#include <algorithm>
#include <cmath>
#include <utility>

#include "msdbg/simd.h"
#include "simd/block_pass.h"
#include "simd/bounds.h"
#include "simd/kernels.h"
#include "simd/sums.h"

namespace msdbg {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Moments {
  uint64_t n = 0;
  simd::ScaledSum sum, abs_sum, squares;
  simd::ScaledMoments deviation;

  void add(const simd::BlockMoments& block) {
    n += block.n;
    sum.add(block.sum, block.shift);
    abs_sum.add(block.abs_sum, block.shift);
    squares.add(block.squares, 2 * block.shift);
    const double mean = block.sum / static_cast<double>(block.n);
    deviation.add(block.n, block.shift == 0 ? mean : std::ldexp(mean, block.shift), 0, block.m2, block.shift);
  }
};

}  // namespace

double Stats::zero_percentage() const { return static_cast<double>(zero_count) * 100.0 / static_cast<double>(count); }

struct StatsPass::State {
  State(DType type, StatsRequest what, DType previous_type)
      : dtype(type),
        previous_dtype(previous_type),
        item(item_size(type)),
        previous_item(item_size(previous_type)),
        request(std::move(what)),
        same_type(type == previous_type),
        block_pass(simd::current_target(), type),
        double_pass(simd::current_target(), DType::kFloat64) {
    MSDBG_CHECK(!request.needs_previous() || previous_type == DType::kUnknown || is_evaluable(previous_type));
    stats.dtype = type;
    stats.range_counts.assign(request.ranges.size(), 0);
    stats.close_counts.assign(request.close.size(), 0);
    for (size_t i = 0; i < request.ranges.size(); ++i) {
      if (const auto found = simd::bounds_for(type, request.ranges[i])) {
        bounds.push_back(*found);
        bounds_place.push_back(i);
      }
    }
    undecided.resize(bounds.size());
    undecided_place.resize(bounds.size());
    counts.resize(bounds.size());
    if (!same_type && previous_type != DType::kUnknown) widened.resize(2 * kStatsBlock);
  }

  void add_block(const std::byte* data, const std::byte* previous, size_t n);
  void add_ranges(const std::byte* data, size_t n, const simd::BlockSums& sums);
  void add_pairs(const std::byte* data, const std::byte* previous, size_t n, bool masked);
  void find_first_bad(const std::byte* data, size_t n);

  DType dtype, previous_dtype;
  size_t item, previous_item;
  StatsRequest request;
  bool same_type;
  simd::BlockPass block_pass, double_pass;

  Stats stats;
  Moments moments;
  simd::ScaledSum diff, previous_abs;
  double min = kInfinity, max = -kInfinity;
  bool last_was_dirty = false;  // a NaN rarely comes alone: the next block starts with the masking kernel

  std::vector<simd::Bounds> bounds, undecided;  // the ranges that can contain anything
  std::vector<size_t> bounds_place, undecided_place;
  std::vector<uint64_t> counts;
  std::vector<double> widened;  // both blocks, when their types differ
};

void StatsPass::State::add_block(const std::byte* data, const std::byte* previous, size_t n) {
  const simd::BlockSums sums = block_pass.sums(data, n, last_was_dirty);
  last_was_dirty = sums.finite != n;
  if (last_was_dirty) {
    if (!stats.first_bad) find_first_bad(data, n);
    stats.pos_inf_count += sums.pos_inf;
    stats.neg_inf_count += sums.neg_inf;
    stats.nan_count += n - sums.finite - sums.pos_inf - sums.neg_inf;
  }
  stats.zero_count += sums.zeros;
  stats.neg_count += sums.negatives;
  stats.pos_count += sums.finite - sums.zeros - sums.negatives;
  if (sums.finite > 0) {
    min = std::min(min, sums.min);
    max = std::max(max, sums.max);
    moments.add(block_pass.moments(data, n, sums));
    if (simd::may_be_extreme(dtype, sums.min, sums.max)) stats.dtype_max_count += simd::count_extreme(dtype, data, n);
    if (!bounds.empty()) add_ranges(data, n, sums);
  }
  if (previous != nullptr) add_pairs(data, previous, n, last_was_dirty);
  stats.count += n;
}

void StatsPass::State::add_ranges(const std::byte* data, size_t n, const simd::BlockSums& sums) {
  size_t open = 0;
  for (size_t i = 0; i < bounds.size(); ++i) {
    // The extremes of the block decide many ranges without reading the elements again.
    if (sums.max < bounds[i].low || sums.min > bounds[i].high) continue;
    if (sums.min >= bounds[i].low && sums.max <= bounds[i].high) {
      stats.range_counts[bounds_place[i]] += sums.finite;
      continue;
    }
    undecided[open] = bounds[i];
    undecided_place[open] = bounds_place[i];
    counts[open++] = 0;
  }
  if (open == 0) return;
  block_pass.ranges(data, n, undecided.data(), open, counts.data());
  for (size_t i = 0; i < open; ++i) stats.range_counts[undecided_place[i]] += counts[i];
}

void StatsPass::State::add_pairs(const std::byte* data, const std::byte* previous, size_t n, bool masked) {
  const simd::BlockPass* pass = &block_pass;
  if (!same_type) {
    for (size_t i = 0; i < n; ++i) {
      widened[i] = element_as_double(dtype, data + i * item);
      widened[kStatsBlock + i] = element_as_double(previous_dtype, previous + i * previous_item);
    }
    pass = &double_pass;
    data = reinterpret_cast<const std::byte*>(widened.data());
    previous = reinterpret_cast<const std::byte*>(widened.data() + kStatsBlock);
  }
  // One close condition is computed with the sums; further ones read the blocks from the cache again.
  for (size_t i = 0; i < std::max<size_t>(request.close.size(), 1); ++i) {
    simd::Tolerance tolerance = {};
    const bool has_tolerance = i < request.close.size();
    if (has_tolerance) tolerance = {request.close[i].rtol, request.close[i].atol};
    const simd::ScaledPairs block = pass->pairs(data, previous, n, has_tolerance ? &tolerance : nullptr, masked);
    if (has_tolerance) stats.close_counts[i] += block.sums.close;
    if (i > 0) continue;
    stats.pairs += block.sums.pairs;
    stats.prev_nonfinite_count += n - block.sums.prev_finite;
    diff.add(block.sums.diff, block.shift);
    previous_abs.add(block.sums.prev_abs, block.shift);
  }
}

void StatsPass::State::find_first_bad(const std::byte* data, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (!std::isfinite(element_as_double(dtype, data + i * item))) {
      stats.first_bad = stats.count + i;
      return;
    }
  }
}

StatsPass::StatsPass(DType dtype, StatsRequest request, DType prev_dtype)
    : state_(std::make_unique<State>(dtype, std::move(request), prev_dtype)) {}
StatsPass::~StatsPass() = default;
StatsPass::StatsPass(StatsPass&&) noexcept = default;
StatsPass& StatsPass::operator=(StatsPass&&) noexcept = default;

void StatsPass::update(const std::byte* block, size_t n) { update(block, nullptr, n); }

void StatsPass::update(const std::byte* block, const std::byte* previous, size_t n) {
  State& state = *state_;
  if (!state.request.needs_previous() || state.previous_dtype == DType::kUnknown) previous = nullptr;
  for (size_t done = 0; done < n; done += kStatsBlock) {
    const std::byte* previous_part = previous == nullptr ? nullptr : previous + done * state.previous_item;
    state.add_block(block + done * state.item, previous_part, std::min(kStatsBlock, n - done));
  }
}

Stats StatsPass::finish() {
  State& state = *state_;
  Stats& stats = state.stats;
  stats.known = kStatAll;
  if (state.request.ranges.empty()) stats.known &= ~uint32_t{kStatRanges};
  if (!state.request.needs_previous() || state.previous_dtype == DType::kUnknown) stats.known &= ~uint32_t{kStatChange};
  stats.l2_norm = state.moments.squares.root();
  if (const uint64_t n = state.moments.n; n > 0) {
    stats.min = state.min;
    stats.max = state.max;
    // The mean of equal values is that value; rounding of the sums must not give them a deviation.
    const bool all_equal = state.min == state.max;
    stats.mean = all_equal ? state.min : state.moments.sum.mean(n);
    stats.abs_mean = all_equal ? std::fabs(state.min) : state.moments.abs_sum.mean(n);
    stats.std = all_equal ? 0.0 : state.moments.deviation.std();
  }
  if (stats.pairs > 0) {
    stats.diff_abs_mean = state.diff.mean(stats.pairs);
    stats.prev_abs_mean = state.previous_abs.mean(stats.pairs);
  }
  return std::move(stats);
}

bool all_finite(const TensorView& view) {
  const simd::BlockPass pass(simd::current_target(), view.dtype);
  const size_t item = item_size(view.dtype);
  for (uint64_t done = 0; done < view.count; done += StatsPass::kStatsBlock) {
    if (!pass.finite(view.data + done * item, std::min<uint64_t>(StatsPass::kStatsBlock, view.count - done))) return false;
  }
  return true;
}

Stats compute_stats(const TensorView& view, const StatsRequest& request, uint32_t fields) {
  constexpr uint32_t kOfFinite = kStatCount | kStatNan | kStatPosInf | kStatNegInf | kStatFirstBad;
  if ((fields & ~kOfFinite) == 0 && all_finite(view)) {
    Stats stats;
    stats.dtype = view.dtype;
    stats.known = kOfFinite;
    stats.count = view.count;
    return stats;
  }
  StatsPass pass(view.dtype, request);
  pass.update(view.data, view.count);
  return pass.finish();
}

Stats compute_stats(const TensorView& view, const TensorView& previous, const StatsRequest& request) {
  MSDBG_CHECK(view.count == previous.count);
  StatsPass pass(view.dtype, request, previous.dtype);
  pass.update(view.data, previous.data, view.count);
  return pass.finish();
}

}  // namespace msdbg
