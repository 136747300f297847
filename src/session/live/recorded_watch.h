// Watchpoints of a recording, known from their hits.
#pragma once

#include "msdbg/check.h"
#include "session/live/exchange.h"

namespace msdbg::live {

/// The watchpoint that `hit` is about, without its nodes: the peer's number as id, the condition with the thresholds that the hit
/// carries. Conditions on weights, gradients and activations have the numbers of those on tensors: `target` decides. False for a
/// condition that the catalogue does not have.
bool recorded_watchpoint(const debugger::WatchpointHit& hit, Target target, Watchpoint* watch);
/// What a node is to the catalogue.
Target target_of(const Node& node);

}  // namespace msdbg::live
