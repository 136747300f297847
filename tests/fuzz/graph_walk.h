// Reads everything in a graph about its nodes.
#pragma once

#include "fuzz/input.h"
#include "msdbg/graph.h"

namespace msdbg::fuzz {

inline void walk(const Graph& graph) {
  const size_t count = graph.nodes().size();
  for (const NodeId id : graph.execution_order()) require(id < count, "an execution order with a node that does not exist");
  for (const Node& node : graph.nodes()) {
    require(&graph.node(node.id) == &node, "a node with the number of another");
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      require(node.inputs[i].node == kNoNode || node.inputs[i].node < count, "an edge from a node that does not exist");
      const Edge producer = graph.effective_producer(node.id, static_cast<uint32_t>(i));
      require(producer.node == kNoNode || producer.node < count, "a producer that does not exist");
      (void)carries_value(graph, node.inputs[i]);
    }
    for (const Use& use : graph.users(node.id)) require(use.node < count, "a user that does not exist");
    (void)graph.effective_users(node.id);
    (void)in_category(node, Category::kGradient);
  }
}

}  // namespace msdbg::fuzz
