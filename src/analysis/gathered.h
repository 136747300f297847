// Weights that each rank holds a part of, and that a collective gathers before they are used, as in PyTorch's FullyShardedDataParallel.
// Only in graphs with recorded calls. The session's owner thread only.
#pragma once

#include <optional>
#include <vector>

#include "analysis/evidence.h"
#include "analysis/step_model.h"

namespace msdbg {

/// The calls of the step that gather values from all ranks, in execution order.
std::vector<Execution> gathering_calls(const StepModel& model);
/// The first of `calls` that gathered the parameter: by the number of elements, and by the extremes in a step where all of them are finite;
/// without such a step, only what is called a flat parameter.
std::optional<Execution> gathered_by(Evidence& evidence, const StepModel& model, const std::vector<Execution>& calls, NodeId parameter);
/// Where the ranks hold parts of a weight that was bad when the step began, and gathered it unseen: the optimizer's input that shows which part
/// was bad; nullopt unless exactly one was.
std::optional<TensorId> bad_part(Evidence& evidence, const TensorId& weight, const std::vector<int>& ranks);
/// The optimizer's output of the step before that was gathered as this input, if both are equal in other steps.
std::optional<TensorId> update_of_part(Evidence& evidence, const StepModel& model, const TensorId& input);

}  // namespace msdbg
