#include "session/dump/step_index.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "session/dump/place_near.h"

namespace msdbg::dump {
namespace {

/// By node, slot and time. There are about as many nodes as values: each node gets its place by counting.
void sort_by_node(std::vector<Value>& values, size_t nodes) {
  std::vector<uint32_t> begin(nodes + 1, 0);
  for (const Value& value : values) ++begin[value.node + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  // In place: a second list of a million values would be the largest thing in memory.
  std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
  for (size_t node = 0; node < nodes; ++node) {
    while (next[node] < begin[node + 1]) {
      Value& here = values[next[node]];
      if (here.node == node) ++next[node];
      else std::swap(here, values[next[here.node]++]);
    }
  }
  const auto earlier = [](const Value& a, const Value& b) {
    const auto key = [](const Value& value) { return std::tuple(value.slot, value.timestamp); };
    const auto left = key(a), right = key(b);
    return left != right ? left < right : a.file() < b.file();
  };
  for (size_t node = 0; node < nodes; ++node) {
    if (begin[node + 1] - begin[node] > 1) std::sort(values.begin() + begin[node], values.begin() + begin[node + 1], earlier);
  }
}

}  // namespace

void StepIndex::finish(const Graph& graph) {
  if (values_.empty()) return;
  // The k-th time stamp of a slot belongs to the k-th iteration of a loop, or to the k-th run into the same directory.
  nodes_ = graph.nodes().size();
  sort_by_node(values_, nodes_);
  for (size_t at = 1; at < values_.size(); ++at) {
    const Value& before = values_[at - 1];
    if (values_[at].node == before.node && values_[at].slot == before.slot) values_[at].execution = before.execution + 1;
  }
  const auto place = [&](uint32_t at) {
    const Value& value = values_[at];
    const Node& node = graph.node(value.node);
    const bool runs = node.kind == NodeKind::kOperator;
    return std::tuple(runs, runs ? value.execution : 0, node.order, value.execution, value.slot);
  };
  order_.resize(values_.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto earlier = [&](uint32_t a, uint32_t b) { return place(a) < place(b); };
  if (!std::is_sorted(order_.begin(), order_.end(), earlier)) std::sort(order_.begin(), order_.end(), earlier);
}

size_t StepIndex::place_of(NodeId node) const {
  // As a rule, a step has about as many values of each node.
  const size_t guess = nodes_ == 0 ? 0 : uint64_t{values_.size()} * node / nodes_;
  return place_near(std::span(values_), guess, 1, [node](const Value& value) { return value.node < node; });
}

const Value* StepIndex::find(NodeId node, Slot slot, uint32_t execution) const {
  const std::span<const Value> values = values_of(node);
  const auto key = std::tuple(slot, execution);
  const auto at = std::lower_bound(values.begin(), values.end(), key, [](const Value& a, const auto& wanted) {
    return std::tuple(a.slot, a.execution) < wanted;
  });
  if (at == values.end() || std::tuple(at->slot, at->execution) != key) return nullptr;
  // Values are asked for one after the other, and the name of a file is rarely in the cache.
  if (&*at != &values_.back()) {
    const std::string_view next = (&*at + 1)->file();
    __builtin_prefetch(next.data());
    __builtin_prefetch(next.data() + next.size());
  }
  return &*at;
}

std::span<const Value> StepIndex::values_of(NodeId node) const {
  const auto begin = values_.begin() + static_cast<std::ptrdiff_t>(place_of(node));
  auto end = begin;
  while (end != values_.end() && end->node == node) ++end;
  return {begin, end};
}

uint32_t StepIndex::executions(NodeId node) const {
  uint32_t most = 0;
  for (const Value& value : values_of(node)) most = std::max(most, value.execution + 1);
  return most;
}

}  // namespace msdbg::dump
