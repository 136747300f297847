// The replicas of one step as they were dumped: which rank holds which bits.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/by_rank.h"
#include "analysis/replica_model.h"
#include "analysis/replica_read.h"

namespace msdbg {

/// One value of a rank.
struct ReplicaCopy {
  TensorId tensor;
  std::optional<ReplicaPrint> print;  ///< nullopt: `reason`
  SharedText reason;
};

/// One place where a replica is seen: an operator's output or input, or a parameter's file.
struct Sighting {
  /// Where in the step: parameters that nothing updates, operators in execution order, parameters that something updated.
  enum class Phase : uint8_t { kStart, kRun, kEnd };
  /// Graph, phase, execution order, 0 for inputs, 1 for outputs, 2 for inputs that the operator updates; execution, slot.
  using Order = std::tuple<int, Phase, uint32_t, int, uint32_t, uint32_t>;

  Order order;
  size_t value = 0;             ///< index into ReplicaModel::values()
  std::string consumer;         ///< inputs: the operator that takes it; "" for the value itself
  ByRank<ReplicaCopy> copies;

  bool is_input() const { return !consumer.empty(); }
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

  Status read(std::span<ReplicaCopy* const> copies);

  Session& session_;
  const ReplicaModel& model_;
  const FollowOptions& options_;
  ReplicasResult& result_;
  std::vector<NodeRef> producers_, consumers_;
  std::map<std::tuple<const Graph*, NodeId, uint32_t>, Place> inputs_;
};

}  // namespace msdbg
