// What the compiled targets offer to the pass: plain records and function pointers. Private to the module.
//
// The files of the targets are compiled with flags that other files must not have, and the linker keeps one copy of
// each inline function. This header therefore defines none, and includes nothing that does.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace msdbg::simd {

/// Sums over the finite elements of one block.
struct BlockSums {
  double sum, abs_sum, squares;
  double min, max;  ///< +inf and -inf when no element is finite
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

/// The functions for one element type. Data need no alignment; `n` is a multiple of `step` and at most 4096.
///
/// The plain form of a function takes every element for finite: where one is not, abs_sum (prev_abs) is not finite
/// either and the rest of the answer is void. The masked form leaves such elements out.
struct Kernel {
  size_t step;
  void (*sums)(const void* data, size_t n, BlockSums* out);
  void (*masked_sums)(const void* data, size_t n, BlockSums* out);
  void (*centred)(const void* data, size_t n, double centre, Centred* out);
  void (*masked_centred)(const void* data, size_t n, double centre, Centred* out);
  /// Adds to `counts`, one for each of `bounds`.
  void (*ranges)(const void* data, size_t n, const Bounds* bounds, size_t bounds_count, uint64_t* counts);
  /// `tolerance` may be null. The previous elements have the same type.
  void (*pairs)(const void* data, const void* previous, size_t n, const Tolerance* tolerance, PairSums* out);
  void (*masked_pairs)(const void* data, const void* previous, size_t n, const Tolerance* tolerance, PairSums* out);
};

/// Indexed by DType.
constexpr size_t kKernelCount = 14;
struct PairTarget;  // pair_kernels.h
struct Target {
  const char* name;
  Kernel kernels[kKernelCount];
};

extern const Target kScalarTarget;
#ifdef MSDBG_SIMD_X86
extern const Target kSse2Target;
extern const Target kAvx2Target;
extern const Target kAvx512Target;
#endif

/// The one in use.
const Target& current_target();
const PairTarget& current_pair_target();

}  // namespace msdbg::simd
