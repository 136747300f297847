// What changed between two sets of parameters.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "msdbg/answers.h"
#include "msdbg/checkpoint_report.h"
#include "report/parameter_text.h"
#include "report/table.h"

namespace msdbg {
namespace {


std::string number_text(double value) { return std::isnan(value) ? "-" : format_short(value); }

uint64_t differing(const Comparison& values) { return values.count - values.within; }

/// `NaN 0 -> 75, Inf 3 -> 0`: counts of values that are not finite, if any.
std::string nonfinite_of(const Comparison& values) {
  std::string out;
  const auto add = [&](std::string_view word, uint64_t a, uint64_t b) {
    if (a + b == 0) return;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", word, a == b ? std::to_string(a) : fmt::format("{} -> {}", a, b));
  };
  add("NaN", values.nan_a, values.nan_b);
  add("Inf", values.inf_a, values.inf_b);
  return out;
}

std::string remark_of(const ParameterChange& change) {
  std::string out = change.values ? nonfinite_of(*change.values) : "";
  if (change.kind == ChangeKind::kRenamed) out += fmt::format("{}now {}", out.empty() ? "" : "; ", printable(change.new_name));
  if (!change.note.empty()) out += fmt::format("{}{}", out.empty() ? "" : "; ", printable(change.note));
  return out;
}

std::string counts_text(const ParameterDiff& diff) {
  std::string out;
  for (const ChangeKind kind : kChangeOrder) {
    if (const uint64_t n = diff.count(kind); n > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, change_kind_name(kind));
  }
  return out.empty() ? "no parameters" : out;
}

std::string verdict_text(const ParameterDiff& diff) {
  const std::string_view word =
      diff.equal() ? "equal"
      : !diff.complete() && diff.count(ChangeKind::kUnchanged) + diff.count(ChangeKind::kNotCompared) == diff.changes.size()
          ? "not compared as a whole"
          : "different";
  std::string out = fmt::format("{}: {}", word, counts_text(diff));
  if (diff.interrupted) out += "; interrupted, the rest was not compared";
  const auto broken = std::ranges::count_if(diff.changes, [](const ParameterChange& change) { return change.breaks(); });
  if (broken > 0) out += fmt::format("; new NaN or Inf in {}", counted(static_cast<uint64_t>(broken), "parameter"));
  return out;
}

std::string table(const ParameterDiff& diff, const ReportStyle& style) {
  std::string out = verdict_text(diff) + "\n";
  Table sheet({{.title = "parameter", .fit = Fit::kName},
               {"change"},
               {.title = "type", .drop = 2},
               {"update ratio", Align::kRight},
               {"max change", Align::kRight},
               {.title = "elements", .align = Align::kRight, .drop = 1},
               {.title = "", .fit = Fit::kText, .drop = Table::kIfEmpty}});
  for (const ParameterChange& change : diff.changes) {
    if (change.kind == ChangeKind::kUnchanged && !style.wide) continue;
    const bool numbers = change.values && change.kind != ChangeKind::kRenamed;
    const bool bad = change.breaks() || change.kind == ChangeKind::kNotCompared;
    const std::string name = printable(change.name);
    sheet.add({Table::Cell::name(name, name.size()), std::string(change_kind_name(change.kind)), types_text(change),
               numbers ? number_text(update_ratio(*change.values)) : "-", numbers ? number_text(change.values->max_abs_error) : "-",
               numbers ? fmt::format("{} of {}", differing(*change.values), change.values->count) : "-",
               Table::Cell(remark_of(change), bad ? Paint::kError : Paint::kNone)});
  }
  return fitted(sheet.empty() ? out : out + sheet.text(style), style);
}

constexpr CsvColumn kParameterDiffColumns[] = {{"parameter", "name"},
                                  {"change", "change"},
                                  {"new_name", "new_name"},
                                  {"type", "type"},
                                  {"update_ratio", "values.update_ratio"},
                                  {"max_abs_difference", "values.max_abs_difference"},
                                  {"differing", "values.differing"},
                                  {"count", "values.count"},
                                  {"nan_a", "values.nan_a"},
                                  {"nan_b", "values.nan_b"},
                                  {"inf_a", "values.inf_a"},
                                  {"inf_b", "values.inf_b"},
                                  {"note", "note"}};

}  // namespace

std::string parameter_diff_report(const ParameterDiff& diff, const ReportStyle& style) {
  if (style.format == Format::kTable) return table(diff, style);
  const Answer answer = parameter_diff_answer(diff);
  switch (style.format) {
    case Format::kJson: return json_text(answer);
    case Format::kJsonl: return json_lines(answer, "parameters");
    case Format::kCsv: return csv_text(kParameterDiffColumns, answer["parameters"]);
    default: return verdict_text(diff) + "\n\n" + markdown_table(kParameterDiffColumns, answer["parameters"]);
  }
}

}  // namespace msdbg
