// Who is to blame among recorded calls: each has the values that it took.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/diff_parts.h"

namespace msdbg {

/// What is known of a value that a call took.
std::optional<Blame::Input> Blame::from_input(size_t part, NodeId node, uint32_t slot, uint32_t execution) {
  const DiffPart& at = plan_.parts[part];
  const auto found = by_b_.find({at.rank_b, graphs(part).b->id(), at.step_b, execution, node, {Io::kInput, slot}});
  if (found == by_b_.end()) return std::nullopt;
  const TensorDiff& entry = result_.tensors[found->second];
  Input input;
  input.known = entry.compared() || entry.state == DiffState::kReshaped;
  input.differs = input.known && entry.state >= DiffState::kDifferent;
  input.error = !input.differs ? 0 : entry.state == DiffState::kReshaped ? std::numeric_limits<double>::infinity() : entry.relative_error();
  input.behind_random = entry.behind_random;
  return input;
}

/// Of an output: everything that the call took; for a gradient function also what its forward call took and gave. Of an input: its maker.
std::vector<Blame::Input> Blame::inputs_of_call(const TensorDiff& entry, size_t part) {
  const Graph& graph = *graphs(part).b;
  const Node& node = graph.node(entry.b.node);
  std::vector<Input> inputs;
  if (node.kind != NodeKind::kOperator) return inputs;
  const auto named = [&](std::optional<Input> input, const std::string& name) {
    if (!input) input.emplace();
    input->name = name;
    inputs.push_back(std::move(*input));
  };
  if (entry.b.slot.io == Io::kInput) {
    const Edge edge = entry.b.slot.index < node.inputs.size() ? node.inputs[entry.b.slot.index] : Edge();
    // The edge joins equal values: where the sides disagree about the value, they may disagree about its maker, too.
    if (edge.node != kNoNode) named(from_entry(part, edge.node, edge.slot, 0), graph.node(edge.node).name);
    return inputs;
  }
  const auto taken_by = [&](NodeId id) {
    const Node& call = graph.node(id);
    for (uint32_t slot = 0; slot < call.inputs.size(); ++slot) {
      const Edge& edge = call.inputs[slot];
      auto input = from_input(part, id, slot, 0);
      // The parameters of a module are inputs without a value of their own.
      if (!input && edge.node != kNoNode) input = from_entry(part, edge.node, edge.slot, 0);
      named(std::move(input), fmt::format("input:{} {}", slot, edge.node == kNoNode ? call.name : graph.node(edge.node).name));
    }
  };
  taken_by(node.id);
  if (const NodeId forward = graph.call_links(node.id).forward; forward != kNoNode) {
    taken_by(forward);
    for (uint32_t slot = 0; slot < graph.node(forward).outputs.size(); ++slot)
      named(from_entry(part, forward, slot, 0), graph.node(forward).name);
  }
  return inputs;
}

/// The first scalar argument that the two calls do not share.
void Blame::find_argument(TensorDiff& entry, size_t part) const {
  const GraphPair& pair = graphs(part);
  const NodeMatch* match = pair.of_b[entry.b.node];
  if (match == nullptr) return;
  const auto value_in = [](const Node& node, const std::string& name) -> const std::string* {
    const auto found = std::ranges::find_if(node.attributes, [&](const Attribute& each) { return each.name.get() == name; });
    return found == node.attributes.end() ? nullptr : &found->value.get();
  };
  for (const Attribute& attribute : pair.b->node(entry.b.node).attributes) {
    const std::string* other = value_in(pair.a->node(match->a), attribute.name.get());
    if (other == nullptr || *other == attribute.value.get()) continue;
    entry.argument = fmt::format("{} is {} in A, {} in B", attribute.name.get(), *other, attribute.value.get());
    return;
  }
}

/// True for a module that only hands on what happens inside: where functions were recorded, or if a module in it differs. Modules come
/// after what they contain.
bool Blame::is_scope(const TensorDiff& entry, size_t part) {
  const Graph& graph = *graphs(part).b;
  std::set<NodeId>& around = around_[part];
  const bool inside = around.contains(entry.b.node);
  for (NodeId id = graph.call_links(entry.b.node).caller; id != kNoNode && around.insert(id).second;) id = graph.call_links(id).caller;
  const CallRole role = graph.node(entry.b.node).role;
  if (role != CallRole::kModule && role != CallRole::kModuleBackward && role != CallRole::kParameterGradients) return false;
  const auto [known, is_new] = has_functions_.try_emplace(&graph, false);
  const auto has_functions = [](const Graph& each) {
    return std::any_of(each.nodes().begin(), each.nodes().end(), [](const Node& node) { return node.role == CallRole::kForward; });
  };
  if (is_new) known->second = has_functions(graph) && has_functions(*graphs(part).a);
  return inside || known->second;
}

}  // namespace msdbg
