#include "analysis/gradient_values.h"

#include "analysis/collectives.h"
#include "msdbg/gradients.h"

namespace msdbg {
namespace {

/// `div_`, but not `__truediv__`; of collectives, those that leave the result in their argument.
bool works_in_place(const Node& node) {
  if (const auto kind = collective_kind(node))
    return *kind == CollectiveKind::kAllReduce || *kind == CollectiveKind::kReduce || *kind == CollectiveKind::kBroadcast;
  return node.role == CallRole::kForward && node.op->ends_with('_') && !node.op->ends_with("__");
}

}  // namespace

std::vector<Edge> gradient_values(const Graph& graph, NodeId parameter) {
  const std::optional<GradientOf> gradient = gradient_of(graph, parameter);
  if (!gradient || gradient->producer.node == kNoNode || graph.node(gradient->producer.node).kind != NodeKind::kOperator) return {};
  std::vector<Edge> out{gradient->producer};
  if (!graph.recorded_calls()) return out;
  for (bool more = true; more;) {
    const Edge& at = out.back();
    const Node* next = nullptr;
    for (const Use& use : graph.effective_users(at.node)) {
      const Node& node = graph.node(use.node);
      if (use.output_slot != at.slot || use.slot != 0 || node.order <= graph.node(at.node).order || !works_in_place(node)) continue;
      if (next == nullptr || node.order < next->order) next = &node;
    }
    more = next != nullptr;
    if (more) out.push_back({next->id, 0, {}});
  }
  return out;
}

}  // namespace msdbg
