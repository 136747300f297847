#include "analysis/propagation_cone.h"

#include <algorithm>
#include <numeric>

namespace msdbg {

size_t ConeNodes::add(const StepModel& model, const Execution& execution, bool value, uint32_t distance, bool* added) {
  const auto [found, is_new] = places_.try_emplace({&model, execution, value}, size());
  if (added) *added = is_new;
  if (!is_new) return found->second;
  PropagationNode node;
  node.rank = model.graph().rank();
  node.graph = model.graph().id();
  node.node = execution.node;
  node.execution = execution.index;
  node.parameter = value;
  node.distance = distance;
  result_.nodes.push_back(std::move(node));
  of_.push_back(&model);
  return found->second;
}

size_t ConeNodes::at(const StepModel& model, const Execution& execution, uint32_t distance, bool* added) {
  return add(model, execution, false, distance, added);
}

size_t ConeNodes::value(const StepModel& model, NodeId id, uint32_t distance, bool* added) {
  return add(model, {id, 0}, true, distance, added);
}

void ConeNodes::show(size_t index, const TensorId& tensor, std::optional<Stats> stats) {
  PropagationNode& node = result_.nodes[index];
  if (node.tensor) return;
  node.tensor = tensor;
  node.stats = stats ? std::move(stats) : models_.evidence().stats(tensor);
}

void ConeNodes::edge(size_t from, size_t to, uint32_t output, uint32_t input, bool update, bool bad) {
  if (!edges_.insert({from, to, output, input}).second) return;
  PropagationEdge edge;
  edge.from = from;
  edge.to = to;
  edge.output = output;
  edge.input = input;
  edge.update = update;
  edge.bad = bad;
  result_.edges.push_back(std::move(edge));
}

void ConeNodes::edge_between_ranks(size_t from, size_t to, bool bad) {
  const size_t before = result_.edges.size();
  edge(from, to, 0, 0, false, bad);
  const Exchange* const exchange = models_.collectives().find(model(from).graph(), result_.nodes[from].node);
  if (result_.edges.size() == before || exchange == nullptr) return;
  PropagationEdge& made = result_.edges.back();
  made.collective = true;
  made.group = exchange->group;
  made.assumed = exchange->assumed;
}

void ConeNodes::finish() {
  std::vector<size_t> order(size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t index) {
    const PropagationNode& at = result_.nodes[index];
    return std::tuple(at.distance, at.rank, at.graph, node(index).order, at.execution);
  });
  std::vector<size_t> place(order.size());
  std::vector<PropagationNode> sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(std::move(result_.nodes[order[i]]));
  }
  result_.nodes = std::move(sorted);
  for (PropagationEdge& edge : result_.edges) edge.from = place[edge.from], edge.to = place[edge.to];
  std::ranges::sort(result_.edges, {}, [](const PropagationEdge& edge) { return std::tuple(edge.from, edge.to, edge.output, edge.input); });
}

}  // namespace msdbg
