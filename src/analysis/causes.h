// The attribution behind find_causes().
//
// The session's owner thread only.
#pragma once

#include "msdbg/analysis.h"

namespace msdbg {

/// Sets the causes of the result and what its hits follow from. `origins` are those of the steps in which hits are about NaN or Inf.
void attribute(Session& session, const OriginResult& origins, CheckResult& result);

}  // namespace msdbg
