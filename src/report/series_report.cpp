// Two losses side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "msdbg/answers.h"
#include "msdbg/report.h"
#include "report/follow_text.h"
#include "report/markup.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr size_t kShownRows = 16;

struct SeriesRow {
  int64_t step;
  double a, b;
  /// NaN if either value is not finite: there is no relative error then.
  double relative() const {
    if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::quiet_NaN();
    return a == b ? 0 : std::fabs(a - b) / std::fabs(b);
  }
  bool diverges(double tolerance) const {
    if (!std::isfinite(a) || !std::isfinite(b)) return !(a == b || (std::isnan(a) && std::isnan(b)));
    return !(relative() <= tolerance);
  }
};

std::vector<SeriesRow> rows_of(const Series& a, const Series& b) {
  std::vector<SeriesRow> rows;
  for (size_t i = 0, k = 0; i < a.points.size() && k < b.points.size();) {
    if (a.points[i].step == b.points[k].step) {
      rows.push_back({a.points[i].step, a.points[i].value, b.points[k].value});
      ++i, ++k;
    } else if (a.points[i].step < b.points[k].step) {
      ++i;
    } else {
      ++k;
    }
  }
  return rows;
}

std::string share(double value) { return std::isfinite(value) ? fmt::format("{} %", format_short(100 * value, 3)) : "-"; }

std::string verdict(const SeriesComparison& result) {
  if (!result.diverges_at) {
    if (result.finite == 0)
      return fmt::format("close: {}, in all of them the same NaN or Inf on both sides", counted(result.count, "step"));
    const uint64_t same = result.count - result.finite;
    return fmt::format("close: {} within {} of the reference, mean absolute error {}{}", counted(result.finite, "step"),
                       share(result.tolerance), format_short(result.mean_abs_error, 3),
                       same == 0 ? "" : fmt::format("; the same NaN or Inf in {}", counted(same, "step")));
  }
  const std::string where = fmt::format("different: they diverge in step {} ({} against {})", *result.diverges_at,
                                        format_short(result.a_value, 6), format_short(result.b_value, 6));
  switch (result.verdict) {
    case SeriesVerdict::kForward: return where + ", the first that both have: the forward pass";
    case SeriesVerdict::kBackward: return where + ", the second: the forward pass agrees, gradients or update do not";
    default: return where;
  }
}

std::string markdown_text(const Series& a, const Series& b, const SeriesComparison& result, const std::vector<SeriesRow>& rows) {
  std::string out = fmt::format("**{}**\n\nA: {}, {}  \nB: {}, {} (the reference)\n\n", markdown_cell(verdict(result)),
                                markdown_cell(a.source), counted(a.points.size(), "value"), markdown_cell(b.source),
                                counted(b.points.size(), "value"));
  out += follow::markdown_head({"step", "A", "B", "error", ""});
  for (const SeriesRow& row : rows) {
    out += follow::markdown_line({std::to_string(row.step), format_short(row.a, 7), format_short(row.b, 7), share(row.relative()),
                                  result.diverges_at == row.step     ? "diverges here"
                                  : row.diverges(result.tolerance) ? "beyond"
                                                                  : ""});
  }
  for (const auto& [steps, side] : {std::pair(&result.only_a, "A"), std::pair(&result.only_b, "B")}) {
    if (!steps->empty())
      out += fmt::format("\nNot compared: step{} {}: only in {}\n", steps->size() == 1 ? "" : "s", numbers_text(*steps), side);
  }
  if (result.diverges_at) out += "\nLook at: " + markdown_cell(result.next) + "\n";
  return out;
}

}  // namespace

std::string series_report(const Series& left, const Series& right, const SeriesComparison& result, const ReportStyle& style) {
  Series a = left, b = right;
  align_series(a, b);
  if (style.format == Format::kJson) return json_text(series_answer(a, b, result));
  if (style.format == Format::kJsonl) return json_lines(series_answer(a, b, result), "steps");
  const std::vector<SeriesRow> rows = rows_of(a, b);
  if (style.format == Format::kCsv) {
    static constexpr CsvColumn kColumns[] = {{"step", "step"}, {"a", "a"}, {"b", "b"}, {"rel_error", "rel_error"}};
    return csv_text(kColumns, series_answer(a, b, result)["steps"]);
  }
  if (style.format == Format::kMarkdown) return markdown_text(a, b, result, rows);
  std::string out = painted(verdict(result), result.diverges_at ? Paint::kError : Paint::kStrong, style.colour) + "\n";
  out += fmt::format("A          {}   {}\n", printable(a.source), counted(a.points.size(), "value"));
  out += fmt::format("B          {}   {} (the reference)\n", printable(b.source), counted(b.points.size(), "value"));
  if (result.finite == 0) {
    out += "error      none: no step is finite on both sides\n";
  } else if (result.finite < result.count && result.max_abs_error == 0) {
    out += fmt::format("error      of the {} that are finite on both sides: none\n", counted(result.finite, "step"));
  } else {
    out += fmt::format("error      mean {}, largest {} ({})", format_short(result.mean_abs_error, 3), format_short(result.max_abs_error, 3),
                       share(result.max_rel_error));
    if (result.finite < result.count) out += fmt::format(" over the {} that are finite on both sides", counted(result.finite, "step"));
    else if (result.worst_step) out += fmt::format(" in step {}", *result.worst_step);
    out += "\n";
  }
  for (const auto& [steps, side] : {std::pair(&result.nonfinite_a, "A"), std::pair(&result.nonfinite_b, "B")}) {
    if (!steps->empty())
      out += fmt::format("not finite {}: NaN or Inf in step{} {}\n", side, steps->size() == 1 ? "" : "s", numbers_text(*steps));
  }
  if (a.counted || b.counted) out += "steps      counted from 1, since a log does not number them all\n";

  // The first rows and those around the divergence.
  Table table({{"step", Align::kRight}, {"A", Align::kRight}, {"B", Align::kRight}, {"error", Align::kRight}, {""}});
  const auto at =
      std::find_if(rows.begin(), rows.end(), [&](const SeriesRow& row) { return result.diverges_at && row.step == *result.diverges_at; });
  const auto diverged = static_cast<size_t>(at - rows.begin());
  const bool from_start = style.wide || rows.size() <= kShownRows || diverged < kShownRows / 2 || at == rows.end();
  const size_t begin = from_start ? 0 : diverged - kShownRows / 2;
  const size_t end = style.wide ? rows.size() : std::min(rows.size(), begin + kShownRows);
  for (size_t i = begin; i < end; ++i) {
    const SeriesRow& row = rows[i];
    const bool diverges = row.diverges(result.tolerance);
    table.add({std::to_string(row.step),
               format_short(row.a, 7),
               format_short(row.b, 7),
               share(row.relative()),
               {i == diverged ? "diverges here"
                : diverges  ? "beyond"
                            : "",
                diverges ? Paint::kError : Paint::kNone}});
  }
  out += "\n" + table.text(style);
  if (end - begin < rows.size()) out += fmt::format("... {} of {} shown (all: --wide)\n", end - begin, counted(rows.size(), "step"));
  for (const auto& [steps, side] : {std::pair(&result.only_a, "A"), std::pair(&result.only_b, "B")}) {
    if (!steps->empty())
      out += fmt::format("not compared: step{} {}: only in {}\n", steps->size() == 1 ? "" : "s", numbers_text(*steps), side);
  }
  if (result.diverges_at) out += "\nlook at: " + result.next + "\n";
  return fitted(std::move(out), style);
}

}  // namespace msdbg
