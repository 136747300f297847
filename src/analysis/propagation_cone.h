// Grows the cone of a bad tensor from operator to operator.
#pragma once

#include "analysis/step_model.h"
#include "msdbg/follow.h"

namespace msdbg {

/// Fills nodes and edges of `result`, whose tensor is bad, in its direction. The session's owner thread only.
void grow_cone(Evidence& evidence, const StepModel& model, Propagation& result);

}  // namespace msdbg
