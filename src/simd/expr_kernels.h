// What the compiled targets offer to the block machine of the expressions: function pointers over registers. Private to simd
// and expr; the rules of kernels.h hold here, too.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "msdbg/dtype.h"

namespace msdbg::expr {

/// Registers are aligned to this and hold a multiple of it; element operations run over whole multiples.
constexpr size_t kAlignment = 64;

/// Where the operands come from: two registers, a register and a scalar, a scalar and a register.
enum Form { kRegisters, kRegisterScalar, kScalarRegister };
constexpr size_t kFormCount = 3;

/// What a reduction does to its elements first, so the result need not be written down: nothing, add a scalar,
/// multiply by one, square.
enum Prelude { kPlain, kAdded, kMultiplied, kSquared };
constexpr size_t kPreludeCount = 4;

/// How many operations of each kind the language has (expr/ops.h), in its order.
constexpr size_t kUnaryCount = 12, kBinaryCount = 15, kComparisonCount = 6;

struct CentredSums {
  double sum, squares;  ///< of scale * (x - centre)
};

/// One type of lane. Truth is 1 and 0. `n` of the element operations is a multiple of 64 bytes; `n` of the reductions is
/// a multiple of `step`. All accumulate in double.
template <class T>
struct Kernels {
  size_t step;
  /// By DType; no alignment needed, any n. Null for types whose values do not fit the lane.
  void (*load[kDTypeCount])(const void* from, T* to, size_t n);
  /// In the order of Op from kNegate to kNot.
  void (*unary[kUnaryCount])(T* to, const T* a, size_t n);
  /// In the order of Op from kAdd to kOr.
  void (*binary[kBinaryCount][kFormCount])(T* to, const T* a, const T* b, T scalar, size_t n);
  /// value where mask holds, else `other`.
  void (*select)(T* to, const T* value, const T* mask, T other, size_t n);

  uint64_t (*count)(const T* truth, size_t n);
  /// In the order of Op from kLess to kNotEqual; of abs(a) where `magnitude`.
  uint64_t (*count_registers[kComparisonCount])(const T* a, const T* b, bool magnitude, size_t n);
  uint64_t (*count_scalar[kComparisonCount][kPreludeCount])(const T* a, T first, T scalar, bool magnitude, size_t n);
  /// By Prelude, whose scalar is `first`.
  double (*sum[kPreludeCount])(const T* a, T first, size_t n, double scale);
  double (*magnitudes[kPreludeCount])(const T* a, T first, size_t n, double scale);  ///< sum of |a| * scale
  double (*squares[kPreludeCount])(const T* a, T first, size_t n, double scale);
  /// `mask` may be null.
  CentredSums (*centred)(const T* a, const T* mask, size_t n, double centre, double scale);
  T (*least[kPreludeCount])(const T* a, T first, size_t n);  ///< NaN is passed over; NaN when there is nothing else
  T (*greatest[kPreludeCount])(const T* a, T first, size_t n);
  T (*largest[kPreludeCount])(const T* a, T first, size_t n);  ///< of |a|; NaN when there is one
};

}  // namespace msdbg::expr
