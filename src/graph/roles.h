// What a node is for: optimizer, loss, activation, and the roles of parameters. Private to the graph module.
#pragma once

#include <string_view>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

struct Roles {
  bool trainable = false;
  bool optimizer_state = false;
};

/// One entry per node of the graph (whose users must be known); only those of parameters are ever set.
std::vector<Roles> parameter_roles(const Graph& graph);

/// The input that the operator updates in place as the trained weight; nullopt for operators that are not optimizers.
std::optional<uint32_t> optimizer_weight_slot(std::string_view op);

/// True for `momentum`, `moments.fc1.weight`, `beta1_power`, ...: names that MindSpore's optimizers give their state.
bool is_optimizer_state_name(std::string_view name);

/// True when the name is in a scope that an optimizer opened (`optimizer-Momentum`).
bool in_optimizer_scope(const Node& node);

}  // namespace msdbg
