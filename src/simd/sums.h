// Joins the sums of blocks to sums of a tensor, in double, for values of any size. Private to simd and expr.
#pragma once

#include <cstdint>

namespace msdbg::simd {

/// Values near the limits of double are summed in units of 2^600 or 2^-600, because their squares overflow or underflow.
inline constexpr int kUnitShift = 600;
/// The shift for a block whose largest magnitude is `largest`; 0 for every value that a type other than float64 can hold.
int unit_shift(double largest);

/// A compensated sum in units of 2^shift. NaN and infinities follow IEEE rules.
class ScaledSum {
 public:
  void add(double value, int shift = 0);
  double value() const { return in_units(0); }
  /// The value divided by 2^shift.
  double in_units(int shift) const;
  double mean(uint64_t n) const;
  /// The square root of the sum.
  double root() const;
  int shift() const { return shift_; }

 private:
  void add_plain(double value);

  double sum_ = 0, error_ = 0;
  double special_ = 0;  // the sum of non-finite values, kept apart from the error term
  int shift_ = 0;
};

/// Standard deviation from blocks that are summed around their own centres.
class ScaledMoments {
 public:
  /// `sum` and `squares` of `n` elements around `centre`, in units of 2^shift and 2^2shift.
  void add(uint64_t n, double centre, double sum, double squares, int shift);
  /// Divisor n - 1; 0 for one element, NaN for none.
  double std() const;

 private:
  uint64_t n_ = 0;
  double mean_ = 0;
  ScaledSum m2_;
  bool broken_ = false;  // an element is not finite
};

}  // namespace msdbg::simd
