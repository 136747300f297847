// Inputs that an operator overwrites: their recorded `input` files show the value after the update, not the one that was used.
//
// Pure functions; any thread. Background: docs/origin.md.
#pragma once

#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

/// Input slots of `node` that are parameters and updated in place, ascending.
std::vector<uint32_t> updated_slots(const Graph& graph, const Node& node);

/// True for Assign and similar operators, which discard the old value; optimizers build on it, so a NaN stays in the parameter.
bool replaces_old_value(const Node& node);

}  // namespace msdbg
