// What the statistics of a table prove about a tensor.
#include <algorithm>
#include <cmath>

#include "session/msprobe/table.h"

namespace msdbg::msprobe {
namespace {

constexpr uint32_t kBadCounts = kStatNan | kStatPosInf | kStatNegInf;
/// float32 holds every integer up to here.
constexpr double kExactInteger = 16777216;

/// Minimum and maximum are equal and finite: every element has this value.
void fill_constant(Stats& stats, double value) {
  const auto elements = static_cast<double>(stats.count);
  stats.min = stats.max = stats.mean = value;
  stats.abs_mean = std::fabs(value);
  stats.std = 0;
  stats.l2_norm = std::fabs(value) * std::sqrt(elements);
  (value == 0 ? stats.zero_count : value > 0 ? stats.pos_count : stats.neg_count) = stats.count;
  stats.known |= kStatMin | kStatMax | kStatMean | kStatAbsMean | kStatStd | kStatL2Norm | kStatZero | kStatPos | kStatNeg;
}

/// No tensor has these extremes.
bool contradictory(const Record& record) {
  if (std::isnan(record.max) || std::isnan(record.min)) return false;
  return record.max < record.min || (record.count == 1 && record.max != record.min);
}

class Derivation {
 public:
  Derivation(const Record& record, bool rounded) : record_(record), rounded_(rounded && may_be_rounded(record.dtype)) {
    stats_.dtype = record.dtype;
    if (record.problem.empty()) {
      stats_.count = record.count;
      stats_.known = kStatCount;
    }
  }

  Stats run() {
    if (!has(kGivenMax) || !has(kGivenMin)) return stats_;
    if (!record_.problem.empty() || record_.count == 0 || contradictory(record_)) return stats_;
    if (std::isnan(record_.max) || std::isnan(record_.min)) nan();
    else if (std::isinf(record_.max) || std::isinf(record_.min)) infinite();
    else finite();
    if (record_.count == 1 && stats_.nan_count + stats_.inf_count() == 1) only_element();
    return stats_;
  }

 private:
  static bool may_be_rounded(DType dtype) { return dtype == DType::kFloat64 || (!is_float(dtype) && dtype != DType::kBool); }
  bool has(uint8_t bits) const { return (record_.given & bits) == bits; }

  /// At least one; how many Inf there are is unknown.
  void nan() {
    stats_.nan_count = 1;
    finite_extremes();
  }

  void infinite() {
    // A value beyond float32 becomes an infinity when it is converted.
    if (rounded_) return;
    stats_.known |= kStatNan;
    const bool high = std::isinf(record_.max) && record_.max > 0, low = std::isinf(record_.min) && record_.min < 0;
    stats_.pos_inf_count = high ? 1 : 0;
    stats_.neg_inf_count = low ? 1 : 0;
    // All elements are the same infinity.
    if (record_.max == record_.min) (high ? stats_.pos_inf_count : stats_.neg_inf_count) = stats_.count;
    if (!high || record_.max == record_.min) stats_.known |= kStatPosInf;
    if (!low || record_.max == record_.min) stats_.known |= kStatNegInf;
    if (record_.max == record_.min) {
      stats_.l2_norm = 0;
      stats_.known |= kStatMin | kStatMax | kStatMean | kStatAbsMean | kStatStd | kStatL2Norm | kStatZero | kStatPos | kStatNeg;
      return;
    }
    finite_extremes();
    if (is_complex()) return;
    if (std::isfinite(record_.max)) set(kStatMax, stats_.max, record_.max);
    if (std::isfinite(record_.min)) set(kStatMin, stats_.min, record_.min);
    signs();
  }

  /// What a single element is not, it is known not to be.
  void only_element() {
    stats_.l2_norm = 0;
    stats_.known |= kBadCounts | kStatMin | kStatMax | kStatMean | kStatAbsMean | kStatStd | kStatL2Norm | kStatZero | kStatPos | kStatNeg;
  }

  void finite_extremes() {
    if (is_complex()) return;
    if (has(kGivenFiniteMax) && std::isfinite(record_.finite_max)) set(kStatMax, stats_.max, record_.finite_max);
    if (has(kGivenFiniteMin) && std::isfinite(record_.finite_min)) set(kStatMin, stats_.min, record_.finite_min);
  }

  void finite() {
    stats_.known |= kBadCounts;
    if (is_complex()) return;  // the statistics are those of the magnitudes
    const double largest = std::max(std::fabs(record_.max), std::fabs(record_.min));
    if (rounded_ && (record_.dtype == DType::kFloat64 || largest >= kExactInteger)) return;
    if (record_.max == record_.min) {
      fill_constant(stats_, record_.max);
    } else {
      set(kStatMax, stats_.max, record_.max);
      set(kStatMin, stats_.min, record_.min);
      signs();
      if (has(kGivenMean) && std::isfinite(record_.mean)) set(kStatMean, stats_.mean, record_.mean);
      // The norm of a 0-d tensor is the value itself, with its sign; an infinite one is an overflow of the sum.
      if (has(kGivenNorm) && std::isfinite(record_.norm)) set(kStatL2Norm, stats_.l2_norm, std::fabs(record_.norm));
      if (record_.min >= 0 && stats_.knows(kStatMean)) set(kStatAbsMean, stats_.abs_mean, stats_.mean);
      if (record_.max <= 0 && stats_.knows(kStatMean)) set(kStatAbsMean, stats_.abs_mean, -stats_.mean);
    }
    if (record_.dtype != DType::kBool && record_.max < dtype_max(record_.dtype) && record_.min > dtype_lowest(record_.dtype))
      stats_.known |= kStatDtypeMax;
  }

  /// What the finite extremes say about signs and zeros.
  void signs() {
    const bool all_finite = stats_.knows(kBadCounts) && stats_.nan_count + stats_.inf_count() == 0;
    if (stats_.knows(kStatMin) && stats_.min >= 0) stats_.known |= kStatNeg;
    if (stats_.knows(kStatMax) && stats_.max <= 0) stats_.known |= kStatPos;
    if (stats_.knows(kStatMin) && stats_.min > 0) stats_.known |= kStatZero;
    if (stats_.knows(kStatMax) && stats_.max < 0) stats_.known |= kStatZero;
    if (!all_finite) return;
    if (stats_.min > 0) set(kStatPos, stats_.pos_count, stats_.count);
    if (stats_.max < 0) set(kStatNeg, stats_.neg_count, stats_.count);
  }

  template <typename T>
  void set(StatField field, T& out, T value) {
    out = value;
    stats_.known |= field;
  }

  bool is_complex() const { return !is_evaluable(record_.dtype); }

  const Record& record_;
  const bool rounded_;
  Stats stats_;
};

}  // namespace

Stats statistics_of(const Record& record, bool rounded) { return Derivation(record, rounded).run(); }

std::string no_statistics(const Record& record) {
  if (!record.problem.empty()) return record.problem;
  constexpr uint8_t kExtremes = kGivenMax | kGivenMin;
  if (record.count == 0) return "";
  if ((record.given & kExtremes) == kExtremes) {
    if (!contradictory(record)) return "";
    if (record.max < record.min) return "the dump gives a maximum below the minimum";
    return "the dump gives one element and two values (maximum and minimum differ)";
  }
  if (record.checksum_bits == 64) return "only a checksum was recorded (summary_mode xor), no statistics";
  if (record.checksum_bits == 32) return "only a checksum was recorded, no statistics";
  return "the dump has no statistics of it (null)";
}

}  // namespace msdbg::msprobe
