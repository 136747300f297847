// Losses and metrics over steps, as training programs print them, and two of them side by side.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"

namespace msdbg {

struct SeriesPoint {
  int64_t step = 0;  ///< as printed where the text says it, else counted from 1
  double value = 0;  ///< NaN and Inf included
};

struct Series {
  std::string source, what;  ///< the path, and the pattern or column that was taken
  std::vector<SeriesPoint> points;
  bool counted = false;      ///< steps were counted, not read
  bool late = false;         ///< the text says that the first value is that of a later step than 1
};

struct SeriesOptions {
  /// Regular expression (ECMAScript). Its first group is the value; with two groups, step and value. "" finds `loss is X`,
  /// `loss: X`, `loss = X` and `loss X`, with a step before it (`step 3`, `step: [3/100]`).
  std::string pattern;
  std::string column;  ///< of csv; "" takes `loss`, else the only column besides `step`
};

/// Text that has a header line with commas and no line that the pattern knows is read as csv.
/// Error: kNotFound when no value is found; kInvalidArgument for the pattern or a column that is not there.
Result<Series> parse_series(std::string_view text, std::string_view source, const SeriesOptions& options = {});

enum class SeriesVerdict : uint8_t {
  kClose,       ///< every step within 1 in 1000
  kForward,     ///< the first step of the training differs already
  kBackward,    ///< the first step agrees, the second does not
  kLater,       ///< they diverge after the second step, or after steps that are unknown
};
std::string_view series_verdict_name(SeriesVerdict verdict);  ///< "close", "forward", "backward", "later"

struct SeriesComparison {
  uint64_t count = 0;               ///< steps that both have
  double tolerance = 1e-3;          ///< share of the reference
  double mean_abs_error = 0;        ///< over steps that are finite in both; NaN without any
  double max_abs_error = 0, max_rel_error = 0;  ///< likewise
  uint64_t finite = 0;              ///< steps that are finite in both
  int64_t first_step = 0;           ///< the first that both have
  std::vector<int64_t> nonfinite_a, nonfinite_b;  ///< steps that both have in which the value is NaN or Inf
  std::optional<int64_t> worst_step;
  uint64_t nonfinite_mismatch = 0;  ///< steps where NaN or Inf is on one side only
  std::optional<int64_t> diverges_at;  ///< first step beyond the tolerance
  double a_value = 0, b_value = 0;  ///< the two values in that step
  std::vector<int64_t> only_a, only_b;
  SeriesVerdict verdict = SeriesVerdict::kClose;
  std::string next;                 ///< what to look at, for people
};

/// If one side counted its steps, the other's are counted too, so the first values are compared with each other.
void align_series(Series& a, Series& b);

/// `b` is the reference. Sides are aligned as align_series() does it. The forward pass, or the first update, is named only where the
/// values reach back to the first step.
/// Error: kNotFound when they have no step in common; kInvalidArgument for a tolerance that is not positive.
Result<SeriesComparison> compare_series(const Series& a, const Series& b, double tolerance = 1e-3);

}  // namespace msdbg
