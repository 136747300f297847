// The gradient of a parameter in a step of recorded calls. Pure functions; any thread.
#pragma once

#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

/// The gradient as the backward pass gives it, and then what calls make of it in place, in their order: a reduction over ranks, a division.
/// Of other graphs, the gradient alone. Empty if there is none, or another graph computes it.
std::vector<Edge> gradient_values(const Graph& graph, NodeId parameter);

}  // namespace msdbg
