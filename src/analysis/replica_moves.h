// How far a weight moved on a rank, compared with its replicas. The session's owner thread only.
#pragma once

#include <optional>

#include "analysis/replica_read.h"

namespace msdbg {

/// Fills `moved` and `own_way` of a new difference: how far its value moved since the step before on the odd ranks, as a multiple of how
/// far it moved on the others. 0 if it did not move, as without an update; 2 if each element moved twice as far, as with twice the
/// learning rate. Nothing if that is unknown, and if the odd ranks moved as far as the others.
void compare_moves(Session& session, ReplicaBuffers& buffers, ReplicaDifference* difference);

/// By elements, else by statistics; false if neither is known.
bool same_value(Session& session, const TensorId& a, const TensorId& b, ReplicaBuffers& buffers);

}  // namespace msdbg
