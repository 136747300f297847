// The ranks of a grid that lack steps.
#pragma once

#include <string>
#include <vector>

#include "msdbg/rank_report.h"

namespace msdbg {

/// `rank 1 has no step 3`, a line for each set of ranks.
std::vector<std::string> lacking_lines(const RankGrid& grid);

}  // namespace msdbg
