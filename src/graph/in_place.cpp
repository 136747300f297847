#include "msdbg/in_place.h"

#include <algorithm>
#include <array>

namespace msdbg {
namespace {

struct KnownSlots {
  std::string_view op;
  std::array<int, 4> slots;  // padded with -1
};

// Operators that also have parameters they do not change (rate, momentum, decay).
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

bool is_parameter(const Graph& graph, const Edge& edge) {
  return edge.node != kNoNode && graph.node(edge.node).kind == NodeKind::kParameter;
}

}  // namespace

std::vector<uint32_t> updated_slots(const Graph& graph, const Node& node) {
  std::vector<uint32_t> slots;
  // A recorded input of such a graph is older than the call, and its output shows the update.
  if (node.kind != NodeKind::kOperator || graph.recorded_calls()) return slots;
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

bool replaces_old_value(const Node& node) {
  const std::string op = to_lower(node.op);
  return op == "assign" || op.ends_with("update");
}

}  // namespace msdbg
