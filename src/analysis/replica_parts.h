// Decides which ranks share a value where the graphs do not say: by shape, and by equality in the first step that has it.
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

/// True if every copy is a single number.
bool is_single_number(const Sighting& sighting);
/// True for a number that steers the optimizer, such as a rate or a counter, and for a schedule of rates: no moment of a weight with one
/// element.
bool is_setting(const ReplicaValue& value, const Sighting& sighting);

class ReplicaParts {
 public:
  explicit ReplicaParts(ReplicaModel& model) : model_(model), decided_(model.values().size()) {}

  /// Sets the parts of values that had none, as far as this step shows them.
  void decide(const std::vector<Sighting>& seen, int64_t step);
  /// Once, in the first step: adds all ranks, as the first part, to weights that are equal on several groups of ranks. The graphs say that
  /// each group shares them; that the groups do, too, is assumed where other weights are shards by the same groups.
  void widen(Session& session, const std::vector<Sighting>& seen, int64_t step);
  /// True for the part that was added.
  bool is_wide(size_t value, const std::vector<int>& part) const;
  /// Splits a parameter into the parts `equal` if most other weights had these parts when its own were decided: stages of a pipeline may
  /// begin with the same constants. Returns whether it did.
  bool split_like_others(size_t index, const Parts& equal, int64_t step);
  /// The value belongs to these ranks together, as `step` shows.
  void split(size_t index, const Parts& equal, int64_t step);
  /// The step that an assumption rests on.
  std::optional<int64_t> decided(size_t value) const { return decided_[value]; }
  /// True for a weight with one element.
  bool is_single(size_t value) const { return single_.contains(value); }

 private:
  ReplicaValue& value(size_t index) { return model_.values()[index]; }
  /// The state belongs to the same ranks as its weight.
  void inherit(size_t state, size_t weight);
  void decide_parameter(size_t index, const Sighting& sighting, int64_t step);
  void decide_computed(size_t index);

  ReplicaModel& model_;
  LastParts last_;
  std::vector<std::optional<int64_t>> decided_;  // by value
  std::map<std::pair<int, int64_t>, std::map<Parts, size_t>> splits_;  // graph, step -> parts of weights that differ, and how many
  bool widened_ = false;
  std::set<size_t> wide_;    // weights that widen() added a part to
  std::set<size_t> single_;  // weights with one element; their optimizer may begin its state in a later step
};

}  // namespace msdbg
