// The origins of one step of one graph.
#pragma once

#include "analysis/parameter_writes.h"
#include "analysis/rank_models.h"
#include "analysis/spread.h"

namespace msdbg {

/// Without an origin and an arrival, the lists and the step are empty. `ranks` has the models of all ranks.
StepOrigins search_step(Evidence& evidence, const StepModel& model, const RankModels& ranks, ParameterWrites& writes);

}  // namespace msdbg
