// The sums of one block: selects a kernel, and corrects its result if it is not accurate enough. Private to the module.
#pragma once

#include <cstddef>

#include "msdbg/tensor.h"
#include "simd/kernels.h"

namespace msdbg::simd {

/// Moments of one block in units of 2^shift.
struct BlockMoments {
  uint64_t n = 0;
  double sum = 0, abs_sum = 0, squares = 0;
  double m2 = 0;  ///< sum of (x - mean)^2
  int shift = 0;
};

/// Sums of pairs in units of 2^shift.
struct ScaledPairs {
  PairSums sums;
  int shift;
};

/// Runs the kernels of one element type; the scalar target processes the elements after the last full batch.
class BlockPass {
 public:
  BlockPass(const Target& target, DType dtype);

  bool finite(const std::byte* data, size_t n) const;
  /// `masked`: some element of the block is known or likely not to be finite.
  BlockSums sums(const std::byte* data, size_t n, bool masked) const;
  /// The moments of the block with these `sums`. Precondition: sums.finite > 0.
  BlockMoments moments(const std::byte* data, size_t n, const BlockSums& sums) const;
  void ranges(const std::byte* data, size_t n, const Bounds* bounds, size_t count, uint64_t* counts) const;
  /// `tolerance` may be null; `masked` as for sums().
  ScaledPairs pairs(const std::byte* data, const std::byte* previous, size_t n, const Tolerance* tolerance,
                    bool masked) const;

 private:
  size_t body(size_t n) const { return n - n % fast_.step; }
  Centred centred(const std::byte* data, size_t n, double centre, bool masked) const;

  Kernel fast_, tail_;
  size_t item_;
  DType dtype_;
};

}  // namespace msdbg::simd
