#include "simd/moments.h"

#include <cmath>
#include <limits>

namespace msdbg::simd {

namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLarge = 0x1p480, kSmall = 0x1p-480;
}  // namespace

void CompensatedSum::add(double value) {
  const double next = sum_ + value;
  error_ += std::fabs(sum_) >= std::fabs(value) ? (sum_ - next) + value : (value - next) + sum_;
  sum_ = next;
}

void CompensatedSum::scale(double factor) {
  sum_ *= factor;
  error_ *= factor;
}

int unit_shift(double largest) {
  if (largest >= kLarge) return kUnitShift;
  return largest > 0 && largest < kSmall ? -kUnitShift : 0;
}

void Moments::add(BlockMoments block) {
  if (block.n == 0) return;
  if (block.abs_sum == 0) block.shift = shift_;
  if (!has_units_ && block.abs_sum != 0) {
    has_units_ = true;
    shift_ = block.shift;
  }
  if (block.shift > shift_) change_units(block.shift);
  if (block.shift < shift_) {
    const double factor = std::ldexp(1.0, block.shift - shift_);
    block.sum *= factor;
    block.abs_sum *= factor;
    block.squares = block.squares * factor * factor;
    block.m2 = block.m2 * factor * factor;
  }

  // Chan's formula: the mean of the parts moves the sums of squares apart.
  if (n_ > 0) {
    const auto na = static_cast<double>(n_), nb = static_cast<double>(block.n);
    const double delta = block.sum / nb - sum_.value() / na;
    m2_.add(delta * delta * (na / (na + nb)) * nb);
  }
  m2_.add(block.m2);
  sum_.add(block.sum);
  abs_sum_.add(block.abs_sum);
  squares_.add(block.squares);
  n_ += block.n;
}

void Moments::change_units(int shift) {
  const double factor = std::ldexp(1.0, shift_ - shift);
  sum_.scale(factor);
  abs_sum_.scale(factor);
  // In two steps, since the square of the factor may be below the smallest double.
  for (int i = 0; i < 2; ++i) {
    squares_.scale(factor);
    m2_.scale(factor);
  }
  shift_ = shift;
}

double Moments::mean() const { return n_ == 0 ? kNaN : std::ldexp(sum_.value() / static_cast<double>(n_), shift_); }

double Moments::abs_mean() const {
  return n_ == 0 ? kNaN : std::ldexp(abs_sum_.value() / static_cast<double>(n_), shift_);
}

double Moments::std() const {
  if (n_ < 2) return n_ == 0 ? kNaN : 0.0;
  return std::ldexp(std::sqrt(std::fmax(m2_.value(), 0.0) / static_cast<double>(n_ - 1)), shift_);
}

double Moments::l2_norm() const { return std::ldexp(std::sqrt(squares_.value()), shift_); }

}  // namespace msdbg::simd
