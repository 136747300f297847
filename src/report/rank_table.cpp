// The grid of steps and ranks as it is printed: it fits the page however many ranks there are.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "msdbg/analysis.h"
#include "msdbg/rank_report.h"
#include "msdbg/table.h"
#include "report/rank_grid.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr size_t kMostRanks = 16, kMostRows = 20, kMostTitle = 24;
constexpr size_t kRankGap = 2;  // blanks between columns

/// Ranks of one column, as indexes.
struct Column {
  std::vector<size_t> ranks;
  bool summed_up = false;  ///< they differ: a cell is a range
  uint64_t hits = 0;       ///< of one of them, in all steps
};

class Folding {
 public:
  Folding(const RankGrid& grid, size_t width, bool all) : grid_(grid), width_(width), all_(all) { choose_rows(); }

  RankTable table() {
    std::vector<Column> columns;
    for (size_t rank = 0; rank < grid_.ranks.size(); ++rank) columns.push_back({{rank}});
    RankTable made = written(columns);
    if (grid_.ranks.size() > kMostRanks || !fits(made)) {
      columns = joined();
      made = written(columns);
      // The largest set and the ranks with most hits stay.
      while (!fits(made) && columns.size() > 2) {
        sum_up(&columns);
        made = written(columns);
      }
    }
    notes(columns, &made);
    return made;
  }

 private:
  struct Row {
    size_t first, last;  ///< steps, as indexes
  };

  bool is_empty(size_t step) const {
    for (size_t rank = 0; rank < grid_.ranks.size(); ++rank) {
      const RankGrid::Cell& cell = grid_.at(step, rank);
      if (!cell.present || cell.first > 0 || cell.second > 0) return false;
    }
    return true;
  }

  bool are_equal(size_t a, size_t b) const {
    for (size_t rank = 0; rank < grid_.ranks.size(); ++rank) {
      if (grid_.at(a, rank) != grid_.at(b, rank)) return false;
    }
    return true;
  }

  /// Steps in which something was counted or is missing; neighbours with the same counts are joined where there are many.
  void choose_rows() {
    for (size_t step = 0; step < grid_.steps.size(); ++step) {
      if (!is_empty(step)) rows_.push_back({step, step});
    }
    if (rows_.size() <= kMostRows) return;
    std::vector<Row> shorter;
    for (const Row& row : rows_) {
      Row* const before = shorter.empty() ? nullptr : &shorter.back();
      if (before != nullptr && before->last + 1 == row.first && are_equal(before->last, row.first)) before->last = row.last;
      else shorter.push_back(row);
    }
    rows_ = std::move(shorter);
    if (rows_.size() <= kMostRows || all_) return;
    for (size_t i = kMostRows; i < rows_.size(); ++i) left_out_ += rows_[i].last - rows_[i].first + 1;
    rows_.resize(kMostRows);
  }

  /// Ranks with the same counts in all steps are one column.
  std::vector<Column> joined() const {
    std::map<std::vector<RankGrid::Cell>, size_t> known;
    std::vector<Column> columns;
    for (size_t rank = 0; rank < grid_.ranks.size(); ++rank) {
      std::vector<RankGrid::Cell> cells;
      for (size_t step = 0; step < grid_.steps.size(); ++step) cells.push_back(grid_.at(step, rank));
      const auto [found, is_new] = known.try_emplace(std::move(cells), columns.size());
      if (is_new) columns.push_back({{}, false, hits_of(rank)});
      columns[found->second].ranks.push_back(rank);
    }
    return columns;
  }

  uint64_t hits_of(size_t rank) const {
    uint64_t sum = 0;
    for (size_t step = 0; step < grid_.steps.size(); ++step) sum += grid_.at(step, rank).first;
    return sum;
  }

  /// Moves the least interesting column to the summed-up one at the end.
  void sum_up(std::vector<Column>* columns) const {
    if (!columns->back().summed_up) columns->push_back({{}, true});
    const auto last = columns->end() - 1;
    const auto smaller = [](const Column& a, const Column& b) { return a.ranks.size() < b.ranks.size(); };
    const auto largest = std::max_element(columns->begin(), last, smaller);
    auto least = last;
    for (auto at = columns->begin(); at != last; ++at) {
      if (at != largest && (least == last || at->hits <= least->hits)) least = at;
    }
    last->ranks.insert(last->ranks.end(), least->ranks.begin(), least->ranks.end());
    std::sort(last->ranks.begin(), last->ranks.end());
    columns->erase(least);
  }

  std::vector<int> numbers_of(const Column& column) const {
    std::vector<int> numbers;
    for (const size_t rank : column.ranks) numbers.push_back(grid_.ranks[rank]);
    return numbers;
  }

  std::string title_of(const Column& column) const {
    const std::vector<int> numbers = numbers_of(column);
    if (column.summed_up) return counted(numbers.size(), "other");
    const std::string title = ranks_text(numbers);
    return title.size() <= kMostTitle ? title : counted(numbers.size(), "rank");
  }

  std::string text_of(const RankGrid::Cell& cell) const {
    if (!cell.present) return "-";
    return cell.second > 0 ? fmt::format("{} ({})", cell.first, cell.second) : std::to_string(cell.first);
  }

  std::string text_of(const Column& column, size_t step) const {
    if (!column.summed_up) return text_of(grid_.at(step, column.ranks.front()));
    uint64_t least = UINT64_MAX, most = 0, least_second = UINT64_MAX, most_second = 0;
    for (const size_t rank : column.ranks) {
      const RankGrid::Cell& cell = grid_.at(step, rank);
      if (!cell.present) continue;
      least = std::min(least, cell.first);
      most = std::max(most, cell.first);
      least_second = std::min(least_second, cell.second);
      most_second = std::max(most_second, cell.second);
    }
    if (least == UINT64_MAX) return "-";
    const auto range = [](uint64_t from, uint64_t to) { return from == to ? std::to_string(from) : fmt::format("{}-{}", from, to); };
    return most_second > 0 ? fmt::format("{} ({})", range(least, most), range(least_second, most_second)) : range(least, most);
  }

  RankTable written(const std::vector<Column>& columns) const {
    RankTable out;
    for (const Column& column : columns) out.columns.push_back(title_of(column));
    for (const Row& row : rows_) {
      RankTable::Row line{row.first == row.last ? std::to_string(grid_.steps[row.first])
                                                : fmt::format("{}-{}", grid_.steps[row.first], grid_.steps[row.last]), {}};
      for (const Column& column : columns) line.cells.push_back(text_of(column, row.first));
      out.rows.push_back(std::move(line));
    }
    return out;
  }

  bool fits(const RankTable& table) const {
    size_t sum = grid_.words.title.size();
    for (size_t i = 0; i < table.columns.size(); ++i) {
      size_t widest = table.columns[i].size();
      for (const RankTable::Row& row : table.rows) widest = std::max(widest, row.cells[i].size());
      sum += kRankGap + widest;
    }
    return sum <= width_;
  }

  void notes(const std::vector<Column>& columns, RankTable* table) const {
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::vector<int> numbers = numbers_of(columns[i]);
      if (columns[i].summed_up || table->columns[i] == ranks_text(numbers)) continue;
      table->notes.push_back(fmt::format("{}: {}", table->columns[i], ranks_cell(numbers)));
    }
    if (left_out_ > 0) table->notes.push_back(fmt::format("... {} more", counted(left_out_, "step")));
    const bool second = std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
      for (size_t rank = 0; rank < grid_.ranks.size(); ++rank) {
        if (grid_.at(row.first, rank).second > 0) return true;
      }
      return false;
    });
    if (second) table->notes.push_back(fmt::format("in brackets: {}", grid_.words.second));
    for (std::string& line : lacking_lines(grid_)) table->notes.push_back(std::move(line));
  }

  const RankGrid& grid_;
  size_t width_;
  bool all_;
  std::vector<Row> rows_;
  size_t left_out_ = 0;
};

}  // namespace

RankTable rank_table(const RankGrid& grid, size_t width, bool all) {
  return grid.ranks.size() < 2 ? RankTable{} : Folding(grid, width, all).table();
}

std::string rank_table_text(const RankGrid& grid, const ReportStyle& style) {
  const RankTable made = rank_table(grid, style.columns(), style.all || style.wide);
  std::string out;
  if (!made.rows.empty()) {
    std::vector<Table::Column> columns = {{std::string(grid.words.title), Align::kRight}};
    for (const std::string& title : made.columns) columns.push_back({title, Align::kRight});
    Table table(std::move(columns));
    for (const RankTable::Row& row : made.rows) {
      std::vector<Table::Cell> cells = {row.steps};
      for (const std::string& cell : row.cells) cells.emplace_back(cell, cell == "-" ? Paint::kWarning : Paint::kNone);
      table.add(std::move(cells));
    }
    out = table.text(style);
  }
  for (const std::string& note : made.notes) out += fmt::format("  {}\n", note);
  return out;
}

}  // namespace msdbg
