// The role of a node: optimizer, loss, activation, and the roles of parameters. Private to the graph module.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

struct Roles {
  bool trainable = false;
  bool optimizer_state = false;
};

/// The parameters whose gradients are outputs of this operator, and the slots, where the program that is trained or its recorder says so.
std::vector<std::pair<const Node*, uint32_t>> told_gradients(const Graph& graph, const Node& node);

/// One entry per node of the graph (whose users must be known); only entries of parameters are ever set.
std::vector<Roles> parameter_roles(const Graph& graph);

/// The input that the operator updates in place as the trained weight; nullopt for other operators.
std::optional<uint32_t> optimizer_weight_slot(std::string_view op);

/// True for `momentum`, `moments.fc1.weight`, `beta1_power`, ...: names that MindSpore's optimizers use for their state.
bool is_optimizer_state_name(std::string_view name);

/// True if the name is in an optimizer's scope (`optimizer-Momentum`).
bool in_optimizer_scope(const Node& node);

}  // namespace msdbg
