// How far a bad value went in a step, and along which ways.
//
// The session's owner thread only.
#pragma once

#include <set>
#include <vector>

#include "analysis/step_model.h"

namespace msdbg {

struct Spread {
  std::set<TensorId> tensors;      ///< bad tensors of the step on the way, the origin's own included
  std::set<Execution> executions;  ///< that took the value, known or not
  std::vector<std::vector<ChainLink>> chains;
};

/// From an execution that made a bad value.
Spread spread_from(Evidence& evidence, const StepModel& model, const Execution& origin, const TensorId& tensor);
/// From a parameter, graph input or constant; `tensor` is where it was seen.
Spread spread_from_start(Evidence& evidence, const StepModel& model, NodeId node, const TensorId& tensor);
/// From a recorded input whose producer is unknown.
Spread spread_from_input(Evidence& evidence, const StepModel& model, const Consumer& consumer, const TensorId& tensor);

}  // namespace msdbg
