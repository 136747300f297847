// Weights that are split over the ranks and gathered by a collective before use, as in PyTorch's FullyShardedDataParallel. Only
// in graphs with recorded calls. The session's owner thread only.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "analysis/evidence.h"
#include "analysis/step_model.h"

namespace msdbg {

/// Of one rank and step.
class GatheredWeights {
 public:
  GatheredWeights(Evidence& evidence, const StepModel& model);

  /// The first call with a bad output that gathered the parameter. Both have the same number of elements and, in the nearest step before
  /// in which they are finite, the same extremes. Without such a step, only flat parameters, which are told by their name.
  std::optional<NodeId> call_of(NodeId parameter);
  /// The optimizer's output of the step before that became this input: in other steps, both have the same extremes.
  std::optional<TensorId> update_of_part(const TensorId& input);

 private:
  /// What a gathered value and its parts have in common.
  struct Extremes {
    uint64_t count = 0;
    double min = std::numeric_limits<double>::infinity(), max = -min;
    bool operator==(const Extremes&) const = default;
    bool finite() const;
    void add(const Extremes& other);
  };
  std::optional<Extremes> extremes(const TensorId& id);
  std::optional<Extremes> gathered(const Execution& call, int64_t step);
  template <typename First, typename Second>
  std::optional<bool> equal_before(const First& first, const Second& second) const;

  Evidence& evidence_;
  const StepModel& model_;
  const std::vector<int64_t> steps_;
  std::vector<Execution> calls_;  // in execution order
  std::map<TensorId, std::optional<Extremes>> known_;
};

/// Inputs of the optimizer that were bad on exactly one of `ranks`: they may be parts of weights whose gathering was not recorded.
std::vector<TensorId> bad_parts(Evidence& evidence, const Graph& graph, int64_t step, const std::vector<int>& ranks);
/// The first of `parts` that fits the weight: only the first dimension is smaller.
std::optional<TensorId> part_of(Session& session, const std::vector<TensorId>& parts, const TensorId& weight);

}  // namespace msdbg
