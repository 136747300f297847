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
  ReplicaCoverage(Session& session, ReplicasResult& result, size_t values) : session_(session), result_(result), counts_(values) {}

  /// The copies on the ranks of `part`.
  void count(const ReplicaValue& value, const Sighting& sighting, const std::vector<int>& part, int64_t step);
  /// No copy has another one to be compared with.
  void count_alone(const ReplicaValue& value, const Sighting& sighting);
  /// True for the output of a collective in a step that is unfinished, if a rank never came to it: the others wait. Lists their copies.
  bool never_ended(const ReplicaValue& value, const Sighting& sighting, const std::vector<int>& part, int64_t step);
  /// True for outputs of an optimizer's calls whose numbers mean other calls on some ranks: see is_renumbered(). Lists their copies.
  bool renumbered(const ReplicaValue& value, const Sighting& sighting, const std::vector<int>& part, const Parts& equal);
  /// The value turned out to be none that ranks share: its copies count as not compared.
  void take_back(size_t value);

 private:
  struct Counts {
    uint32_t checked = 0, by_checksum = 0, by_statistics = 0;
  };

  /// The copies on the ranks of `part`, which were counted, cannot be compared after all.
  void not_compared(const Sighting& sighting, const std::vector<int>& part, const std::string& reason);
  void uncount(const Counts& counts);
  void not_checked(const TensorId& id, std::string reason);
  void absent(const ReplicaValue& value, const Sighting& sighting, int rank, const std::vector<int64_t>& with, int64_t step);

  Session& session_;
  ReplicasResult& result_;
  std::vector<Counts> counts_;  // by value
  std::pair<int64_t, bool> unfinished_{-1, false};  // the last step that was asked for
  std::map<std::pair<int, int>, std::set<int64_t>> steps_;  // by rank and graph
};

}  // namespace msdbg
