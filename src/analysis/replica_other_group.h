// Weights whose gradients were reduced by another group than those of most others: over ranks that hold other shards of them.
//
// The session's owner thread only.
#pragma once

#include "analysis/replica_model.h"
#include "analysis/replica_read.h"
#include "msdbg/replicas.h"

namespace msdbg {

/// Makes one difference of all those that such a group explains.
void name_other_groups(Session& session, const ReplicaModel& model, ReplicaBuffers& buffers, ReplicasResult* result);

}  // namespace msdbg
