#include "msdbg/gradients.h"

#include <algorithm>

#include "graph/roles.h"

namespace msdbg {
namespace {

const std::optional<Shape>* shape_of(const Graph& graph, const Edge& edge) {
  if (edge.node == kNoNode) return nullptr;
  const std::vector<OutputType>& outputs = graph.node(edge.node).outputs;
  return edge.slot < outputs.size() ? &outputs[edge.slot].shape : nullptr;
}

/// A value that another graph computes, as an optimizer inside a condition takes its gradients: MindSpore numbers such parameters.
bool is_handed_over(const Node& parameter) {
  return parameter.name.find("Parameter_") != std::string::npos || parameter.name.find("Parameter]") != std::string::npos;
}

/// How well an input of the optimizer fits: larger is better, 0 not at all.
int fit(const Graph& graph, const Node& parameter, const Edge& input) {
  const std::optional<Shape>* wanted = parameter.outputs.empty() ? nullptr : &parameter.outputs[0].shape;
  const std::optional<Shape>* shape = shape_of(graph, input);
  const bool known = wanted != nullptr && *wanted && shape != nullptr && *shape;
  if (known && **wanted != **shape) return 0;
  if (input.node == kNoNode) return 0;
  const Node& producer = graph.node(input.node);
  switch (producer.kind) {
    case NodeKind::kConstant:
      return 0;
    case NodeKind::kParameter:
      return is_handed_over(producer) && known ? 1 : 0;
    case NodeKind::kOperator:
      if (optimizer_weight_slot(producer.op)) return 0;
      return known ? (in_category(producer, Category::kGradient) ? 4 : 3) : 2;
  }
  return 0;
}

/// Of an optimizer that is several operators, the last of which assigns the weight: the value that enters it and fits best.
std::optional<GradientOf> entering(const Graph& graph, const Node& parameter, NodeId assignment) {
  std::vector<bool> seen(graph.nodes().size());
  std::vector<NodeId> open{assignment};
  seen[assignment] = true;
  GradientOf best;
  int best_fit = 0;
  while (!open.empty()) {
    const Node& node = graph.node(open.back());
    open.pop_back();
    for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
      const Edge producer = graph.effective_producer(node.id, slot);
      if (producer.node == kNoNode) continue;
      const Node& from = graph.node(producer.node);
      if (from.kind == NodeKind::kOperator && in_optimizer_scope(from)) {
        if (!seen[from.id]) open.push_back(from.id);
        seen[from.id] = true;
      } else if (const int fits = fit(graph, parameter, producer); fits > best_fit) {
        best_fit = fits;
        best = {node.id, slot, producer};
      }
    }
  }
  // Without a shape any value might be the gradient.
  return best_fit >= 3 ? std::optional(best) : std::nullopt;
}

}  // namespace

std::optional<GradientOf> gradient_of(const Graph& graph, NodeId id) {
  const Node& parameter = graph.node(id);
  if (!parameter.trainable) return std::nullopt;
  for (const Use& use : graph.effective_users(id)) {
    const Node& consumer = graph.node(use.node);
    const std::optional<uint32_t> weight = optimizer_weight_slot(consumer.op);
    if (!weight && use.slot == 0 && in_optimizer_scope(consumer)) {
      if (const auto found = entering(graph, parameter, consumer.id)) return found;
    }
    if (!weight || *weight != use.slot) continue;
    GradientOf best;
    int best_fit = 0;
    for (uint32_t slot = 0; slot < consumer.inputs.size(); ++slot) {
      if (slot == use.slot) continue;
      const Edge producer = graph.effective_producer(consumer.id, slot);
      const int fits = fit(graph, parameter, producer);
      if (fits <= best_fit) continue;
      best_fit = fits;
      best = {consumer.id, slot, producer};
    }
    if (best_fit > 0) return best;
  }
  return std::nullopt;
}

std::optional<NodeId> parameter_of_gradient(const Graph& graph, NodeId id, uint32_t output_slot) {
  for (const Use& use : graph.effective_users(id)) {
    if (use.output_slot != output_slot) continue;
    const Node& consumer = graph.node(use.node);
    const std::optional<uint32_t> weight = optimizer_weight_slot(consumer.op);
    if (!weight || *weight == use.slot || *weight >= consumer.inputs.size()) continue;
    const NodeId parameter = graph.effective_producer(consumer.id, *weight).node;
    if (parameter == kNoNode) continue;
    const std::optional<GradientOf> gradient = gradient_of(graph, parameter);
    if (gradient && gradient->optimizer == consumer.id && gradient->slot == use.slot) return parameter;
  }
  const bool enters = std::ranges::any_of(graph.effective_users(id), [&](const Use& use) { return in_optimizer_scope(graph.node(use.node)); });
  for (const Node& parameter : graph.nodes()) {
    if (!enters || parameter.kind != NodeKind::kParameter || !parameter.trainable) continue;
    const std::optional<GradientOf> gradient = gradient_of(graph, parameter.id);
    if (gradient && gradient->producer.node == id && gradient->producer.slot == output_slot) return parameter.id;
  }
  return std::nullopt;
}

}  // namespace msdbg
