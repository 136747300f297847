#include "session/dump/step_index.h"

#include <algorithm>
#include <tuple>

namespace msdbg::dump {

void StepIndex::add(NodeId node, Slot slot, Value value) { pending_.push_back({node, slot, std::move(value)}); }

void StepIndex::finish(const Graph& graph) {
  // The k-th time stamp of a slot belongs to the k-th iteration of a loop, or to the k-th run into the same directory.
  std::sort(pending_.begin(), pending_.end(), [](const Pending& a, const Pending& b) {
    return std::tie(a.node, a.slot, a.value.timestamp, a.value.file) <
           std::tie(b.node, b.slot, b.value.timestamp, b.value.file);
  });
  values_.reserve(pending_.size());
  listed_.reserve(pending_.size());
  for (Pending& pending : pending_) {
    if (slots_.empty() || slots_.back().node != pending.node || slots_.back().slot != pending.slot) {
      slots_.push_back({pending.node, pending.slot, static_cast<uint32_t>(values_.size()), 0});
    }
    listed_.push_back({pending.node, pending.slot, slots_.back().count++});
    values_.push_back(std::move(pending.value));
  }
  pending_ = {};
  std::sort(listed_.begin(), listed_.end(), [&](const Listed& a, const Listed& b) {
    const Node &left = graph.node(a.node), &right = graph.node(b.node);
    const bool left_runs = left.kind == NodeKind::kOperator, right_runs = right.kind == NodeKind::kOperator;
    const uint32_t left_turn = left_runs ? a.execution : 0, right_turn = right_runs ? b.execution : 0;
    return std::tie(left_runs, left_turn, left.order, a.execution, a.slot) <
           std::tie(right_runs, right_turn, right.order, b.execution, b.slot);
  });
}

const Value* StepIndex::find(NodeId node, Slot slot, uint32_t execution) const {
  const auto at = std::lower_bound(slots_.begin(), slots_.end(), std::tie(node, slot),
                                   [](const SlotValues& a, const auto& key) { return std::tie(a.node, a.slot) < key; });
  if (at == slots_.end() || at->node != node || at->slot != slot || execution >= at->count) return nullptr;
  return &values_[at->first + execution];
}

uint32_t StepIndex::count(NodeId node, Slot slot) const {
  for (const SlotValues& values : slots_of(node)) {
    if (values.slot == slot) return values.count;
  }
  return 0;
}

std::span<const SlotValues> StepIndex::slots_of(NodeId node) const {
  const auto begin = std::lower_bound(slots_.begin(), slots_.end(), node,
                                      [](const SlotValues& a, NodeId wanted) { return a.node < wanted; });
  auto end = begin;
  while (end != slots_.end() && end->node == node) ++end;
  return {begin, end};
}

uint32_t StepIndex::executions(NodeId node) const {
  uint32_t most = 0;
  for (const SlotValues& values : slots_of(node)) most = std::max(most, values.count);
  return most;
}

}  // namespace msdbg::dump
