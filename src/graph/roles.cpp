#include "graph/roles.h"

#include <algorithm>
#include <array>

namespace msdbg {
namespace {

// Operators that update their first input; `Apply...`, `SparseApply...`, `FusedSparse...` are recognised by prefix.
constexpr std::array<std::string_view, 9> kOptimizers = {
    "adam",     "adamweightdecay", "fusedadam", "fusedadamweightdecay", "sgd",
    "momentum", "rmsprop",         "lamb",      "fusedapplymomentum",
};

constexpr std::array<std::string_view, 11> kStatePrefixes = {
    "moments.", "moment1.", "moment2.", "accum.", "accums.", "vhat.", "stat.", "mean_square.", "mean_grad.", "prev.", "step_size.",
};
constexpr std::array<std::string_view, 6> kStateNames = {
    "global_step", "learning_rate", "momentum", "beta1_power", "beta2_power", "current_iterator_step",
};

bool has_many_elements(const Node& node) {
  if (node.outputs.empty() || !node.outputs[0].shape) return true;
  return element_count(*node.outputs[0].shape).value_or(2) >= 2;
}

/// `fc1.weight` beside `step_size.fc1.weight`, or null.
const Node* named_within(const Graph& graph, const Node& node) {
  for (size_t at = node.name.find_first_of("._"); at != std::string::npos; at = node.name.find_first_of("._", at + 1)) {
    const Node* const other = graph.find(std::string_view(node.name).substr(at + 1));
    if (other != nullptr && other->kind == NodeKind::kParameter) return other;
  }
  return nullptr;
}

/// Also true for values that another part of the graph passes on: optimizers that are chains of Assign write both.
bool belongs_to_another(const Graph& graph, const Node& node) { return is_handed_over(node) || named_within(graph, node) != nullptr; }

/// What a program keeps beside a trained parameter, as sums of gradients: MindSpore's clone(prefix="accum_grad") names it
/// `accum_grad.fc1.weight`.
bool is_kept_beside(const Graph& graph, const std::vector<Roles>& roles, const Node& node) {
  const Node* const other = named_within(graph, node);
  return other != nullptr && roles[other->id].trainable && !node.outputs.empty() && !other->outputs.empty() &&
         node.outputs[0].shape && node.outputs[0].shape == other->outputs[0].shape;
}

bool is_optimizer_node(const Node& node) {
  return node.kind == NodeKind::kOperator && (optimizer_weight_slot(node.op) || in_optimizer_scope(node));
}

}  // namespace

std::optional<uint32_t> optimizer_weight_slot(std::string_view op) {
  const std::string name = to_lower(op);
  // The fused forms have weight decay and loss scale before the weight.
  if (name == "fusedweightscaleapplymomentum") return 2;
  if (name == "fusedweightapplymomentum" || name == "fusedscaleapplymomentum") return 1;
  if (name.starts_with("apply") || name.starts_with("sparseapply") || name.starts_with("fusedsparse") ||
      name.starts_with("fusedcastadam") || name.starts_with("resourceapply") ||
      std::find(kOptimizers.begin(), kOptimizers.end(), name) != kOptimizers.end()) {
    return 0;
  }
  return std::nullopt;
}

bool is_optimizer_state_name(std::string_view name) {
  // Most names are those of weights: their first letter decides without a copy.
  const auto first = [&](std::string_view known) { return !name.empty() && (name.front() | 0x20) == known.front(); };
  if (std::none_of(kStatePrefixes.begin(), kStatePrefixes.end(), first) && std::none_of(kStateNames.begin(), kStateNames.end(), first)) {
    return false;
  }
  const std::string lower = to_lower(name);
  const auto begins = [&](std::string_view prefix) { return lower.starts_with(prefix); };
  return std::any_of(kStatePrefixes.begin(), kStatePrefixes.end(), begins) ||
         std::find(kStateNames.begin(), kStateNames.end(), lower) != kStateNames.end();
}

bool in_optimizer_scope(const Node& node) {
  return contains_nocase(node.name, "optimizer-") || contains_nocase(node.scope, "optimizer-");
}

std::vector<std::pair<const Node*, uint32_t>> told_gradients(const Graph& graph, const Node& node) {
  std::vector<std::pair<const Node*, uint32_t>> out;
  // An agent's node is one gradient; a recorded call names several: `output:0` is `net.fc.weight`.
  const bool recorded = node.role == CallRole::kParameterGradients;
  if (node.kind != NodeKind::kOperator || (!recorded && node.op != "Gradient")) return out;
  for (const Attribute& attribute : node.attributes) {
    std::optional<Slot> slot;
    if (recorded) slot = parse_slot(attribute.name.get());
    else if (attribute.name == "gradient_of") slot = Slot{Io::kOutput, 0};
    const Node* const parameter = slot && slot->io == Io::kOutput ? graph.find(attribute.value.get()) : nullptr;
    if (parameter != nullptr && parameter->kind == NodeKind::kParameter) out.emplace_back(parameter, slot->index);
  }
  return out;
}

std::vector<Roles> parameter_roles(const Graph& graph) {
  std::vector<Roles> roles(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    for (const auto& [parameter, slot] : told_gradients(graph, node)) roles[parameter->id].trainable = true;
  }
  for (const Node& node : graph.nodes()) {
    if (node.kind != NodeKind::kParameter) continue;
    Roles& role = roles[node.id];
    const bool state_name = is_optimizer_state_name(node.name);
    for (const Use& use : graph.users(node.id)) {
      const Node& consumer = graph.node(use.node);
      if (is_structural(consumer.op)) continue;  // in-place operators use the parameter itself, never a Load of it
      if (const auto slot = optimizer_weight_slot(consumer.op)) {
        role.trainable = role.trainable || (*slot == use.slot && !state_name);
      } else if (use.slot == 0 && in_optimizer_scope(consumer) && !state_name && has_many_elements(node) &&
                 !belongs_to_another(graph, node)) {
        role.trainable = true;  // an optimizer written as a chain of Assign, or one missing from this list
      }
    }
    if (role.trainable) continue;
    const std::vector<Use> users = graph.effective_users(node.id);
    const bool only_optimizer = !users.empty() && std::all_of(users.begin(), users.end(), [&](const Use& use) {
      return is_optimizer_node(graph.node(use.node));
    });
    role.optimizer_state = state_name || only_optimizer;
  }
  // A dump of parameters alone may have a million of them.
  if (std::ranges::none_of(roles, &Roles::trainable)) return roles;
  for (const Node& node : graph.nodes()) {
    Roles& role = roles[node.id];
    if (node.kind != NodeKind::kParameter || role.trainable) continue;
    role.optimizer_state = role.optimizer_state || is_kept_beside(graph, roles, node);
  }
  return roles;
}

}  // namespace msdbg
