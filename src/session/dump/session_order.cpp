// Order in a dump session: which tensors exist, and which value came before.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "session/dump/dump_session.h"
#include "session/query_filter.h"

namespace msdbg::dump {

std::vector<TensorId> DumpSession::tensors(const TensorQuery& query) {
  const QueryFilter filter(query);
  std::vector<TensorId> found;
  for (int rank : data_.ranks) {
    if (!query.ranks.contains(rank)) continue;
    std::set<int64_t> steps;
    std::vector<const GraphData*> graphs;
    for (auto at = data_.data.lower_bound({rank, 0}); at != data_.data.end() && at->first.first == rank; ++at) {
      if ((query.graph && *query.graph != at->first.second) || !filter.contains(*at->second.graph)) continue;
      graphs.push_back(&at->second);
      for (const auto& [step, index] : at->second.steps) {
        if (query.steps.contains(step)) steps.insert(step);
      }
    }
    if (query.nodes == nullptr) {
      size_t most = found.size();
      for (const GraphData* data : graphs) {
        for (const int64_t step : steps) {
          if (const auto index = data->steps.find(step); index != data->steps.end()) most += index->second.values().size();
        }
      }
      found.reserve(most);
    }
    std::set<const GraphData*> seen, with_constants;
    for (const GraphData* data : graphs) {
      const auto is_constant = [](const Node& node) { return node.kind == NodeKind::kConstant; };
      if (std::ranges::any_of(data->graph->nodes(), is_constant)) with_constants.insert(data);
    }
    std::set<std::pair<const GraphData*, NodeId>> constants_listed;
    for (int64_t step : steps) {
      for (const GraphData* data : graphs) {
        const auto index = data->steps.find(step);
        if (index == data->steps.end()) continue;
        const Graph& graph = *data->graph;
        const auto add = [&](const Value& listed) {
          if (!filter.contains(listed.slot) || !filter.contains(graph, listed.node)) return;
          found.push_back({rank, graph.id(), step, listed.execution, listed.node, listed.slot});
        };
        // Constants in their own directory are listed with the first step; those of 1.3 to 1.5 are in every step.
        if (seen.insert(data).second) {
          for (const Value& listed : data->constants.listed()) {
            if (!index->second.values_of(listed.node).empty()) continue;
            add(listed);
            constants_listed.insert({data, listed.node});
          }
        }
        std::vector<NodeId> now;
        const bool any_constant = with_constants.contains(data);
        for (const Value& listed : index->second.listed()) {
          if (any_constant && graph.node(listed.node).kind == NodeKind::kConstant) {
            if (constants_listed.count({data, listed.node}) > 0) continue;
            now.push_back(listed.node);
          }
          add(listed);
        }
        for (NodeId node : now) constants_listed.insert({data, node});
      }
    }
  }
  return found;
}

Result<TensorId> DumpSession::previous(const TensorId& id, bool* history_missing) { return earlier(id, history_missing); }

Result<TensorId> DumpSession::earlier(const TensorId& id, bool* history_missing) const {
  if (history_missing) *history_missing = false;
  const GraphData* data = graph_data(id.rank, id.graph);
  if (!data || id.node >= data->graph->nodes().size()) return not_dumped(id);
  if (data->graph->node(id.node).kind == NodeKind::kConstant) {
    return Status(Code::kNotFound, "a constant has no previous value");
  }
  // Subgraphs run when their root does; only the root has a history.
  const History& history = data_.history.at(id.rank);
  const int root = history.knows(id.graph) ? id.graph : data->graph->root_id();
  std::optional<int64_t> step;
  if (history.knows(root)) {
    step = history.run_before(root, id.step);
  } else if (history.empty()) {
    const auto here = data->steps.lower_bound(id.step);
    if (here != data->steps.begin()) step = std::prev(here)->first;
  } else {
    if (history_missing) *history_missing = true;
    return Status(Code::kNotFound, fmt::format("no execution history of graph {}", id.graph));
  }
  if (!step) return Status(Code::kNotFound, fmt::format("step {} is the first of graph {}", id.step, id.graph));
  TensorId before = id;
  before.step = *step;
  if (!find(before)) return not_dumped(before);
  return before;
}

}  // namespace msdbg::dump
