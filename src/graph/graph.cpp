// Names of kinds and slots, lookup, and traversal of edges that looks through structural nodes.
#include "msdbg/graph.h"
#include "msdbg/hash.h"
#include "msdbg/node_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <tuple>
#include <unordered_map>

namespace msdbg {
namespace {

// Real chains of Depend and Load nodes are much shorter; a file with a cycle would exceed it.
constexpr int kMaxHops = 1000;

bool forwards_first_input(std::string_view op) { return op == "Depend" || op == "Load" || op == "TupleGetItem"; }

// The output slot of a structural node that carries a value, and the original producer's slot for that value. Both unset: slots
// correspond one to one.
struct Carrier {
  NodeId node;
  std::optional<uint32_t> slot;
  std::optional<uint32_t> origin;
};

}  // namespace

std::string_view node_kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::kOperator:
      return "operator";
    case NodeKind::kParameter:
      return "parameter";
    case NodeKind::kConstant:
      return "constant";
  }
  return "operator";
}

std::string slot_name(Slot slot) { return (slot.io == Io::kInput ? "input:" : "output:") + std::to_string(slot.index); }

std::optional<Slot> parse_slot(std::string_view text) {
  Slot slot;
  if (text.starts_with("input:")) {
    slot.io = Io::kInput;
    text.remove_prefix(6);
  } else if (text.starts_with("output:")) {
    text.remove_prefix(7);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slot.index);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return slot;
}

std::string_view Node::last_component() const { return msdbg::last_component(name); }

bool is_structural(std::string_view op) {
  static constexpr std::array<std::string_view, 7> kOps = {
      "Depend", "Load", "MakeTuple", "TupleGetItem", "UpdateState", "Return", "MakeList",
  };
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

const Node* Graph::find(std::string_view full_name) const {
  if (by_name_.empty()) return nullptr;
  const NodeId found = by_name_[place_of(full_name)];
  return found == kNoNode ? nullptr : &nodes_[found];
}

size_t Graph::place_of(std::string_view full_name) const {
  const size_t mask = by_name_.size() - 1;
  size_t at = hash_of(full_name) & mask;
  while (by_name_[at] != kNoNode && nodes_[by_name_[at]].name != full_name) at = (at + 1) & mask;
  return at;
}

std::span<const Use> Graph::users(NodeId id) const {
  if (id >= nodes_.size()) return {};
  return std::span(uses_).subspan(use_begin_[id], use_begin_[id + 1] - use_begin_[id]);
}

std::vector<Use> Graph::effective_users(NodeId id) const {
  std::vector<Use> out;
  if (id >= nodes_.size()) return out;
  std::vector<Carrier> pending = {{id, std::nullopt, std::nullopt}};
  std::set<std::tuple<NodeId, std::optional<uint32_t>, std::optional<uint32_t>>> seen;
  while (!pending.empty()) {
    const Carrier at = pending.back();
    pending.pop_back();
    for (const Use& use : users(at.node)) {
      const Node& consumer = nodes_[use.node];
      // A Depend that returns a whole tuple calls it slot 0 and passes on every element.
      const bool whole = use.output_slot == 0 && consumer.op == "Depend" && consumer.outputs.size() > 1;
      if (at.slot && use.output_slot != *at.slot && !whole) continue;
      const uint32_t origin = at.origin.value_or(use.output_slot);
      if (!is_structural(consumer.op)) {
        out.push_back({use.node, use.slot, origin});
        continue;
      }
      Carrier next{use.node, std::nullopt, std::nullopt};
      if (consumer.op == "MakeTuple" || consumer.op == "MakeList") {
        next.slot = use.slot;
        next.origin = origin;
      } else if (forwards_first_input(consumer.op) && use.slot == 0) {
        if (whole) {
          next.slot = at.slot;
          next.origin = at.origin;
        } else {
          next.slot = 0;
          next.origin = origin;
        }
      } else {
        continue;  // UpdateState, Return and the later inputs of Depend and Load define the order; they use no value
      }
      if (seen.insert({next.node, next.slot, next.origin}).second) pending.push_back(next);
    }
  }
  const auto key = [this](const Use& u) { return std::tuple(nodes_[u.node].order, u.slot, u.output_slot); };
  std::sort(out.begin(), out.end(), [&](const Use& a, const Use& b) { return key(a) < key(b); });
  const auto same = [&](const Use& a, const Use& b) { return key(a) == key(b); };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

Edge Graph::effective_producer(NodeId id, uint32_t input_slot) const {
  if (id >= nodes_.size() || input_slot >= nodes_[id].inputs.size()) return {};
  Edge edge = nodes_[id].inputs[input_slot];
  for (int hop = 0; hop < kMaxHops && edge.node != kNoNode; ++hop) {
    const Node& producer = nodes_[edge.node];
    const bool tuple = producer.op == "MakeTuple" || producer.op == "MakeList";
    if (!tuple && !forwards_first_input(producer.op)) return edge;
    const uint32_t input = tuple ? edge.slot : 0;
    if (input >= producer.inputs.size()) return {kNoNode, 0, producer.name};
    const Edge& behind = producer.inputs[input];
    // Depend passes on its input tuple: its slots count from the input's slot.
    const uint32_t slot = producer.op == "Depend" ? behind.slot + edge.slot : behind.slot;
    edge = {behind.node, slot, behind.name};
  }
  return {kNoNode, 0, edge.node == kNoNode ? edge.name : SharedText(nodes_[edge.node].name)};
}

bool carries_value(const Graph& graph, const Edge& edge) {
  return edge.node == kNoNode || !graph.node(edge.node).outputs.empty();
}

const Graph::OpNumbers& Graph::op_numbers() const {
  std::call_once(ops_numbered_, [this] {
    std::unordered_map<const char*, uint32_t> numbers;  // a graph stores each text once
    op_numbers_.of.reserve(nodes_.size());
    for (const Node& node : nodes_) {
      const auto [known, is_new] = numbers.try_emplace(node.op->data(), static_cast<uint32_t>(op_numbers_.texts.size()));
      if (is_new) op_numbers_.texts.push_back(node.op);
      op_numbers_.of.push_back(known->second);
    }
  });
  return op_numbers_;
}

}  // namespace msdbg
