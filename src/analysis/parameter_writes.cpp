#include "analysis/parameter_writes.h"

#include <algorithm>
#include <tuple>

#include "analysis/in_place.h"

namespace msdbg {
namespace {

TensorId id_of(const Graph& graph, int64_t step, NodeId node, Slot slot) {
  TensorId id;
  id.rank = graph.rank();
  id.graph = graph.id();
  id.step = step;
  id.node = node;
  id.slot = slot;
  return id;
}

/// The last operator of the graph that updates the parameter.
NodeId last_updater(const Graph& graph, NodeId parameter) {
  NodeId last = kNoNode;
  for (const Use& use : graph.effective_users(parameter)) {
    const Node& node = graph.node(use.node);
    const std::vector<uint32_t> slots = updated_slots(graph, node);
    if (std::find(slots.begin(), slots.end(), use.slot) == slots.end()) continue;
    if (last == kNoNode || graph.node(last).order < node.order) last = node.id;
  }
  return last;
}

}  // namespace

TensorId ParameterWrite::value() const { return id_of(*graph, step, parameter, Slot{}); }

ParameterWrites::ParameterWrites(Session& session, int rank, const std::string& name) : session_(session), name_(name) {
  for (const GraphPtr& graph : session.graphs()) {
    if (graph->rank() != rank) continue;
    const Node* node = graph->find(name);
    if (node == nullptr || node->kind != NodeKind::kParameter) continue;
    const NodeId updater = last_updater(*graph, node->id);
    if (updater == kNoNode) continue;
    for (const int64_t step : session.steps(rank, graph->id()))
      writes_.push_back({graph.get(), step, node->id, updater, time_of(*graph, step, updater)});
  }
  std::stable_sort(writes_.begin(), writes_.end(), [](const ParameterWrite& a, const ParameterWrite& b) {
    return std::tuple(a.step, a.time, a.graph->id()) < std::tuple(b.step, b.time, b.graph->id());
  });
}

/// When the last of a node's values was written.
uint64_t ParameterWrites::time_of(const Graph& graph, int64_t step, NodeId node) const {
  uint64_t time = 0;
  const uint32_t executions = std::max(1u, session_.executions(graph.rank(), graph.id(), step, node));
  const auto look = [&](Io io, size_t slots) {
    for (uint32_t slot = 0; slot < slots; ++slot) {
      TensorId id = id_of(graph, step, node, {io, slot});
      id.execution = executions - 1;
      time = std::max(time, session_.written_at(id).value_or(0));
    }
  };
  look(Io::kInput, graph.node(node).inputs.size());
  look(Io::kOutput, graph.node(node).outputs.size());
  return time;
}

uint64_t ParameterWrites::first_use(const Graph& graph, int64_t step, NodeId parameter) const {
  uint64_t first = 0;
  for (const Use& use : graph.effective_users(parameter)) {
    const uint64_t time = time_of(graph, step, use.node);
    if (time > 0 && (first == 0 || time < first)) first = time;
  }
  return first;
}

std::optional<ParameterWrite> ParameterWrites::before(const Graph& graph, int64_t step) const {
  const Node* node = graph.find(name_);
  const uint64_t used = node == nullptr ? 0 : first_use(graph, step, node->id);
  for (auto at = writes_.rbegin(); at != writes_.rend(); ++at) {
    if (at->step < step) return *at;
    if (at->step == step && at->graph != &graph && at->time > 0 && at->time < used) return *at;
  }
  return std::nullopt;
}

std::optional<ParameterWrite> ParameterWrites::before(const ParameterWrite& write) const {
  const auto same = [&](const ParameterWrite& other) { return other.graph == write.graph && other.step == write.step; };
  const auto at = std::find_if(writes_.begin(), writes_.end(), same);
  if (at == writes_.end() || at == writes_.begin()) return std::nullopt;
  return *std::prev(at);
}

}  // namespace msdbg
