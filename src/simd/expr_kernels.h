// The interface of the compiled targets for the block machine of expressions: function pointers on registers. Private to simd and
// expr; the rules of kernels.h apply here, too.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "msdbg/dtype.h"

namespace msdbg::expr {

/// Registers have this alignment and a multiple of this size; element operations process whole multiples.
constexpr size_t kAlignment = 64;

/// The operands: two registers, a register and a scalar, a scalar and a register.
enum Form { kRegisters, kRegisterScalar, kScalarRegister };
constexpr size_t kFormCount = 3;

/// What a reduction does to its elements first, which saves writing the result to memory: nothing, add a scalar, multiply by one,
/// square.
enum Prelude { kPlain, kAdded, kMultiplied, kSquared };
constexpr size_t kPreludeCount = 4;

/// The number of operations of each kind in the language (expr/ops.h), in its order.
constexpr size_t kUnaryCount = 12, kBinaryCount = 15, kComparisonCount = 6;

struct CentredSums {
  double sum, squares;  ///< of scale * (x - centre)
};

/// The functions for one lane type. Truth is 1 and 0. `n` is a multiple of 64 bytes for element operations, and of `step` for
/// reductions. All accumulate in double.
template <class T>
struct Kernels {
  size_t step;
  /// By DType; no alignment needed, any n. Null for types whose values do not fit the lane.
  void (*load[kDTypeCount])(const void* from, T* to, size_t n);
  /// In the order of Op from kNegate to kNot.
  void (*unary[kUnaryCount])(T* to, const T* a, size_t n);
  /// In the order of Op from kAdd to kOr.
  void (*binary[kBinaryCount][kFormCount])(T* to, const T* a, const T* b, T scalar, size_t n);
  /// `value` where the mask holds, else `other`.
  void (*select)(T* to, const T* value, const T* mask, T other, size_t n);

  uint64_t (*count)(const T* truth, size_t n);
  /// In the order of Op from kLess to kNotEqual; on abs(a) if `magnitude`.
  uint64_t (*count_registers[kComparisonCount])(const T* a, const T* b, bool magnitude, size_t n);
  uint64_t (*count_scalar[kComparisonCount][kPreludeCount])(const T* a, T first, T scalar, bool magnitude, size_t n);
  /// By Prelude, with `first` as its scalar.
  double (*sum[kPreludeCount])(const T* a, T first, size_t n, double scale);
  double (*magnitudes[kPreludeCount])(const T* a, T first, size_t n, double scale);  ///< sum of |a| * scale
  double (*squares[kPreludeCount])(const T* a, T first, size_t n, double scale);
  /// `mask` may be null.
  CentredSums (*centred)(const T* a, const T* mask, size_t n, double centre, double scale);
  T (*least[kPreludeCount])(const T* a, T first, size_t n);  ///< ignores NaN; NaN if there is nothing else
  T (*greatest[kPreludeCount])(const T* a, T first, size_t n);
  T (*largest[kPreludeCount])(const T* a, T first, size_t n);  ///< of |a|; NaN if any element is NaN
};

}  // namespace msdbg::expr
