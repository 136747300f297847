// stats as a table: what several ranks share is one line.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "msdbg/answers.h"
#include "msdbg/rank_report.h"
#include "msdbg/report.h"
#include "report/cell_text.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr size_t kMostLines = 4;  // for the different values of one tensor; more are summed up

constexpr CsvColumn kTensorColumns[] = {{"rank", "rank"},
                                        {"graph", "graph"},
                                        {"graph_id", "graph_id"},
                                        {"step", "step"},
                                        {"execution", "execution"},
                                        {"node", "node"},
                                        {"op", "op"},
                                        {"slot", "slot"},
                                        {"gradient_of", "gradient_of"},
                                        {"dtype", "dtype"},
                                        {"shape", "shape"},
                                        {"count", "stats.count"},
                                        {"min", "stats.min"},
                                        {"max", "stats.max"},
                                        {"mean", "stats.mean"},
                                        {"abs_mean", "stats.abs_mean"},
                                        {"std", "stats.std"},
                                        {"l2_norm", "stats.l2_norm"},
                                        {"nan_count", "stats.nan_count"},
                                        {"pos_inf_count", "stats.pos_inf_count"},
                                        {"neg_inf_count", "stats.neg_inf_count"},
                                        {"zero_count", "stats.zero_count"},
                                        {"dtype_max_count", "stats.dtype_max_count"},
                                        {"problem", "problem"}};

/// One line of the table: a tensor on the ranks that have the same values, or the range of its values on many ranks.
struct StatsLine {
  std::vector<size_t> rows;
  bool summed_up = false;
};

class StatsTable {
 public:
  StatsTable(Session& session, const ReportStyle& style)
      : session_(session), style_(style), ranks_(session.ranks().size() > 1), table_(columns(), style.numbered) {}

  /// A million rows must fit: those of one rank are lines at once.
  void add(StatsRow row) {
    if (!ranks_) return add_line(row, "", value_cells(row));
    row.info.source = row.info.format = row.info.note = {};
    rows_.push_back(std::move(row));
  }

  Status write(const TextSink& write) {
    bool summed_up = false;
    for (const StatsLine& line : joined()) {
      const StatsRow& first = rows_[line.rows.front()];
      add_line(first, ranks_cell(ranks_of(line)), line.summed_up ? range_cells(line) : value_cells(first));
      summed_up = summed_up || line.summed_up;
    }
    if (table_.empty()) return write("no tensors\n");
    if (!ranks_) table_.hide(kRank);
    if (!several_graphs_) table_.hide(kGraph);
    if (!any_execution_) table_.hide(kExecution);
    if (!any_gradient_) table_.hide(kGradient);
    if (Status written = table_.write(style_, write); !written.ok() || !summed_up) return written;
    return write(fmt::format("on many ranks: the least min, the greatest max, mean and std from .. to{}\n",
                             style_.place == Place::kScript ? "" : " (each rank: --wide)"));
  }

  /// Of sessions with several ranks.
  std::vector<size_t> first_rows() const {
    std::vector<size_t> out;
    for (const StatsLine& line : joined()) out.push_back(line.rows.front());
    return out;
  }

 private:
  static constexpr size_t kRank = 0, kGraph = 1, kExecution = 4, kGradient = 5;

  std::vector<Table::Column> columns() const {
    std::vector<Table::Column> columns = {{"rank", Align::kRight},
                                          {"graph", Align::kRight},
                                          {"step", Align::kRight},
                                          {.title = "tensor", .fit = Fit::kName},
                                          {"execution", Align::kRight},
                                          {.title = "gradient of", .fit = Fit::kName},
                                          {.title = "type", .drop = 1}};
    for (const std::string_view number : numbers_)
      columns.push_back({.title = std::string(number), .align = Align::kRight, .drop = number == "std" ? 3 : number == "mean" ? 2 : 0});
    columns.push_back({.title = "not finite", .fit = Fit::kText, .drop = Table::kIfEmpty});
    return columns;
  }

  void add_line(const StatsRow& row, std::string ranks, std::vector<Table::Cell> values) {
    const TensorInfo& info = row.info;
    if (table_.empty()) graph_ = info.id.graph;
    several_graphs_ = several_graphs_ || info.id.graph != graph_;
    any_execution_ = any_execution_ || info.id.execution > 0;
    std::vector<Table::Cell> cells;
    cells.emplace_back(std::move(ranks));
    cells.emplace_back(std::to_string(info.id.graph));
    cells.emplace_back(std::to_string(info.id.step));
    cells.emplace_back(name_cell(session_, info.id, slot_suffix(info.id.slot)));
    cells.emplace_back(std::to_string(info.id.execution));
    cells.emplace_back(gradient_of_cell(session_, info.id));
    any_gradient_ = any_gradient_ || !cells.back().text.empty();
    cells.emplace_back(type_text(info.dtype, info.shape));
    for (Table::Cell& cell : values) cells.push_back(std::move(cell));
    table_.add(cells);
  }

  const TensorId& id_of(const StatsLine& line) const { return rows_[line.rows.front()].info.id; }

  std::vector<int> ranks_of(const StatsLine& line) const {
    std::vector<int> ranks;
    for (const size_t row : line.rows) ranks.push_back(rows_[row].info.id.rank);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  /// The same tensor of all ranks, in the order of steps; of each, ranks with the same values.
  std::vector<StatsLine> joined() const {
    std::map<std::tuple<int64_t, int, std::string_view, Slot, uint32_t, std::string>, size_t> known;
    std::vector<std::vector<StatsLine>> tensors;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const TensorInfo& info = rows_[i].info;
      const TensorId& id = info.id;
      const auto [found, is_new] = known.try_emplace(
          {id.step, id.graph, session_.node(id).name, id.slot, id.execution, type_text(info.dtype, info.shape)}, tensors.size());
      if (is_new) tensors.emplace_back();
      std::vector<StatsLine>& lines = tensors[found->second];
      const auto is_same = [&](const StatsLine& line) { return look_equal(rows_[line.rows.front()], rows_[i]); };
      const auto same = std::find_if(lines.begin(), lines.end(), is_same);
      if (same == lines.end()) lines.push_back({{i}});
      else same->rows.push_back(i);
    }
    const auto earlier = [&](const auto& a, const auto& b) { return id_of(a.front()).step < id_of(b.front()).step; };
    std::stable_sort(tensors.begin(), tensors.end(), earlier);
    std::vector<StatsLine> out;
    for (std::vector<StatsLine>& lines : tensors) {
      if (lines.size() > kMostLines && !style_.wide) sum_up(&lines);
      for (StatsLine& line : lines) out.push_back(std::move(line));
    }
    return out;
  }

  static bool is_finite(const StatsRow& row) { return row.stats && row.stats->nan_count + row.stats->inf_count() == 0; }

  /// Ranks with NaN, with Inf and without statistics keep their lines.
  void sum_up(std::vector<StatsLine>* lines) const {
    StatsLine all{{}, true};
    std::vector<StatsLine> rest;
    for (StatsLine& line : *lines) {
      if (is_finite(rows_[line.rows.front()])) all.rows.insert(all.rows.end(), line.rows.begin(), line.rows.end());
      else rest.push_back(std::move(line));
    }
    std::sort(all.rows.begin(), all.rows.end());
    lines->clear();
    if (!all.rows.empty()) lines->push_back(std::move(all));
    for (StatsLine& line : rest) lines->push_back(std::move(line));
  }

  bool look_equal(const StatsRow& a, const StatsRow& b) const {
    const std::vector<Table::Cell> left = value_cells(a), right = value_cells(b);
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](const Table::Cell& x, const Table::Cell& y) { return x.text == y.text; });
  }

  std::vector<Table::Cell> value_cells(const StatsRow& row) const {
    std::vector<Table::Cell> cells;
    if (!row.stats) {
      for (size_t i = 0; i < numbers_.size(); ++i) cells.emplace_back("-");
      cells.emplace_back("not computed: " + printable(row.info.problem.message()), Paint::kWarning);
      return cells;
    }
    const Stats& s = *row.stats;
    const auto real = [&](double value, uint32_t field) { cells.emplace_back(s.knows(field) ? value_text(value) : "-"); };
    const auto count = [&](uint64_t value, uint32_t field) { cells.emplace_back(s.knows(field) ? std::to_string(value) : "-"); };
    real(s.min, kStatMin);
    real(s.max, kStatMax);
    real(s.mean, kStatMean);
    if (style_.wide) real(s.abs_mean, kStatAbsMean);
    real(s.std, kStatStd);
    if (style_.wide) real(s.count > 0 && s.finite_count() == 0 ? std::nan("") : s.l2_norm, kStatL2Norm);
    if (style_.wide) count(s.zero_count, kStatZero);
    if (style_.wide) count(s.dtype_max_count, kStatDtypeMax);
    const std::string bad = nonfinite_text(s);
    cells.emplace_back(bad, bad.empty() ? Paint::kNone : Paint::kError);
    return cells;
  }

  /// The smallest and the largest known value on the ranks of the line.
  std::pair<std::string, std::string> range(const StatsLine& line, double Stats::*value, uint32_t field) const {
    double least = NAN, most = NAN;
    for (const size_t row : line.rows) {
      if (!rows_[row].stats->knows(field)) continue;
      least = std::fmin(least, (*rows_[row].stats).*value);
      most = std::fmax(most, (*rows_[row].stats).*value);
    }
    return {value_text(least), value_text(most)};
  }

  std::vector<Table::Cell> range_cells(const StatsLine& line) const {
    const auto from_to = [&](double Stats::*value, uint32_t field) {
      const auto [least, most] = range(line, value, field);
      return least == most ? least : fmt::format("{} .. {}", least, most);
    };
    return {range(line, &Stats::min, kStatMin).first, range(line, &Stats::max, kStatMax).second, from_to(&Stats::mean, kStatMean),
            from_to(&Stats::std, kStatStd), ""};
  }

  Session& session_;
  const ReportStyle& style_;
  const bool ranks_;
  const std::vector<std::string_view> numbers_ =
      style_.wide ? std::vector<std::string_view>{"min", "max", "mean", "abs_mean", "std", "l2_norm", "zeros", "at dtype max"}
                  : std::vector<std::string_view>{"min", "max", "mean", "std"};
  std::vector<StatsRow> rows_;  // of several ranks
  Table table_;
  int graph_ = 0;
  bool several_graphs_ = false, any_execution_ = false, any_gradient_ = false;
};

}  // namespace

std::vector<size_t> stats_rows(Session& session, const std::vector<StatsRow>& rows, const ReportStyle& style) {
  std::vector<size_t> out(rows.size());
  std::iota(out.begin(), out.end(), 0);
  if (session.ranks().size() < 2) return out;
  StatsTable table(session, style);
  for (const StatsRow& row : rows) table.add(row);
  return table.first_rows();
}

Status stream_stats(Session& session, const StatsRows& rows, const ReportStyle& style, const TensorQuery* asked, const TextSink& write) {
  RankGrid grid = asked != nullptr ? stats_grid(session, asked->ranks, asked->steps) : RankGrid{};
  if (style.format == Format::kTable) {
    StatsTable table(session, style);
    bool any = false;
    while (std::optional<StatsRow> row = rows()) {
      any = true;
      count_row(grid, *row);
      table.add(std::move(*row));
    }
    if (Status written = table.write(write); !written.ok() || !any) return written;
    return write(rank_table_text(grid, style));
  }
  RowWriter writer(style.format, {{"dump", session.info().source}}, "tensors", kTensorColumns);
  while (const std::optional<StatsRow> row = rows()) {
    count_row(grid, *row);
    if (Status status = write(writer.add(tensor_answer(session, *row))); !status.ok()) return status;
  }
  return write(writer.finish(asked != nullptr ? Answer{{"by_rank", by_rank_answer(grid)}} : Answer::object()));
}

std::string stats_report(Session& session, const std::vector<StatsRow>& rows, const ReportStyle& style, const TensorQuery* asked) {
  std::string out;
  const auto next = [&, at = size_t{0}]() mutable { return at < rows.size() ? std::optional(rows[at++]) : std::nullopt; };
  const Status written = stream_stats(session, next, style, asked, [&](std::string_view text) { return out += text, Status(); });
  MSDBG_CHECK(written.ok());
  return out;
}

}  // namespace msdbg
