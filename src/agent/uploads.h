// Values, statistics and shapes for the debugger. Answers a ViewCMD in one upload.
#pragma once

#include <string>

#include "agent/channel.h"
#include "agent/tensor_store.h"

namespace msdbg::agent {

/// Statistics as the release computes them; without a type if the tensor is not found. `store` may be null.
debugger::TensorSummary summary_of(TensorStore* store, const debugger::TensorProto& wanted, const ReleaseTraits& traits);

/// Sends what `view` requests. `store` may be null: then no tensor is found.
Reply answer_view(Caller& caller, const debugger::ViewCMD& view, TensorStore* store, const ReleaseTraits& traits);

}  // namespace msdbg::agent
