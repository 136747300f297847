// Two graphs, node by node: which nodes match, how far a value has come, and which optimizer updates what.
#include <algorithm>

#include "analysis/diff_parts.h"
#include "msdbg/in_place.h"
#include "analysis/match_blind.h"

namespace msdbg {
namespace {

/// What the files of the graph's first step say; a later execution has the shapes of the first.
DumpedShapes dumped_shapes(Session& session, const Graph& graph, const IntSet& steps) {
  DumpedShapes shapes;
  for (const int64_t step : session.steps(graph.rank(), graph.id())) {
    if (!steps.contains(step)) continue;
    TensorQuery query;
    query.ranks = IntSet::of(graph.rank());
    query.graph = graph.id();
    query.steps = IntSet::of(step);
    query.inputs = true;
    for (const TensorId& id : session.tensors(query)) {
      if (id.execution > 0) continue;
      const auto info = session.describe(id);
      if (info && info->problem.ok()) shapes[id.node][id.slot] = info->shape;
    }
    break;
  }
  return shapes;
}

void follow_edges(GraphPair& pair) {
  const Graph& b = *pair.b;
  for (NodeId id : b.execution_order()) {
    const Node& node = b.node(id);
    PathLength path;
    for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
      const Edge edge = b.effective_producer(id, slot);
      // Loops through parameters end where the step began.
      if (edge.node == kNoNode || b.node(edge.node).kind != NodeKind::kOperator) continue;
      path.additions = std::max(path.additions, pair.paths[edge.node].additions);
      path.operators = std::max(path.operators, pair.paths[edge.node].operators);
    }
    path.additions += reduction_length(b, node);
    path.operators += 1;
    pair.paths[id] = path;
    std::vector<uint32_t> slots = updated_slots(b, node);
    for (uint32_t slot : slots) pair.updater[updated_parameter(b, node, slot)] = id;
    if (!slots.empty()) pair.updated[id] = std::move(slots);
  }
  for (const auto& [parameter, updater] : pair.updater) pair.paths[parameter] = pair.paths[updater];
}

/// No path is known: everything that ran before may be on it.
void assume_longest(GraphPair& pair, const DumpedShapes& shapes) {
  PathLength path;
  for (NodeId id : pair.b->execution_order()) {
    const auto found = shapes.find(id);
    path.additions += found == shapes.end() ? 1 : reduction_length(pair.b->node(id), found->second);
    path.operators += 1;
    pair.paths[id] = path;
  }
  for (const Node& node : pair.b->nodes()) {
    if (node.kind == NodeKind::kParameter) pair.paths[node.id] = path;
  }
}

}  // namespace

std::unique_ptr<GraphPair> pair_nodes(Session& a, Session& b, const Graph& graph_a, const Graph& graph_b, const DiffOptions& options,
                                      std::vector<std::string>* problems) {
  auto pair = std::make_unique<GraphPair>();
  pair->a = &graph_a;
  pair->b = &graph_b;
  pair->edges_known = knows_edges(graph_a) && knows_edges(graph_b);
  DumpedShapes shapes_a, shapes_b;
  if (!pair->edges_known) {
    shapes_a = dumped_shapes(a, graph_a, options.steps_a);
    shapes_b = dumped_shapes(b, graph_b, options.steps_b);
  }
  pair->match = match_graphs(graph_a, graph_b, options.map, problems, shapes_a, shapes_b);
  pair->of_a.resize(graph_a.nodes().size());
  pair->of_b.resize(graph_b.nodes().size());
  for (const NodeMatch& match : pair->match.nodes) pair->of_a[match.a] = pair->of_b[match.b] = &match;
  pair->paths.resize(graph_b.nodes().size());
  if (pair->edges_known) follow_edges(*pair);
  else assume_longest(*pair, shapes_b);
  return pair;
}

}  // namespace msdbg
