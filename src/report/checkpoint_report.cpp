// One checkpoint, or one compared with the steps of a dump.
#include "msdbg/answers.h"
#include "msdbg/checkpoint_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/follow_text.h"
#include "report/table.h"
#include "report/cell_text.h"
#include "report/markup.h"

namespace msdbg {
namespace {


std::string_view crc_word(CrcState crc) { return crc == CrcState::kMatches ? "matches" : crc == CrcState::kDiffers ? "differs" : "none"; }

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

Answer parameter_object(Checkpoint& checkpoint, const StatsRow& row) {
  Answer out;
  out["name"] = checkpoint.node(row.info.id).name;
  out["dtype"] = dtype_name(row.info.dtype);
  out["shape"] = row.info.shape;
  out["bytes"] = row.info.bytes;
  out["stats"] = stats_answer(checkpoint, row.stats, row.info.id);
  out["note"] = text_answer(row.info.note);
  out["problem"] = row.info.problem.ok() ? Answer() : Answer(row.info.problem.message());
  return out;
}

std::string json_object(Checkpoint& checkpoint, const std::vector<StatsRow>& rows) {
  const CheckpointFacts& facts = checkpoint.facts();
  const Totals totals = totals_of(rows);
  Answer out = {
      {"msdbg", kVersion},
      {"checkpoint", checkpoint.info().source},
      {"format", facts.format},
      {"file_bytes", facts.file_bytes},
      {"cipher", text_answer(facts.cipher)},
      {"crc", crc_word(facts.crc)},
      {"totals", {{"parameters", rows.size()}, {"elements", totals.elements}, {"bytes", totals.bytes}, {"nonfinite", totals.nonfinite}}}};
  out["parameters"] = Answer::array();
  for (const StatsRow& row : rows) out["parameters"].push_back(parameter_object(checkpoint, row));
  out["texts"] = Answer::array();
  for (const auto& [name, text] : facts.texts) out["texts"].push_back({{"name", name}, {"text", text}});
  out["problems"] = Answer::array();
  for (const Problem& problem : facts.problems) {
    out["problems"].push_back(
        {{"severity", problem.severity == Severity::kInfo ? "info" : severity_name(problem.severity)}, {"message", problem.message}});
  }
  return json_text(out);
}

/// Shared by csv and markdown.
std::vector<std::string> fields_of(Checkpoint& checkpoint, const StatsRow& row) {
  std::vector<std::string> fields = {checkpoint.node(row.info.id).name, std::string(dtype_name(row.info.dtype)), shape_text(row.info.shape),
                                     std::to_string(row.info.bytes)};
  for (std::string& number : numbers_of(row)) fields.push_back(number == "-" ? "" : std::move(number));
  fields.push_back(row.stats ? std::to_string(row.stats->nan_count) : "");
  fields.push_back(row.stats ? std::to_string(row.stats->inf_count()) : "");
  fields.push_back(row.stats ? row.info.note : remark_of(row));
  return fields;
}

const std::vector<std::string>& parameter_titles() {
  static const std::vector<std::string> kTitles = {"parameter", "dtype", "shape", "bytes",     "min",       "max",
                                                   "mean",      "std",   "norm",  "nan_count", "inf_count", "note"};
  return kTitles;
}

// ---- match -----------------------------------------------------------------------------------------------------------

std::string step_answer(const StepMatch& step) {
  if (step.matches()) return step.absent == 0 ? "equal" : "equal as far as dumped";
  return step.different > 0 ? "different" : "not compared";
}

/// Everything else in the dump (inputs, optimizer state) is irrelevant to the checkpoint.
ParameterDiff detail_of(const CheckpointMatch& match) {
  ParameterDiff detail = match.detail;
  std::erase_if(detail.changes, [](const ParameterChange& change) { return change.kind == ChangeKind::kLost; });
  return detail;
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
  return out + fmt::format("\nstep {} (A) against the checkpoint (B):\n", best.step) + parameter_diff_report(detail_of(match), style);
}

Answer step_object(const StepMatch& step) {
  return {{"step", step.step},           {"matches", step.matches()},         {"equal", step.equal},
          {"different", step.different}, {"not_compared", step.not_compared}, {"not_in_dump", step.absent}};
}

}  // namespace

std::string checkpoint_report(Checkpoint& checkpoint, const std::vector<StatsRow>& rows, const ReportStyle& style) {
  std::string out;
  switch (style.format) {
    case Format::kJson: return json_object(checkpoint, rows);
    case Format::kJsonl:
      for (const StatsRow& row : rows) out += json_line(parameter_object(checkpoint, row));
      return out;
    case Format::kCsv:
      out = csv_line(parameter_titles());
      for (const StatsRow& row : rows) out += csv_line(fields_of(checkpoint, row));
      return out;
    case Format::kMarkdown:
      out = fmt::format("{}, {}\n\n", file_text(checkpoint.facts()), totals_text(rows)) + follow::markdown_head(parameter_titles());
      for (const StatsRow& row : rows) out += follow::markdown_line(fields_of(checkpoint, row));
      return out;
    default: return table(checkpoint, rows, style);
  }
}

std::string checkpoint_match_report(const CheckpointMatch& match, const ReportStyle& style) {
  static const std::vector<std::string> kTitles = {"step", "equal", "different", "not compared", "not in the dump", "answer"};
  const auto fields = [](const StepMatch& step) {
    return std::vector<std::string>{std::to_string(step.step),         std::to_string(step.equal),  std::to_string(step.different),
                                    std::to_string(step.not_compared), std::to_string(step.absent), step_answer(step)};
  };
  std::string out;
  switch (style.format) {
    case Format::kJson: {
      Answer object = {{"msdbg", kVersion}, {"dump", match.detail.a}, {"checkpoint", match.detail.b}, {"steps", Answer::array()}};
      for (const StepMatch& step : match.steps) object["steps"].push_back(step_object(step));
      object["best"] = match.steps[match.best].step;
      object["detail"] = Answer::parse(parameter_diff_report(detail_of(match), style));
      return json_text(object);
    }
    case Format::kJsonl:
      for (const StepMatch& step : match.steps) out += json_line(step_object(step));
      return out;
    case Format::kCsv:
      out = csv_line(kTitles);
      for (const StepMatch& step : match.steps) out += csv_line(fields(step));
      return out;
    case Format::kMarkdown:
      out = match_verdict(match) + "\n\n" + follow::markdown_head(kTitles);
      for (const StepMatch& step : match.steps) out += follow::markdown_line(fields(step));
      return out;
    default: return fitted(match_table(match, style), style);
  }
}

}  // namespace msdbg
