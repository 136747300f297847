// Userdata classes: lookup of methods and fields, and the error for unknown names.
#include <fmt/format.h>

#include "script/lua_classes.h"

namespace msdbg::script {

namespace {

// Upvalues: methods, fields, class name, number function.
int index_object(lua_State* L) {
  if (lua_type(L, 2) == LUA_TNUMBER && !lua_isnil(L, lua_upvalueindex(4))) {
    lua_pushvalue(L, lua_upvalueindex(4));
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
  if (const lua_CFunction field = lua_tocfunction(L, -1)) {
    lua_settop(L, 1);
    return field(L);
  }
  if (!lua_isnil(L, -1)) {
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
  }
  const std::string name = text_at(L, lua_upvalueindex(3)).value_or("object");
  const auto word = text_at(L, 2);
  if (!word) misuse(fmt::format("{} has no field {}", name, value_text(L, 2)));
  std::vector<std::string> names;
  for (const int table : {lua_upvalueindex(1), lua_upvalueindex(2)}) {
    for_each_entry(L, table, name, [&] { names.push_back(text_at(L, -2).value_or("")); });
  }
  misuse(with_suggestion(fmt::format("{} has no field '{}'", name, printable(*word)), *word, names));
}

int assign_object(lua_State* L) {
  misuse(fmt::format("{}: fields cannot be assigned (here: {})", text_at(L, lua_upvalueindex(1)).value_or("object"),
                     value_text(L, 2)));
}

void push_members(lua_State* L, std::span<const Member> members) {
  lua_createtable(L, 0, static_cast<int>(members.size()));
  add_functions(L, members);
}

}  // namespace

void add_functions(lua_State* L, std::span<const Member> functions) {
  for (const Member& member : functions) {
    lua_pushcfunction(L, member.function);
    lua_setfield(L, -2, member.name);
  }
}

void push_registered(lua_State* L, const void* key) {
  lua_pushlightuserdata(L, const_cast<void*>(key));
  lua_rawget(L, LUA_REGISTRYINDEX);
}

void register_value(lua_State* L, const void* key) {
  lua_pushlightuserdata(L, const_cast<void*>(key));
  lua_insert(L, -2);
  lua_rawset(L, LUA_REGISTRYINDEX);
}

void push_class_table(lua_State* L, const char* registry, const char* which) {
  luaL_getmetatable(L, registry);
  push_raw(L, -1, which);
  lua_remove(L, -2);
}

void define_class(lua_State* L, const char* name, const ClassSpec& spec, lua_CFunction collect, lua_CFunction equal) {
  luaL_newmetatable(L, fmt::format("msdbg.{}", name).c_str());
  push_members(L, spec.methods);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "methods");
  push_members(L, spec.fields);
  lua_pushvalue(L, -1);
  lua_setfield(L, -4, "fields");
  push(L, name);
  if (spec.index_number != nullptr) lua_pushcfunction(L, spec.index_number);
  else lua_pushnil(L);
  lua_pushcclosure(L, guard<index_object>, 4);
  lua_setfield(L, -2, "__index");
  push(L, name);
  lua_pushcclosure(L, guard<assign_object>, 1);
  lua_setfield(L, -2, "__newindex");
  add_functions(L, {{"__gc", collect}, {"__eq", equal}});
  add_functions(L, spec.meta);
  set_field(L, "__name", name);
  set_field(L, "__metatable", name);
  lua_pop(L, 1);
}

}  // namespace msdbg::script
