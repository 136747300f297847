// Collective operators as edges between ranks: which calls on other ranks exchange values with a call on this one.
//
// Built once from the graphs, then immutable. Background: docs/ranks.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

enum class CollectiveKind : uint8_t {
  kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast, kReduce, kGather, kScatter, kSend, kReceive
};
/// By the operator's type, in any of MindSpore's spellings; nullopt for other operators.
std::optional<CollectiveKind> collective_kind(const Node& node);
/// True if every rank of the group gets the same output: AllReduce, AllGather, Broadcast.
bool gives_all_the_same(CollectiveKind kind);
/// The group as the graph names it, without quotes; "" if the graph does not say.
std::string collective_group(const Node& node);
/// True for the group of all ranks, under the name of any backend.
bool is_world_group(std::string_view group);

/// The calls that exchange values: one of each rank that takes part.
struct Exchange {
  CollectiveKind kind = CollectiveKind::kAllReduce;  ///< kSend for a pair of Send and Receive
  std::string group;             ///< "" if unknown
  bool assumed = false;          ///< the graph does not tell who takes part
  std::vector<NodeRef> members;  ///< by rank
  std::vector<NodeRef> sources;  ///< the members whose inputs reach the outputs of all, by rank
};

class Collectives {
 public:
  /// `graphs` by rank, then id. Calls match by name where all ranks of a group have the same names, else by their order.
  explicit Collectives(std::span<const GraphPtr> graphs);

  /// nullptr: not a collective, or no other rank takes part.
  const Exchange* find(const Graph& graph, NodeId node) const;
  /// The other members that the outputs of this call depend on, and those whose outputs depend on its inputs.
  std::vector<NodeRef> sources(const Graph& graph, NodeId node) const;
  std::vector<NodeRef> receivers(const Graph& graph, NodeId node) const;
  bool empty() const { return exchanges_.empty(); }
  const std::vector<Exchange>& all() const { return exchanges_; }

 private:
  std::vector<Exchange> exchanges_;
  std::map<std::pair<const Graph*, NodeId>, size_t> place_;
};

}  // namespace msdbg
