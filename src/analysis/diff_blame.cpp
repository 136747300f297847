// Who is to blame: of every tensor that differs, what its node was given on both sides.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analysis/diff_parts.h"
#include "msdbg/in_place.h"

namespace msdbg {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool differs(DiffState state) { return state == DiffState::kDifferent || state == DiffState::kReshaped; }

double error_of(const TensorDiff& entry) { return entry.state == DiffState::kReshaped ? kInfinity : entry.relative_error(); }

}  // namespace

Blame::Blame(Session& a, Session& b, const DiffPlan& plan, const DiffOptions& options, DiffResult& result,
             const std::vector<size_t>& part_of)
    : a_(a), b_(b), plan_(plan), options_(options), result_(result), part_of_(part_of) {
  for (size_t i = 0; i < result.tensors.size(); ++i) by_b_[result.tensors[i].b] = i;
}

Status Blame::run() {
  for (size_t i = 0; i < result_.tensors.size(); ++i) {
    if (differs(result_.tensors[i].state)) judge(result_.tensors[i], part_of_[i]);
    if (!status_.ok()) return status_;
    note_parameter(result_.tensors[i], part_of_[i]);
  }
  return Status();
}

/// What the step leaves behind for later steps and other graphs.
void Blame::note_parameter(const TensorDiff& entry, size_t part) {
  const GraphPair& pair = graphs(part);
  if (!pair.updater.contains(entry.b.node)) return;
  left_random_[{entry.b.rank, pair.b->node(entry.b.node).name}] = differs(entry.state) && entry.behind_random;
}

/// True if the value that a parameter has when the step begins differs because of random operators in earlier steps or other graphs.
bool Blame::begins_behind_random(size_t part, NodeId parameter) const {
  const GraphPair& pair = graphs(part);
  const DiffPart& at = plan_.parts[part];
  if (at.previous && pair.updater.contains(parameter)) return is_behind_random(*at.previous, parameter, 0, 0);
  const auto left = left_random_.find({at.rank_b, pair.b->node(parameter).name});
  return left != left_random_.end() && left->second;
}

void Blame::judge(TensorDiff& entry, size_t part) {
  const GraphPair& pair = graphs(part);
  if (!pair.edges_known) {
    entry.role = DiffRole::kUnknown;
    return;
  }
  const Node& node = pair.b->node(entry.b.node);
  if (node.kind == NodeKind::kParameter && !pair.updater.contains(node.id) && begins_behind_random(part, node.id)) {
    entry.role = DiffRole::kVictim;
    entry.behind_random = true;
    return;
  }
  std::vector<Input> inputs;
  if (pair.b->recorded_calls()) {
    const bool first = differed_.insert(part).second;
    if (is_scope(entry, part)) return;
    inputs = inputs_of_call(entry, part);
    // What no recorded call made may be the work of one behind an earlier difference.
    if (entry.b.slot.io == Io::kInput && inputs.empty() && !first) inputs.push_back({.name = "what made it"});
    if (node.kind == NodeKind::kOperator && entry.b.slot.io == Io::kOutput) find_argument(entry, part);
  } else if (node.kind == NodeKind::kOperator) {
    inputs = inputs_of(entry, part, node.id);
  } else if (const auto updater = pair.updater.find(node.id); updater != pair.updater.end()) {
    inputs = inputs_of(entry, part, updater->second);
  }
  bool any_differs = false, any_unknown = false, all_random = true;
  const bool random = node.kind == NodeKind::kOperator && draws_random_numbers(node.op);
  for (const Input& input : inputs) {
    // Another seed is another draw.
    if (random && input.seed) continue;
    if (!input.known) {
      any_unknown = true;
      if (entry.unknown_input.empty()) entry.unknown_input = input.name;
      continue;
    }
    any_differs = any_differs || input.differs;
    all_random = all_random && (!input.differs || input.behind_random);
    if (!entry.error_in || input.error > *entry.error_in) {
      entry.error_in = input.error;
      if (input.error > 0) entry.worst_input = input.name;
    }
  }
  // What came into the step, and what was made of nothing, has nothing to blame but itself.
  entry.role = any_differs ? DiffRole::kVictim : random ? DiffRole::kRandom : any_unknown ? DiffRole::kUnknown : DiffRole::kCulprit;
  entry.behind_random = entry.role == DiffRole::kRandom || (any_differs && all_random);
  const double out = error_of(entry);
  // NaN and Inf have no size that could grow.
  if (!entry.error_in || *entry.error_in == kInfinity || (any_unknown && *entry.error_in == 0)) return;
  entry.amplification = *entry.error_in > 0 ? out / *entry.error_in : kInfinity;
}

std::vector<Blame::Input> Blame::inputs_of(const TensorDiff& entry, size_t part, NodeId id) {
  const GraphPair& pair = graphs(part);
  const Node& node = pair.b->node(id);
  std::vector<Input> inputs;
  if (pair.of_b[id] && pair.of_b[id]->how == MatchMethod::kValue) {
    // A fused kernel and the last of several: what goes into the whole of them counts.
    std::set<NodeId> seen;
    inputs_through_unmatched(part, entry.b.execution, id, seen, inputs);
    return inputs;
  }
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    const Edge producer = pair.b->effective_producer(id, slot);
    if (!carries_value(*pair.b, producer)) continue;
    inputs.push_back(input_of(entry, part, id, slot));
    if (producer.node == kNoNode) continue;
    const Node& from = pair.b->node(producer.node);
    inputs.back().seed = from.kind == NodeKind::kConstant && !from.outputs.empty() && !is_float(from.outputs[0].dtype);
  }
  return inputs;
}

Blame::Input Blame::input_of(const TensorDiff& entry, size_t part, NodeId id, uint32_t slot) {
  const GraphPair& pair = graphs(part);
  const Edge edge = pair.b->effective_producer(id, slot);
  const auto updated = pair.updated.find(id);
  const bool overwritten =
      updated != pair.updated.end() && std::find(updated->second.begin(), updated->second.end(), slot) != updated->second.end();
  const std::string name = fmt::format("input:{} {}", slot, edge.node == kNoNode ? edge.name.get() : pair.b->node(edge.node).name);
  const auto named = [&](Input input, std::string_view tail = "") {
    input.name = name + std::string(tail);
    return input;
  };
  const bool only_b = edge.node != kNoNode && pair.of_b[edge.node] == nullptr && pair.b->node(edge.node).kind == NodeKind::kOperator;
  const uint32_t execution = entry.b.execution;
  // Where A takes the value from another node, the value that went in says more than the producer that B has.
  if (const NodeMatch* match = pair.of_b[id]; match && !only_b && edge.node != kNoNode) {
    const Edge other = pair.a->effective_producer(match->a, slot);
    if (other.node != kNoNode && pair.of_a[other.node] == nullptr && pair.a->node(other.node).kind == NodeKind::kOperator) {
      const std::string tail = fmt::format(", in A {} (only in A)", pair.a->node(other.node).name);
      if (const auto found = recorded(part, id, slot, execution)) return named(*found, tail);
      return named({}, tail);
    }
  }
  if (edge.node != kNoNode && pair.b->node(edge.node).kind == NodeKind::kOperator) {
    if (const auto found = from_entry(part, edge.node, edge.slot, execution)) return named(*found);
    if (auto found = recorded(part, id, slot, execution)) {
      // Without a value of its own it shows in what its consumers took.
      found->behind_random = draws_random_numbers(pair.b->node(edge.node).op);
      return named(*found, only_b ? " (only in B)" : "");
    }
    return named({}, only_b ? " (only in B)" : "");
  }
  // Recorded inputs of updates hold the value after the update.
  if (!overwritten) {
    if (auto found = recorded(part, id, slot, execution)) {
      const bool parameter = edge.node != kNoNode && pair.b->node(edge.node).kind == NodeKind::kParameter;
      found->behind_random = parameter && begins_behind_random(part, edge.node);
      return named(*found);
    }
  }
  if (edge.node == kNoNode) return named({});
  const Node& producer = pair.b->node(edge.node);
  if (producer.kind == NodeKind::kParameter && pair.updater.count(edge.node)) {
    if (const auto found = parameter_at_start(part, edge.node)) return named(*found);
    return named({});
  }
  if (const auto found = from_entry(part, edge.node, edge.slot, execution)) return named(*found);
  if (producer.kind == NodeKind::kConstant && !producer.constant_value.empty()) {
    // Not dumped, but the graphs say what it is.
    const NodeMatch* match = pair.of_b[edge.node];
    if (match && pair.a->node(match->a).constant_value == producer.constant_value) return named({true, false, 0, ""});
  }
  return named({});
}

/// Inputs from outside of a group of nodes that have no counterparts.
void Blame::inputs_through_unmatched(size_t part, uint32_t execution, NodeId id, std::set<NodeId>& seen, std::vector<Input>& inputs) {
  const GraphPair& pair = graphs(part);
  if (!seen.insert(id).second) return;
  for (uint32_t slot = 0; slot < pair.b->node(id).inputs.size(); ++slot) {
    const Edge edge = pair.b->effective_producer(id, slot);
    if (!carries_value(*pair.b, edge)) continue;
    if (edge.node != kNoNode && pair.b->node(edge.node).kind == NodeKind::kOperator && !pair.of_b[edge.node]) {
      inputs_through_unmatched(part, execution, edge.node, seen, inputs);
      continue;
    }
    Input input;
    if (edge.node != kNoNode) {
      const Node& producer = pair.b->node(edge.node);
      // Shapes and flags that the other side has no need of do not carry the value.
      if (producer.kind == NodeKind::kConstant && !pair.of_b[edge.node]) continue;
      std::optional<Input> found;
      if (producer.kind == NodeKind::kParameter && pair.updater.count(edge.node)) {
        found = parameter_at_start(part, edge.node);
      } else {
        found = from_entry(part, edge.node, edge.slot, execution);
      }
      if (found) input = *found;
      input.name = fmt::format("input {}", producer.name);
    } else {
      input.name = fmt::format("input {}", edge.name);
    }
    inputs.push_back(input);
  }
}

std::optional<Blame::Input> Blame::from_entry(size_t part, NodeId node, uint32_t slot, uint32_t execution) {
  const GraphPair& pair = graphs(part);
  const DiffPart& at = plan_.parts[part];
  for (const uint32_t run : {execution, uint32_t{0}}) {
    const auto found = by_b_.find({at.rank_b, pair.b->id(), at.step_b, run, node, {Io::kOutput, slot}});
    if (found == by_b_.end()) continue;
    const TensorDiff& entry = result_.tensors[found->second];
    if (entry.state == DiffState::kUncompared) return std::nullopt;
    return Input{true, differs(entry.state), error_of(entry), "", entry.behind_random};
  }
  return std::nullopt;
}

bool Blame::is_behind_random(size_t part, NodeId node, uint32_t slot, uint32_t execution) const {
  const DiffPart& at = plan_.parts[part];
  const auto found = by_b_.find({at.rank_b, graphs(part).b->id(), at.step_b, execution, node, {Io::kOutput, slot}});
  return found != by_b_.end() && result_.tensors[found->second].behind_random;
}

std::optional<Blame::Input> Blame::recorded(size_t part, NodeId node_b, uint32_t slot, uint32_t execution) {
  const GraphPair& pair = graphs(part);
  const DiffPart& at = plan_.parts[part];
  const NodeMatch* match = pair.of_b[node_b];
  if (!match || match->how == MatchMethod::kValue || !status_.ok()) return std::nullopt;
  const TensorId id = {at.rank_b, pair.b->id(), at.step_b, execution, node_b, {Io::kInput, slot}};
  if (const auto known = recorded_.find(id); known != recorded_.end()) return known->second;
  return recorded_pair(part, {at.rank_a, pair.a->id(), at.step_a, execution, match->a, {Io::kInput, slot}}, id);
}

std::optional<Blame::Input> Blame::recorded_pair(size_t part, const TensorId& in_a, const TensorId& in_b) {
  const GraphPair& pair = graphs(part);
  const DiffPart& at = plan_.parts[part];
  TensorDiff entry;
  entry.a = in_a;
  entry.b = in_b;
  const Edge edge = pair.b->effective_producer(in_b.node, in_b.slot.index);
  if (edge.node != kNoNode && pair.b->node(edge.node).kind == NodeKind::kOperator) entry.path = pair.paths[edge.node];
  entry.path = {entry.path.additions * (at.ordinal + 1), entry.path.operators * (at.ordinal + 1)};
  if (edge.node != kNoNode && pair.updater.count(edge.node)) {
    const PathLength& path = pair.paths[edge.node];
    entry.path = {path.additions * at.ordinal, path.operators * at.ordinal};
  }
  status_ = compare_entry(a_, b_, options_, entry, buffers_, &result_.bytes);
  std::optional<Input> input;
  if (status_.ok() && entry.state != DiffState::kUncompared) input = Input{true, differs(entry.state), error_of(entry), ""};
  recorded_[in_b] = input;
  return input;
}

/// The value that the step before left, else what a consumer recorded before the update.
std::optional<Blame::Input> Blame::parameter_at_start(size_t part, NodeId parameter) {
  const GraphPair& pair = graphs(part);
  const DiffPart& at = plan_.parts[part];
  // Any consumer will do, and it need not be the same on both sides.
  const auto taken = [](Session& session, const Graph& graph, NodeId node, int64_t step) {
    std::optional<TensorId> found;
    for (const Use& use : graph.effective_users(node)) {
      const std::vector<uint32_t> slots = updated_slots(graph, graph.node(use.node));
      if (std::find(slots.begin(), slots.end(), use.slot) != slots.end()) break;  // from here on it is the new value
      const TensorId id = {graph.rank(), graph.id(), step, 0, use.node, {Io::kInput, use.slot}};
      if (session.exists(id)) return std::optional(id);
    }
    return found;
  };
  if (const NodeMatch* match = pair.of_b[parameter]) {
    const auto in_a = taken(a_, *pair.a, match->a, at.step_a), in_b = taken(b_, *pair.b, parameter, at.step_b);
    if (in_a && in_b) {
      const auto known = recorded_.find(*in_b);
      std::optional<Input> found = known != recorded_.end() ? known->second : recorded_pair(part, *in_a, *in_b);
      if (found) found->behind_random = begins_behind_random(part, parameter);
      if (found) return found;
    }
  }
  // Only if nothing ran in between.
  if (at.previous && plan_.parts[*at.previous].step_b + 1 == at.step_b && plan_.parts[*at.previous].step_a + 1 == at.step_a) {
    return from_entry(*at.previous, parameter, 0, 0);
  }
  return std::nullopt;
}

}  // namespace msdbg
