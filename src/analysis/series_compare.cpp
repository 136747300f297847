// Compares two losses by the criteria of MindSpore's guide for accuracy: about 1 in 1000 is rounding.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "msdbg/series.h"

namespace msdbg {
namespace {

bool same_nonfinite(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

std::string advice(const SeriesComparison& result, bool from_the_start) {
  if (result.diverges_at && !from_the_start) {
    return std::string(
        "the steps before the first common one: it is unknown whether the forward pass or an update differs. Print the loss of every "
        "step from the first on");
  }
  switch (result.verdict) {
    case SeriesVerdict::kClose: return "nothing: operators round, and that much adds up over the steps";
    case SeriesVerdict::kForward:
      return "the forward pass of the first step: the same data in the same order, initial weights, random seeds; then compare the tensors "
             "of that step (msdbg diff) from the first node on";
    case SeriesVerdict::kBackward:
      return "gradients and weight update of the first step: its forward pass agrees. Compare gradients and parameters (msdbg diff A B "
             "'@gradient or @parameter'), learning rate, optimizer settings, loss scale";
    case SeriesVerdict::kLater:
      return "the data and learning rate of the steps before, then how far the error grew: slow growth is accumulated rounding, a jump is "
             "an event of its own step (msdbg diff with --steps)";
  }
  return "";
}

}  // namespace

std::string_view series_verdict_name(SeriesVerdict verdict) {
  switch (verdict) {
    case SeriesVerdict::kClose: return "close";
    case SeriesVerdict::kForward: return "forward";
    case SeriesVerdict::kBackward: return "backward";
    case SeriesVerdict::kLater: return "later";
  }
  return "close";
}

Result<SeriesComparison> compare_series(const Series& left, const Series& right, double tolerance) {
  if (!(tolerance > 0))
    return Status(Code::kInvalidArgument, fmt::format("series: tolerance {}: more than 0 is expected, e.g. 0.001", tolerance));
  Series a = left, b = right;
  align_series(a, b);
  SeriesComparison result;
  result.tolerance = tolerance;
  size_t i = 0, k = 0, position = 0, parted = 0;
  double sum = 0;
  std::optional<double> worst;
  while (i < a.points.size() || k < b.points.size()) {
    if (k == b.points.size() || (i < a.points.size() && a.points[i].step < b.points[k].step)) {
      result.only_a.push_back(a.points[i++].step);
      continue;
    }
    if (i == a.points.size() || b.points[k].step < a.points[i].step) {
      result.only_b.push_back(b.points[k++].step);
      continue;
    }
    const int64_t step = a.points[i].step;
    const double x = a.points[i++].value, y = b.points[k++].value;
    if (position++ == 0) result.first_step = step;
    if (!std::isfinite(x)) result.nonfinite_a.push_back(step);
    if (!std::isfinite(y)) result.nonfinite_b.push_back(step);
    bool parts = false;
    double size = 0;
    if (std::isfinite(x) && std::isfinite(y)) {
      const double error = std::fabs(x - y);
      sum += error;
      ++result.finite;
      result.max_abs_error = std::max(result.max_abs_error, error);
      const double relative = error == 0 ? 0 : error / std::fabs(y);
      result.max_rel_error = std::max(result.max_rel_error, relative);
      parts = error > tolerance * std::fabs(y);
      size = relative;
    } else if (!same_nonfinite(x, y)) {
      ++result.nonfinite_mismatch;
      parts = true;
      size = std::numeric_limits<double>::infinity();
    }
    if (size > 0 && (!worst || size > *worst)) worst = size, result.worst_step = step;
    if (parts && !result.diverges_at) {
      result.diverges_at = step;
      result.a_value = x;
      result.b_value = y;
      parted = position;
    }
  }
  result.count = position;
  if (position == 0) return Status(Code::kNotFound, fmt::format("series: {} and {} have no step in common", a.source, b.source));
  if (result.finite > 0) {
    result.mean_abs_error = sum / static_cast<double>(result.finite);
  } else {
    result.mean_abs_error = result.max_abs_error = result.max_rel_error = std::numeric_limits<double>::quiet_NaN();
  }
  // Only the loss of the very first step precedes any update, and only the next one follows a single update.
  const bool from_the_start = !a.late && !b.late && result.first_step <= 1;
  if (result.diverges_at) {
    const bool next = *result.diverges_at > result.first_step && *result.diverges_at - 1 == result.first_step;
    result.verdict = from_the_start && parted == 1           ? SeriesVerdict::kForward
                     : from_the_start && parted == 2 && next ? SeriesVerdict::kBackward
                                                             : SeriesVerdict::kLater;
  }
  result.next = advice(result, from_the_start || parted > 1);
  return result;
}

}  // namespace msdbg
