// Parameters that something outside of the graph has made much larger. The session's owner thread only.
#pragma once

#include <vector>

#include "analysis/evidence.h"
#include "analysis/parameter_writes.h"
#include "analysis/rank_models.h"
#include "analysis/step_model.h"

namespace msdbg {

/// Of those that the value of a node comes from, also through collectives, the one that grew most first. A program that clips its weights
/// after each update makes none larger.
std::vector<Grown> grown_parameters(Evidence& evidence, const StepModel& model, const RankModels& ranks, ParameterWrites& writes, NodeId node);

}  // namespace msdbg
