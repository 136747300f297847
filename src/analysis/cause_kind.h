// What an origin's values say about the reason.
//
// The session's owner thread only.
#pragma once

#include <string>

#include "msdbg/analysis.h"

namespace msdbg {

struct Reason {
  CauseKind kind = CauseKind::kUnknown;
  std::string what, evidence;  ///< as in Cause
};

/// kUnknown where the values do not prove a reason.
Reason reason_of(const Session& session, const Origin& origin);

}  // namespace msdbg
