#include "msdbg/gradients.h"

#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/roles.h"

namespace msdbg {
namespace {

const std::optional<Shape>* shape_of(const Graph& graph, const Edge& edge) {
  if (edge.node == kNoNode) return nullptr;
  const SharedList<OutputType>& outputs = graph.node(edge.node).outputs;
  return edge.slot < outputs.size() ? &outputs[edge.slot].shape : nullptr;
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
  std::unordered_set<NodeId> seen{assignment};
  std::vector<NodeId> open{assignment};
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
        if (seen.insert(from.id).second) open.push_back(from.id);
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

namespace {

std::optional<GradientOf> optimized_gradient(const Graph& graph, NodeId id) {
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

}  // namespace

/// By producer and output slot. Where several parameters have the same gradient: the first of them.
class GradientTable {
 public:
  explicit GradientTable(const Graph& graph) {
    for (const Node& node : graph.nodes()) {
      for (const auto& [parameter, slot] : told_gradients(graph, node)) tell(parameter->id, node.id, slot);
    }
    if (graph.recorded_calls()) return;
    for (const Node& parameter : graph.nodes()) {
      if (parameter.kind != NodeKind::kParameter || !parameter.trainable || told_.contains(parameter.id)) continue;
      if (const auto gradient = optimized_gradient(graph, parameter.id)) {
        parameters_.try_emplace({gradient->producer.node, gradient->producer.slot}, parameter.id);
      }
    }
  }

  std::optional<NodeId> find(NodeId node, uint32_t output_slot) const {
    const auto found = parameters_.find({node, output_slot});
    return found == parameters_.end() ? std::nullopt : std::optional(found->second);
  }

  /// What the program or its recorder told.
  std::optional<GradientOf> told(NodeId parameter) const {
    const auto found = told_.find(parameter);
    return found == told_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void tell(NodeId parameter, NodeId gradient, uint32_t slot) {
    parameters_.try_emplace({gradient, slot}, parameter);
    told_.try_emplace(parameter, GradientOf{kNoNode, 0, {gradient, slot, {}}});
  }

  std::map<std::pair<NodeId, uint32_t>, NodeId> parameters_;
  std::map<NodeId, GradientOf> told_;  // by parameter
};

const GradientTable& Graph::gradient_table() const {
  std::call_once(gradients_paired_, [this] { gradient_table_ = std::make_shared<const GradientTable>(*this); });
  return *gradient_table_;
}

std::optional<GradientOf> gradient_of(const Graph& graph, NodeId id) {
  if (std::optional<GradientOf> told = graph.gradient_table().told(id); told || graph.recorded_calls()) return told;
  return optimized_gradient(graph, id);
}

std::optional<NodeId> parameter_of_gradient(const Graph& graph, NodeId id, uint32_t output_slot) {
  if (id == kNoNode) return std::nullopt;
  return graph.gradient_table().find(id, output_slot);
}

}  // namespace msdbg
