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
std::string_view collective_kind_name(CollectiveKind kind);  ///< "AllReduce", ...
/// nullptr: the graph does not say.
const std::string* collective_attribute(const Node& node, std::string_view name);
/// True if every rank of the group gets the same output: AllReduce, AllGather, Broadcast.
bool gives_all_the_same(CollectiveKind kind);
/// The group as the graph names it, without quotes; "" if the graph does not say.
std::string collective_group(const Node& node);
/// A recorded call with `async_op`: its output may have been recorded before it arrived.
bool is_asynchronous(const Node& node);
/// True for the group of all ranks, under the name of any backend.
bool is_world_group(std::string_view group);

/// The calls that exchange values: one of each rank that takes part.
struct Exchange {
  CollectiveKind kind = CollectiveKind::kAllReduce;  ///< kSend for a pair of Send and Receive
  std::string group;             ///< "" if unknown
  bool assumed = false;          ///< the graphs do not say who takes part, or their calls do not match one to one
  std::vector<NodeRef> members;  ///< by rank
  std::vector<NodeRef> sources;  ///< the members whose inputs reach the outputs of all, by rank
  std::vector<int> missing;      ///< ranks whose inputs reach the outputs too, and that have no such call in this session
  size_t missing_unnamed = 0;    ///< more of them, by the size of the group
};

class Collectives {
 public:
  /// `graphs` by rank, then id. Calls of a group match by name where all its ranks have the same names, else by their order; Send and
  /// Receive by the ranks that they name, their tag and their order.
  explicit Collectives(std::span<const GraphPtr> graphs);

  /// nullptr: not a collective, or no other rank takes part.
  const Exchange* find(const Graph& graph, NodeId node) const;
  /// The other members that the outputs of this call depend on, and those whose outputs depend on its inputs.
  std::vector<NodeRef> sources(const Graph& graph, NodeId node) const;
  std::vector<NodeRef> receivers(const Graph& graph, NodeId node) const;
  /// Why inputs that this call depends on are unknown: ranks that take part in it are not in this session. "" if all are known.
  std::string unknown_sources(const Graph& graph, NodeId node) const;
  bool empty() const { return exchanges_.empty(); }
  const std::vector<Exchange>& all() const { return exchanges_; }

 private:
  class Matcher;
  std::vector<Exchange> exchanges_;
  std::map<std::pair<const Graph*, NodeId>, size_t> place_;
};

}  // namespace msdbg
