// The Lua library as text inside the program, so it works without an installed tree. Made by embed.cmake.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace msdbg::script {

/// The text of `msdbg/tensor_elements.lua`, ...; nullopt when there is no such file.
std::optional<std::string_view> embedded_file(std::string_view path);
/// The paths of all such files, in the order of src/script/CMakeLists.txt.
std::span<const std::string_view> embedded_files();
/// The declarations of msdbg/abi.h between its markers.
std::string_view abi_text();

}  // namespace msdbg::script
