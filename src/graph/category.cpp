// Assigns nodes to collections: MindInsight's name rules, after the facts that the graph itself knows.
#include <algorithm>
#include <array>

#include "graph/node_bits.h"
#include "graph/roles.h"
#include "msdbg/graph.h"

namespace msdbg {
namespace {

constexpr std::array<std::string_view, 15> kActivations = {
    "elu",   "fastgelu", "gelu",  "hsigmoid", "hswish",  "leakyrelu", "logsigmoid", "logsoftmax",
    "prelu", "relu",     "relu6", "reluv2",   "sigmoid", "softmax",   "tanh",
};

// Of PyTorch's GradScaler, before each update.
constexpr std::string_view kChecksScaled = "_amp_foreach_non_finite_check_and_unscale_";

bool ends_with_nocase(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && starts_with_nocase(text.substr(text.size() - tail.size()), tail);
}

bool under_gradients(const Node& node) {
  if (node.role == CallRole::kBackward || node.role == CallRole::kModuleBackward || node.role == CallRole::kParameterGradients) return true;
  return starts_with_nocase(node.name, "gradients/") ||
         (node.name.size() == 9 && starts_with_nocase(node.name, "gradients"));
}

bool is_weight(const Node& node) {
  if (node.kind != NodeKind::kParameter) return false;
  if (node.trainable) return true;
  if (node.optimizer_state || is_optimizer_state_name(node.name) || in_optimizer_scope(node)) return false;
  if (starts_with_nocase(node.name, "gradients/")) return false;
  return ends_with_nocase(node.name, ".weight") || ends_with_nocase(node.name, ".bias");
}

// Fused operators that end in an activation: MatMulBiasAddReluFusion, BatchNormWithActivation.
bool is_fused_activation(std::string_view op) {
  return op.ends_with("relufusion") || op.ends_with("withactivation") || op.ends_with("withaddandactivation");
}

/// PyTorch separates words, and marks what is its own and what works in place: `log_softmax`, `_softmax`, `relu_`.
std::string plain_op(const Node& node) {
  std::string op = to_lower(node.op);
  std::erase(op, '_');
  return op;
}

bool is_activation(const Node& node) {
  if (node.kind != NodeKind::kOperator || under_gradients(node) || node.role == CallRole::kOptimizer) return false;
  const std::string op = plain_op(node);
  return is_fused_activation(op) || std::find(kActivations.begin(), kActivations.end(), op) != kActivations.end();
}

bool is_loss_op(std::string_view op) {
  const std::string lower = to_lower(op);
  if (lower.ends_with("grad")) return false;
  return lower.ends_with("loss") || lower.find("crossentropy") != std::string::npos || lower == "bcewithlogitsloss" ||
         lower == "kldivloss";
}

bool is_loss(const Node& node) {
  if (node.kind != NodeKind::kOperator || under_gradients(node)) return false;
  return contains_nocase(node.name, "_loss_fn-") || contains_nocase(node.scope, "_loss_fn-") || is_loss_op(plain_op(node));
}

bool is_optimizer(const Node& node) {
  if (node.kind == NodeKind::kConstant) return false;
  if (node.kind == NodeKind::kParameter) {
    return node.optimizer_state ||
           (!node.trainable && (is_optimizer_state_name(node.name) || in_optimizer_scope(node)));
  }
  if (node.role != CallRole::kNone) return node.role == CallRole::kOptimizer;
  return in_optimizer_scope(node) || optimizer_weight_slot(node.op).has_value();
}

/// Whether the training looks for a loss scale with which its gradients do not overflow. MindSpore writes to it in the graph.
bool searches_loss_scale(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    if (node.kind == NodeKind::kOperator) return node.op.get() == kChecksScaled;
    return node.kind == NodeKind::kParameter && is_loss_scale(node) && std::ranges::any_of(graph.users(node.id), [&](const Use& use) {
             return use.slot == 0 && graph.node(use.node).op.get().starts_with("Assign");
           });
  });
}

}  // namespace

bool is_loss_scale(const Node& node) {
  const std::string name = to_lower(node.name.substr(node.name.rfind('.') + 1));
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  return name == "scale_value" || name == "scale_sense" || has("loss_scal") || has("lossscal");
}

bool is_handed_over(const Node& node) {
  if (node.name == "not_seen") return true;  // the Python agent's word for it
  constexpr std::string_view kParts[] = {"Parameter_", "Parameter[", "Parameter]", "CNode_"};
  return std::ranges::any_of(kParts, [&](std::string_view part) { return node.name.find(part) != std::string::npos; });
}

bool in_category(const Node& node, Category category) {
  // Depend, Load and similar operators have no value to examine.
  const bool structural = node.kind == NodeKind::kOperator && is_structural(node.op);
  switch (category) {
    case Category::kAll:
      return true;
    case Category::kParameter:
      return node.kind == NodeKind::kParameter;
    case Category::kConstant:
      return node.kind == NodeKind::kConstant;
    case Category::kWeight:
      return is_weight(node);
    case Category::kGradient:
      return node.kind == NodeKind::kOperator && !structural && under_gradients(node);
    case Category::kActivation:
      return is_activation(node);
    case Category::kOptimizer:
      return !structural && is_optimizer(node);
    case Category::kLoss:
      return !structural && is_loss(node);
    case Category::kFromWeights:
    case Category::kScaled:
      return false;  // other nodes decide: Graph::in()
  }
  return false;
}

/// Operators that take what `from` picks, directly or through others that `passes` lets through.
template <typename From, typename Passes>
NodeBits Graph::derived(From from, Passes passes) const {
  NodeBits reached = node_bits(*this);
  std::vector<NodeId> next;
  for (const Node& node : nodes_) {
    if (from(node)) next.push_back(node.id);
  }
  while (!next.empty()) {
    const NodeId id = next.back();
    next.pop_back();
    for (const Use& use : users(id)) {
      const Node& user = nodes_[use.node];
      if (contains(reached, use.node) || user.kind != NodeKind::kOperator || !passes(user)) continue;
      add(reached, use.node);
      next.push_back(use.node);
    }
  }
  keep_if(reached, [this](NodeId id) { return !is_structural(nodes_[id].op); });
  return reached;
}

/// Operators that take a weight, or what such an operator made. One that takes weights and constants alone says nothing of a layer: the
/// product of the zeros that a state begins with. An input that nobody recorded may be data.
NodeBits Graph::from_weights() const {
  NodeBits found = derived([this](const Node& node) { return in(node.id, Category::kWeight); }, [](const Node&) { return true; });
  NodeBits numbers = node_bits(*this);  // constants, and what is made of them alone
  const auto all_inputs = [this](const Node& node, auto&& are) {
    for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
      const NodeId maker = effective_producer(node.id, slot).node;
      if (maker == kNoNode || !are(maker)) return false;
    }
    return true;
  };
  const auto is_number = [&](NodeId maker) { return contains(numbers, maker); };
  for (const Node& node : nodes_) {  // in the order of execution
    // Noise is data.
    const bool made = node.kind == NodeKind::kOperator && !draws_random_numbers(node.op) && all_inputs(node, is_number);
    if (made || node.kind == NodeKind::kConstant) add(numbers, node.id);
  }
  keep_if(found, [&](NodeId id) {
    bool constant = false;  // one at least: the inputs of some operators are not all recorded
    const auto is_no_data = [&](NodeId maker) {
      constant = constant || is_number(maker);
      return is_number(maker) || in(maker, Category::kWeight);
    };
    return !all_inputs(nodes_[id], is_no_data) || !constant;
  });
  return found;
}

/// Gradients that a loss scale has multiplied, and what is made of them before the update: the scaler searches for a value with which they
/// do not overflow.
NodeBits Graph::scaled() const {
  if (!searches_loss_scale(*this)) return node_bits(*this);
  // In MindSpore 2.7 and 2.8, no operator of the backward pass may be seen, but what amp.DynamicLossScaler does with its results.
  const auto is_gradient = [this](const Node& node) {
    return in(node.id, Category::kGradient) || (node.kind == NodeKind::kOperator && node.name.find("/_grad_unscale_map/") != std::string::npos);
  };
  NodeBits found = derived(is_gradient, [this](const Node& node) { return !in(node.id, Category::kOptimizer); });
  for (const Node& node : nodes_) {
    if (is_gradient(node)) add(found, node.id);
  }
  return found;
}

const NodeBits& Graph::members(Category category) const {
  Members& members = members_[static_cast<size_t>(category)];
  std::call_once(members.decided, [&] {
    if (category == Category::kFromWeights) {
      members.nodes = from_weights();
    } else if (category == Category::kScaled) {
      members.nodes = scaled();
    } else {
      members.nodes = node_bits(*this);
      for (const Node& node : nodes_) {
        if (in_category(node, category)) add(members.nodes, node.id);
      }
    }
  });
  return members.nodes;
}

}  // namespace msdbg
