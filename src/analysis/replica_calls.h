// Optimizers that were recorded call by call: the numbers that ranks pass to them, and ranks that run none. They tell of another learning
// rate and of a missing update where the weights are no replicas, as with shards.
//
// The session's owner thread only.
#pragma once

#include "analysis/replica_steps.h"
#include "msdbg/replicas.h"

namespace msdbg {

/// Adds to `result` what its differences do not tell yet.
void find_other_calls(Session& session, ReplicasResult* result);

/// Calls are numbered as they came: true if those of the sighting are not the same one of the optimizer on all ranks, because one of them
/// ran fewer calls of the type before.
bool is_renumbered(Session& session, const Sighting& sighting, const Parts& equal);

}  // namespace msdbg
