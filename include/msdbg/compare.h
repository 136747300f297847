// Compares two tensors in one pass over both, compiled for several instruction sets.
//
// A ComparePass belongs to one thread; any number may run in parallel. The second tensor, `b`, is the reference: tolerances and
// relative errors refer to its values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "msdbg/simd.h"
#include "msdbg/tensor.h"

namespace msdbg {

/// The difference between two tensors of equal element count. Errors and sums cover `pairs`, the positions that are finite in both;
/// without any such position they are NaN.
struct Comparison {
  DType dtype_a = DType::kUnknown, dtype_b = DType::kUnknown;
  CloseRequest tolerance = {};
  uint64_t count = 0;
  uint64_t pairs = 0;
  bool bit_equal = true;                     ///< same type and same bytes (-0 is not 0, one NaN is not another)
  std::optional<uint64_t> first_difference;  ///< flat index of the first element whose bits (for different types: values) differ

  /// Largest |a - b|, and the first position with that error; no position if it is 0.
  double max_abs_error = std::numeric_limits<double>::quiet_NaN();
  std::optional<uint64_t> max_abs_at;
  /// Largest |a - b| / |b| where b is not zero, and the first position with that error.
  double max_rel_error = std::numeric_limits<double>::quiet_NaN();
  std::optional<uint64_t> max_rel_at;
  double mean_abs_error = std::numeric_limits<double>::quiet_NaN();
  double norm_a = std::numeric_limits<double>::quiet_NaN(), norm_b = norm_a;  ///< Euclidean
  double norm_error = std::numeric_limits<double>::quiet_NaN();               ///< of a - b
  /// Cosine of the angle between the two; 1 if both are all zero, NaN if only one is.
  double cosine = std::numeric_limits<double>::quiet_NaN();
  /// Largest distance in representable numbers; only if both sides have the same float type.
  std::optional<uint64_t> max_ulp;

  /// |a - b| <= atol + rtol * |b|, or the same NaN or Inf on both sides.
  uint64_t within = 0;
  uint64_t nan_a = 0, nan_b = 0, inf_a = 0, inf_b = 0;
  uint64_t nan_mismatch = 0;  ///< positions that are NaN on one side only
  uint64_t inf_mismatch = 0;  ///< of the others, positions with an Inf that the other side does not match

  bool all_within() const { return within == count; }
  /// 1 for an empty tensor.
  double within_share() const { return count == 0 ? 1 : static_cast<double>(within) / static_cast<double>(count); }
  /// norm_error / norm_b; infinite if only b is all zero; with norms of 0, 0 if both agree, infinite if NaN or Inf do not match.
  double relative_error() const;
};

class ComparePass {
 public:
  static constexpr size_t kBlock = 4096;  ///< elements; callers that need byte-identical output cut blocks at multiples of it

  /// Precondition: is_evaluable() for both.
  ComparePass(DType a, DType b, CloseRequest tolerance);
  ~ComparePass();
  ComparePass(ComparePass&&) noexcept;
  ComparePass& operator=(ComparePass&&) noexcept;

  /// The next `n` elements of both, in any alignment.
  void update(const std::byte* a, const std::byte* b, size_t n);
  Comparison finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Compares whole tensors. Precondition: equal element counts, evaluable types.
Comparison compare_tensors(const TensorView& a, const TensorView& b, CloseRequest tolerance);

}  // namespace msdbg
