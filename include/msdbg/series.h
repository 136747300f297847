// Losses and metrics over steps, as printed by training programs, and comparison of two of them.
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
  int64_t step = 0;  ///< as printed if available, else counted from 1
  double value = 0;  ///< NaN and Inf included
};

struct Series {
  std::string source, what;  ///< the path, and the pattern or column that was used
  std::vector<SeriesPoint> points;
  bool counted = false;      ///< steps were counted, not read
  bool late = false;         ///< the text shows that the first value belongs to a step after 1
};

struct SeriesOptions {
  /// Regular expression (ECMAScript). Its first group is the value; with two groups, step and value. "" matches `loss is X`, `loss:
  /// X`, `loss = X` and `loss X`, with a step before it (`step 3`, `step: [3/100]`).
  std::string pattern;
  std::string column;  ///< of csv; "": `loss`, else the only column besides `step`
};

/// Text with a comma-separated header line, and no line that matches the pattern, is read as csv.
/// Error: kNotFound if no value is found; kInvalidArgument for an invalid pattern or a missing column.
Result<Series> parse_series(std::string_view text, std::string_view source, const SeriesOptions& options = {});

enum class SeriesVerdict : uint8_t {
  kClose,       ///< every step within 1 in 1000
  kForward,     ///< the first step of the training already differs
  kBackward,    ///< the first step agrees, the second does not
  kLater,       ///< they diverge after the second step, or after unknown steps
};
std::string_view series_verdict_name(SeriesVerdict verdict);  ///< "close", "forward", "backward", "later"

struct SeriesComparison {
  uint64_t count = 0;               ///< number of common steps
  double tolerance = 1e-3;          ///< as a share of the reference
  double mean_abs_error = 0;        ///< over steps that are finite in both; NaN if none
  double max_abs_error = 0, max_rel_error = 0;  ///< over the same steps
  uint64_t finite = 0;              ///< number of steps that are finite in both
  int64_t first_step = 0;           ///< the first common step
  std::vector<int64_t> nonfinite_a, nonfinite_b;  ///< common steps in which the value is NaN or Inf
  std::optional<int64_t> worst_step;
  uint64_t nonfinite_mismatch = 0;  ///< steps with NaN or Inf on one side only
  std::optional<int64_t> diverges_at;  ///< first step beyond the tolerance
  double a_value = 0, b_value = 0;  ///< the two values in that step
  std::vector<int64_t> only_a, only_b;
  SeriesVerdict verdict = SeriesVerdict::kClose;
  std::string next;                 ///< advice for people
};

/// If one side counted its steps, the other's are counted too: the first values are then compared with each other.
void align_series(Series& a, Series& b);

/// `b` is the reference. Aligns the sides with align_series(). Names the forward pass, or the first update, only if the values
/// include the first step.
/// Error: kNotFound without a common step; kInvalidArgument for a tolerance that is not positive.
Result<SeriesComparison> compare_series(const Series& a, const Series& b, double tolerance = 1e-3);

}  // namespace msdbg
