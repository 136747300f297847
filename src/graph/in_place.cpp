#include "msdbg/in_place.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace msdbg {
namespace {

struct KnownSlots {
  std::string_view op;
  std::array<int, 4> slots;  // padded with -1
};

// Operators of MindSpore that also have parameters they do not change (rate, momentum, decay).
constexpr std::array<KnownSlots, 15> kKnown = {{
    {"applymomentum", {0, 1, -1, -1}},
    {"applykerasmomentum", {0, 1, -1, -1}},
    {"sgd", {0, 3, 5, -1}},
    {"adam", {0, 1, 2, -1}},
    {"fusedsparseadam", {0, 1, 2, -1}},
    {"adamweightdecay", {0, 1, 2, -1}},
    {"applyadamax", {0, 1, 2, -1}},
    {"applyrmsprop", {0, 1, 2, -1}},
    {"applycenteredrmsprop", {0, 1, 2, 3}},
    {"applyadagrad", {0, 1, -1, -1}},
    {"applyftrl", {0, 1, 2, -1}},
    {"fusedweightscaleapplymomentum", {2, 3, -1, -1}},
    {"fusedweightapplymomentum", {1, 2, -1, -1}},
    {"fusedscaleapplymomentum", {1, 2, -1, -1}},
    {"batchnorm", {3, 4, -1, -1}},
}};

// For operators without an entry above: every parameter among the inputs counts as updated.
constexpr std::array<std::string_view, 8> kOptimizerPrefixes = {
    "apply", "sparseapply", "fusedsparse", "fusedcastadam", "resourceapply", "fusedadam", "lamb", "fusedapplymomentum",
};

/// Input slots that the program named itself (kUpdatesAttribute), as inclusive ranges within the inputs of the node.
class NamedSlots {
 public:
  explicit NamedSlots(const Node& node) {
    const auto found = std::ranges::find(node.attributes, kUpdatesAttribute, [](const Attribute& each) { return each.name.get(); });
    if (found == node.attributes.end() || node.inputs.empty()) return;
    const std::string_view text = found->value.get();
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto number = [&](uint32_t& value) {
      const auto [next, error] = std::from_chars(at, end, value);
      at = next;
      return error == std::errc();
    };
    for (uint32_t first = 0, last = 0; at != end && number(first); at += at != end) {
      last = first;
      if (at != end && *at == '-' && (++at, !number(last))) return;
      last = std::min(last, static_cast<uint32_t>(node.inputs.size()) - 1);
      if (first > last || (!ranges_.empty() && first <= ranges_.back().second)) return;
      ranges_.emplace_back(first, last);
    }
  }
  bool empty() const { return ranges_.empty(); }
  size_t size() const {
    size_t count = 0;
    for (const auto& [first, last] : ranges_) count += last - first + 1;
    return count;
  }
  /// Slot number `index` of them; needs index < size().
  uint32_t at(size_t index) const {
    auto range = ranges_.begin();
    while (index > range->second - range->first) index -= range->second - range->first + 1, ++range;
    return range->first + static_cast<uint32_t>(index);
  }

 private:
  std::vector<std::pair<uint32_t, uint32_t>> ranges_;  // ascending
};

bool is_parameter(const Graph& graph, const Edge& edge) {
  return edge.node != kNoNode && graph.node(edge.node).kind == NodeKind::kParameter;
}

}  // namespace

std::vector<uint32_t> updated_slots(const Graph& graph, const Node& node) {
  std::vector<uint32_t> slots;
  // A recorded input of such a graph is older than the call, and its output shows the update.
  if (node.kind != NodeKind::kOperator || graph.recorded_calls()) return slots;
  if (const NamedSlots named(node); !named.empty()) {
    for (size_t index = 0; index < named.size(); ++index) {
      if (updated_parameter(graph, node, named.at(index)) != kNoNode) slots.push_back(named.at(index));
    }
    return slots;
  }
  const std::string op = to_lower(node.op);
  auto add = [&](uint32_t slot) {
    // An in-place operator uses the parameter itself; a Load produces a separate value.
    if (slot < node.inputs.size() && is_parameter(graph, node.inputs[slot])) slots.push_back(slot);
  };
  const auto known =
      std::find_if(kKnown.begin(), kKnown.end(), [&](const KnownSlots& entry) { return entry.op == op; });
  if (known != kKnown.end()) {
    for (int slot : known->slots) {
      if (slot >= 0) add(static_cast<uint32_t>(slot));
    }
  } else if (op.starts_with("assign") || op.starts_with("scatter")) {
    add(0);
  } else if (std::any_of(kOptimizerPrefixes.begin(), kOptimizerPrefixes.end(),
                         [&](std::string_view prefix) { return op.starts_with(prefix); })) {
    for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) add(slot);
  }
  return slots;
}

NodeId updated_parameter(const Graph& graph, const Node& node, uint32_t slot) {
  const Node* reader = &node;
  while (slot < reader->inputs.size()) {
    const Edge& edge = reader->inputs[slot];
    if (is_parameter(graph, edge)) return edge.node;
    if (edge.node == kNoNode) break;
    const Node& producer = graph.node(edge.node);
    const NamedSlots named(producer);
    // Output k of such an operator is what it made of the k-th input that it changes.
    if (producer.order >= reader->order || named.size() != producer.outputs.size() || edge.slot >= named.size()) break;
    slot = named.at(edge.slot);
    reader = &producer;
  }
  return kNoNode;
}

bool replaces_old_value(const Node& node) {
  std::string_view op = node.op.get();
  if (op.ends_with('_')) {
    // PyTorch. What only adds to a value or scales it keeps a NaN.
    constexpr std::array<std::string_view, 9> kKeeping = {"add_", "sub_", "mul_", "div_", "addcmul_", "addcdiv_", "addmm_", "addmv_", "lerp_"};
    if (op.starts_with("_fused_")) return false;
    if (op.starts_with("_foreach_")) op.remove_prefix(9);
    return std::ranges::find(kKeeping, op) == kKeeping.end();
  }
  const std::string lower = to_lower(op);
  return lower == "assign" || lower.ends_with("update");
}

}  // namespace msdbg
