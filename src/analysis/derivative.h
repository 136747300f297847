// Which operators of the backward pass are the derivative of which operator of the forward pass. Pure; any thread.
#pragma once

#include <string_view>
#include <utility>

#include "msdbg/graph.h"

namespace msdbg {

/// Scope and type of the operator whose derivative `Gradients/<scope>/Grad_<op>/...`, or `.../grad<op>/...`, is a part of; empty texts for
/// any other node.
std::pair<std::string_view, std::string_view> differentiated(const Node& node);
/// Whether a node stands for all of a derivative: `.../Grad_Sqrt/Sqrt-op0`, where a framework does not show the operators.
bool is_whole_derivative(const Node& node);
/// Whether both read one value. Where an operator breaks, the parts of its derivative that read its input break at the same elements,
/// whatever gradient they get: 1/x where log(x) is -Inf.
bool share_input(const Graph& graph, NodeId one, NodeId other);

}  // namespace msdbg
