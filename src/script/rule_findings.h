// What a rule found in a whole step or run: the list that its step_end or finish returned.
#pragma once

#include <optional>

#include "script/objects.h"

namespace msdbg::script {

/// Reads the list on top of the stack, which stays there; nil is an empty one. `rank`, `step`: those of findings that name none.
/// `phase`: the name of the function, for messages.
ScriptPhase read_findings(lua_State* L, SessionBox& box, std::optional<int> rank, std::optional<int64_t> step, const char* phase);

}  // namespace msdbg::script
