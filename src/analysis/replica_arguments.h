// Numbers that the optimizer of one rank was given, and those of others were not.
//
// The session's owner thread only.
#pragma once

#include "analysis/parameter_writes.h"
#include "msdbg/replicas.h"

namespace msdbg {

/// Sets `called` and `arguments`; of an operator that computed something else, also `not_seen`.
void find_other_arguments(Session& session, ParameterWrites& writes, ReplicaDifference* made);

}  // namespace msdbg
