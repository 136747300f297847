#include "analysis/cause_graph.h"

#include <algorithm>
#include <cmath>

#include "analysis/optimizer_inputs.h"
#include "msdbg/in_place.h"

namespace msdbg {
CauseGraph::CauseGraph(const Graph& graph) : graph_(graph) {
  for (const Node& node : graph.nodes()) {
    for (const uint32_t slot : updated_slots(graph, node)) {
      updaters_[updated_parameter(graph, node, slot)].push_back(node.id);
    }
  }
}

std::vector<bool> CauseGraph::after(std::span<const NodeId> start) const {
  std::vector<bool> seen(graph_.nodes().size());
  std::vector<NodeId> open;
  const auto reach = [&](NodeId node) {
    if (seen[node]) return;
    seen[node] = true;
    open.push_back(node);
  };
  for (const NodeId node : start) reach(node);
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    for (const Use& use : graph_.effective_users(node)) reach(use.node);
  }
  return seen;
}

std::vector<bool> CauseGraph::before(NodeId end) const {
  std::vector<bool> seen(graph_.nodes().size());
  std::vector<NodeId> open{end};
  seen[end] = true;
  while (!open.empty()) {
    const Node& node = graph_.node(open.back());
    open.pop_back();
    for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
      const NodeId producer = graph_.effective_producer(node.id, slot).node;
      if (producer == kNoNode || seen[producer]) continue;
      seen[producer] = true;
      open.push_back(producer);
    }
  }
  return seen;
}

const std::vector<NodeId>& CauseGraph::updaters(NodeId parameter) const {
  static const std::vector<NodeId> kNone;
  const auto found = updaters_.find(parameter);
  return found == updaters_.end() ? kNone : found->second;
}

bool CauseGraph::holds(const std::vector<bool>& reached, NodeId node) const {
  const std::vector<NodeId>& operators = updaters(node);
  return reached[node] || std::any_of(operators.begin(), operators.end(), [&](NodeId each) { return reached[each]; });
}

std::vector<NodeId> CauseGraph::matrices() const {
  std::vector<NodeId> out;
  for (const auto& [parameter, operators] : updaters_) {
    const Node& node = graph_.node(parameter);
    const bool known = !node.outputs.empty() && node.outputs[0].shape.has_value();
    if (node.trainable && (!known || node.outputs[0].shape->size() >= 2)) out.push_back(parameter);
  }
  return out;
}

std::optional<TensorId> CauseGraph::before_update(Session& session, const TensorId& weight) const {
  bool missing = false;
  if (const auto before = session.previous(weight, &missing)) {
    return before->step + 1 == weight.step ? std::optional(*before) : std::nullopt;
  }
  const std::vector<NodeId>& operators = updaters(weight.node);
  for (const Use& use : graph_.effective_users(weight.node)) {
    const TensorId taken{weight.rank, weight.graph, weight.step, 0, use.node, {Io::kInput, use.slot}};
    const bool updates = std::find(operators.begin(), operators.end(), use.node) != operators.end();
    if (!updates && session.exists(taken)) return taken;
  }
  return std::nullopt;
}

std::optional<LearningRate> CauseGraph::rate(Session& session, NodeId updater, int64_t step) const {
  const Node& node = graph_.node(updater);
  const OptimizerOperator* const known = optimizer_operator(node.op);
  if (known == nullptr || known->size == UpdateSize::kOther) return std::nullopt;
  const std::vector<std::string> names = input_names(node);
  const auto slot = static_cast<uint32_t>(std::ranges::find_if(names, is_rate_name) - names.begin());
  if (slot >= names.size() || slot >= node.inputs.size()) return std::nullopt;
  LearningRate out;
  out.normalised = known->size == UpdateSize::kOfRate;
  const TensorId taken{graph_.rank(), graph_.id(), step, 0, updater, {Io::kInput, slot}};
  out.source = taken;
  const Edge producer = graph_.effective_producer(updater, slot);
  if (producer.node != kNoNode) {
    out.source.node = producer.node;
    out.source.slot = {Io::kOutput, producer.slot};
  }
  const std::optional<double> value = number_taken(session, graph_, updater, slot, step);
  if (!value || std::isnan(*value)) return std::nullopt;
  out.value = *value;
  return out;
}

}  // namespace msdbg
