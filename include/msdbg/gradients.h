// Pairs the parameters of a graph with their gradients. Pure functions; any thread.
#pragma once

#include <optional>

#include "msdbg/graph.h"

namespace msdbg {

/// The gradient that an optimizer takes for a parameter, after unscaling, clipping and reduction over devices.
struct GradientOf {
  NodeId optimizer = kNoNode;  ///< the operator that updates the parameter; kNoNode where the program or its recorder told what `producer` has
  uint32_t slot = 0;           ///< its input with the gradient
  Edge producer;               ///< node is kNoNode, or a parameter, where another graph computes the gradient
};

/// nullopt: no operator of this graph updates the parameter, or none of its inputs can be the gradient.
std::optional<GradientOf> gradient_of(const Graph& graph, NodeId parameter);

/// The parameter that is updated with this output of an operator.
std::optional<NodeId> parameter_of_gradient(const Graph& graph, NodeId node, uint32_t output_slot);

}  // namespace msdbg
