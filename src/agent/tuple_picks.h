// The operators that hand on one output of several. A program does not describe them; MindSpore's graphs have them, and
// its client knows the inputs of other operators by their names.
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

/// In the order in which they are first used. Inputs that name nothing are left out.
std::vector<TuplePick> tuple_picks(const GraphDescription& graph);

}  // namespace msdbg::agent
