// Differences that tell of one fault, each from another side.
//
// The session's owner thread only.
#pragma once

#include <vector>

#include "analysis/replica_read.h"
#include "msdbg/replicas.h"

namespace msdbg {

/// Joins with the weights that differ:
/// - calls of the optimizer that took other numbers in the step that wrote them, such as the decay that belongs to a learning rate;
/// - a step in which a rank ran no optimizer. It tells which of two sides is wrong;
/// - weights of which fewer ranks have a copy, such as shards, from the same step on: the others tell which rank is wrong;
/// - what the next update writes, where the dump has no weights;
/// - counters that miss the same update: they hold what the others held in the step before.
void join_stories(Session& session, ReplicaBuffers& buffers, std::vector<ReplicaDifference>* differences);

}  // namespace msdbg
