#include "support/recorded_commands.h"

#include <algorithm>

namespace msdbg::test {
namespace {

std::string with_dashes(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '/' ? std::string("--") : std::string(1, c);
  return text;
}

const ConditionSpec* spec_of(const debugger::WatchCondition& condition) {
  const ConditionSpec* found = nullptr;
  for (const ConditionSpec& spec : condition_catalogue()) {
    if (spec.enumerator != condition.condition()) continue;
    if (found == nullptr || spec.target == Target::kTensor) found = &spec;
  }
  return found;
}

std::string line_of(int watch, const std::string& node, const std::string& slot) {
  return std::to_string(watch) + " " + last_component(node) + ":" + slot;
}

}  // namespace

NodeRef find_recorded(const LiveSession& session, const std::string& name) {
  for (const GraphPtr& graph : session.graphs()) {
    const Node* named = graph->find(name);
    if (named != nullptr && named->kind == NodeKind::kOperator && !is_structural(named->op))
      return {graph.get(), named->id};
    for (const Node& node : graph->nodes()) {
      if (node.kind == NodeKind::kParameter && node.name == last_component(name)) return {graph.get(), node.id};
      if (node.kind == NodeKind::kConstant && with_dashes(node.name) == last_component(name))
        return {graph.get(), node.id};
    }
  }
  return {};
}

RebuiltWatch rebuild(const LiveSession& session, const debugger::SetCMD& set) {
  RebuiltWatch rebuilt;
  const ConditionSpec* spec = spec_of(set.watch_condition());
  if (spec == nullptr) {
    rebuilt.problem =
        Status(Code::kNotFound, "no condition of number " + std::to_string(set.watch_condition().condition()));
    return rebuilt;
  }
  std::map<std::string, double, std::less<>> params;
  for (const auto& param : set.watch_condition().params()) {
    if (!param.disabled()) params[param.name()] = param.value();
  }
  Condition condition;
  condition.spec = spec;
  condition.params = params;
  rebuilt.watch.id = set.id();
  rebuilt.watch.rule = std::string(spec->id);
  rebuilt.watch.condition = std::move(condition);
  std::vector<Selector> parts;
  const auto add = [&](const std::string& text) {
    Result<Selector> part = Selector::parse(text);
    if (part.ok())
      parts.push_back(*part);
    else
      rebuilt.problem = part.status();
  };
  for (const auto& watched : set.watch_nodes()) {
    if (watched.node_type() == "scope") {
      rebuilt.expanded = true;
      add(watched.node_name() == "*" ? "@all" : "scope:" + watched.node_name());
      continue;
    }
    const NodeRef ref = find_recorded(session, watched.node_name());
    if (ref.node == kNoNode || ref.graph->node(ref.node).kind == NodeKind::kConstant) {
      rebuilt.left_out = true;
      continue;
    }
    // Several folded scopes may show one parameter.
    if (!rebuilt.known.contains(last_component(watched.node_name()))) add("=" + ref.graph->node(ref.node).name);
    rebuilt.known.insert(last_component(watched.node_name()));
  }
  rebuilt.watch.on = Selector::any_of(parts);
  rebuilt.watch.enabled = !parts.empty();
  return rebuilt;
}

std::string full_condition_text(const debugger::WatchCondition& condition) {
  std::string text = debugger::WatchCondition::Condition_Name(condition.condition());
  for (const auto& param : condition.params()) {
    text += " " + param.name();
    if (!has_no_effect(param.name())) text += param.disabled() ? "-" : "=" + format_short(param.value(), 6);
  }
  return text;
}

std::vector<std::string> hit_lines(std::span<const debugger::WatchpointHit> hits, const RecordedPeer& peer) {
  std::vector<std::string> lines;
  for (const debugger::WatchpointHit& hit : hits) {
    const auto id = peer.recorded_id(hit.id());
    if (!id) continue;
    std::string line = line_of(*id, hit.tensor().node_name(), hit.tensor().slot());
    if (hit.error_code() != 0) line += " error " + std::to_string(hit.error_code());
    for (const auto& param : hit.watch_condition().params()) {
      if (param.hit()) line += " " + param.name() + "=" + format_short(param.actual_value(), 6);
    }
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> hit_lines(const LiveSession& session, const CheckResult& check,
                                   const std::set<int>& left_out) {
  std::vector<std::string> lines;
  for (const Hit& hit : check.hits) {
    if (left_out.contains(hit.watch_id)) continue;
    std::string line = line_of(hit.watch_id, session.node(hit.tensor).name, std::to_string(hit.tensor.slot.index));
    for (const ParamResult& param : hit.params) {
      if (param.hit) line += " " + param.name + "=" + (param.actual ? format_short(*param.actual, 6) : "?");
    }
    lines.push_back(line);
  }
  for (const NotChecked& entry : check.not_checked) {
    if (left_out.contains(entry.watch_id)) continue;
    lines.push_back(line_of(entry.watch_id, session.node(entry.tensor).name, std::to_string(entry.tensor.slot.index)) +
                    " error " + std::to_string(entry.error_code));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace msdbg::test
