// Rules that compare ranks: the core decides them after the last tensor.
#pragma once

#include "script/objects.h"

namespace msdbg::script {

/// After the last tensor, the core compares the ranks and steps that the check looked at.
void compare_ranks(SessionBox& box, Watchpoint& point);

}  // namespace msdbg::script
