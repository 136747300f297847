// Counts for each step and rank, and the ranks that lack steps: docs/ranks.md.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/answers.h"

namespace msdbg {

/// A table of steps and ranks. Empty for a session with one rank.
struct RankGrid {
  struct Cell {
    bool present = false;  ///< the rank has data of the step
    uint64_t first = 0, second = 0;
    auto operator<=>(const Cell&) const = default;
  };
  /// What is counted. `second_key` "": nothing.
  struct Words {
    std::string_view title;                  ///< "hits in step"
    std::string_view first_key, second_key;  ///< in JSON: "hits", "not_checked"
    std::string_view second;                 ///< "not checked"
  };
  Words words;
  std::vector<int> ranks;
  std::vector<int64_t> steps;
  std::vector<Cell> cells;  ///< by step, then rank

  const Cell& at(size_t step, size_t rank) const { return cells[step * ranks.size() + rank]; }
  /// Null for a step or rank that is not in the grid.
  Cell* find(int rank, int64_t step);
};

/// Hits and tensors that were not checked.
RankGrid hits_grid(const Session& session, const CheckResult& result);
/// Tensors that are not finite, and those without statistics.
RankGrid stats_grid(const Session& session, const IntSet& ranks, const IntSet& steps);
void count_row(RankGrid& grid, const StatsRow& row);
/// Tensors in the dump.
RankGrid tensors_grid(Session& session);

/// The grid as it is printed: equal columns and rows are joined where there are many, and what still does not fit is summed up.
struct RankTable {
  struct Row {
    std::string steps;
    std::vector<std::string> cells;
  };
  std::vector<std::string> columns;  ///< "rank 0", "ranks 1-3", "12 others"
  std::vector<Row> rows;
  std::vector<std::string> notes;    ///< what (4) and - mean, ranks that lack steps, rows that were left out
};
/// `width`: columns of the page. `all`: every row. Empty for one rank.
RankTable rank_table(const RankGrid& grid, size_t width, bool all);
/// The table and its notes; "" where every count is 0 and no rank lacks a step.
std::string rank_table_text(const RankGrid& grid, const ReportStyle& style);
/// { rank, steps, missing_steps, and the counts of these steps under their keys } for each rank.
Answer by_rank_answer(const RankGrid& grid);

/// `rank 1 has no step 3`, a line for each set of ranks; empty if every rank has every step.
std::vector<std::string> missing_steps(const Session& session);

}  // namespace msdbg
