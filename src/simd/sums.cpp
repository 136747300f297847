#include "simd/sums.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace msdbg::simd {
namespace {

constexpr double kLarge = 0x1p480, kSmall = 0x1p-480;

// Nearly every block has plain units, and ldexp is a function call.
double shifted(double value, int by) { return by == 0 ? value : std::ldexp(value, by); }

}  // namespace

int unit_shift(double largest) {
  if (largest >= kLarge) return kUnitShift;
  return largest > 0 && largest < kSmall ? -kUnitShift : 0;
}

void ScaledSum::add(double value, int shift) {
  if (!std::isfinite(value)) {
    special_ += value;
    return;
  }
  if (value == 0) return;
  if (sum_ == 0 && error_ == 0) shift_ = shift;
  if (shift > shift_) {
    sum_ = std::ldexp(sum_, shift_ - shift);
    error_ = std::ldexp(error_, shift_ - shift);
    shift_ = shift;
  }
  add_plain(shifted(value, shift - shift_));
}

// Neumaier: the rounding error of the additions is stored with the sum.
void ScaledSum::add_plain(double value) {
  const double next = sum_ + value;
  error_ += std::fabs(sum_) >= std::fabs(value) ? (sum_ - next) + value : (value - next) + sum_;
  sum_ = next;
}

double ScaledSum::in_units(int shift) const { return special_ != 0 ? special_ : shifted(sum_ + error_, shift_ - shift); }

double ScaledSum::mean(uint64_t n) const {
  const auto count = static_cast<double>(n);
  return special_ != 0 ? special_ / count : shifted((sum_ + error_) / count, shift_);
}

double ScaledSum::root() const {
  if (special_ != 0) return std::sqrt(special_);
  return shifted(std::sqrt(std::max(sum_ + error_, 0.0)), shift_ / 2);
}

void ScaledMoments::add(uint64_t n, double centre, double sum, double squares, int shift) {
  if (n == 0) return;
  const auto nb = static_cast<double>(n), na = static_cast<double>(n_);
  if (!std::isfinite(sum) || !std::isfinite(centre)) {
    broken_ = true;
    n_ += n;
    return;
  }
  const double mean = centre + shifted(sum / nb, shift);
  m2_.add(std::max(squares - sum * (sum / nb), 0.0), 2 * shift);
  if (n_ > 0) {
    // Chan's formula: the distance of the means adds to the sums of squares.
    const int units = unit_shift(std::max(std::fabs(mean), std::fabs(mean_)));
    const double delta = shifted(mean, -units) - shifted(mean_, -units);
    m2_.add(delta * delta * (na / (na + nb)) * nb, 2 * units);
    mean_ += shifted(delta * (nb / (na + nb)), units);
  } else {
    mean_ = mean;
  }
  n_ += n;
}

double ScaledMoments::std() const {
  if (n_ == 0 || broken_) return std::numeric_limits<double>::quiet_NaN();
  if (n_ == 1) return 0;
  return m2_.root() / std::sqrt(static_cast<double>(n_ - 1));
}

}  // namespace msdbg::simd
