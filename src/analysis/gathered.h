// Weights that each rank holds a part of, and that a collective gathers before they are used, as in PyTorch's FullyShardedDataParallel.
// Only in graphs with recorded calls. The session's owner thread only.
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

  /// The first call with a bad output that gathered the parameter: by the number of elements, and by the extremes in a step where all of
  /// them are finite; without such a step, only what is called a flat parameter.
  std::optional<NodeId> call_of(NodeId parameter);
  /// The optimizer's output of the step before that was gathered as this input, if both are equal in other steps.
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

/// Where ranks hold parts of weights and gather them unseen: inputs of the optimizer that were bad on exactly one of `ranks`.
std::vector<TensorId> bad_parts(Evidence& evidence, const Graph& graph, int64_t step, const std::vector<int>& ranks);
/// The first of these that may be a part of a weight: of its shape but for the first dimension.
std::optional<TensorId> part_of(Session& session, const std::vector<TensorId>& parts, const TensorId& weight);

}  // namespace msdbg
