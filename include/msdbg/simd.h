// One-pass statistics of a tensor that arrives in blocks, compiled for several instruction sets.
//
// A StatsPass belongs to one thread; any number may run in parallel. No xsimd type appears here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/tensor.h"

namespace msdbg {

/// Closed interval. Elements are compared after widening to double, so float32 0.1 is outside [0, 0.1].
struct RangeRequest {
  double low;
  double high;
  bool operator==(const RangeRequest&) const = default;
};

/// |x - p| <= atol + rtol * |p|, in double.
struct CloseRequest {
  double rtol;
  double atol;
  bool operator==(const CloseRequest&) const = default;
};

/// What a pass computes beyond the fixed set of Stats.
struct StatsRequest {
  std::vector<RangeRequest> ranges;
  std::vector<CloseRequest> close;  ///< needs a previous tensor
  bool change = false;              ///< sums for the change ratio; needs a previous tensor
  bool bits = false;                ///< a BitsPrint, next to the statistics

  bool needs_previous() const { return change || !close.empty(); }
};

/// The fields of Stats that hold a value. Statistics from a statistic.csv have only some.
enum StatField : uint32_t {
  kStatCount = 1u << 0, kStatMin = 1u << 1, kStatMax = 1u << 2, kStatMean = 1u << 3, kStatAbsMean = 1u << 4,
  kStatStd = 1u << 5, kStatL2Norm = 1u << 6, kStatNan = 1u << 7, kStatPosInf = 1u << 8, kStatNegInf = 1u << 9,
  kStatZero = 1u << 10, kStatPos = 1u << 11, kStatNeg = 1u << 12, kStatFirstBad = 1u << 13, kStatDtypeMax = 1u << 14,
  kStatRanges = 1u << 15, kStatChange = 1u << 16,
  kStatAll = (1u << 17) - 1,
};

/// Finished statistics of one tensor. Sums run over finite elements only.
struct Stats {
  DType dtype = DType::kUnknown;
  uint32_t known = 0;  ///< bits of StatField

  uint64_t count = 0;  ///< all elements
  uint64_t nan_count = 0, pos_inf_count = 0, neg_inf_count = 0;
  uint64_t zero_count = 0;  ///< both signs of zero
  uint64_t pos_count = 0, neg_count = 0;  ///< finite elements above and below zero
  /// Finite elements whose magnitude is the largest of the dtype (floats), or that equal its largest or smallest value (integers);
  /// 0 for bool.
  uint64_t dtype_max_count = 0;
  std::optional<uint64_t> first_bad;  ///< flat index of the first NaN or Inf

  double min = std::numeric_limits<double>::quiet_NaN();  ///< of finite elements, NaN if there are none
  double max = std::numeric_limits<double>::quiet_NaN();
  double mean = std::numeric_limits<double>::quiet_NaN();
  double abs_mean = std::numeric_limits<double>::quiet_NaN();
  double std = std::numeric_limits<double>::quiet_NaN();  ///< divisor n - 1; 0 for one finite element, NaN for none
  double l2_norm = std::numeric_limits<double>::quiet_NaN();  ///< of finite elements; 0 if there are none

  std::vector<uint64_t> range_counts;  ///< per RangeRequest: finite elements inside

  // With a previous tensor of equal element count; `pairs` = elements finite in both, which the sums cover.
  uint64_t pairs = 0;
  uint64_t prev_nonfinite_count = 0;
  double diff_abs_mean = std::numeric_limits<double>::quiet_NaN();  ///< mean |x - p| over pairs
  double prev_abs_mean = std::numeric_limits<double>::quiet_NaN();  ///< mean |p| over the same pairs
  std::vector<uint64_t> close_counts;  ///< per CloseRequest: pairs that are close

  bool knows(uint32_t fields) const { return (known & fields) == fields; }
  uint64_t inf_count() const { return pos_inf_count + neg_inf_count; }
  uint64_t finite_count() const { return count - nan_count - inf_count(); }
  /// 100 * zeros / count, in MindSpore's order of operations: (zeros * 100.0) / count. NaN for an empty tensor.
  double zero_percentage() const;
};

/// Collects the statistics of one tensor from consecutive blocks.
///
///   StatsPass pass(DType::kFloat32, request);
///   while (...) pass.update(block, elements);
///   Stats stats = pass.finish();
///
/// The result depends on the block boundaries only within rounding of the sums; callers that need byte-identical output cut blocks
/// at multiples of kStatsBlock elements.
class StatsPass {
 public:
  static constexpr size_t kStatsBlock = 4096;  ///< elements

  /// Precondition: is_evaluable(dtype), and is_evaluable(prev_dtype) if the request needs a previous tensor.
  StatsPass(DType dtype, StatsRequest request, DType prev_dtype = DType::kUnknown);
  ~StatsPass();
  StatsPass(StatsPass&&) noexcept;
  StatsPass& operator=(StatsPass&&) noexcept;

  /// `block` holds `n` elements, in any alignment.
  void update(const std::byte* block, size_t n);
  /// The same with `n` elements of the previous tensor, in its own dtype.
  void update(const std::byte* block, const std::byte* previous, size_t n);
  Stats finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether no element is NaN or infinite: at the rate of the memory. Precondition: is_evaluable(view.dtype).
bool all_finite(const TensorView& view);
/// Statistics of a whole tensor. `fields`: bits of StatField that the caller needs; others may be unknown. Of a tensor of finite elements,
/// the counts of NaN and Inf alone cost a fraction of all statistics.
Stats compute_stats(const TensorView& view, const StatsRequest& request = {}, uint32_t fields = kStatAll);
/// Precondition: equal element counts.
Stats compute_stats(const TensorView& view, const TensorView& previous, const StatsRequest& request);

// ---- targets -----------------------------------------------------------------------------------------------------

/// Names of the targets that this processor can run, best last: "scalar", "sse2", "avx2", "avx512".
std::span<const std::string_view> simd_targets();
/// The target in use: the best one, or the one in MSDBG_SIMD.
std::string_view simd_target();
/// Error: kInvalidArgument with the list of targets if the name is unknown or the processor lacks it.
Status set_simd_target(std::string_view name);

}  // namespace msdbg
