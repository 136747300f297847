// Userdata classes: look-up of methods and fields, and the message when there is none of that name.
#include <fmt/format.h>

#include "script/lua_support.h"

namespace msdbg::script {

namespace {

// Upvalues: methods, fields, class name, hints, number function.
int index_object(lua_State* L) {
  if (lua_type(L, 2) == LUA_TNUMBER && !lua_isnil(L, lua_upvalueindex(5))) {
    lua_pushvalue(L, lua_upvalueindex(5));
    lua_insert(L, 1);
    lua_call(L, 2, 1);
    return 1;
  }
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(1));
  if (!lua_isnil(L, -1)) return 1;
  lua_pop(L, 1);
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(2));
  if (!lua_isnil(L, -1)) {
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
  }
  const std::string name = text_at(L, lua_upvalueindex(3)).value_or("object");
  if (lua_type(L, 2) != LUA_TSTRING) misuse(fmt::format("{} has no field {}", name, value_text(L, 2)));
  const std::string word = lua_tostring(L, 2);
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(4));
  if (const auto hint = text_at(L, -1)) misuse(fmt::format("{} has no field '{}': {}", name, word, *hint));
  std::vector<std::string> names;
  for (const int table : {lua_upvalueindex(1), lua_upvalueindex(2)}) {
    lua_pushnil(L);
    while (lua_next(L, table) != 0) {
      lua_pop(L, 1);
      names.emplace_back(lua_tostring(L, -1));
    }
  }
  misuse(with_suggestion(fmt::format("{} has no field '{}'", name, printable(word)), word, names));
}

int assign_object(lua_State* L) {
  misuse(fmt::format("{}: fields cannot be assigned (here: {})", text_at(L, lua_upvalueindex(1)).value_or("object"),
                     value_text(L, 2)));
}

void push_members(lua_State* L, std::span<const Member> members) {
  lua_createtable(L, 0, static_cast<int>(members.size()));
  for (const Member& member : members) {
    lua_pushcfunction(L, member.function);
    lua_setfield(L, -2, member.name);
  }
}

}  // namespace

void define_class(lua_State* L, const ClassSpec& spec, lua_CFunction collect, lua_CFunction equal) {
  luaL_newmetatable(L, fmt::format("msdbg.{}", spec.name).c_str());
  push_members(L, spec.methods);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "methods");
  push_members(L, spec.fields);
  lua_pushvalue(L, -1);
  lua_setfield(L, -4, "fields");
  lua_pushstring(L, spec.name);
  lua_newtable(L);
  for (const auto& [name, why] : spec.hints) set_field(L, name, why);
  if (spec.index_number != nullptr)
    lua_pushcfunction(L, spec.index_number);
  else
    lua_pushnil(L);
  lua_pushcclosure(L, guard<index_object>, 5);
  lua_setfield(L, -2, "__index");
  lua_pushstring(L, spec.name);
  lua_pushcclosure(L, guard<assign_object>, 1);
  lua_setfield(L, -2, "__newindex");
  lua_pushcfunction(L, collect);
  lua_setfield(L, -2, "__gc");
  lua_pushcfunction(L, equal);
  lua_setfield(L, -2, "__eq");
  for (const Member& member : spec.meta) {
    lua_pushcfunction(L, member.function);
    lua_setfield(L, -2, member.name);
  }
  set_field(L, "__name", spec.name);
  set_field(L, "__metatable", spec.name);
  lua_pop(L, 1);
}

}  // namespace msdbg::script
