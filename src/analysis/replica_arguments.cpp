#include "analysis/replica_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

/// A learning rate is an argument of the optimizer's call in the step before, or of the call that stands for the parameter.
void compare_updates(Session& session, ParameterWrites& writes, const Graph& graph, const Graph& other, ReplicaDifference& made) {
  if (made.what == ReplicaKind::kUpdate) return compare_calls(session, made.tensor, made.expected, made);
  const Node* const parameter = other.find(graph.node(made.tensor.node).name);
  if (parameter == nullptr) return;
  const auto own = writes.before(graph, made.tensor.node, made.tensor.step);
  const auto theirs = writes.before(other, parameter->id, made.tensor.step);
  if (!own || !theirs || own->step != theirs->step || graph.node(own->updater).name != other.node(theirs->updater).name) return;
  const auto call = [](const ParameterWrite& write) {
    TensorId id = write.value();
    id.node = write.updater;
    return id;
  };
  compare_calls(session, call(*own), call(*theirs), made);
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

}  // namespace

void find_other_arguments(Session& session, ParameterWrites& writes, ReplicaDifference* made) {
  const Graph& graph = *session.graph(made->tensor.rank, made->tensor.graph);
  const Graph& other = *session.graph(made->expected.rank, made->expected.graph);
  if (!graph.recorded_calls()) {
    if (made->cause != ReplicaCause::kCollective) compare_constants(session, graph, other, *made);
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
