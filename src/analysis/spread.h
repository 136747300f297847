// How far a bad value spread in a step, and along which paths.
//
// The session's owner thread only.
#pragma once

#include <set>
#include <vector>

#include "analysis/step_model.h"

namespace msdbg {

constexpr size_t kMostChains = 4;

struct Spread {
  std::set<TensorId> tensors;      ///< bad tensors of the step on the way, including the origin's own
  std::set<Execution> executions;  ///< that used the value, known or not
  std::vector<std::vector<ChainLink>> chains;
};

/// From an execution that produced a bad value.
Spread spread_from(Evidence& evidence, const StepModel& model, const Execution& origin, const TensorId& tensor);
/// From a parameter, graph input or constant; `tensor` is where the value was seen.
Spread spread_from_start(Evidence& evidence, const StepModel& model, NodeId node, const TensorId& tensor);
/// From a recorded input whose producer is unknown.
Spread spread_from_input(Evidence& evidence, const StepModel& model, const Consumer& consumer, const TensorId& tensor);

}  // namespace msdbg
