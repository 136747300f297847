// The findings of a check as JSON.
#include <algorithm>

#include "report/check_formats.h"
#include "report/json.h"
#include "report/json_parts.h"

namespace msdbg::json {
namespace {

Json hit_object(const Session& session, const Hit& hit) {
  Json out;
  out["rule"] = hit.rule;
  out["abbr"] = hit.abbr;
  out["severity"] = severity_name(hit.severity);
  put_place(out, session, hit.tensor);
  out["step"] = hit.tensor.step;
  put_node(out, session, hit.tensor);
  put_type(out, hit.dtype, hit.shape);
  Json params = Json::array();
  for (const ParamResult& param : hit.params) {
    params.push_back({{"name", param.name},
                      {"threshold", number(param.threshold)},
                      {"actual", param.actual ? number(*param.actual) : Json()},
                      {"hit", param.hit}});
  }
  // What a script answered beyond yes: fields without a threshold.
  for (const auto& [name, value] : hit.details) {
    const std::optional<double> actual = parse_double(value);
    params.push_back(
        {{"name", name}, {"threshold", nullptr}, {"actual", actual ? number(*actual) : Json(value)}, {"hit", true}});
  }
  out["params"] = std::move(params);
  out["error_code"] = 0;
  out["errors"] = Json::array();
  out["stats"] = stats_object(hit.stats, hit.shape);
  out["stack"] = stack_of(session.node(hit.tensor));
  return out;
}

Json not_checked_object(const Session& session, const NotChecked& entry) {
  Json out;
  out["rule"] = entry.rule;
  out["rank"] = entry.tensor.rank;
  out["step"] = entry.tensor.step;
  out["node"] = session.node(entry.tensor).name;
  out["slot"] = slot_name(entry.tensor.slot);
  out["reason"] = entry.reason;
  out["error_code"] = entry.error_code;
  return out;
}

}  // namespace

std::string check(const Session& session, const CheckResult& result, const ReportStyle& style) {
  const Gate* gate = style.gate;
  Json hits = Json::array();
  for (size_t i = 0; i < result.hits.size(); ++i) {
    Json hit = hit_object(session, result.hits[i]);
    if (gate) {
      hit["status"] = standing_name(gate->standing[i]);
      if (gate->standing[i] == Standing::kSuppressed) hit["reason"] = gate->reasons[i];
    }
    hits.push_back(std::move(hit));
  }
  Json head;
  head["msdbg"] = kVersion;
  head["dump"] = session.info().source;
  head["semantics"] = semantics_name(result.semantics);
  head["coverage"] = {{"tensors", result.coverage.tensors},
                      {"checked", result.coverage.checked},
                      {"not_checked", result.coverage.not_checked},
                      {"bytes", result.coverage.bytes}};
  // Rules with findings, and what to do about them.
  Json rules = Json::array();
  for (const std::string& name : rules_of(result, style)) {
    const bool found = std::any_of(result.hits.begin(), result.hits.end(), [&](const Hit& hit) { return hit.rule == name; });
    if (const RuleInfo* info = rule_info(result, name); info && found) {
      rules.push_back({{"name", info->name},
                       {"severity", severity_name(info->severity)},
                       {"summary", info->summary},
                       {"cause", info->cause},
                       {"next", info->next},
                       {"file", info->file.empty() ? Json() : Json(info->file)}});
    }
  }
  Json broken = Json::array();
  for (const RuleProblem& problem : result.rule_problems) {
    broken.push_back({{"rule", problem.rule}, {"rank", nullptr}, {"step", nullptr}, {"node", nullptr}, {"slot", nullptr},
                      {"reason", problem.reason}, {"error_code", 0}});
  }
  Json counts;
  if (gate) {
    counts = {{"new", gate->fresh}, {"known", gate->known}, {"suppressed", gate->suppressed}};
    Json unused = Json::array();
    for (const Suppression& s : gate->unused) unused.push_back({{"line", s.line}, {"pattern", s.text}, {"reason", s.reason}});
    counts["unused_suppressions"] = std::move(unused);
  }
  if (style.format == Format::kJsonl) {
    head["total_hits"] = result.total_hits;
    if (gate) head["gate"] = std::move(counts);
    if (result.interrupted) head["partial"] = true;
    if (!rules.empty()) head["rules"] = std::move(rules);
    if (!broken.empty()) head["broken_rules"] = std::move(broken);
    return dumped_lines(hits) + dumped(Json{{"summary", std::move(head)}}, false);
  }
  Json& out = head;
  out["hits"] = std::move(hits);
  Json not_checked = Json::array();
  for (const NotChecked& entry : result.not_checked) not_checked.push_back(not_checked_object(session, entry));
  for (Json& entry : broken) not_checked.push_back(std::move(entry));
  out["not_checked"] = std::move(not_checked);
  if (!rules.empty()) out["rules"] = std::move(rules);
  if (gate) out["gate"] = std::move(counts);
  // Only where the lists above are not the whole answer.
  if (result.total_hits > result.hits.size()) out["total_hits"] = result.total_hits;
  if (result.interrupted) out["partial"] = true;
  return dumped(out, true);
}

}  // namespace msdbg::json
