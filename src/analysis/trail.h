// The way back from a bad tensor to one origin, over steps and graphs.
#pragma once

#include "analysis/step_models.h"
#include "msdbg/follow.h"

namespace msdbg {

/// Judges each step that the trail reaches. `tensor` is bad.
/// Error: that of a check.
Result<Trail> follow_trail(StepModels& models, const TensorId& tensor);

}  // namespace msdbg
