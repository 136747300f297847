// Inputs that an operator overwrites: their recorded `input` files show the value after the update, not the one that was used.
//
// Pure functions; any thread. Background: docs/origin.md.
#pragma once

#include <string_view>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

/// An attribute by which a program names the input slots that an operator changes in place, as in `0-3,5`.
inline constexpr std::string_view kUpdatesAttribute = "updates";

/// Input slots of `node` that hold parameters and are updated in place, ascending: the parameter itself, or what other in-place
/// operators of the step made of it.
std::vector<uint32_t> updated_slots(const Graph& graph, const Node& node);

/// The parameter that such a slot updates.
NodeId updated_parameter(const Graph& graph, const Node& node, uint32_t slot);

/// True for Assign and similar operators, which discard the old value; optimizers build on it, so a NaN stays in the parameter.
bool replaces_old_value(const Node& node);

}  // namespace msdbg
