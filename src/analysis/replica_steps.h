// The replicas of one step as they were dumped: which rank holds which bits.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/by_rank.h"
#include "analysis/replica_model.h"
#include "analysis/replica_read.h"

namespace msdbg {

/// One value of a rank.
struct ReplicaCopy {
  NodeId node = kNoNode;                      ///< of the tensor
  std::shared_ptr<const ReplicaPrint> print;  ///< null: `reason`. Equal copies share it
  SharedText reason;
};

/// One place where a replica is seen: an operator's output or input, or a parameter's file.
struct Sighting {
  /// Where in the step: parameters that nothing updates, operators in execution order, parameters that something updated.
  enum class Phase : uint8_t { kStart, kRun, kEnd };
  /// Graph, phase, execution order, 0 for inputs, 1 for outputs, 2 for inputs that the operator updates; execution, slot.
  using Order = std::tuple<int, Phase, uint32_t, int, uint32_t, uint32_t>;

  Order order;
  size_t value = 0;           ///< index into ReplicaModel::values()
  std::string_view consumer;  ///< inputs: the operator that takes it; "" for the value itself
  int64_t step = 0;
  ByRank<ReplicaCopy> copies;

  bool is_input() const { return !consumer.empty(); }
  /// Of a rank that has a copy.
  TensorId tensor(int rank) const;
};

/// Ranks with the same bits, the largest group first; of groups of the same size the one with the lowest rank first.
std::vector<std::vector<int>> equal_ranks(const Sighting& sighting, std::span<const int> ranks);

class ReplicaReader {
 public:
  ReplicaReader(Session& session, const ReplicaModel& model, const FollowOptions& options, ReplicasResult* result);

  /// Outputs and parameters of the step that can be replicas, or the inputs that took them.
  /// Error: kInterrupted.
  Result<std::vector<Sighting>> read(int64_t step, bool inputs);

 private:
  struct Place {
    size_t value = 0;
    bool after = false;
  };
  /// Numbers of sightings, by what is the same place on several ranks.
  class Numbers;

  /// The nodes of a rank that make replicas, or take them.
  std::vector<NodeRef> nodes(int rank, bool inputs);
  std::optional<Place> place(const Graph& graph, const TensorId& id) const;
  /// Adds what a rank dumped; returns the numbers of the sightings.
  std::vector<uint32_t> list(int rank, int64_t step, bool inputs, Numbers& numbers, std::vector<Sighting>& seen);
  Status read(int rank, std::span<const uint32_t> numbers, std::vector<Sighting>& seen);

  Session& session_;
  const ReplicaModel& model_;
  const FollowOptions& options_;
  ReplicasResult& result_;
  std::vector<NodeRef> consumers_;  // once inputs are read; the same for the next
  std::map<std::tuple<const Graph*, NodeId, uint32_t>, Place> inputs_;
};

}  // namespace msdbg
