// The watchpoints of a recording, reconstructed from their hits.
#pragma once

#include "msdbg/check.h"
#include "session/live/exchange.h"

namespace msdbg::live {

/// The watchpoint of `hit`, without its nodes: the id is the peer's number, the condition has the thresholds of the hit. Conditions
/// on weights, gradients and activations share their numbers with those on tensors: `target` decides. False for a condition that is
/// not in the catalogue.
bool recorded_watchpoint(const debugger::WatchpointHit& hit, Target target, Watchpoint* watch);
/// The kind of target that a node is in the catalogue.
Target target_of(const Node& node);

}  // namespace msdbg::live
