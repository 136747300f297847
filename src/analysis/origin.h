// The origins of one step of one graph.
#pragma once

#include "analysis/spread.h"

namespace msdbg {

/// Without an origin, the list and the step are empty.
StepOrigins search_step(Evidence& evidence, const StepModel& model);

}  // namespace msdbg
