#pragma once

#include <string>
#include <string_view>

#include "script/lua_values.h"

namespace msdbg::script {

/// The text of a file for `call`. Error: io_error.
std::string file_text(const std::string& path, std::string_view call);
/// Adds the functions for series to the table on top of the stack.
void bind_series(lua_State* L);

}  // namespace msdbg::script
