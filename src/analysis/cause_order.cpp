#include "analysis/cause_order.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace msdbg {
namespace {

/// A parameter that broke in the step has the value that the last operator has left.
uint32_t order_of(const Session& session, const Cause& cause) {
  const Node& node = session.node(cause.tensor);
  uint32_t order = node.order;
  if (node.kind != NodeKind::kParameter || cause.kind != CauseKind::kUnknown) return order;
  const Graph& graph = *session.graph(cause.tensor.rank, cause.tensor.graph);
  for (const Use& use : graph.effective_users(node.id)) order = std::max(order, graph.node(use.node).order);
  return order;
}

}  // namespace

void sort_causes(Session& session, std::vector<size_t>& numbers, const std::function<const Cause&(size_t)>& cause) {
  std::map<std::tuple<int64_t, int, int>, uint64_t> began;  // of each graph in its step
  for (const size_t number : numbers) {
    const TensorId& id = cause(number).tensor;
    const uint64_t time = session.written_at(id).value_or(0);
    const auto [at, is_new] = began.try_emplace({id.step, id.rank, id.graph}, time);
    if (!is_new) at->second = std::min(at->second, time);
  }
  using Key = std::tuple<int64_t, int, uint64_t, int, uint32_t, NodeId>;
  std::vector<std::pair<Key, size_t>> keyed;
  keyed.reserve(numbers.size());
  for (const size_t number : numbers) {
    const TensorId& id = cause(number).tensor;
    const Key key{id.step, id.rank, began[{id.step, id.rank, id.graph}], id.graph, order_of(session, cause(number)), id.node};
    keyed.emplace_back(key, number);
  }
  std::ranges::stable_sort(keyed, {}, &std::pair<Key, size_t>::first);
  std::ranges::transform(keyed, numbers.begin(), &std::pair<Key, size_t>::second);
}

}  // namespace msdbg
