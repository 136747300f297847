// Functions and userdata classes for Lua; an object holds a shared_ptr.
#pragma once

#include <memory>
#include <vector>

#include "script/lua_values.h"

namespace msdbg::script {

struct Member {
  const char* name;
  lua_CFunction function;  ///< guarded
};

/// Adds functions to the table on top.  [-0, +0, m]
void add_functions(lua_State* L, std::span<const Member> functions);
inline void add_functions(lua_State* L, std::initializer_list<Member> functions) {
  add_functions(L, std::span(functions.begin(), functions.size()));
}

/// The definition of a class. Fields are called with the object and return one value.
struct ClassSpec {
  std::span<const Member> methods = {};
  std::span<const Member> fields = {};
  std::span<const Member> meta = {};       ///< __tostring, __len, __call, ...
  lua_CFunction index_number = nullptr;    ///< for obj[1]
};

template <typename T>
struct ClassName;  // specialised in objects.h: value is the name, registry the key of its metatable

/// Creates the metatable `msdbg.NAME`; __index raises on unknown names, __newindex always.  [-0, +0, m]
void define_class(lua_State* L, const char* name, const ClassSpec& spec, lua_CFunction collect, lua_CFunction equal);
/// Pushes a table of a defined class: "methods" or "fields".  [-0, +1, m]
void push_class_table(lua_State* L, const char* registry, const char* which);

/// Pushes what the registry holds for an address, which needs no text to be looked up.  [-0, +1, -]
void push_registered(lua_State* L, const void* key);
/// Pops a value and registers it.  [-1, +0, m]
void register_value(lua_State* L, const void* key);
template <typename T>
void push_metatable(lua_State* L) {
  push_registered(L, &ClassName<T>::registry);
}

template <typename T>
std::shared_ptr<T>* holder_at(lua_State* L, int index) {
  void* memory = lua_touserdata(L, index);
  if (memory == nullptr || lua_islightuserdata(L, index) || !lua_getmetatable(L, index)) return nullptr;
  push_metatable<T>(L);
  const bool same = lua_rawequal(L, -1, -2) != 0;
  lua_pop(L, 2);
  return same ? static_cast<std::shared_ptr<T>*>(memory) : nullptr;
}

template <typename T>
T* object_at(lua_State* L, int index) {
  auto* holder = holder_at<T>(L, index);
  return holder != nullptr ? holder->get() : nullptr;
}

template <typename T>
std::shared_ptr<T> object_argument(lua_State* L, int index, std::string_view what) {
  auto* holder = holder_at<T>(L, index);
  if (holder == nullptr || !*holder)
    misuse(std::string(what) + ": a " + ClassName<T>::value + " is expected, not " + value_text(L, index));
  return *holder;
}

template <typename T>
T& self(lua_State* L) {
  auto* holder = holder_at<T>(L, 1);
  if (holder == nullptr || !*holder) {
    misuse(std::string("a ") + ClassName<T>::value + " is expected before ':', not " + value_text(L, 1) +
           "; call it as object:method()");
  }
  return **holder;
}

template <typename T>
void push_object(lua_State* L, std::shared_ptr<T> object) {
  void* memory = lua_newuserdata(L, sizeof(std::shared_ptr<T>));
  new (memory) std::shared_ptr<T>(std::move(object));
  push_metatable<T>(L);
  lua_setmetatable(L, -2);
}

template <typename T>
int collect_object(lua_State* L) {
  if (auto* holder = holder_at<T>(L, 1)) holder->reset();  // Lua owns the memory; reset() may run twice
  return 0;
}

template <typename T>
int equal_objects(lua_State* L) {
  const T* a = object_at<T>(L, 1);
  const T* b = object_at<T>(L, 2);
  if constexpr (std::equality_comparable<T>) return give(L, a != nullptr && b != nullptr && *a == *b);
  else return give(L, a != nullptr && a == b);
}

template <typename T>
void define_class(lua_State* L, const ClassSpec& spec) {
  define_class(L, ClassName<T>::value, spec, guard<collect_object<T>>, guard<equal_objects<T>>);
  luaL_getmetatable(L, ClassName<T>::registry);
  register_value(L, &ClassName<T>::registry);
}
/// Adds methods and fields to a class that another file defined.  [-0, +0, m]
template <typename T>
void add_methods(lua_State* L, std::initializer_list<Member> methods, std::initializer_list<Member> fields = {}) {
  push_class_table(L, ClassName<T>::registry, "methods");
  add_functions(L, methods);
  push_class_table(L, ClassName<T>::registry, "fields");
  add_functions(L, fields);
  lua_pop(L, 2);
}

}  // namespace msdbg::script
