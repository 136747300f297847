// Recorded calls that one rank ran otherwise than all others, and no value that must be equal shows it: in another mode, as eval() sets it, in
// another type, or fewer times. And numbers that explain other weights: a loss that was scaled otherwise.
//
// The session's owner thread only.
#pragma once

#include "msdbg/replicas.h"

namespace msdbg {

/// Adds to `result` what its differences do not tell yet, and explains those of weights.
void find_other_programs(Session& session, ReplicasResult* result);

}  // namespace msdbg
