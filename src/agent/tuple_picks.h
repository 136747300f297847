// The operators that select one of several outputs. A program does not describe them, but MindSpore's graphs contain them, and its
// client identifies the inputs of other operators by their names.
#pragma once

#include <string>
#include <vector>

#include "msdbg/agent.h"

namespace msdbg::agent {

struct TuplePick {
  NodeIndex producer = 0;
  uint32_t slot = 0;
  std::string name;
};

/// In the order of first use. Inputs that do not name a node are skipped.
std::vector<TuplePick> tuple_picks(const GraphDescription& graph);

}  // namespace msdbg::agent
