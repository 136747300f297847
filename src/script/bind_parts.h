// Classes and functions that are defined next to the file that binds them.
#pragma once

#include "script/objects.h"

namespace msdbg::script {

/// The result of a check; of bind_check().
void define_check_result(lua_State* L);
/// The lists of the check result at `index`: tables that are made once.  [-0, +1, e]
void push_hits(lua_State* L, int index);
void push_all_not_checked(lua_State* L, int index);
/// The check result inside of the run result at `index`.  [-0, +1, m]
void push_check_of_run(lua_State* L, int index);
/// The result of a command that runs a training; of bind_run().
void define_run_result(lua_State* L);
/// core.conditions and core.recommended_rules, into the table on top; of bind_watch().
void bind_conditions(lua_State* L);

}  // namespace msdbg::script
