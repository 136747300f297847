// Which operators of the backward pass are the derivative of which operator of the forward pass. Pure; any thread.
#pragma once

#include "msdbg/graph.h"

namespace msdbg {

/// Whether `part` is a part of the derivative of `whole`, by its name, and reads an input of `whole`. Where an operator breaks, its
/// derivative then breaks at the same elements, whatever gradient it gets: 1/x where log(x) is -Inf.
bool is_derivative(const Graph& graph, NodeId part, NodeId whole);
/// Whether a node stands for all of a derivative: `.../Grad_Sqrt/Sqrt-op0`, where a framework does not show the operators.
bool is_whole_derivative(const Node& node);

}  // namespace msdbg
