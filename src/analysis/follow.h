// Shared by the functions of msdbg/follow.h: a predicate as a watchpoint, and the tensors of a target.
#pragma once

#include "msdbg/follow.h"

namespace msdbg {

/// A watchpoint for `predicate`, which must outlive it.
Watchpoint watch_predicate(const Predicate& predicate);

/// The tensors of the target in these steps; reads no elements.
std::vector<TensorId> target_tensors(Session& session, const FollowTarget& target, const IntSet& steps, const IntSet& ranks);

CheckOptions check_options(const FollowOptions& options);

}  // namespace msdbg
