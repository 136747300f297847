#include "session/live/names.h"

#include "msdbg/node_names.h"

namespace msdbg::live {

std::optional<std::string> watch_name(const Graph& graph, const Node& node) {
  // The training cuts a tensor's key at the first colon.
  if (node.name.empty() || node.name.find(':') != std::string::npos) return std::nullopt;
  switch (node.kind) {
    case NodeKind::kOperator:
      if (is_structural(node.op)) return std::nullopt;
      return node.name;
    case NodeKind::kParameter: {
      // Only the last component is compared; a name with slashes has none.
      if (node.name.find('/') != std::string::npos) return with_dashes(node.name);
      for (const Use& use : graph.effective_users(node.id)) {
        const Node& user = graph.node(use.node);
        if (!user.scope.empty()) return user.scope + "/" + node.name;
      }
      return "Default/" + node.name;
    }
    case NodeKind::kConstant:
      return "Default/" + with_dashes(node.name);
  }
  return std::nullopt;
}

std::vector<std::string> view_names(const Node& node) {
  if (node.name.empty()) return {};
  if (node.kind == NodeKind::kOperator) {
    if (is_structural(node.op)) return {};
    return {node.name};
  }
  if (node.name.find('/') == std::string::npos) return {node.name};
  return {with_dashes(node.name), node.name};
}

void NameTable::rebuild(std::span<const GraphPtr> graphs) {
  nodes_.clear();
  values_.clear();
  for (const GraphPtr& graph : graphs) {
    for (const Node& node : graph->nodes()) {
      const NodeRef ref{graph.get(), node.id};
      // Old releases name Load nodes like their parameter; the parameter has the value.
      if (node.kind == NodeKind::kOperator && is_structural(node.op)) continue;
      nodes_.try_emplace(node.name, ref);
      if (node.kind == NodeKind::kOperator) continue;
      if (auto name = watch_name(*graph, node)) nodes_.try_emplace(*name, ref);
      nodes_.try_emplace(with_dashes(node.name), ref);
      values_.try_emplace(with_dashes(node.name), ref);
      values_.try_emplace(std::string(last_component(node.name)), ref);
    }
  }
}

std::optional<NodeRef> NameTable::find(std::string_view peer_name) const {
  if (const auto it = nodes_.find(std::string(peer_name)); it != nodes_.end()) return it->second;
  if (const auto it = values_.find(std::string(last_component(peer_name))); it != values_.end()) return it->second;
  return std::nullopt;
}

}  // namespace msdbg::live
