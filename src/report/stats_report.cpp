// stats as a table: what several ranks share is one line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <ranges>
#include <span>
#include <tuple>
#include <unordered_set>

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

/// A statistic that the table shows.
struct Number {
  std::string_view title;
  uint32_t field;
  double Stats::*real = nullptr;
  uint64_t Stats::*counter = nullptr;
  int drop = 0;
};

// The first four are in every table, and summed up for many ranks.
constexpr Number kNumbers[] = {{.title = "min", .field = kStatMin, .real = &Stats::min},
                               {.title = "max", .field = kStatMax, .real = &Stats::max},
                               {.title = "mean", .field = kStatMean, .real = &Stats::mean, .drop = 2},
                               {.title = "std", .field = kStatStd, .real = &Stats::std, .drop = 3},
                               {.title = "abs_mean", .field = kStatAbsMean, .real = &Stats::abs_mean},
                               {.title = "l2_norm", .field = kStatL2Norm, .real = &Stats::l2_norm},
                               {.title = "zeros", .field = kStatZero, .counter = &Stats::zero_count},
                               {.title = "at dtype max", .field = kStatDtypeMax, .counter = &Stats::dtype_max_count}};
constexpr size_t kMin = 0, kMax = 1, kMean = 2, kStd = 3, kNarrow = 4;
constexpr uint32_t kNone = UINT32_MAX;

/// The statistics that a line of the table shows.
struct Shown {
  static constexpr uint32_t kComputed = 1u << 31;
  std::array<uint64_t, std::size(kNumbers)> bits{};  // of doubles and of counters
  uint32_t known = 0;                                // a bit for each number, and kComputed
  std::string remark;                                // behind them; "": all elements are finite
};

/// Each text once, by number.
class Texts {
 public:
  uint32_t number(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(&found->first);
    return found->second;
  }
  const std::string& operator[](uint32_t number) const { return *texts_[number]; }

 private:
  std::map<std::string, uint32_t> numbers_;
  std::vector<const std::string*> texts_;
};

class StatsTable {
 public:
  StatsTable(Session& session, const ReportStyle& style)
      : session_(session), style_(style), ranks_(session.ranks().size() > 1), table_(columns(), style.numbered) {
    remarks_.number("");
  }

  /// Of several ranks, a million rows must fit: each tensor is kept once, with the lines that its ranks show.
  void add(const StatsRow& row) {
    const TensorId& id = row.info.id;
    const uint32_t type = types_.number(type_text(row.info.dtype, row.info.shape));
    const Shown shown = shown_of(row);
    if (!ranks_) return add_line(id, type, "", value_cells(shown));
    uint32_t* link = &tensor(id, type).line;
    while (*link != kNone && !look_equal(shown_in(*link), shown)) link = &lines_[*link].next;
    uint32_t line = *link;
    if (line == kNone) {
      line = *link = static_cast<uint32_t>(lines_.size());
      lines_.push_back({.row = rows_, .known = shown.known, .remark = remarks_.number(shown.remark)});
      bits_.insert(bits_.end(), shown.bits.begin(), shown.bits.begin() + shown_);
    }
    places_.push_back({id.rank, lines_[line].place});
    lines_[line].place = static_cast<uint32_t>(places_.size() - 1);
    ++rows_;
  }

  Status write(const TextSink& write) {
    bool any_summed_up = false;
    each_line([&](const Tensor& tensor, std::span<const uint32_t> lines, bool summed_up) {
      add_line(tensor.id, tensor.type, ranks_cell(ranks_of(lines)), summed_up ? range_cells(lines) : value_cells(shown_in(lines.front())));
      any_summed_up = any_summed_up || summed_up;
    });
    if (table_.empty()) return write("no tensors\n");
    if (!ranks_) table_.hide(kRank);
    if (!several_graphs_) table_.hide(kGraph);
    if (!any_execution_) table_.hide(kExecution);
    if (!any_gradient_) table_.hide(kGradient);
    if (Status written = table_.write(style_, write); !written.ok() || !any_summed_up) return written;
    return write(fmt::format("on many ranks: the least min, the greatest max, mean and std from .. to{}\n",
                             style_.place == Place::kScript ? "" : " (each rank: --wide)"));
  }

  /// Of sessions with several ranks: the first row of each line.
  std::vector<size_t> first_rows() const {
    std::vector<size_t> out;
    each_line([&](const Tensor&, std::span<const uint32_t> lines, bool) { out.push_back(lines_[lines.front()].row); });
    return out;
  }

 private:
  static constexpr size_t kRank = 0, kGraph = 1, kExecution = 4, kGradient = 5;

  struct Tensor {
    TensorId id;  // on the first of its ranks
    uint32_t type;
    uint32_t line = kNone;  // the first one
  };
  /// Ranks on which a tensor looks the same.
  struct Line {
    uint32_t row;           // number of the first row
    uint32_t next = kNone;  // of the same tensor
    uint32_t place = kNone;
    uint32_t known, remark;  // remark: its number; 0: none
  };
  struct OnRank {
    int rank;
    uint32_t next;  // of the same line
  };

  std::vector<Table::Column> columns() const {
    std::vector<Table::Column> columns = {{"rank", Align::kRight},
                                          {"graph", Align::kRight},
                                          {"step", Align::kRight},
                                          {.title = "tensor", .fit = Fit::kName},
                                          {"execution", Align::kRight},
                                          {.title = "gradient of", .fit = Fit::kName},
                                          {.title = "type", .drop = 1}};
    for (const Number& number : numbers()) columns.push_back({.title = std::string(number.title), .align = Align::kRight, .drop = number.drop});
    columns.push_back({.title = "not finite", .fit = Fit::kText, .drop = Table::kIfEmpty});
    return columns;
  }

  std::span<const Number> numbers() const { return std::span(kNumbers).first(static_cast<size_t>(shown_)); }

  void add_line(const TensorId& id, uint32_t type, std::string ranks, std::vector<Table::Cell> values) {
    if (table_.empty()) graph_ = id.graph;
    several_graphs_ = several_graphs_ || id.graph != graph_;
    any_execution_ = any_execution_ || id.execution > 0;
    std::vector<Table::Cell> cells;
    cells.emplace_back(std::move(ranks));
    cells.emplace_back(std::to_string(id.graph));
    cells.emplace_back(std::to_string(id.step));
    cells.emplace_back(name_cell(session_, id, slot_suffix(id.slot)));
    cells.emplace_back(std::to_string(id.execution));
    cells.emplace_back(gradient_of_cell(session_, id));
    any_gradient_ = any_gradient_ || !cells.back().text.empty();
    cells.emplace_back(types_[type]);
    for (Table::Cell& cell : values) cells.push_back(std::move(cell));
    table_.add(cells);
  }

  /// The same tensor on all ranks.
  Tensor& tensor(const TensorId& id, uint32_t type) {
    tensors_.push_back({id, type});
    const auto [known, is_new] = by_name_.insert(static_cast<uint32_t>(tensors_.size() - 1));
    if (!is_new) tensors_.pop_back();
    return tensors_[*known];
  }
  auto key(uint32_t at) const {
    const TensorId& id = tensors_[at].id;
    return std::tuple(id.step, id.graph, std::string_view(session_.node(id).name), id.slot, id.execution, tensors_[at].type);
  }
  size_t hash(uint32_t at) const {
    const TensorId& id = tensors_[at].id;
    const size_t name = std::hash<std::string_view>()(session_.node(id).name);
    return name + static_cast<size_t>(id.step) * 0x9e3779b97f4a7c15u + id.slot.index * 31 + static_cast<size_t>(id.slot.io);
  }

  /// Calls `take` with a tensor, the lines that make one of the table, and whether their ranges are shown: in order of steps.
  template <typename Take>
  void each_line(const Take& take) const {
    std::vector<uint32_t> order(tensors_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](uint32_t at) { return tensors_[at].id.step; });
    for (const uint32_t at : order) {
      std::vector<uint32_t> lines;
      for (uint32_t line = tensors_[at].line; line != kNone; line = lines_[line].next) lines.push_back(line);
      std::span<const uint32_t> single = lines;
      if (lines.size() > kMostLines && !style_.wide) {
        // Ranks with NaN, with Inf and without statistics keep their lines.
        const auto rest = std::ranges::stable_partition(lines, [&](uint32_t line) { return lines_[line].remark == 0; });
        const std::span<const uint32_t> finite(lines.begin(), rest.begin());
        single = rest;
        if (!finite.empty()) take(tensors_[at], finite, true);
      }
      for (const uint32_t& line : single) take(tensors_[at], std::span(&line, 1), false);
    }
  }

  std::vector<int> ranks_of(std::span<const uint32_t> lines) const {
    std::vector<int> ranks;
    for (const uint32_t line : lines) {
      for (uint32_t place = lines_[line].place; place != kNone; place = places_[place].next) ranks.push_back(places_[place].rank);
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  Shown shown_of(const StatsRow& row) const {
    Shown shown;
    if (!row.stats) {
      shown.remark = "not computed: " + printable(row.info.problem.message());
      return shown;
    }
    const Stats& s = *row.stats;
    shown.known = Shown::kComputed;
    shown.remark = nonfinite_text(s);
    for (size_t i = 0; i < numbers().size(); ++i) {
      const Number& number = kNumbers[i];
      if (!s.knows(number.field)) continue;
      shown.known |= 1u << i;
      const bool no_norm = number.field == kStatL2Norm && s.count > 0 && s.finite_count() == 0;
      shown.bits[i] = number.counter != nullptr ? s.*number.counter : std::bit_cast<uint64_t>(no_norm ? std::nan("") : s.*number.real);
    }
    return shown;
  }
  Shown shown_in(uint32_t line) const {
    Shown shown{.known = lines_[line].known, .remark = remarks_[lines_[line].remark]};
    std::copy_n(bits_.begin() + static_cast<ptrdiff_t>(line) * shown_, shown_, shown.bits.begin());
    return shown;
  }

  static std::string number_text(const Shown& shown, size_t i) {
    if ((shown.known >> i & 1) == 0) return "-";
    return kNumbers[i].counter != nullptr ? std::to_string(shown.bits[i]) : value_text(std::bit_cast<double>(shown.bits[i]));
  }

  bool look_equal(const Shown& a, const Shown& b) const {
    if (a.known != b.known || a.remark != b.remark) return false;
    for (size_t i = 0; i < numbers().size(); ++i) {
      if (a.bits[i] != b.bits[i] && number_text(a, i) != number_text(b, i)) return false;
    }
    return true;
  }

  std::vector<Table::Cell> value_cells(const Shown& shown) const {
    std::vector<Table::Cell> cells;
    for (size_t i = 0; i < numbers().size(); ++i) cells.emplace_back(number_text(shown, i));
    const Paint bad = (shown.known & Shown::kComputed) != 0 ? Paint::kError : Paint::kWarning;
    cells.emplace_back(shown.remark, shown.remark.empty() ? Paint::kNone : bad);
    return cells;
  }

  /// The smallest and the largest known value in these lines.
  std::pair<std::string, std::string> range(std::span<const uint32_t> lines, size_t number) const {
    double least = NAN, most = NAN;
    for (const uint32_t line : lines) {
      const Shown shown = shown_in(line);
      if ((shown.known >> number & 1) == 0) continue;
      least = std::fmin(least, std::bit_cast<double>(shown.bits[number]));
      most = std::fmax(most, std::bit_cast<double>(shown.bits[number]));
    }
    return {value_text(least), value_text(most)};
  }

  std::vector<Table::Cell> range_cells(std::span<const uint32_t> lines) const {
    const auto from_to = [&](size_t number) {
      const auto [least, most] = range(lines, number);
      return least == most ? least : fmt::format("{} .. {}", least, most);
    };
    return {range(lines, kMin).first, range(lines, kMax).second, from_to(kMean), from_to(kStd), ""};
  }

  Session& session_;
  const ReportStyle& style_;
  const bool ranks_;
  const std::ptrdiff_t shown_ = style_.wide ? std::ssize(kNumbers) : kNarrow;  // numbers in a line
  // Of several ranks.
  std::vector<Tensor> tensors_;
  struct Hash {
    const StatsTable* table;
    size_t operator()(uint32_t at) const { return table->hash(at); }
  };
  struct Same {
    const StatsTable* table;
    bool operator()(uint32_t a, uint32_t b) const { return table->key(a) == table->key(b); }
  };
  std::unordered_set<uint32_t, Hash, Same> by_name_{0, Hash{this}, Same{this}};  // indices of tensors_
  std::vector<Line> lines_;
  std::vector<uint64_t> bits_;  // of all lines, `shown_` for each
  std::vector<OnRank> places_;
  uint32_t rows_ = 0;

  Texts types_, remarks_;
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
      table.add(*row);
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
