// The interface of the compiled targets for the passes: plain structs and function pointers. Private to simd and expr.
//
// The files of the targets are compiled with flags that other files must not use, and the linker keeps only one copy of each inline
// function. Therefore this header defines none, and includes nothing that does.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "msdbg/dtype.h"
#include "simd/expr_kernels.h"

namespace msdbg::simd {

/// Sums over the finite elements of one block.
struct BlockSums {
  double sum, abs_sum, squares;
  double min, max;  ///< +inf and -inf if no element is finite
  uint64_t zeros, negatives, finite;
  uint64_t pos_inf, neg_inf;
};

/// Sums over the elements of two blocks that are finite in both.
struct PairSums {
  double diff, prev_abs;  ///< of |x - p| and |p|
  uint64_t pairs, prev_finite;
  uint64_t close;  ///< only with a tolerance
};

/// Closed interval within the finite values of the element type; `low` and `high` are values of the type's lanes.
struct Bounds {
  double low, high;
};

struct Tolerance {
  double rtol, atol;
};

struct Centred {
  double sum, squares;  ///< of x - centre
};

/// The statistics of one element type. Data need no alignment; `n` is a multiple of `step` and at most 4096.
///
/// The plain form of a function assumes that every element is finite: otherwise abs_sum (prev_abs) is not finite either, and the
/// other results are invalid. The masked form skips such elements.
struct Kernel {
  size_t step;
  /// True if every element is finite.
  bool (*finite)(const void* data, size_t n);
  void (*sums)(const void* data, size_t n, BlockSums* out);
  void (*masked_sums)(const void* data, size_t n, BlockSums* out);
  void (*centred)(const void* data, size_t n, double centre, Centred* out);
  void (*masked_centred)(const void* data, size_t n, double centre, Centred* out);
  /// Adds to `counts`, one entry per range in `bounds`.
  void (*ranges)(const void* data, size_t n, const Bounds* bounds, size_t bounds_count, uint64_t* counts);
  /// `tolerance` may be null. The previous elements have the same type.
  void (*pairs)(const void* data, const void* previous, size_t n, const Tolerance* tolerance, PairSums* out);
  void (*masked_pairs)(const void* data, const void* previous, size_t n, const Tolerance* tolerance, PairSums* out);
};

/// Sums over the elements of two blocks that are finite in both; d = a - b.
struct PairErrors {
  double diff, diff_squares;  ///< of |d| and d * d
  double a_squares, b_squares, product;
  double max_abs;  ///< largest |d|
  uint64_t pairs, close, max_ulp;
  bool above;  ///< |d| / |b| with b != 0 may exceed `known` somewhere; false is certain
};

/// Compares two blocks of one element type. Data need no alignment; `n` is a multiple of `step` and at most 4096.
///
/// The plain form assumes that every element is finite: otherwise diff is not finite either, and the other results are invalid.
/// `known` is the largest |d| / |b| so far: dividing for each element would cost a third of the pass, and few blocks exceed it.
struct PairKernel {
  size_t step;
  void (*errors)(const void* a, const void* b, size_t n, const Tolerance* tolerance, double known, PairErrors* out);
  void (*masked_errors)(const void* a, const void* b, size_t n, const Tolerance* tolerance, double known, PairErrors* out);
  void (*widen)(const void* data, size_t n, double* out);
  /// The exact largest |d| / |b| of finite elements if it exceeds `known`; else any value up to `known`.
  double (*max_rel)(const void* a, const void* b, size_t n, double known);
};

/// By DType; empty for types that cannot be evaluated.
struct KernelTable {
  Kernel at[kDTypeCount];
};
struct PairTable {
  PairKernel at[kDTypeCount];
};

/// One instruction set. dispatch.cpp lists them.
struct Target {
  const char* name;
  const KernelTable* stats;
  const PairTable* pairs;
  const expr::Kernels<float>* floats;
  const expr::Kernels<double>* doubles;
};

/// Processes the elements after the last full batch for all other targets.
extern const Target kScalarTarget;
extern const PairTable kScalarPairs;
extern const expr::Kernels<float> kScalarFloats;
extern const expr::Kernels<double> kScalarDoubles;

/// The target in use.
const Target& current_target();
/// The kernel of an element type. A type that cannot be evaluated is an internal error.
const Kernel& stats_kernel(const Target& target, DType dtype);
const PairKernel& pair_kernel(const Target& target, DType dtype);

}  // namespace msdbg::simd
