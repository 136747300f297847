// Answers of the core as Lua values.
#pragma once

#include <algorithm>
#include <string_view>

#include "msdbg/answers.h"
#include "script/lua_values.h"

namespace msdbg::script {

/// A text as a template argument: the name of a field.
struct Key {
  char text[32] = {};
  template <size_t n>
  requires(n <= sizeof text) consteval Key(const char (&from)[n]) { std::copy_n(from, n, text); }  // NOLINT: a name is a key
};

/// Lists and tables as the tree has them; null is nil. What prints in a way of its own gets its record class by the key that it
/// stands under.  [-0, +1, m]
void push_answer(lua_State* L, const Answer& value, std::string_view key = {});
/// Without record classes.  [-0, +1, m]
void push_plain_answer(lua_State* L, const Answer& value);

}  // namespace msdbg::script
