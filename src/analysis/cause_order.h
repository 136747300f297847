// The order in which causes are told: by step and rank, then as things happened.
//
// The session's owner thread only.
#pragma once

#include <functional>
#include <vector>

#include "msdbg/check.h"

namespace msdbg {

/// Sorts numbers of causes. Graphs of a step come in the order of time, where the files tell it; within a graph, that of execution.
void sort_causes(Session& session, std::vector<size_t>& numbers, const std::function<const Cause&(size_t)>& cause);

}  // namespace msdbg
