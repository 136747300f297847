#include "analysis/derivative.h"

#include <string_view>
#include <utility>

namespace msdbg {
namespace {

/// Scope and type of the operator whose derivative `Gradients/<scope>/Grad_<op>/...`, or `.../grad<op>/...`, is a part of.
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

}  // namespace

bool is_whole_derivative(const Node& node) { return !node.op.empty() && differentiated(node).second == node.op; }

bool is_derivative(const Graph& graph, NodeId part, NodeId whole) {
  const Node& node = graph.node(whole);
  const auto [scope, op] = differentiated(graph.node(part));
  if (op.empty() || node.op != op || node.scope != scope) return false;
  for (uint32_t i = 0; i < node.inputs.size(); ++i) {
    const Edge read = graph.effective_producer(whole, i);
    for (uint32_t k = 0; read.node != kNoNode && k < graph.node(part).inputs.size(); ++k) {
      const Edge same = graph.effective_producer(part, k);
      if (same.node == read.node && same.slot == read.slot) return true;
    }
  }
  return false;
}

}  // namespace msdbg
