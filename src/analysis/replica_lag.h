// Ranks that are one step behind their replicas: everything they hold is what the others held in the step before.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "analysis/replica_steps.h"

namespace msdbg {

class ReplicaLag {
 public:
  /// In this step, `odd` hold another value than `others`.
  void differs(const Sighting& sighting, const std::vector<int>& odd, const std::vector<int>& others, int64_t step);
  /// All that was seen in the step, after its differences.
  void end_step(const std::vector<Sighting>& seen, int64_t step);
  /// Makes one difference of all those of ranks that are behind.
  void join(std::vector<ReplicaDifference>& differences) const;

 private:
  /// True if in each of these steps `odd` were behind, as far as anything of the step before shows, and nothing contradicts it: a rank
  /// that missed an update has old weights as well, but what the collectives gave it is new.
  bool is_behind(const std::vector<int>& odd, const std::set<int64_t>& steps) const;

  struct Step {
    int other = 0;             ///< one of the others
    bool behind = false;       ///< a tensor of several elements is what `other` had in the step before
    bool contradicted = false;
  };

  /// Ranks with the same bits.
  struct Part {
    ReplicaPrint print;
    std::vector<int> ranks;  ///< ascending
  };

  const ReplicaPrint* before(const Sighting& sighting, int rank) const;
  void keep(const std::vector<Sighting>& seen);

  std::map<std::pair<size_t, Sighting::Order>, std::vector<Part>> before_;  // in the step before, by value and place
  std::optional<int64_t> step_before_;
  std::map<std::vector<int>, std::map<int64_t, Step>> seen_;  // by odd ranks
};

}  // namespace msdbg
