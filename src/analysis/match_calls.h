// Matches the calls that a tool recorded in two runs of a program.
#pragma once

#include <utility>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

/// Matching pairs of free nodes; `taken_a` and `taken_b` hold kNoNode for free ones. The number in a call's name says little: another
/// call of the same function before it changes it. The line of the program and the module decide. docs/msprobe.md, Comparing.
std::vector<std::pair<NodeId, NodeId>> match_recorded_calls(const Graph& a, const Graph& b, const std::vector<NodeId>& taken_a,
                                                            const std::vector<NodeId>& taken_b);

}  // namespace msdbg
