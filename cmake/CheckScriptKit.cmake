# Fails if a binding reads an argument with a bare function of the Lua API: for a value of another type these read invalid memory,
# run a metamethod or convert silently. src/script/lua_values.h has a checked function for each.
# Run as: cmake -DROOT=... -P CheckScriptKit.cmake
set(bare "lua_(rawgeti|rawget|gettable|getfield|next|objlen|rawlen|tonumber|tointeger|tostring|tolstring|toboolean)|luaL_(check|opt|arg)[a-z]+|luaL_getmetafield")
set(kit lua_values.h lua_values.cpp lua_classes.cpp lua_errors.cpp)  # where the checks are
set(problems "")
file(GLOB files ${ROOT}/src/script/*.cpp ${ROOT}/src/script/*.h)
foreach(file ${files})
  get_filename_component(name ${file} NAME)
  list(FIND kit ${name} place)
  if(place EQUAL -1)
    file(STRINGS ${file} lines REGEX "(^|[^a-zA-Z_])(${bare})\\(")
    foreach(line ${lines})
      if(NOT line MATCHES "LUA_REGISTRYINDEX" AND NOT line MATCHES "^ *//")
        string(APPEND problems "${file}: ${line}\n")
      endif()
    endforeach()
  endif()
endforeach()
if(problems)
  message(FATAL_ERROR "read arguments through src/script/lua_values.h, which checks them first:\n${problems}")
endif()
