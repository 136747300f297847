// Weights that were equal at first, and then another one on every rank: shards that began alike, or ranks that train by themselves.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/replica_parts.h"

namespace msdbg {

class ReplicaApart {
 public:
  struct Weight {
    Sighting first;              ///< the first that shows it
    Parts equal;                 ///< the ranks of the first group as it shows them: each alone
    std::vector<int> part;       ///< the ranks that it was equal on before: all of `groups`
    Parts groups;                ///< ... as stages or shards have them, each with a weight of its own
    std::vector<int64_t> steps;  ///< in which it differs, ascending
    std::optional<int64_t> again;  ///< the first later step in which it is equal on all of them
    /// The first later step in which it is equal again on most of them: those come first.
    struct Most {
      Sighting seen;
      Parts equal;
      int64_t step = 0;
    };
    std::optional<Most> most;
  };

  ReplicaApart(ReplicaModel& model, const ReplicaParts& parts) : model_(model), parts_(parts) {}

  /// What a step shows of a weight on ranks that were equal before: `equal`.
  void see(const Sighting& sighting, const std::vector<int>& part, const Parts& equal, int64_t step);
  /// By the index of the value.
  const std::map<size_t, Weight>& weights() const { return weights_; }
  const Weight* find(size_t value) const;

  /// All steps were seen. What follows is known then.
  void end();
  /// True if each rank trains all weights by itself: all of them became different at once and stayed so, and the ranks exchange nothing.
  bool is_everything() const;
  /// The weights that stay equal, if these are a few among them that were equal, and the few were no constants: a shard does not begin
  /// like that, but a weight whose gradient is left out of what the ranks exchange does. 0 otherwise.
  uint64_t staying(Session& session) const;
  /// A weight of ranks that did not take over what all exchanged, as in local SGD.
  struct Missed {
    Sighting seen;
    std::vector<int> others, odd;
    int64_t step = 0;
  };
  std::vector<Missed> missed() const;
  /// Why such a weight is not compared.
  std::string reason(size_t value) const;
  /// The same for a value that is no such weight.
  std::string by_chance(size_t value, int64_t since) const;

 private:
  /// A weight with more than one element that several ranks have.
  bool is_compared_weight(size_t value) const;
  /// All weights with more than one element that ranks seemed to share became different in the same step, or in two steps.
  bool is_every_weight() const;

  ReplicaModel& model_;
  const ReplicaParts& parts_;
  std::map<size_t, Weight> weights_;
  bool every_weight_ = false;
  bool most_meet_ = false;  // all weights are equal again on the same ranks, which are most of them, in the same step
};

}  // namespace msdbg
