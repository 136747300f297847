// The elements of tuples: edges that lead to a TupleGetItem end at the output that it selects.
#include <algorithm>

#include "wire/graph_reader.h"

namespace msdbg {
namespace {

constexpr int64_t kMaxTupleIndex = 65536;  // the largest number of outputs that a type may have
constexpr int kMaxHops = 64;               // for nested tuples

}  // namespace

// Determines the producer and slot that each TupleGetItem selects.
void GraphReader::resolve_picks(GraphBuilder& builder) {
  std::unordered_map<NodeId, Pick> direct;
  for (const NodeId id : pick_nodes_) {
    const Node& node = builder.node(id);
    if (node.inputs.size() < 2) continue;
    const auto index = integers_.find(node.inputs[1].node);
    const NodeId tuple = node.inputs[0].node;
    if (tuple == kNoNode || index == integers_.end() || index->second < 0 || index->second >= kMaxTupleIndex) continue;
    auto slot = static_cast<uint32_t>(index->second);
    if (const auto offsets = offsets_.find(tuple); offsets != offsets_.end()) {
      // A nested sequence takes as many slots as it has leaves.
      slot = offsets->second[std::min<size_t>(slot, offsets->second.size() - 1)];
    }
    direct[id] = {tuple, slot};
  }
  picks_.resize(direct.empty() ? 0 : builder.size());
  for (const auto& [id, pick] : direct) {
    Pick at = pick;
    auto further = direct.find(at.tuple);
    for (int hop = 0; hop < kMaxHops && further != direct.end(); ++hop) {
      at = {further->second.tuple, at.slot + further->second.slot};
      further = direct.find(at.tuple);
    }
    picks_[id] = further == direct.end() ? at : Pick{id, 0};  // cyclic selections stay as they are
  }
}

// Redirects edges from a TupleGetItem to the output slot that it selects, and takes missing shapes of sequences from it.
void GraphReader::look_through_tuples(GraphBuilder& builder) {
  resolve_picks(builder);
  if (picks_.empty()) return;
  for (NodeId id = 0; id < builder.size(); ++id) {
    for (Edge& edge : builder.node(id).inputs) {
      if (edge.node == kNoNode || picks_[edge.node].tuple == kNoNode) continue;
      const Pick& pick = picks_[edge.node];
      edge.slot = pick.slot;
      edge.node = pick.tuple;
    }
  }
  std::unordered_map<NodeId, std::vector<OutputType>> completed;
  for (const NodeId id : pick_nodes_) {
    const Pick& from = picks_[id];
    if (from.tuple == kNoNode) continue;
    Node& node = builder.node(id);
    node.inputs[0].node = from.tuple;
    node.inputs[0].slot = from.slot;
    std::vector<OutputType>& outputs = completed.try_emplace(from.tuple, builder.node(from.tuple).outputs.get()).first->second;
    if (node.outputs.size() != 1 || from.slot >= kMaxTupleIndex) continue;
    // A producer without a type in the file has at least the slots that are used.
    if (from.slot >= outputs.size()) {
      if (outputs.size() > 1 || !spend(from.slot + 1 - outputs.size(), node.name)) continue;
      outputs.resize(from.slot + 1);
    }
    OutputType& slot = outputs[from.slot];
    if (slot.dtype == DType::kUnknown) slot.dtype = node.outputs[0].dtype;
    if (!slot.shape) slot.shape = node.outputs[0].shape;
  }
  for (auto& [id, outputs] : completed) builder.set_outputs(id, std::move(outputs));
}

}  // namespace msdbg
