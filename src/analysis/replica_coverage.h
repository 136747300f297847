// Which copies of a value were compared, and why others were not.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/replica_steps.h"

namespace msdbg {

/// Counts into the coverage and `not_checked` of a result, which must outlive this.
class ReplicaCoverage {
 public:
  ReplicaCoverage(Session& session, ReplicasResult& result) : session_(session), result_(result) {}

  /// The copies on the ranks of `part`.
  void count(const ReplicaValue& value, const Sighting& sighting, const std::vector<int>& part, int64_t step);
  /// No copy has another one to be compared with.
  void count_alone(const ReplicaValue& value, const Sighting& sighting);

 private:
  void not_checked(const TensorId& id, std::string reason);
  void absent(const ReplicaValue& value, const Sighting& sighting, int rank, const std::vector<int64_t>& with, int64_t step);

  Session& session_;
  ReplicasResult& result_;
  std::map<std::pair<int, int>, std::set<int64_t>> steps_;  // by rank and graph
};

}  // namespace msdbg
