// Answers a ViewCMD: values, statistics or shapes of the requested tensors in one upload.
#pragma once

#include <string>

#include "agent/channel.h"
#include "agent/tensor_store.h"

namespace msdbg::agent {

/// Sends what `view` requests. `store` may be null: then no tensor is found.
Reply answer_view(Caller& caller, const debugger::ViewCMD& view, TensorStore* store, const ReleaseTraits& traits);

}  // namespace msdbg::agent
