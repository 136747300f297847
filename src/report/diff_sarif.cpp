// SARIF 2.1.0 of a comparison: each different tensor at the user's source line in B.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "report/diff_formats.h"
#include "report/sarif.h"
#include "report/table.h"

namespace msdbg {
namespace {

using sarif::Json;

struct Role {
  DiffRole role;
  const char *id, *level, *summary;
};
constexpr Role kRoles[] = {
    {DiffRole::kCulprit, "diff-culprit", "error", "its inputs agree, its output differs"},
    {DiffRole::kVictim, "diff-victim", "note", "an input differed already"},
    {DiffRole::kUnknown, "diff-unknown", "warning", "it differs; whether its inputs did is not known"},
    {DiffRole::kRandom, "diff-random", "note", "it draws random numbers, its inputs agree"},
};

}  // namespace

std::string diff_sarif(Session& a, Session& b, const DiffResult& result) {
  sarif::Run run;
  for (const Role& role : kRoles)
    run.rules.push_back(
        {{"id", role.id}, {"shortDescription", {{"text", role.summary}}}, {"defaultConfiguration", {{"level", role.level}}}});
  for (const TensorDiff& entry : result.tensors) {
    if (entry.state != DiffState::kDifferent && entry.state != DiffState::kReshaped) continue;
    const auto role = std::find_if(std::begin(kRoles), std::end(kRoles), [&](const Role& each) { return each.role == entry.role; });
    const auto index = static_cast<size_t>(role == std::end(kRoles) ? 2 : role - std::begin(kRoles));
    const Node& node = b.node(entry.b);
    Json found;
    found["ruleId"] = kRoles[index].id;
    found["ruleIndex"] = index;
    found["level"] = kRoles[index].level;
    found["message"] = {{"text", fmt::format("{}:{} in step {} of rank {}: {}", printable(node.name), slot_name(entry.b.slot), entry.b.step,
                                             entry.b.rank, diff_what(entry))}};
    found["locations"] = Json::array({sarif::location_of(node, entry.b.slot)});
    found["properties"] = {{"rank", entry.b.rank},
                           {"graphId", entry.b.graph},
                           {"step", entry.b.step},
                           {"execution", entry.b.execution},
                           {"op", node.op},
                           {"nodeA", a.node(entry.a).name}};
    run.results.push_back(std::move(found));
  }
  if (result.interrupted) run.notes.push_back(sarif::notification("error", "interrupted: what follows was not compared"));
  for (const std::string& text : result.unknown_edges) run.notes.push_back(sarif::notification("warning", "edges unknown: " + text));
  for (const DiffNote& note : result.notes) run.notes.push_back(sarif::notification("warning", note.text));
  for (const auto& [reason, entries] : diff_uncompared(result))
    run.notes.push_back(
        sarif::notification("warning", fmt::format("{} not compared: {}", counted(entries.size(), "tensor"), printable(reason))));
  const auto unmatched = [&](Session& session, const std::vector<UnmatchedNode>& nodes, const char* side) {
    for (const UnmatchedNode& entry : nodes)
      run.notes.push_back(sarif::notification(
          "warning", fmt::format("only in {}: {}", side, printable(session.graph(entry.rank, entry.graph)->node(entry.node).name))));
  };
  unmatched(a, result.only_a, "A");
  unmatched(b, result.only_b, "B");
  run.successful = !result.interrupted;
  const bool nothing = result.equal + result.close == 0;
  run.exit_status = result.interrupted ? 130 : !result.is_equal() ? 1 : nothing ? 3 : 0;
  run.properties = {{"a", a.info().source}, {"b", b.info().source}, {"verdict", result.verdict()}, {"complete", result.is_complete()}};
  return sarif::log_text(std::move(run));
}

}  // namespace msdbg
