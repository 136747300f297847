// Values that were overwritten between two calls, shown by what is usual: everywhere else the input equals one output, here it equals
// none.
//
// What is usual is known from other steps, or from the other calls of one line of the program, such as the layers of a loop.
#pragma once

#include <functional>
#include <vector>

#include "session/msprobe/overwritten.h"

namespace msdbg::msprobe {

/// The output that an input of a node equals wherever it equals one. `node` is kNoNode if that differs between steps or is unknown.
using UsualMaker = std::function<Edge(NodeId node, uint32_t slot)>;

/// All values of the joined steps that were overwritten, by step, in the order of the calls. Their TensorIds have a node and a slot only.
/// `nodes`: by step and call.
std::vector<std::vector<Overwritten>> find_overwritten(const std::vector<StepTable>& steps, const std::vector<std::vector<NodeId>>& nodes,
                                                       const UsualMaker& usual);

}  // namespace msdbg::msprobe
