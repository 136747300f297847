// Converts answers of the core to Lua values.
#pragma once

#include <algorithm>
#include <string_view>

#include "msdbg/answers.h"
#include "script/objects.h"

namespace msdbg::script {

/// A text as a template argument: the name of a field.
struct Key {
  char text[32] = {};
  template <size_t n>
  requires(n <= sizeof text) consteval Key(const char (&from)[n]) { std::copy_n(from, n, text); }  // NOLINT: a name is a key
};

/// Pushes the tree as lists and tables; null becomes nil. A table's key selects its result class, which defines how it prints.
/// [-0, +1, m]
void push_answer(lua_State* L, const Answer& value, std::string_view key = {});
/// Like push_answer(), without result classes.  [-0, +1, m]
void push_plain_answer(lua_State* L, const Answer& value);

/// Field `key` of the answer to `Box`, which `make` builds on first use; it prints like the key `as`.  [-0, +1, e]
template <typename Box, Answer (*make)(const Box&), Key key, Key as = key>
int answer_field(lua_State* L) {
  Box& box = self<Box>(L);
  require_open(box);
  if (!box.answer) box.answer = std::make_shared<const Answer>(make(box));
  push_answer(L, box.answer->at(key.text), as.text);
  return 1;
}

}  // namespace msdbg::script
