// Statistics over the steps: a row of numbers and a row of blocks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "msdbg/answers.h"
#include "msdbg/follow_report.h"
#include "report/follow_text.h"
#include "report/markup.h"
#include "report/table.h"

namespace msdbg {
namespace {


constexpr size_t kSparkWidth = 32;
constexpr double kDecades = 100;
constexpr double kLeastChange = 1e-3;  // of the largest magnitude; less is drawn as a flat line

std::vector<std::optional<double>> values_of(const TrendLine& line) {
  std::vector<std::optional<double>> values;
  for (const TrendPoint& point : line.points) values.push_back(point.value);
  return values;
}

std::string value_text(const std::optional<double>& value) { return value ? format_short(*value) : "-"; }

std::string change_text(const TrendLine& line) {
  std::string out;
  if (line.change) {
    out = fmt::format("step {}: {} to {}", line.change->step, format_short(line.change->before), format_short(line.change->after));
  }
  // A statistic of the few elements that are left says little.
  const auto worst = std::max_element(line.points.begin(), line.points.end(),
                                      [](const TrendPoint& a, const TrendPoint& b) { return a.not_finite < b.not_finite; });
  if (worst != line.points.end() && worst->not_finite > 0) {
    out += fmt::format("{}{} of {} not finite in step {}", out.empty() ? "" : ", ", worst->not_finite, worst->count, worst->step);
  }
  // All elements being NaN is the reason why there is no value.
  const bool told = worst != line.points.end() && worst->count > 0 && worst->not_finite == worst->count && worst->step == line.ends;
  if (line.ends && !told) out += fmt::format("{}no value from step {} on", out.empty() ? "" : ", ", *line.ends);
  if (line.departs && !line.departs_from.empty()) {
    out += fmt::format("{}departs from {} in step {}", out.empty() ? "" : ", ", ranks_text(line.departs_from), *line.departs);
  } else if (line.departs) {
    out += fmt::format("{}the ranks differ from step {} on, without a majority", out.empty() ? "" : ", ", *line.departs);
  }
  return out;
}

std::string csv(const Session& session, const TrendResult& result) {
  std::string out =
      csv_line({"rank", "graph", "graph_id", "node", "op", "slot", "execution", "statistic", "step", "value", "reason"});
  for (const TrendLine& line : result.lines) {
    const TensorId& id = line.tensor;
    const Graph* graph = session.graph(id.rank, id.graph);
    const Node& node = session.node(id);
    for (const int rank : line.ranks) {
      for (const TrendPoint& point : line.points) {
        out += csv_line({std::to_string(rank), graph ? graph->name() : "", std::to_string(id.graph), node.name, node.op, slot_name(id.slot),
                         std::to_string(id.execution), result.statistic, std::to_string(point.step),
                         point.value ? format_double(*point.value) : "", point.reason});
      }
    }
  }
  return out;
}

std::string missing_text(const TrendResult& result) {
  uint64_t missing = 0, points = 0;
  std::string reason;
  for (const TrendLine& line : result.lines) {
    for (const TrendPoint& point : line.points) {
      ++points;
      if (point.value) continue;
      ++missing;
      if (reason.empty()) reason = point.reason;
    }
  }
  if (missing == 0) return "";
  return fmt::format("without a value: {} of {} points, the first because: {}\n", missing, points, printable(reason));
}

}  // namespace

bool shows_logarithms(std::span<const std::optional<double>> series) {
  double low = INFINITY, high = 0;
  for (const std::optional<double>& value : series) {
    if (!value || !std::isfinite(*value)) continue;
    low = std::min(low, *value);
    high = std::max(high, *value);
  }
  return low > 0 && high / low > kDecades;
}

std::string_view bar_character(double height, bool ascii) {
  constexpr std::string_view kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::string_view kAscii[] = {"_", ".", "-", "=", "+", "*", "%", "#"};
  const auto level = std::min<size_t>(7, static_cast<size_t>(height * 8));
  return ascii ? kAscii[level] : kBlocks[level];
}

std::string sparkline(std::span<const std::optional<double>> series, size_t width, bool ascii, bool log_scale) {
  if (series.empty() || width == 0) return "";
  const size_t columns = std::min(width, series.size());
  std::vector<std::optional<double>> shown;
  double low = INFINITY, high = -INFINITY;
  for (size_t column = 0; column < columns; ++column) {
    double sum = 0, n = 0;
    for (size_t i = column * series.size() / columns; i < (column + 1) * series.size() / columns; ++i) {
      if (!series[i] || !std::isfinite(*series[i]) || (log_scale && *series[i] <= 0)) continue;
      sum += log_scale ? std::log10(*series[i]) : *series[i] * 0x1p-10;  // keeps sums of values near the end of the range finite
      n += 1;
    }
    shown.push_back(n > 0 ? std::optional(sum / n) : std::nullopt);
    if (n > 0) low = std::min(low, sum / n), high = std::max(high, sum / n);
  }
  // A change in the fifth digit must not look like one.
  const bool flat = !log_scale && high - low < kLeastChange * std::max(std::fabs(low), std::fabs(high));
  std::string out;
  for (const std::optional<double>& value : shown) {
    if (!value) {
      out += ascii ? " " : "\u00b7";
      continue;
    }
    const double height = high > low && !flat ? (*value - low) / (high - low) : 0;
    out += bar_character(height, ascii);
  }
  return out;
}

std::string trend_report(Session& session, const TrendResult& result, const ReportStyle& style, bool ascii) {
  if (style.format == Format::kCsv) return csv(session, result);
  if (style.format == Format::kJson) return json_text(trend_answer(session, result));
  if (style.format == Format::kJsonl) return json_lines(trend_answer(session, result), "tensors");
  const std::string head = fmt::format("{} of {}, {} {}", result.statistic, printable(result.target),
                                       result.steps.size() == 1 ? "step" : "steps", numbers_text(result.steps));
  const bool markdown = style.format == Format::kMarkdown;
  std::string rows;
  std::vector<Table::Column> columns{{.title = "tensor", .fit = Fit::kName},
                                     {"first", Align::kRight},
                                     {"last", Align::kRight},
                                     {.title = "min", .align = Align::kRight, .drop = 3},
                                     {.title = "max", .align = Align::kRight, .drop = 2},
                                     {.title = "trend", .drop = 1},
                                     {.title = "change", .fit = Fit::kText, .drop = Table::kIfEmpty}};
  std::vector<Table::Cell> gradients;
  for (const TrendLine& line : result.lines) gradients.push_back(gradient_of_cell(session, line.tensor));
  const bool any_gradient = std::any_of(gradients.begin(), gradients.end(), [](const Table::Cell& cell) { return !cell.text.empty(); });
  if (any_gradient) columns.insert(columns.begin() + 1, {.title = "gradient of", .fit = Fit::kName});
  Table table(std::move(columns), style.numbered);
  bool logarithms = false;
  for (const TrendLine& line : result.lines) {
    const std::vector<std::optional<double>> values = values_of(line);
    const bool log = shows_logarithms(values);
    logarithms = logarithms || log;
    std::string spark = sparkline(values, kSparkWidth, ascii, log);
    if (log) spark += " log";
    const std::string change = change_text(line);
    if (markdown) {
      const std::string tensor = printable(session.node(line.tensor).name) +
                                 follow::name_suffix(session, line.tensor, ":" + slot_name(line.tensor.slot), line.ranks);
      rows += follow::markdown_line(
          {tensor, value_text(line.first), value_text(line.last), value_text(line.min), value_text(line.max), spark, change});
    } else {
      std::vector<Table::Cell> row{
          name_cell(session, line.tensor, follow::name_suffix(session, line.tensor, slot_suffix(line.tensor.slot), line.ranks))};
      if (any_gradient) row.emplace_back(std::move(gradients[static_cast<size_t>(&line - result.lines.data())]));
      row.insert(row.end(), {value_text(line.first), value_text(line.last), value_text(line.min), value_text(line.max), spark,
                             Table::Cell(change, change.empty() ? Paint::kNone : Paint::kWarning)});
      table.add(std::move(row));
    }
  }
  const std::string tail = missing_text(result) + (result.interrupted ? "interrupted: not every tensor was checked\n" : "");
  if (markdown) {
    return fmt::format("## {}\n\n{}{}{}", head, follow::markdown_head({"tensor", "first", "last", "min", "max", "trend", "change"}), rows,
                       tail.empty() ? "" : "\n" + tail);
  }
  return fitted(fmt::format("{}{}\n{}{}", head, logarithms ? " (log: heights are logarithms)" : "", table.text(style), tail), style);
}

}  // namespace msdbg
