// Which node is which when a graph file is missing: no edges, no shapes, only names of files and what is in them.
#pragma once

#include <utility>
#include <vector>

#include "msdbg/diff.h"

namespace msdbg {

/// True when the inputs of the graph's nodes are known, which only a graph file can tell.
inline bool knows_edges(const Graph& graph) { return graph.from_file(); }

/// Pairs of nodes that are not taken yet; `taken_a` and `taken_b` hold kNoNode for what is free. See docs/diff.md.
std::vector<std::pair<NodeId, NodeId>> match_without_edges(const Graph& a, const Graph& b, const DumpedShapes& shapes_a,
                                                           const DumpedShapes& shapes_b, const std::vector<NodeId>& taken_a,
                                                           const std::vector<NodeId>& taken_b);

}  // namespace msdbg
