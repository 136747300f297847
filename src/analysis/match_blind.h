// Matches nodes without a graph file: no edges, no shapes, only the names of files and their contents.
#pragma once

#include <utility>
#include <vector>

#include "msdbg/diff.h"

namespace msdbg {

/// True if the inputs of the graph's nodes are known, which requires a graph file.
inline bool knows_edges(const Graph& graph) { return graph.from_file(); }

/// Matching pairs of free nodes; `taken_a` and `taken_b` hold kNoNode for free ones. See docs/diff.md.
std::vector<std::pair<NodeId, NodeId>> match_without_edges(const Graph& a, const Graph& b, const DumpedShapes& shapes_a,
                                                           const DumpedShapes& shapes_b, const std::vector<NodeId>& taken_a,
                                                           const std::vector<NodeId>& taken_b);

}  // namespace msdbg
