#include "report/check_formats.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/markup.h"
#include "report/table.h"

namespace msdbg {

Standing standing_of(const ReportStyle& style, size_t hit) {
  return style.gate && hit < style.gate->standing.size() ? style.gate->standing[hit] : Standing::kNew;
}

std::string reason_of(const ReportStyle& style, size_t hit) {
  return style.gate && hit < style.gate->reasons.size() ? style.gate->reasons[hit] : "";
}

std::vector<std::string> rules_of(const CheckResult& result, const ReportStyle& style) {
  std::vector<std::string> rules;
  std::set<std::string> seen;
  const auto add = [&](const std::string& rule) {
    if (seen.insert(rule).second) rules.push_back(rule);
  };
  for (const std::string& rule : style.rules_run) add(rule);
  for (const Hit& hit : result.hits) add(hit.rule);
  for (const NotChecked& entry : result.not_checked) add(entry.rule);
  for (const RuleProblem& problem : result.rule_problems) {
    if (problem.kind != RuleProblemKind::kNoSuchData) add(problem.rule);
  }
  return rules;
}

const RuleInfo* rule_info(const CheckResult& result, std::string_view rule) {
  for (const auto& info : result.rules) {
    if (info && info->name == rule) return info.get();
  }
  for (const Hit& hit : result.hits) {
    if (hit.rule == rule && hit.info) return hit.info.get();
  }
  return nullptr;
}

std::string advice_of(const CheckResult& result, std::string_view rule) {
  if (const RuleInfo* info = rule_info(result, rule)) return info->advice();
  const auto spec = find_condition(rule);
  return spec ? std::string((*spec)->advice) : "";
}

std::string counts_text(const CheckResult& result, const ReportStyle& style) {
  std::string out = counted(result.total_hits, "finding");
  if (style.gate) out += fmt::format(": {} new, {} known, {} suppressed", style.gate->fresh, style.gate->known, style.gate->suppressed);
  if (result.total_hits > result.hits.size()) out += fmt::format("; {} listed (--max-hits)", result.hits.size());
  return out;
}

std::string unused_text(const Suppression& suppression) {
  return fmt::format("suppression of line {} matched nothing: {} ({})", suppression.line, printable(suppression.text),
                     printable(suppression.reason));
}

std::string partial_text(const CheckResult& result) {
  return fmt::format("interrupted: {} of {} were looked at", result.coverage.checked, counted(result.coverage.tensors, "tensor"));
}

std::string check_csv(const Session& session, const CheckResult& result, const ReportStyle& style) {
  std::string out = csv_line({"status",        "rule", "abbr", "severity", "rank",  "graph", "graph_id", "step",      "execution",
                              "node",          "op",   "slot", "dtype",    "shape", "what",  "count",    "nan_count", "pos_inf_count",
                              "neg_inf_count", "min",  "max",  "mean",     "file",  "line",  "reason"});
  const auto place = [&](const TensorId& id, std::vector<std::string>* row) {
    const Graph* graph = session.graph(id.rank, id.graph);
    const Node& node = session.node(id);
    for (std::string text :
         {std::to_string(id.rank), graph ? printable(graph->name()) : "", std::to_string(id.graph), std::to_string(id.step),
          std::to_string(id.execution), printable(node.name), printable(node.op), slot_name(id.slot)})
      row->push_back(std::move(text));
  };
  constexpr size_t kColumns = 25;
  for (size_t i = 0; i < result.hits.size(); ++i) {
    const Hit& hit = result.hits[i];
    const Stats& s = hit.stats;
    std::vector<std::string> row{std::string(standing_name(standing_of(style, i))), printable(hit.rule), printable(hit.abbr),
                                 std::string(severity_name(hit.severity))};
    place(hit.tensor, &row);
    const auto count = [&](uint64_t value, uint32_t field) { row.push_back(s.knows(field) ? std::to_string(value) : ""); };
    const auto real = [&](double value, uint32_t field) { row.push_back(s.knows(field) && value == value ? format_double(value) : ""); };
    row.emplace_back(dtype_name(hit.dtype));
    row.push_back(shape_text(hit.shape));
    row.push_back(what_text(hit));
    count(s.count, kStatCount), count(s.nan_count, kStatNan), count(s.pos_inf_count, kStatPosInf), count(s.neg_inf_count, kStatNegInf);
    real(s.min, kStatMin), real(s.max, kStatMax), real(s.mean, kStatMean);
    const StackFrame* frame = user_frame(session.node(hit.tensor));
    row.push_back(frame ? printable(frame->file) : "");
    row.push_back(frame && frame->line > 0 ? std::to_string(frame->line) : "");
    row.push_back(printable(reason_of(style, i)));
    out += csv_line(row);
  }
  for (const NotChecked& entry : result.not_checked) {
    std::vector<std::string> row{"not_checked", printable(entry.rule), printable(entry.abbr), ""};
    place(entry.tensor, &row);
    row.resize(kColumns - 1);
    row.push_back(printable(entry.reason));
    out += csv_line(row);
  }
  const auto remark = [&](std::string status, std::string rule, std::string reason) {
    std::vector<std::string> row(kColumns);
    row.front() = std::move(status), row[1] = std::move(rule), row.back() = std::move(reason);
    out += csv_line(row);
  };
  for (const RuleProblem& problem : result.rule_problems) remark("not_checked", printable(problem.rule), lines_text(problem.reason));
  if (style.gate) {
    for (const Suppression& s : style.gate->unused) remark("unused_suppression", printable(s.rule), unused_text(s));
  }
  if (result.total_hits > result.hits.size()) remark("cut", "", counts_text(result, style));
  if (result.interrupted) remark("partial", "", partial_text(result));
  return out;
}

std::string check_markdown(const Session& session, const CheckResult& result, const ReportStyle& style) {
  const Coverage& coverage = result.coverage;
  const uint64_t fresh = style.gate ? style.gate->fresh : result.total_hits;
  const bool judged = style.gate != nullptr;
  std::string out = fmt::format("### msdbg check: {}\n\n", result.interrupted        ? "interrupted"
                                                           : fresh > 0               ? counted(fresh, judged ? "new finding" : "finding")
                                                           : coverage.checked == 0   ? "nothing was checked"
                                                           : is_incomplete(result) ? "clean otherwise"
                                                                                      : "clean");
  if (result.interrupted) out += fmt::format("**Partial result**, {}.\n\n", partial_text(result));
  out += fmt::format("{}. {} of {} checked, {} not checked; {}, semantics {}.\n", counts_text(result, style), coverage.checked,
                     counted(coverage.tensors, "tensor"), coverage.not_checked, counted(result.steps.size(), "step"),
                     semantics_name(result.semantics));
  const auto table = [&](Standing standing) {
    std::string rows;
    for (size_t i = 0; i < result.hits.size(); ++i) {
      if (standing_of(style, i) != standing) continue;
      const Hit& hit = result.hits[i];
      const Node& node = session.node(hit.tensor);
      rows += fmt::format("| {} | {} | {} | {} | {}:{} | {} | {} |", severity_name(hit.severity), markdown_cell(hit.rule), hit.tensor.rank,
                          hit.tensor.step, markdown_cell(node.name), slot_name(hit.tensor.slot), markdown_cell(what_text(hit)),
                          markdown_cell(source_place(node, false)));
      rows += standing == Standing::kSuppressed ? fmt::format(" {} |\n", markdown_cell(reason_of(style, i))) : "\n";
    }
    if (rows.empty()) return rows;
    const bool reason = standing == Standing::kSuppressed;
    return fmt::format("| severity | rule | rank | step | tensor | what | source |{}\n|---|---|--:|--:|---|---|---|{}\n{}",
                       reason ? " reason |" : "", reason ? "---|" : "", rows);
  };
  // A merge request shows the new ones; the rest opens at a click.
  const auto folded = [&](std::string_view title, const std::string& body) {
    if (!body.empty()) out += fmt::format("\n<details><summary>{}</summary>\n\n{}\n</details>\n", title, body);
  };
  if (const std::string rows = table(Standing::kNew); !rows.empty()) out += "\n" + rows;
  if (judged) {
    folded("Known from the baseline", table(Standing::kKnown));
    folded("Suppressed", table(Standing::kSuppressed));
  }
  std::string advice;
  for (const std::string& rule : rules_of(result, style)) {
    const bool found = std::any_of(result.hits.begin(), result.hits.end(), [&](const Hit& hit) { return hit.rule == rule; });
    if (const std::string text = advice_of(result, rule); found && !text.empty())
      advice += fmt::format("- **{}**: {}\n", markdown_cell(rule), markdown_cell(text));
  }
  folded("What to do", advice);
  std::string not_checked;
  for (const NotChecked& entry : result.not_checked) {
    not_checked += fmt::format("| {} | {} | {} | {}:{} | {} |\n", markdown_cell(entry.rule), entry.tensor.rank, entry.tensor.step,
                               markdown_cell(session.node(entry.tensor).name), slot_name(entry.tensor.slot), markdown_cell(entry.reason));
  }
  for (const RuleProblem& problem : result.rule_problems)
    not_checked += fmt::format("| {} | | | | {} |\n", markdown_cell(problem.rule), markdown_cell(problem.reason));
  if (!not_checked.empty()) not_checked = "| rule | rank | step | tensor | reason |\n|---|--:|--:|---|---|\n" + not_checked;
  folded("Not checked", not_checked);
  if (judged && !style.gate->unused.empty()) {
    out += "\nSuppressions without use:\n\n";
    for (const Suppression& s : style.gate->unused)
      out += fmt::format("- line {}: {} ({})\n", s.line, markdown_cell(s.text), markdown_cell(s.reason));
  }
  return out;
}

}  // namespace msdbg
