// Which inputs an operator overwrites: their recorded `input` files show the value after the update, not the one used.
//
// Pure functions; any thread. Background: docs/origin.md.
#pragma once

#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

/// Input slots of `node` that it updates in place and that are parameters, ascending.
std::vector<uint32_t> updated_slots(const Graph& graph, const Node& node);

/// True for Assign and its kin, which drop the old value; optimizers build on it, so a NaN stays in the parameter.
bool replaces_old_value(const Node& node);

}  // namespace msdbg
