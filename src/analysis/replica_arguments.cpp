#include "analysis/replica_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/optimizer_inputs.h"
#include "msdbg/in_place.h"

namespace msdbg {
namespace {

void add_argument(std::string& list, std::string_view name, std::string_view actual, std::string_view expected) {
  list += fmt::format("{}{} = {} instead of {}", list.empty() ? "" : ", ", name, actual, expected);
}

void compare_calls(Session& session, const TensorId& own, const TensorId& theirs, ReplicaDifference& made) {
  const std::vector<Attribute> usual = session.arguments(theirs);
  for (const Attribute& each : session.arguments(own)) {
    const auto same = std::ranges::find(usual, each.name, &Attribute::name);
    if (same == usual.end() || same->value == each.value) continue;
    add_argument(made.arguments, std::string_view(each.name), printable(each.value), printable(same->value));
  }
  if (!made.arguments.empty()) made.called = own;
}

/// What led to a recorded call of the optimizer, back to what collectives and backward calls gave: other calls of the optimizer, and those
/// that scale or clip gradients. Each with the one that took its place on the other rank, in execution order.
std::vector<std::pair<NodeId, NodeId>> calls_behind(const Graph& graph, NodeId updater, const Graph& other, NodeId theirs) {
  constexpr size_t kMost = 64;
  std::vector<std::pair<NodeId, NodeId>> found{{updater, theirs}};
  const auto is_new = [&](NodeId id) { return std::ranges::find(found, id, &std::pair<NodeId, NodeId>::first) == found.end(); };
  for (size_t i = 0; i < found.size() && found.size() < kMost; ++i) {
    const auto [own, same] = found[i];
    const size_t slots = std::min(graph.node(own).inputs.size(), other.node(same).inputs.size());
    for (uint32_t slot = 0; slot < slots; ++slot) {
      const NodeId a = graph.effective_producer(own, slot).node, b = other.effective_producer(same, slot).node;
      if (a == kNoNode || b == kNoNode || !is_new(a)) continue;
      const Node &one = graph.node(a), &two = other.node(b);
      const bool call = one.role == CallRole::kForward || one.role == CallRole::kOptimizer;
      if (call && one.role == two.role && one.op.get() == two.op.get() && !collective_kind(one)) found.emplace_back(a, b);
    }
  }
  found.erase(found.begin());
  std::ranges::sort(found, {}, [&](const auto& pair) { return graph.node(pair.first).order; });
  return found;
}

/// A learning rate is an argument of the optimizer's call in the step before, or of the call that stands for the parameter; a weight decay
/// is one of an earlier call of the optimizer, and a loss scale one of a call in front of it.
void compare_updates(Session& session, ParameterWrites& writes, const Graph& graph, const Graph& other, ReplicaDifference& made) {
  if (made.what == ReplicaKind::kUpdate) return compare_calls(session, made.tensor, made.expected, made);
  const Node* const parameter = other.find(graph.node(made.tensor.node).name);
  if (parameter == nullptr) return;
  const auto own = writes.before(graph, made.tensor.node, made.tensor.step);
  const auto theirs = writes.before(other, parameter->id, made.tensor.step);
  if (!own || !theirs || own->step != theirs->step || graph.node(own->updater).name != other.node(theirs->updater).name) return;
  const auto call = [](const ParameterWrite& write, NodeId node) {
    TensorId id = write.value();
    id.node = node;
    return id;
  };
  compare_calls(session, call(*own, own->updater), call(*theirs, theirs->updater), made);
  if (made.called) return;
  for (const auto& [behind, same] : calls_behind(*own->graph, own->updater, *theirs->graph, theirs->updater)) {
    compare_calls(session, call(*own, behind), call(*theirs, same), made);
    if (!made.called) continue;
    made.in_front = own->graph->node(behind).role != CallRole::kOptimizer;
    return;
  }
}

bool writes_slot(const Graph& graph, NodeId node, uint32_t slot) {
  return std::ranges::count(updated_slots(graph, graph.node(node)), slot) > 0;
}

/// The operator that wrote what was seen.
std::optional<NodeId> writer_of(const Graph& graph, const ReplicaDifference& made) {
  const TensorId& seen = made.seen;
  if (graph.node(seen.node).kind == NodeKind::kOperator) {
    const bool wrote = seen.slot.io == Io::kOutput || writes_slot(graph, seen.node, seen.slot.index);
    return wrote ? std::optional(seen.node) : std::nullopt;
  }
  if (!made.updated) return std::nullopt;
  for (const Use& use : graph.effective_users(seen.node)) {
    if (writes_slot(graph, use.node, use.slot)) return use.node;
  }
  return std::nullopt;
}

/// A number of the optimizer that is no parameter, such as its epsilon, is a constant that the operator takes.
void compare_constants(Session& session, const Graph& graph, const Graph& other, ReplicaDifference& made) {
  const std::optional<NodeId> writer = writer_of(graph, made);
  const Node* const theirs = writer ? other.find(graph.node(*writer).name) : nullptr;
  if (theirs == nullptr) return;
  const Node& own = graph.node(*writer);
  const std::vector<std::string> names = input_names(own);
  for (uint32_t slot = 0; slot < std::min(own.inputs.size(), theirs->inputs.size()); ++slot) {
    const Edge producer = graph.effective_producer(own.id, slot);
    if (producer.node == kNoNode || graph.node(producer.node).kind != NodeKind::kConstant) continue;
    const auto actual = number_taken(session, graph, own.id, slot, made.seen.step);
    const auto expected = number_taken(session, other, theirs->id, slot, made.expected.step);
    if (!actual || !expected) {
      if (made.cause == ReplicaCause::kOperator) made.not_seen.emplace_back(graph.node(producer.node).name);
      continue;
    }
    if (*actual == *expected || (std::isnan(*actual) && std::isnan(*expected))) continue;
    // 0.001 as a float is 0.00100000005.
    const int digits = format_short(*actual, 7) == format_short(*expected, 7) ? 9 : 7;
    add_argument(made.arguments, slot < names.size() ? names[slot] : slot_name({Io::kInput, slot}), format_short(*actual, digits),
                 format_short(*expected, digits));
  }
  if (!made.arguments.empty()) made.called = TensorId{graph.rank(), graph.id(), made.seen.step, 0, own.id, {}};
}

/// A rank that decays its weights has operators that the others lack between a gradient and the optimizer.
void compare_producers(const Graph& graph, const Graph& other, ReplicaDifference& made) {
  const std::optional<NodeId> writer = writer_of(graph, made);
  const Node* const theirs = writer ? other.find(graph.node(*writer).name) : nullptr;
  if (theirs == nullptr) return;
  constexpr size_t kMost = 32;
  const std::vector<std::string> names = input_names(graph.node(*writer));
  for (uint32_t from = 0; from < std::min(graph.node(*writer).inputs.size(), theirs->inputs.size()); ++from) {
    std::vector<std::pair<NodeId, NodeId>> open;
    const auto add = [&](NodeId own, NodeId their, uint32_t slot) {
      const NodeId a = graph.effective_producer(own, slot).node, b = other.effective_producer(their, slot).node;
      if (a != kNoNode && b != kNoNode && std::ranges::find(open, std::pair(a, b)) == open.end()) open.emplace_back(a, b);
    };
    add(*writer, theirs->id, from);
    for (size_t i = 0; i < open.size() && i < kMost; ++i) {
      const Node &a = graph.node(open[i].first), &b = other.node(open[i].second);
      if (a.kind != NodeKind::kOperator || b.kind != NodeKind::kOperator) continue;
      if (a.op.get() == b.op.get()) {
        for (uint32_t slot = 0; !collective_kind(a) && slot < std::min(a.inputs.size(), b.inputs.size()); ++slot) add(a.id, b.id, slot);
        continue;
      }
      const std::string name = from < names.size() ? names[from] : slot_name({Io::kInput, from});
      add_argument(made.arguments, name, fmt::format("output of {}", printable(a.op)), printable(b.op));
      made.called = TensorId{graph.rank(), graph.id(), made.seen.step, 0, *writer, {}};
      return;
    }
  }
}

}  // namespace

void find_other_arguments(Session& session, ParameterWrites& writes, ReplicaDifference* made) {
  const Graph& graph = *session.graph(made->tensor.rank, made->tensor.graph);
  const Graph& other = *session.graph(made->expected.rank, made->expected.graph);
  if (!graph.recorded_calls()) {
    if (made->cause != ReplicaCause::kCollective) compare_constants(session, graph, other, *made);
    const bool update = made->cause == ReplicaCause::kUnknown && made->arguments.empty();
    if (update && (made->updated || made->what == ReplicaKind::kUpdate)) compare_producers(graph, other, *made);
  } else if (made->cause == ReplicaCause::kValue) {
    compare_updates(session, writes, graph, other, *made);
  } else if (made->cause == ReplicaCause::kOperator) {
    compare_calls(session, made->tensor, made->expected, *made);
  }
  if (made->cause != ReplicaCause::kUnknown || made->arguments.empty()) return;
  // These explain it: it need not have come in with a state.
  made->cause = ReplicaCause::kValue;
  made->not_seen.clear();
}

}  // namespace msdbg
