// What the compiled targets offer for comparing two tensors. Private to the module; the rules of kernels.h hold here too.
#pragma once

#include "simd/kernels.h"

namespace msdbg::simd {

/// Sums over the elements of two blocks that are finite in both; d = a - b.
struct PairErrors {
  double diff, diff_squares;  ///< of |d| and d * d
  double a_squares, b_squares, product;
  double max_abs;  ///< largest |d|
  uint64_t pairs, close, max_ulp;
  bool above;  ///< |d| / |b| with b != 0 may be above what was known somewhere; false is certain
};

/// For one element type, which both blocks have. Data need no alignment; `n` is a multiple of `step`.
///
/// The plain form takes every element for finite: where one is not, diff is not finite either and the rest is void. `known` is
/// the largest |d| / |b| so far: a division for each element would cost a third of the pass, and few blocks have more.
struct PairKernel {
  size_t step;
  void (*errors)(const void* a, const void* b, size_t n, const Tolerance* tolerance, double known, PairErrors* out);
  void (*masked_errors)(const void* a, const void* b, size_t n, const Tolerance* tolerance, double known, PairErrors* out);
  void (*widen)(const void* data, size_t n, double* out);
  /// The largest |d| / |b| exactly, over what is finite, if it is above `known`; else anything up to `known`.
  double (*max_rel)(const void* a, const void* b, size_t n, double known);
};

/// Indexed by DType.
struct PairTarget {
  PairKernel kernels[kKernelCount];
};

extern const PairTarget kScalarPairTarget;
#ifdef MSDBG_SIMD_X86
extern const PairTarget kSse2PairTarget;
extern const PairTarget kAvx2PairTarget;
extern const PairTarget kAvx512PairTarget;
#endif

}  // namespace msdbg::simd
