// One checkpoint, or one compared with the steps of a dump.
#include "msdbg/answers.h"
#include "msdbg/checkpoint_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/table.h"
#include "report/cell_text.h"

namespace msdbg {
namespace {

struct Totals {
  uint64_t elements = 0, bytes = 0, nonfinite = 0;
};

Totals totals_of(const std::vector<StatsRow>& rows) {
  Totals totals;
  for (const StatsRow& row : rows) {
    totals.elements += row.info.count;
    totals.bytes += row.info.bytes;
    if (row.stats) totals.nonfinite += row.stats->nan_count + row.stats->inf_count();
  }
  return totals;
}

/// The format, and anything special about the file.
std::string file_text(const CheckpointFacts& facts) {
  std::string out = fmt::format("{}, {}", facts.format, format_bytes(facts.file_bytes));
  if (!facts.cipher.empty()) out += fmt::format(", encrypted with {}", facts.cipher);
  if (facts.crc == CrcState::kMatches) out += ", CRC matches";
  if (facts.crc == CrcState::kDiffers) out += ", CRC DOES NOT MATCH";
  return out;
}

std::string totals_text(const std::vector<StatsRow>& rows) {
  const Totals totals = totals_of(rows);
  std::string out =
      fmt::format("{}, {}, {}", counted(rows.size(), "parameter"), counted(totals.elements, "element"), format_bytes(totals.bytes));
  if (totals.nonfinite > 0) out += fmt::format("; {} not finite", totals.nonfinite);
  return out;
}

/// min, max, mean, std, norm; dashes for missing values.
std::vector<std::string> numbers_of(const StatsRow& row) {
  if (!row.stats) return std::vector<std::string>(5, "-");
  const Stats& s = *row.stats;
  return {value_text(s.min), value_text(s.max), value_text(s.mean), value_text(s.std),
          s.count > 0 && s.finite_count() == 0 ? "-" : value_text(s.l2_norm)};
}

std::string remark_of(const StatsRow& row) {
  std::string out = row.stats ? nonfinite_text(*row.stats) : "not read: " + printable(row.info.problem.message());
  if (!row.info.note.empty()) out += fmt::format("{}{}", out.empty() ? "" : "; ", printable(row.info.note));
  return out;
}

std::string table(Checkpoint& checkpoint, const std::vector<StatsRow>& rows, const ReportStyle& style) {
  const CheckpointFacts& facts = checkpoint.facts();
  std::string out = fmt::format("{}: {}\n", printable(checkpoint.info().source), file_text(facts));
  const auto figure = [](const char* title, int drop) { return Table::Column{.title = title, .align = Align::kRight, .drop = drop}; };
  Table sheet({{.title = "parameter", .fit = Fit::kName}, {.title = "type", .drop = 1}, figure("bytes", 2), figure("min", 0),
               figure("max", 0), figure("mean", 3), figure("std", 4), figure("norm", 0),
               {.title = "", .fit = Fit::kText, .drop = Table::kIfEmpty}});
  for (const StatsRow& row : rows) {
    std::vector<Table::Cell> cells = {name_cell(checkpoint, row.info.id), type_text(row.info.dtype, row.info.shape),
                                      std::to_string(row.info.bytes)};
    for (std::string& number : numbers_of(row)) cells.emplace_back(std::move(number));
    const bool bad = row.stats && row.stats->nan_count + row.stats->inf_count() > 0;
    cells.emplace_back(remark_of(row), bad || !row.stats ? Paint::kError : Paint::kNone);
    sheet.add(std::move(cells));
  }
  if (!sheet.empty()) out += sheet.text(style);
  out += totals_text(rows) + "\n";
  for (const auto& [name, text] : facts.texts) out += fmt::format("text       {} = {}\n", printable(name), printable(text));
  for (const Problem& problem : facts.problems) {
    const std::string word(problem.severity == Severity::kInfo ? "note" : severity_name(problem.severity));
    out += fmt::format("{}{} {}\n", painted(word, paint_for(problem.severity), style.colour),
                       std::string(10 - std::min<size_t>(10, word.size()), ' '), printable(problem.message));
  }
  return fitted(std::move(out), style);
}

constexpr CsvColumn kParameterColumns[] = {{"parameter", "name"},          {"dtype", "dtype"},
                                           {"shape", "shape"},             {"bytes", "bytes"},
                                           {"min", "stats.min"},           {"max", "stats.max"},
                                           {"mean", "stats.mean"},         {"std", "stats.std"},
                                           {"norm", "stats.l2_norm"},      {"nan_count", "stats.nan_count"},
                                           {"pos_inf_count", "stats.pos_inf_count"}, {"neg_inf_count", "stats.neg_inf_count"},
                                           {"note", "note"},               {"problem", "problem"}};

// ---- match -----------------------------------------------------------------------------------------------------------

std::string step_answer(const StepMatch& step) {
  if (step.matches()) return step.absent == 0 ? "equal" : "equal as far as dumped";
  return step.different > 0 ? "different" : "not compared";
}

std::string match_verdict(const CheckpointMatch& match) {
  const auto& [a, b] = std::pair(match.detail.a, match.detail.b);
  std::vector<int64_t> steps;
  for (const StepMatch& step : match.steps) {
    if (step.matches()) steps.push_back(step.step);
  }
  const StepMatch& best = match.steps[match.best];
  if (!steps.empty()) {
    std::string out = fmt::format("{} holds the parameters of step {} of {}: {} equal bit for bit", printable(b), numbers_text(steps),
                                  printable(a), counted(best.equal, "parameter"));
    if (best.absent > 0) out += fmt::format("; {} of the checkpoint have no value in the dump and were not compared", best.absent);
    return out;
  }
  if (best.equal == 0)
    return fmt::format("{} belongs to none of the steps of {}: no parameter is equal in any", printable(b), printable(a));
  return fmt::format("{} belongs to none of the steps of {}; nearest is step {} with {} of {} equal", printable(b), printable(a), best.step,
                     best.equal, counted(best.equal + best.different + best.not_compared, "parameter"));
}

std::string match_table(const CheckpointMatch& match, const ReportStyle& style) {
  std::string out = match_verdict(match) + "\n";
  Table sheet({{"step", Align::kRight},
               {"equal", Align::kRight},
               {"different", Align::kRight},
               {.title = "not compared", .align = Align::kRight, .drop = 2},
               {.title = "not in the dump", .align = Align::kRight, .drop = 1},
               {""}});
  for (const StepMatch& step : match.steps) {
    sheet.add({std::to_string(step.step), std::to_string(step.equal), std::to_string(step.different), std::to_string(step.not_compared),
               std::to_string(step.absent), Table::Cell(step_answer(step), step.matches() ? Paint::kStrong : Paint::kNone)});
  }
  out += sheet.text(style);
  const StepMatch& best = match.steps[match.best];
  if (best.matches() && best.absent == 0 && !style.wide) return out;
  return out + fmt::format("\nstep {} (A) against the checkpoint (B):\n", best.step) + parameter_diff_report(match.detail, style);
}

constexpr CsvColumn kStepColumns[] = {{"step", "step"},           {"matches", "matches"},           {"equal", "equal"},
                                      {"different", "different"}, {"not_compared", "not_compared"}, {"not_in_dump", "not_in_dump"}};

}  // namespace

std::string checkpoint_report(Checkpoint& checkpoint, const std::vector<StatsRow>& rows, const ReportStyle& style) {
  if (style.format == Format::kTable) return table(checkpoint, rows, style);
  const Answer answer = checkpoint_answer(checkpoint, rows);
  switch (style.format) {
    case Format::kJson: return json_text(answer);
    case Format::kJsonl: return json_lines(answer, "parameters");
    case Format::kCsv: return csv_text(kParameterColumns, answer["parameters"]);
    default:
      return fmt::format("{}, {}\n\n{}", file_text(checkpoint.facts()), totals_text(rows),
                         markdown_table(kParameterColumns, answer["parameters"]));
  }
}

std::string checkpoint_match_report(const CheckpointMatch& match, const ReportStyle& style) {
  if (style.format == Format::kTable) return fitted(match_table(match, style), style);
  const Answer answer = checkpoint_match_answer(match);
  switch (style.format) {
    case Format::kJson: return json_text(answer);
    case Format::kJsonl: return json_lines(answer, "steps");
    case Format::kCsv: return csv_text(kStepColumns, answer["steps"]);
    default: return match_verdict(match) + "\n\n" + markdown_table(kStepColumns, answer["steps"]);
  }
}

}  // namespace msdbg
