// Compares a fit of two straight lines with a fit of one.
#include <algorithm>
#include <cmath>

#include "msdbg/follow.h"

namespace msdbg {
namespace {

constexpr size_t kLeastPart = 3, kLeastPoints = 6;
constexpr double kLeastProbability = 1e-3;
constexpr double kDecades = 100;  ///< ratio of largest to smallest value above which logarithms are compared

/// Sums that give the squared error of a straight line through a run of points.
struct Sums {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;

  void add(double px, double py) {
    n += 1, x += px, y += py, xx += px * px, xy += px * py, yy += py * py;
  }
  Sums minus(const Sums& other) const {
    return {n - other.n, x - other.x, y - other.y, xx - other.xx, xy - other.xy, yy - other.yy};
  }
  double error() const {
    const double sxx = xx - x * x / n, sxy = xy - x * y / n, syy = yy - y * y / n;
    return std::max(0.0, sxx > 0 ? syy - sxy * sxy / sxx : syy);
  }
};

}  // namespace

std::optional<ChangePoint> change_point(const std::vector<std::pair<int64_t, double>>& series) {
  const size_t n = series.size();
  if (n < kLeastPoints) return std::nullopt;
  double low = series[0].second, high = low;
  for (const auto& [step, value] : series) {
    if (!std::isfinite(value)) return std::nullopt;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  ChangePoint found;
  found.log_scale = low > 0 && high / low > kDecades;

  // Scale both axes to about [-1, 1]; otherwise the differences of large sums would swamp the errors.
  auto scaled = [&](double value) { return found.log_scale ? std::log10(value) : value; };
  const double first = static_cast<double>(series.front().first), width = std::max(1.0, static_cast<double>(series.back().first) - first);
  const double base = scaled(low), height = scaled(high) - base;
  if (!(height > 0) || !std::isfinite(height)) return std::nullopt;
  std::vector<Sums> until(n + 1);
  for (size_t i = 0; i < n; ++i) {
    until[i + 1] = until[i];
    until[i + 1].add(2 * (static_cast<double>(series[i].first) - first) / width - 1, 2 * (scaled(series[i].second) - base) / height - 1);
  }
  const double whole = until[n].error();
  double best = INFINITY;
  size_t cut = 0;
  for (size_t at = kLeastPart; at + kLeastPart <= n; ++at) {
    const double parts = until[at].error() + until[n].minus(until[at]).error();
    if (parts < best) best = parts, cut = at;
  }
  // Do not compare with an error that is only rounding.
  const double rounding = 1e-12 * static_cast<double>(n);
  if (whole <= rounding) return std::nullopt;
  best = std::max(best, rounding);
  // Two lines have two more parameters than one; with two additional degrees of freedom, the tail of F has a closed form.
  const double free = static_cast<double>(n) - 4, cuts = static_cast<double>(n - 2 * kLeastPart + 1);
  const double f = std::max(0.0, whole - best) / 2 / (best / free);
  found.p = std::min(1.0, cuts * std::pow(1 + 2 * f / free, -free / 2));
  if (found.p >= kLeastProbability) return std::nullopt;
  found.step = series[cut].first;
  found.before = series[cut - 1].second;
  found.after = series[cut].second;
  return found;
}

}  // namespace msdbg
