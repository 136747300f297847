// SARIF 2.1.0: the findings at the user's source lines, for code scanning.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "msdbg/answers.h"
#include "report/check_formats.h"
#include "report/sarif.h"
#include "report/table.h"

namespace msdbg {
namespace {

using namespace sarif;

Json rule_object(const CheckResult& result, const std::string& id) {
  Json rule;
  rule["id"] = id;
  if (const RuleInfo* info = rule_info(result, id)) {
    rule["shortDescription"] = {{"text", info->summary.empty() ? id : info->summary}};
    rule["help"] = {{"text", info->advice().empty() ? info->summary : info->advice()}};
    rule["defaultConfiguration"] = {{"level", level_of(info->severity)}};
    if (!info->abbr.empty()) rule["properties"] = {{"abbr", info->abbr}};
    return rule;
  }
  const auto spec = find_condition(id);
  if (!spec) {
    rule["shortDescription"] = {{"text", id}};
    rule["help"] = {{"text", "A condition of the command line or of a script: " + id}};
    return rule;
  }
  rule["shortDescription"] = {{"text", (*spec)->summary}};
  rule["help"] = {{"text", (*spec)->advice.empty() ? (*spec)->summary : (*spec)->advice}};
  rule["defaultConfiguration"] = {{"level", level_of((*spec)->severity)}};
  if (!(*spec)->abbr.empty()) rule["properties"] = {{"abbr", (*spec)->abbr}};
  return rule;
}

}  // namespace

std::string check_sarif(const Session& session, const CheckResult& result, const ReportStyle& style) {
  Json rules = Json::array();
  std::map<std::string, size_t> index;
  for (const std::string& rule : rules_of(result, style.rules_run)) {
    index.emplace(rule, index.size());
    rules.push_back(rule_object(result, rule));
  }
  Json results = Json::array();
  for (size_t i = 0; i < result.hits.size(); ++i) {
    const Hit& hit = result.hits[i];
    const Node& node = session.node(hit.tensor);
    Json entry;
    entry["ruleId"] = hit.rule;
    entry["ruleIndex"] = index[hit.rule];
    entry["level"] = level_of(hit.severity);
    entry["message"] = {
        {"text", fmt::format("{}:{} in step {} of rank {}: {}", printable(node.name), slot_name(hit.tensor.slot), hit.tensor.step,
                             hit.tensor.rank, what_text(hit).empty() ? printable(hit.rule) : what_text(hit))}};
    entry["locations"] = Json::array({location_of(node, hit.tensor.slot)});
    entry["partialFingerprints"] = {{"msdbgFinding/v1", fingerprint(session, hit, false).hash()}};
    const GateStatus status = gate_status_of(style, i);
    if (style.gate && style.gate->has_baseline && status != GateStatus::kSuppressed)
      entry["baselineState"] = status == GateStatus::kKnown ? "unchanged" : "new";
    // With suppression files, an empty list means that none applies.
    if (style.gate && style.gate->has_suppressions) {
      entry["suppressions"] = Json::array();
      if (status == GateStatus::kSuppressed)
        entry["suppressions"].push_back({{"kind", "external"}, {"status", "accepted"}, {"justification", reason_of(style, i)}});
    }
    entry["properties"] = {{"rank", hit.tensor.rank},         {"graphId", hit.tensor.graph},
                           {"step", hit.tensor.step},         {"execution", hit.tensor.execution},
                           {"op", node.op},                   {"dtype", dtype_name(hit.dtype)},
                           {"shape", shape_text(hit.shape)}};
    if (hit.follows) {
      const Cause& cause = (*result.causes)[*hit.follows];
      entry["properties"]["follows"] = *hit.follows;
      if (cause.tensor != hit.tensor) {
        Json place = location_of(session.node(cause.tensor), cause.tensor.slot);
        place["message"] = {{"text", "follows from " + cause_sentence(session, cause)}};
        entry["relatedLocations"] = Json::array({std::move(place)});
      }
    }
    results.push_back(std::move(entry));
  }
  Json notes = Json::array();
  if (result.interrupted) notes.push_back(notification("error", interrupted_text(result)));
  for (const Explained& each : result.explained) {
    const TensorId& id = each.hit.tensor;
    Json note = notification("note", fmt::format("no fault: {}:{} in step {} of rank {}: {}; {}", printable(session.node(id).name),
                                                 slot_name(id.slot), id.step, id.rank, what_text(each.hit), explained_text(session, each)));
    note["associatedRule"] = {{"id", each.hit.rule}, {"index", index[each.hit.rule]}};
    notes.push_back(std::move(note));
  }
  for (const NotChecked& entry : result.not_checked) {
    Json note =
        notification("warning", fmt::format("not checked: {}:{} in step {} of rank {}: {}", printable(session.node(entry.tensor).name),
                                            slot_name(entry.tensor.slot), entry.tensor.step, entry.tensor.rank, printable(entry.reason)));
    note["associatedRule"] = {{"id", entry.rule}, {"index", index[entry.rule]}};
    notes.push_back(std::move(note));
  }
  for (const RuleProblem& problem : result.rule_problems) {
    const RuleProblemKind kind = problem.kind;
    const bool mild = kind == RuleProblemKind::kUnset || kind == RuleProblemKind::kUnfinished;
    const std::string_view level = kind == RuleProblemKind::kIdle ? "note" : mild ? "warning" : "error";
    if (problem.rule == "*") {
      notes.push_back(notification(level, "not checked: " + problem.reason));
      continue;
    }
    Json note = notification(level, fmt::format("not checked: rule {}: {}", problem.rule, problem.reason));
    note["associatedRule"] = {{"id", problem.rule}, {"index", index[problem.rule]}};
    notes.push_back(std::move(note));
  }
  if (style.gate) {
    for (const Suppression& s : style.gate->unused) notes.push_back(notification("warning", unused_text(s)));
  }
  if (result.total_hits > result.hits.size()) notes.push_back(notification("note", counts_text(result, style)));

  Json causes = result.causes ? Json(Json::array()) : Json();
  if (result.causes) {
    for (const Cause& cause : *result.causes)
      causes.push_back({{"kind", cause_kind_name(cause.kind)}, {"text", cause_sentence(session, cause)}, {"findings", cause.findings}});
  }

  Run run;
  run.rules = std::move(rules);
  run.results = std::move(results);
  run.notes = std::move(notes);
  // Findings are a normal result; a higher status means that the run failed.
  run.successful = !result.interrupted && style.exit_status <= 1;
  run.exit_status = style.exit_status;
  run.properties = {{"dump", session.info().source},
                    {"semantics", semantics_name(result.semantics)},
                    {"tensors", result.coverage.tensors},
                    {"checked", result.coverage.checked},
                    {"notChecked", result.coverage.not_checked},
                    {"totalHits", result.total_hits},
                    {"causes", std::move(causes)},
                    {"interrupted", result.interrupted}};
  return log_text(std::move(run));
}

}  // namespace msdbg
