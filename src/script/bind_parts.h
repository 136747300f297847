// Classes and functions that a neighbouring file defines.
#pragma once

#include "script/objects.h"

namespace msdbg::script {

/// The result of a check; for bind_check().
void define_check_result(lua_State* L);
/// The lists of the check result at `index`: tables that are created once.  [-0, +1, e]
void push_hits(lua_State* L, int index);
/// Looks for what the hits follow from, unless that is known.  [-0, +0, e]
void require_causes(lua_State* L, ResultBox& box);
void push_all_not_checked(lua_State* L, int index);
/// The check result inside the run result at `index`.  [-0, +1, m]
void push_check_of_run(lua_State* L, int index);
/// The result of a command that runs a training; for bind_run().
void define_run_result(lua_State* L);
/// Adds core.conditions and core.recommended_rules to the table on top; for bind_watch().
void bind_conditions(lua_State* L);

}  // namespace msdbg::script
