#include "report/origin_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/table.h"

namespace msdbg {
namespace {

constexpr size_t kFirstShown = 3;

/// `all 4 rows are affected (24 to 29 each)`. Precondition: origin.rows.
std::string rows_text(const Origin& origin) {
  const auto& [affected, range] = *origin.rows;
  const int64_t rows = origin.info.shape.empty() ? 0 : origin.info.shape[0];
  if (rows == 1 && affected == 1) return fmt::format("in its only row ({})", range.first);
  const std::string each =
      range.first == range.second ? fmt::format("{} each", range.first) : fmt::format("{} to {} each", range.first, range.second);
  return affected == rows ? fmt::format("all {} rows are affected ({})", rows, each)
                          : fmt::format("{} of {} rows are affected ({})", affected, rows, each);
}

}  // namespace

std::string broken_text(const Origin& origin) {
  std::string out = bad_text(origin.stats);
  if (!origin.first.empty() && origin.stats.count > 1) {
    out += "; first at";
    for (size_t i = 0; i < std::min(kFirstShown, origin.first.size()); ++i) out += " " + shape_text(origin.first[i]);
  }
  if (origin.rows && !origin.info.shape.empty()) out += "; " + rows_text(origin);
  return out;
}

std::string input_text(const OriginInput& input) {
  if (input.state == InputState::kUnknown) return "unknown";
  if (!input.stats) return input.state == InputState::kGood ? "sound" : "bad";
  const Stats& stats = *input.stats;
  const std::string bad = nonfinite_text(stats);
  std::string out = bad.empty() ? "finite" : bad;
  if (stats.min == stats.min) out += fmt::format(", min {}, max {}", format_short(stats.min, 3), format_short(stats.max, 3));
  if (input.zeros_at_bad)
    out += fmt::format(", {} at the same places", counted(stats.zero_count, "zero"));
  else if (stats.zero_count > 0)
    out += fmt::format(", {}", counted(stats.zero_count, "zero"));
  return out;
}

std::string absorbed_text(const Stats& stats) {
  if (stats.count > 0 && stats.zero_count == stats.count) return "has no NaN, it is all zero";
  return stats.min == stats.min ? fmt::format("is finite, min {}, max {}", format_short(stats.min), format_short(stats.max)) : "is sound";
}

bool worth_showing(const OriginInput& input) { return input.stats && (is_float(input.stats->dtype) || input.stats->count > 1); }

}  // namespace msdbg
