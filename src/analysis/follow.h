// What the questions of msdbg/follow.h share: a predicate as a watchpoint, and the tensors of a target.
#pragma once

#include "msdbg/follow.h"

namespace msdbg {

/// A watchpoint that asks `predicate`, which it must not outlive.
Watchpoint watch_predicate(const Predicate& predicate);

/// The tensors of the target in these steps; nothing is read.
std::vector<TensorId> target_tensors(Session& session, const FollowTarget& target, const IntSet& steps, const IntSet& ranks);

CheckOptions check_options(const FollowOptions& options);

}  // namespace msdbg
