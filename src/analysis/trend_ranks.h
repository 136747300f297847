// The lines of a trend on several ranks.
#pragma once

#include <vector>

#include "msdbg/follow.h"

namespace msdbg {

/// Joins the lines of ranks that agree, and fills `ranks`, `departs` and `departs_from`. Points are by step.
void join_ranks_of_lines(const Session& session, std::vector<TrendLine>& lines);

}  // namespace msdbg
