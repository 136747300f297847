// Where Lua code comes from and in which environment it runs.
#pragma once

#include <string>
#include <string_view>

#include "script/objects.h"

namespace msdbg::script {

/// Puts ours into package.loaders: preloaded modules, then ours, then LuaJIT's own paths.  [-0, +0, m]
void install_loader(Vm& vm);

/// Compiles `text` as `chunk` ("@path" or "=name"); a first line that starts with # is skipped. True: the function is
/// pushed. False: an error object is pushed.  [-0, +1, -]
bool load_text(lua_State* L, std::string_view text, const std::string& chunk);

/// Gives the function on top an environment of its own (scripts/msdbg/strict.lua).  [-0, +0, e]
void isolate(lua_State* L);

/// MSDBG_DEV_SCRIPTS: a directory whose `msdbg/*.lua` and `rules/*.lua` take the place of those inside the program, for working on them
/// without building; "" without.
std::string development_scripts();

/// Error: kNotFound, kIoError. "-" is standard input.
Result<std::string> read_script(const std::string& path);

}  // namespace msdbg::script
