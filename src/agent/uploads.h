// Answers to a ViewCMD: values, statistics or shapes of the tensors asked for, in one upload.
#pragma once

#include <string>

#include "agent/channel.h"
#include "agent/tensor_store.h"

namespace msdbg::agent {

/// Sends what `view` asks for. `store` may be null: nothing is found then.
Reply answer_view(Caller& caller, const debugger::ViewCMD& view, const TensorStore* store, const ReleaseTraits& traits);

}  // namespace msdbg::agent
