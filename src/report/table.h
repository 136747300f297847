// Building blocks of tables and other text for people.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/table.h"

namespace msdbg {

/// The lines of a message, each made printable; continuation lines share one indentation, which keeps a caret in place.
std::string lines_text(std::string_view text);

/// "1 hit", "3 hits".
std::string counted(uint64_t n, std::string_view word);
/// "104 of 192 elements are -Inf, none NaN"; the statistics where all are finite.
std::string bad_text(const Stats& stats);
/// "0, 2-3".
std::string ranks_numbers(std::span<const int> ranks);
/// The same for a column of a table, which has to leave room for others: `0, 3, 7, 12-13, 19 and 41 more`.
std::string ranks_cell(std::span<const int> ranks);
/// Rows of one table that read the same but for their rank.
struct RankRow {
  std::string about;  ///< a tensor, a parameter: rows about the same thing stand together
  int rank = 0;
  std::vector<Table::Cell> cells;
};
struct JoinedRow {
  std::vector<int> ranks;
  size_t first;  ///< index of its first row
};
std::vector<JoinedRow> join_ranks(std::span<const RankRow> rows);
/// A word quoted for a POSIX shell.
std::string shell_word(std::string_view text);
/// The lines `not checked: 2 of 136 tensors ...`, one per reason with some tensors; "" without entries.
std::string not_checked_text(const Session& session, const std::vector<NotChecked>& entries, const Coverage& coverage,
                             const ReportStyle& style);

}  // namespace msdbg
