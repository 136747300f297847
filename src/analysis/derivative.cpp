#include "analysis/derivative.h"

namespace msdbg {

std::pair<std::string_view, std::string_view> differentiated(const Node& node) {
  constexpr std::string_view kGradients = "Gradients/";
  std::string_view scope = node.scope.get();
  if (!scope.starts_with(kGradients)) return {};
  scope.remove_prefix(kGradients.size());
  const size_t slash = scope.rfind('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view last = scope.substr(slash + 1);
  for (const std::string_view mark : {"Grad_", "grad"}) {
    if (last.starts_with(mark)) return {scope.substr(0, slash), last.substr(mark.size())};
  }
  return {};
}

bool is_whole_derivative(const Node& node) { return !node.op.empty() && differentiated(node).second == node.op; }

bool share_input(const Graph& graph, NodeId one, NodeId other) {
  for (uint32_t i = 0; i < graph.node(one).inputs.size(); ++i) {
    const Edge read = graph.effective_producer(one, i);
    for (uint32_t k = 0; read.node != kNoNode && k < graph.node(other).inputs.size(); ++k) {
      const Edge same = graph.effective_producer(other, k);
      if (same.node == read.node && same.slot == read.slot) return true;
    }
  }
  return false;
}

}  // namespace msdbg
