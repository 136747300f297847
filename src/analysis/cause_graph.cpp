#include "analysis/cause_graph.h"

#include <algorithm>

#include "msdbg/in_place.h"

namespace msdbg {
namespace {

struct RateSlot {
  std::string_view op;
  uint32_t slot;
  bool normalised;
};
constexpr RateSlot kRateSlots[] = {
    {"applymomentum", 2, false},       {"applykerasmomentum", 2, false}, {"sgd", 2, false},
    {"adam", 5, true},                 {"fusedsparseadam", 5, true},     {"adamweightdecay", 3, true},
    {"applyadamax", 4, true},          {"applyrmsprop", 3, true},        {"applycenteredrmsprop", 5, true},
    {"applyadagrad", 2, true},
};

/// The one number that a tensor holds.
std::optional<double> number_in(Session& session, const TensorId& id) {
  const auto info = session.describe(id);
  if (!info || info->count != 1) return std::nullopt;
  const auto stats = session.stats(id);
  if (!stats || !stats->knows(kStatMean) || stats->mean != stats->mean) return std::nullopt;
  return stats->mean;
}

const RateSlot* known_rate(std::string_view op) {
  const std::string lower = to_lower(op);
  const auto known = std::find_if(std::begin(kRateSlots), std::end(kRateSlots), [&](const RateSlot& each) { return each.op == lower; });
  return known == std::end(kRateSlots) ? nullptr : known;
}

}  // namespace

std::optional<uint32_t> rate_slot(std::string_view op) {
  const RateSlot* const known = known_rate(op);
  return known != nullptr ? std::optional(known->slot) : std::nullopt;
}

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
  const RateSlot* const known = known_rate(node.op);
  if (known == nullptr || known->slot >= node.inputs.size()) return std::nullopt;
  LearningRate out;
  out.normalised = known->normalised;
  const TensorId taken{graph_.rank(), graph_.id(), step, 0, updater, {Io::kInput, known->slot}};
  out.source = taken;
  const Edge producer = graph_.effective_producer(updater, known->slot);
  if (producer.node != kNoNode) {
    out.source.node = producer.node;
    out.source.slot = {Io::kOutput, producer.slot};
  }
  std::optional<double> value = number_in(session, taken);
  if (!value) value = number_in(session, out.source);
  if (!value && producer.node != kNoNode) value = parse_double(graph_.node(producer.node).constant_value);
  if (!value) return std::nullopt;
  out.value = *value;
  return out;
}

}  // namespace msdbg
