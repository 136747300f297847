#include "report/check_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "msdbg/answers.h"
#include "report/markup.h"
#include "report/table.h"

namespace msdbg {

GateStatus gate_status_of(const ReportStyle& style, size_t hit) {
  return style.gate && hit < style.gate->statuses.size() ? style.gate->statuses[hit] : GateStatus::kNew;
}

std::string reason_of(const ReportStyle& style, size_t hit) {
  return style.gate && hit < style.gate->reasons.size() ? style.gate->reasons[hit] : "";
}

std::vector<std::string> rules_of(const CheckResult& result, std::span<const std::string> rules_run) {
  std::vector<std::string> rules;
  std::set<std::string> seen;
  const auto add = [&](const std::string& rule) {
    if (seen.insert(rule).second) rules.push_back(rule);
  };
  for (const std::string& rule : rules_run) add(rule);
  for (const Hit& hit : result.hits) add(hit.rule);
  for (const Explained& each : result.explained) add(each.hit.rule);
  for (const NotChecked& entry : result.not_checked) add(entry.rule);
  for (const RuleProblem& problem : result.rule_problems) {
    if (problem.rule != "*") add(problem.rule);
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

std::string interrupted_text(const CheckResult& result) {
  return fmt::format("interrupted: {} of {} were checked", result.coverage.checked, counted(result.coverage.tensors, "tensor"));
}

std::string follow_text(const Session& session, const Cause& cause) {
  return fmt::format("{} of {} {} from {}", cause.findings, counted(cause.total, "finding"), cause.findings == 1 ? "follows" : "follow",
                     cause_sentence(session, cause));
}

std::string explained_text(const Session& session, const Explained& each) {
  return fmt::format("{}: {}{} ({})", each.what, printable(short_name(session, each.from)), slot_suffix(each.from.slot),
                     printable(each.evidence));
}

std::string why_text(const Cause& cause) {
  return cause.evidence.empty() ? cause.what : fmt::format("{} ({})", cause.what, printable(cause.evidence));
}

/// The finding about the cause itself. Where a replica differs, other findings about the same tensor follow from that.
static bool is_own(const CheckResult& result, const Hit& hit) {
  const Cause& cause = (*result.causes)[*hit.follows];
  return hit.tensor == cause.tensor && (cause.kind != CauseKind::kReplica || hit.rule == "replica-differs");
}

const Hit& earliest_hit(const CheckResult& result) {
  // Of a step, what the others follow from.
  const auto key = [&](const Hit& hit) {
    const bool own = hit.follows && result.causes && is_own(result, hit);
    return std::pair(hit.tensor.step, own ? *hit.follows : SIZE_MAX);
  };
  return *std::ranges::min_element(result.hits, {}, key);
}

bool is_worth_telling(const Cause& cause) {
  const bool says_why = cause.kind > CauseKind::kUnknown && cause.kind < CauseKind::kBadInput;
  return cause.findings > 1 || says_why || cause.kind == CauseKind::kRateZero || cause.kind == CauseKind::kRateTooLarge;
}

std::vector<bool> folded_hits(const CheckResult& result, const ReportStyle& style) {
  std::vector<bool> folded(result.hits.size());
  if (style.all || !result.causes) return folded;
  // What is new has to be seen, unless its cause is new as well.
  std::set<std::pair<size_t, GateStatus>> shown;
  for (size_t i = 0; i < result.hits.size(); ++i) {
    const Hit& hit = result.hits[i];
    if (hit.follows && (style.gate == nullptr || is_own(result, hit))) shown.insert({*hit.follows, gate_status_of(style, i)});
  }
  for (size_t i = 0; i < result.hits.size(); ++i) {
    const Hit& hit = result.hits[i];
    folded[i] = hit.follows && (*result.causes)[*hit.follows].findings > 1 && !is_own(result, hit) &&
                shown.contains({*hit.follows, gate_status_of(style, i)});
  }
  return folded;
}

std::vector<std::string> cause_lines(const Session& session, const CheckResult& result) {
  std::vector<std::string> lines;
  if (!result.no_causes.empty()) lines.push_back("causes: " + result.no_causes);
  if (!result.causes) return lines;
  for (const Cause& cause : *result.causes) {
    if (is_worth_telling(cause)) lines.push_back(follow_text(session, cause));
  }
  return lines;
}

std::vector<size_t> open_hits(const CheckResult& result) {
  std::vector<size_t> open;
  const std::vector<bool> folded = folded_hits(result, {});
  for (size_t i = 0; i < folded.size(); ++i) {
    if (!folded[i]) open.push_back(i);
  }
  return open;
}

std::string check_csv(const Session& session, const CheckResult& result, const ReportStyle& style) {
  static constexpr CsvColumn kColumns[] = {
      {"status", "status"},       {"rule", "rule"},          {"abbr", "abbr"},           {"severity", "severity"},
      {"rank", "rank"},           {"graph", "graph"},        {"graph_id", "graph_id"},   {"step", "step"},
      {"execution", "execution"}, {"node", "node"},          {"op", "op"},               {"slot", "slot"},
      {"gradient_of", "gradient_of"},                        {"dtype", "dtype"},         {"shape", "shape"},
      {"what", "message"},        {"count", "stats.count"},
      {"nan_count", "stats.nan_count"},                      {"pos_inf_count", "stats.pos_inf_count"},
      {"neg_inf_count", "stats.neg_inf_count"},              {"min", "stats.min"},       {"max", "stats.max"},
      {"mean", "stats.mean"},     {"file", "source.file"},   {"line", "source.line"},    {"reason", "reason"},
      {"follows", "follows"}};
  Answer answer = check_answer(session, result, style.gate);
  Answer rows = Answer::array();
  for (Answer& hit : answer["hits"]) {
    if (style.gate == nullptr) hit["status"] = gate_status_name(GateStatus::kNew);
    rows.push_back(std::move(hit));
  }
  for (Answer& entry : answer["not_checked"]) {
    entry["status"] = "not_checked";
    rows.push_back(std::move(entry));
  }
  for (Answer& entry : answer["explained"]) {
    entry["status"] = "explained";
    rows.push_back(std::move(entry));
  }
  for (const Answer& problem : answer["rule_problems"])
    rows.push_back({{"status", "not_checked"}, {"rule", problem["rule"]}, {"reason", problem["reason"]}});
  const auto remark = [&](const char* status, const std::string& rule, const std::string& reason) {
    rows.push_back({{"status", status}, {"rule", rule}, {"reason", reason}});
  };
  if (style.gate) {
    for (const Suppression& s : style.gate->unused) remark("unused_suppression", s.rule, unused_text(s));
  }
  if (result.total_hits > result.hits.size()) remark("cut", "", counts_text(result, style));
  if (result.interrupted) remark("interrupted", "", interrupted_text(result));
  return csv_text(kColumns, rows);
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
  if (result.interrupted) out += fmt::format("**{}**\n\n", interrupted_text(result));
  out += fmt::format("{}. {} of {} checked, {} not checked; {}, semantics {}.\n", counts_text(result, style), coverage.checked,
                     counted(coverage.tensors, "tensor"), coverage.not_checked, counted(result.steps.size(), "step"),
                     semantics_name(result.semantics));
  if (result.causes && std::any_of(result.causes->begin(), result.causes->end(), is_worth_telling)) {
    out += "\n";
    for (const Cause& cause : *result.causes) {
      if (is_worth_telling(cause)) out += fmt::format("- {}\n", markdown_cell(follow_text(session, cause)));
    }
  }
  const std::vector<bool> follows = folded_hits(result, style);
  const auto table = [&](GateStatus status, bool following) {
    std::string rows;
    for (size_t i = 0; i < result.hits.size(); ++i) {
      if (gate_status_of(style, i) != status || follows[i] != following) continue;
      const Hit& hit = result.hits[i];
      const Node& node = session.node(hit.tensor);
      rows += fmt::format("| {} | {} | {} | {} | {}:{} | {} | {} |", severity_name(hit.severity), markdown_cell(hit.rule), hit.tensor.rank,
                          hit.tensor.step, markdown_cell(node.name), slot_name(hit.tensor.slot), markdown_cell(what_text(hit)),
                          markdown_cell(source_place(node, false)));
      rows += status == GateStatus::kSuppressed ? fmt::format(" {} |\n", markdown_cell(reason_of(style, i))) : "\n";
    }
    if (rows.empty()) return rows;
    const bool reason = status == GateStatus::kSuppressed;
    return fmt::format("| severity | rule | rank | step | tensor | what | source |{}\n|---|---|--:|--:|---|---|---|{}\n{}",
                       reason ? " reason |" : "", reason ? "---|" : "", rows);
  };
  // A merge request shows the new ones; a click opens the others.
  const auto folded = [&](std::string_view title, const std::string& body) {
    if (!body.empty()) out += fmt::format("\n<details><summary>{}</summary>\n\n{}\n</details>\n", title, body);
  };
  if (const std::string rows = table(GateStatus::kNew, false); !rows.empty()) out += "\n" + rows;
  folded("What follows from these", table(GateStatus::kNew, true));
  if (judged) {
    for (const bool following : {false, true}) {
      const std::string_view of = following ? ", following from others" : "";
      folded(fmt::format("Known from the baseline{}", of), table(GateStatus::kKnown, following));
      folded(fmt::format("Suppressed{}", of), table(GateStatus::kSuppressed, following));
    }
  }
  std::string explained;
  for (const Explained& each : result.explained) {
    const TensorId& id = each.hit.tensor;
    explained += fmt::format("| {} | {} | {} | {}:{} | {} | {} |\n", markdown_cell(each.hit.rule), id.rank, id.step,
                             markdown_cell(session.node(id).name), slot_name(id.slot), markdown_cell(what_text(each.hit)),
                             markdown_cell(explained_text(session, each)));
  }
  if (!explained.empty()) explained = "| rule | rank | step | tensor | what | why |\n|---|--:|--:|---|---|---|\n" + explained;
  folded("No fault", explained);
  std::string advice;
  for (const std::string& rule : rules_of(result, style.rules_run)) {
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
