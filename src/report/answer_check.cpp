#include <fmt/format.h>

#include <algorithm>

#include "msdbg/answers.h"
#include "msdbg/rank_report.h"
#include "msdbg/table.h"
#include "report/check_formats.h"
#include "report/table.h"

namespace msdbg {
namespace {

/// The number that decided: what the script measured, else the value of the first parameter that hit.
Answer actual_of(const Hit& hit) {
  for (const auto& [name, value] : hit.details) {
    if (name == "actual") return parse_double(value) ? Answer(*parse_double(value)) : Answer(value);
  }
  for (const ParamResult& param : hit.params) {
    if (param.hit && param.actual) return *param.actual;
  }
  return nullptr;
}

Answer details_of(const Hit& hit) {
  Answer out = Answer::object();
  for (const auto& [name, value] : hit.details) out[name] = parse_double(value) ? Answer(*parse_double(value)) : Answer(value);
  return out;
}

std::string_view kind_name(RuleProblemKind kind) {
  switch (kind) {
    case RuleProblemKind::kBroken: return "broken";
    case RuleProblemKind::kUnset: return "unset";
    case RuleProblemKind::kIdle: return "idle";
    case RuleProblemKind::kNoSuchData: return "no_such_data";
    case RuleProblemKind::kUnfinished: return "unfinished";
  }
  return "";
}

/// Rules with findings, and what to do about them.
Answer rules_answer(const CheckResult& result) {
  Answer out = Answer::array();
  for (const std::string& name : rules_of(result, {})) {
    const bool found = std::any_of(result.hits.begin(), result.hits.end(), [&](const Hit& hit) { return hit.rule == name; });
    const RuleInfo* info = rule_info(result, name);
    if (!found || info == nullptr) continue;
    out.push_back({{"name", info->name},
                   {"severity", severity_name(info->severity)},
                   {"summary", info->summary},
                   {"cause", info->cause},
                   {"next", info->next},
                   {"file", text_answer(info->file)}});
  }
  return out;
}

Answer gate_answer(const Gate* gate) {
  if (gate == nullptr) return nullptr;
  Answer unused = Answer::array();
  for (const Suppression& s : gate->unused) unused.push_back({{"line", s.line}, {"pattern", s.text}, {"reason", s.reason}});
  return {{"new", gate->fresh}, {"known", gate->known}, {"suppressed", gate->suppressed}, {"unused_suppressions", std::move(unused)}};
}

Answer explained_answer(const Session& session, const CheckResult& result) {
  Answer out = Answer::array();
  for (const Explained& each : result.explained) {
    Answer entry;
    entry["rule"] = each.hit.rule;
    entry["severity"] = severity_name(each.hit.severity);
    entry.update(place_answer(session, each.hit.tensor));
    entry["message"] = what_text(each.hit);
    entry["reason"] = each.what;
    entry["evidence"] = text_answer(each.evidence);
    entry["from"] = place_answer(session, each.from);
    out.push_back(std::move(entry));
  }
  return out;
}

Answer causes_answer(const Session& session, const CheckResult& result) {
  if (!result.causes) return nullptr;
  Answer out = Answer::array();
  for (const Cause& cause : *result.causes) out.push_back(cause_answer(session, cause));
  return out;
}

}  // namespace

std::string cause_sentence(const Session& session, const Cause& cause) {
  const TensorId& id = cause.tensor;
  std::string out = fmt::format("{}{}, {} {}", printable(short_name(session, id)), slot_suffix(id.slot),
                                cause.steps.size() > 1 ? "steps" : "step", numbers_text(cause.steps));
  if (session.ranks().size() > 1) out += fmt::format(", rank {}", id.rank);
  if (const std::string place = source_place(session.node(id), false); !place.empty()) out += ", " + place;
  return fmt::format("{}: {}", out, cause.what);
}

Answer cause_answer(const Session& session, const Cause& cause) {
  const Node& node = session.node(cause.tensor);
  Answer out;
  out["kind"] = cause_kind_name(cause.kind);
  out["sentence"] = cause_sentence(session, cause);
  out["evidence"] = text_answer(cause.evidence);
  out.update(place_answer(session, cause.tensor));
  out["steps"] = cause.steps;
  out["findings"] = cause.findings;
  out["total"] = cause.total;
  out["source"] = source_answer(node);
  out["stack"] = stack_answer(node);
  return out;
}

Answer hit_answer(const Session& session, const Hit& hit) {
  Answer out;
  out["watch"] = hit.watch_id;
  out["watch_name"] = text_answer(hit.watch_name);
  out["rule"] = hit.rule;
  out["abbr"] = hit.abbr;
  out["severity"] = severity_name(hit.severity);
  out.update(place_answer(session, hit.tensor));
  out["gradient_of"] = text_answer(gradient_of_name(session, hit.tensor));
  out["dtype"] = dtype_name(hit.dtype);
  out["shape"] = hit.shape;
  out["message"] = what_text(hit);
  out["actual"] = actual_of(hit);
  Answer params = Answer::array();
  for (const ParamResult& param : hit.params) {
    params.push_back({{"name", param.name},
                      {"threshold", param.threshold},
                      {"actual", param.actual ? Answer(*param.actual) : Answer()},
                      {"hit", param.hit}});
  }
  out["params"] = std::move(params);
  out["details"] = details_of(hit);
  out["stats"] = stats_answer(hit.stats, hit.shape);
  out["not_finite"] = text_answer(nonfinite_text(hit.stats));
  // A rule that uses a condition of the catalogue under another name keeps the texts of that condition.
  const auto spec = find_condition(hit.abbr.empty() ? hit.rule : hit.abbr);
  const auto words = [&](const std::string& of_rule, std::string_view ConditionSpec::* of_condition) {
    return !of_rule.empty() || !spec ? text_answer(of_rule) : text_answer((*spec)->*of_condition);
  };
  out["summary"] = words(hit.info ? hit.info->summary : "", &ConditionSpec::summary);
  out["advice"] = words(hit.info ? hit.info->advice() : "", &ConditionSpec::advice);
  out["follows"] = hit.follows ? Answer(*hit.follows) : Answer();
  out["source"] = source_answer(session.node(hit.tensor));
  out["stack"] = stack_answer(session.node(hit.tensor));
  return out;
}

Answer check_summary(const Session& session, const CheckResult& result, const Gate* gate) {
  Answer problems = Answer::array();
  for (const RuleProblem& problem : result.rule_problems)
    problems.push_back({{"rule", problem.rule}, {"kind", kind_name(problem.kind)}, {"reason", problem.reason}});
  Answer out;
  out["msdbg"] = kVersion;
  out["dump"] = session.info().source;
  out["semantics"] = semantics_name(result.semantics);
  out["steps"] = result.steps;
  out["interrupted"] = result.interrupted;
  out["coverage"] = coverage_answer(result.coverage);
  out["by_rank"] = by_rank_answer(hits_grid(session, result));
  out["total_hits"] = result.total_hits;
  out["causes"] = causes_answer(session, result);
  out["explained"] = explained_answer(session, result);
  Answer overflows = Answer::array();
  for (const OverflowRecord& record : result.overflows) overflows.push_back(overflow_answer(session, record));
  out["overflows"] = std::move(overflows);
  out["from_rules"] = !result.rules.empty();
  out["rules"] = rules_answer(result);
  out["rule_problems"] = std::move(problems);
  out["gate"] = gate_answer(gate);
  return out;
}

Answer check_answer(const Session& session, const CheckResult& result, const Gate* gate) {
  Answer out = check_summary(session, result, gate);
  Answer hits = Answer::array(), not_checked = Answer::array();
  for (size_t i = 0; i < result.hits.size(); ++i) {
    Answer hit = hit_answer(session, result.hits[i]);
    if (gate != nullptr) {
      hit["status"] = gate_status_name(gate->statuses[i]);
      hit["reason"] = gate->statuses[i] == GateStatus::kSuppressed ? Answer(gate->reasons[i]) : Answer();
    }
    hits.push_back(std::move(hit));
  }
  for (const NotChecked& entry : result.not_checked) not_checked.push_back(not_checked_answer(session, entry));
  out["hits"] = std::move(hits);
  out["not_checked"] = std::move(not_checked);
  return out;
}

}  // namespace msdbg
