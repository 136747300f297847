#include "report/origin_words.h"

#include <fmt/format.h>

namespace msdbg {

std::string rows_text(const Origin& origin) {
  const auto& [affected, range] = *origin.rows;
  const int64_t rows = origin.info.shape.empty() ? 0 : origin.info.shape[0];
  if (rows == 1 && affected == 1) return fmt::format("in its only row ({})", range.first);
  const std::string each =
      range.first == range.second ? fmt::format("{} each", range.first) : fmt::format("{} to {} each", range.first, range.second);
  return affected == rows ? fmt::format("all {} rows are affected ({})", rows, each)
                          : fmt::format("{} of {} rows are affected ({})", affected, rows, each);
}

std::string absorbed_text(const Stats& stats) {
  if (stats.count > 0 && stats.zero_count == stats.count) return "has no NaN, it is all zero";
  return stats.min == stats.min ? fmt::format("is finite, min {}, max {}", format_short(stats.min), format_short(stats.max)) : "is sound";
}

bool worth_showing(const OriginInput& input) { return input.stats && (is_float(input.stats->dtype) || input.stats->count > 1); }

}  // namespace msdbg
