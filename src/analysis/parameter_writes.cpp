#include "analysis/parameter_writes.h"

#include <algorithm>
#include <tuple>

#include "analysis/collectives.h"
#include "msdbg/in_place.h"

namespace msdbg {
namespace {

/// True for a call of an optimizer that changes what it takes: `add_` returns its first argument, a fused call takes lists and returns
/// nothing, a broadcast brings what another rank has updated.
bool changes(const Graph& graph, const Use& use) {
  const Node& node = graph.node(use.node);
  if (node.role != CallRole::kOptimizer) return false;
  if (collective_kind(node) == CollectiveKind::kBroadcast) return use.slot == 0;
  return node.op->ends_with('_') && (use.slot == 0 || node.outputs.empty());
}

/// The last call that changes what this one has changed: of a weight, `addcdiv_` behind the `mul_` of its decay.
NodeId last_change(const Graph& graph, NodeId call) {
  for (bool more = true; more;) {
    more = false;
    for (const Use& use : graph.effective_users(call)) {
      if (use.output_slot != 0 || graph.node(use.node).order <= graph.node(call).order || !changes(graph, use)) continue;
      call = use.node;
      more = true;
      break;
    }
  }
  return call;
}

/// The calls of an optimizer that write the parameter. Not every step has all of them: the first one, without momentum, has others.
std::vector<NodeId> calls(const Graph& graph, NodeId parameter) {
  std::vector<NodeId> out;
  for (const Use& use : graph.effective_users(parameter)) {
    if (!changes(graph, use)) continue;
    const NodeId last = last_change(graph, use.node);
    if (std::ranges::find(out, last) == out.end()) out.push_back(last);
  }
  return out;
}

/// The last operator of the graph that updates the parameter, or what an earlier one made of it.
NodeId last_updater(const Graph& graph, NodeId parameter) {
  NodeId last = kNoNode;
  for (NodeId at = parameter; at != kNoNode;) {
    NodeId next = kNoNode;
    for (const Use& use : graph.effective_users(at)) {
      const Node& node = graph.node(use.node);
      if (last != kNoNode && node.order <= graph.node(last).order) continue;
      const std::vector<uint32_t> slots = updated_slots(graph, node);
      if (std::ranges::find(slots, use.slot) == slots.end() || updated_parameter(graph, node, use.slot) != parameter) continue;
      last = next = node.id;
    }
    at = next;
  }
  return last;
}

}  // namespace

std::optional<TensorId> state_before(Session& session, const Graph& graph, NodeId call, int64_t step) {
  if (!changes(graph, {call, 0, 0})) return std::nullopt;
  const NodeId last = last_change(graph, call);
  const std::vector<int64_t> steps = session.steps(graph.rank(), graph.id());
  for (auto at = std::ranges::lower_bound(steps, step); at != steps.begin();) {
    const uint32_t executions = session.executions(graph.rank(), graph.id(), *--at, last);
    if (executions > 0) return TensorId{graph.rank(), graph.id(), *at, executions - 1, last, {}};
  }
  return std::nullopt;
}

bool ParameterWrites::Writer::ran(int64_t step) const { return std::ranges::binary_search(steps, step); }

const std::vector<ParameterWrites::Writer>& ParameterWrites::writers(int rank, const std::string& name) {
  const auto [at, fresh] = writers_.try_emplace({rank, name});
  if (!fresh) return at->second;
  for (const GraphPtr& graph : session_.graphs()) {
    const Node* const node = graph->rank() == rank ? graph->find(name) : nullptr;
    if (node == nullptr || node->kind != NodeKind::kParameter) continue;
    const std::vector<int64_t> steps = session_.steps(rank, graph->id());
    if (!graph->recorded_calls()) {
      const NodeId updater = last_updater(*graph, node->id);
      if (updater != kNoNode) at->second.push_back({graph.get(), node->id, updater, steps});
      continue;
    }
    for (const NodeId call : calls(*graph, node->id)) {
      Writer writer{graph.get(), node->id, call, {}};
      std::ranges::copy_if(steps, std::back_inserter(writer.steps),
                           [&](int64_t step) { return session_.executions(rank, graph->id(), step, call) > 0; });
      if (!writer.steps.empty()) at->second.push_back(std::move(writer));
    }
  }
  return at->second;
}

/// When the last of a node's values was written; 0 if that was not recorded.
uint64_t ParameterWrites::time_of(const Graph& graph, int64_t step, NodeId node) const {
  uint64_t time = 0;
  const uint32_t executions = std::max(1u, session_.executions(graph.rank(), graph.id(), step, node));
  const auto look = [&](Io io, size_t slots) {
    for (uint32_t slot = 0; slot < slots; ++slot)
      time = std::max(time, session_.written_at({graph.rank(), graph.id(), step, executions - 1, node, {io, slot}}).value_or(0));
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

/// The last write in the nearest step before `step`.
std::optional<ParameterWrite> ParameterWrites::last_before(const std::vector<Writer>& writers, int64_t step) const {
  std::vector<const Writer*> latest;
  int64_t at = 0;
  for (const Writer& writer : writers) {
    const auto after = std::ranges::lower_bound(writer.steps, step);
    if (after == writer.steps.begin()) continue;
    const int64_t own = *std::prev(after);
    if (!latest.empty() && own < at) continue;
    if (latest.empty() || own > at) latest.clear();
    at = own;
    latest.push_back(&writer);
  }
  if (latest.empty()) return std::nullopt;
  // Times decide only where several graphs wrote it.
  if (latest.size() == 1) return latest.front()->in(at);
  return (*std::ranges::max_element(latest, {}, [&](const Writer* writer) {
           return std::tuple(time_of(*writer->graph, at, writer->updater), writer->graph->id(), writer->graph->node(writer->updater).order);
         }))->in(at);
}

std::optional<ParameterWrite> ParameterWrites::before(const Graph& graph, NodeId parameter, int64_t step) {
  const std::vector<Writer>& all = writers(graph.rank(), graph.node(parameter).name);
  std::optional<ParameterWrite> found;
  uint64_t latest = 0;
  std::optional<uint64_t> used;
  for (const Writer& writer : all) {
    if (writer.graph == &graph || !writer.ran(step)) continue;
    if (!used) used = first_use(graph, step, parameter);
    const uint64_t time = time_of(*writer.graph, step, writer.updater);
    if (time == 0 || time >= *used || time < latest) continue;
    latest = time;
    found = writer.in(step);
  }
  return found ? found : last_before(all, step);
}

std::optional<ParameterWrite> ParameterWrites::before(const ParameterWrite& write) {
  const std::vector<Writer>& all = writers(write.graph->rank(), write.graph->node(write.parameter).name);
  const auto same_step = [&](const Writer& writer) { return writer.graph != write.graph && writer.ran(write.step); };
  if (std::ranges::any_of(all, same_step)) {
    const auto place = [&](const Writer& writer) {
      return std::tuple(time_of(*writer.graph, write.step, writer.updater), writer.graph->id());
    };
    const std::tuple own(time_of(*write.graph, write.step, write.updater), write.graph->id());
    const Writer* last = nullptr;
    for (const Writer& writer : all) {
      if (same_step(writer) && place(writer) < own && (last == nullptr || place(*last) < place(writer))) last = &writer;
    }
    if (last != nullptr) return last->in(write.step);
  }
  return last_before(all, write.step);
}

}  // namespace msdbg
