// Joins the sums of blocks into those of a tensor, in double, whatever the size of the values. Private to the module.
#pragma once

#include <cstdint>

namespace msdbg::simd {

/// A sum with the rounding error of its additions kept beside it (Neumaier).
class CompensatedSum {
 public:
  void add(double value);
  void scale(double factor);
  double value() const { return sum_ + error_; }

 private:
  double sum_ = 0, error_ = 0;
};

/// Moments of one block in units of 2^shift.
struct BlockMoments {
  uint64_t n = 0;
  double sum = 0, abs_sum = 0, squares = 0;
  double m2 = 0;  ///< sum of (x - mean)^2
  int shift = 0;
};

/// Values near the limits of double are summed in units of 2^600 or 2^-600, because their squares leave its range.
inline constexpr int kUnitShift = 600;
/// The shift for a block whose largest magnitude is `largest`; 0 for all that other types than float64 hold.
int unit_shift(double largest);

class Moments {
 public:
  void add(BlockMoments block);

  uint64_t n() const { return n_; }
  double mean() const;
  double abs_mean() const;
  double std() const;
  double l2_norm() const;

 private:
  void change_units(int shift);

  uint64_t n_ = 0;
  int shift_ = 0;
  bool has_units_ = false;  // zeros fit all units
  CompensatedSum sum_, abs_sum_, squares_, m2_;
};

}  // namespace msdbg::simd
