// Classes and functions that are defined beside the file that binds them.
#pragma once

#include "script/objects.h"

namespace msdbg::script {

/// The result of a check; of bind_check().
void define_check_result(lua_State* L);
/// The result of a command that runs a training; of bind_run().
void define_run_result(lua_State* L);
/// core.conditions and core.recommended_rules, into the table on top; of bind_watch().
void bind_conditions(lua_State* L);

}  // namespace msdbg::script
