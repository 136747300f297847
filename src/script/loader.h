// Finds Lua code, and sets up the environment in which it runs.
#pragma once

#include <string>
#include <string_view>

#include "script/objects.h"

namespace msdbg::script {

/// Adds our loader to package.loaders: preloaded modules, then ours, then LuaJIT's own paths.  [-0, +0, m]
void install_loader(Vm& vm);

/// Compiles `text` as `chunk` ("@path" or "=name"); skips a first line that starts with #. True: pushes the function. False: pushes
/// an error object.  [-0, +1, -]
bool load_text(lua_State* L, std::string_view text, const std::string& chunk);

/// Gives the function on top its own environment (scripts/msdbg/strict.lua). False: pushes an error object.  [-0, +(0|1), -]
bool isolate(lua_State* L);

/// MSDBG_DEV_SCRIPTS: a directory whose `msdbg/*.lua` and `rules/*.lua` replace the embedded ones, for development without
/// rebuilding; "" if unset.
std::string development_scripts();

/// Reads a script; "-" is standard input. Error: kNotFound, kIoError.
Result<std::string> read_script(const std::string& path);

}  // namespace msdbg::script
