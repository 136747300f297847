// The models of one step on all ranks, joined by their collectives: what a collective took from other ranks, and which ranks a fault
// reached through it.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/step_model.h"

namespace msdbg {

class RankModels {
 public:
  explicit RankModels(const Collectives& collectives) : collectives_(collectives) {}
  /// `model` must outlive this.
  void add(const StepModel& model) { models_[&model.graph()] = &model; }

  /// Inputs of other ranks that the outputs of this execution depend on, with OriginInput::rank set. Empty if it is no collective.
  std::vector<OriginInput> remote_inputs(const StepModel& model, const Execution& execution) const;
  /// The calls of other ranks whose inputs the outputs of a collective depend on.
  std::vector<std::pair<const StepModel*, NodeId>> sources(const StepModel& model, NodeId node) const;
  /// Ranks whose output of the same call is good although it must be the same: nothing bad went into it anywhere.
  std::vector<int> good_outputs(const StepModel& model, const Execution& execution) const;
  const Collectives& collectives() const { return collectives_; }
  const std::map<const Graph*, const StepModel*>& models() const { return models_; }

 private:
  const Collectives& collectives_;
  std::map<const Graph*, const StepModel*> models_;
};

/// The loss of the step, if it is good: the scalar at the end; what led to it is an activation like any other.
std::optional<TensorId> sound_loss(Evidence& evidence, const StepModel& model);

/// Follows what reached each rank back to the origins on other ranks, fills their `ranks_reached`, and joins stories that several ranks
/// share.
/// `found` has all ranks of one step and is emptied into the lists of `result`.
void join_ranks(Session& session, const Collectives& collectives, std::vector<StepOrigins> found, OriginResult* result);

}  // namespace msdbg
