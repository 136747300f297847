// Ranks that are one step behind their replicas, or ahead of them: everything they hold is what the others held in the step before, or
// hold in the next one.
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
  /// `last`: no step follows.
  void end_step(const std::vector<Sighting>& seen, int64_t step, bool last);
  /// Makes one difference of all those of ranks that are behind or ahead.
  void join(std::vector<ReplicaDifference>& differences) const;

 private:
  /// Of a comparison with the step before or after.
  struct Evidence {
    bool possible = false;  ///< that step was looked at
    bool seen = false;      ///< a tensor of several elements is what the other rank had then
    bool contradicted = false;

    void compare(const ReplicaPrint& own, const ReplicaPrint& theirs);
  };
  struct Step {
    int other = 0;  ///< one of the others
    Evidence behind, ahead;
  };
  /// kStep or kStepAhead if `odd` were behind or ahead in each of these steps, as far as the steps around them show, and nothing
  /// contradicts it: a rank that missed an update has old weights as well, but what the collectives gave it is new.
  std::optional<ReplicaCause> shifted(const std::vector<int>& odd, const std::set<int64_t>& steps) const;

  /// Ranks with the same bits.
  struct Part {
    ReplicaPrint print;
    std::vector<int> ranks;  ///< ascending
  };

  const ReplicaPrint* before(const Sighting& sighting, int rank) const;
  void find_behind(const std::vector<Sighting>& seen, const std::vector<int>& odd, Step& state) const;
  void find_ahead(const std::vector<Sighting>& seen, const std::vector<int>& odd, Step& state) const;
  /// Steps that were left out of the dump are none before.
  bool follows(int64_t step) const { return step_before_ && *step_before_ + 1 == step; }
  void keep(const std::vector<Sighting>& seen);

  std::map<std::pair<size_t, Sighting::Order>, std::vector<Part>> before_;  // in the step before, by value and place
  std::optional<int64_t> step_before_;
  std::map<std::vector<int>, std::map<int64_t, Step>> seen_;  // by odd ranks
};

}  // namespace msdbg
