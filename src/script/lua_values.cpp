// Checks values and options that cross the border.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "script/lua_values.h"

namespace msdbg::script {

std::optional<std::string> text_at(lua_State* L, int index) {
  if (lua_type(L, index) != LUA_TSTRING) return std::nullopt;
  size_t size = 0;
  const char* data = lua_tolstring(L, index, &size);
  return std::string(data, size);
}

std::optional<double> number_at(lua_State* L, int index) {
  if (lua_type(L, index) != LUA_TNUMBER) return std::nullopt;
  return lua_tonumber(L, index);
}

std::optional<int64_t> integer_at(lua_State* L, int index) {
  const auto number = number_at(L, index);
  if (!number || std::trunc(*number) != *number || std::abs(*number) > 9007199254740992.0) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::string value_text(lua_State* L, int index) {
  switch (lua_type(L, index)) {
    case LUA_TNONE:
      return "nothing";
    case LUA_TNIL:
      return "nil";
    case LUA_TBOOLEAN:
      return lua_toboolean(L, index) ? "true" : "false";
    case LUA_TNUMBER:
      return format_double(lua_tonumber(L, index));
    case LUA_TSTRING:
      return fmt::format("'{}'", printable(text_at(L, index).value().substr(0, 60)));
    default:
      break;
  }
  if (lua_getmetatable(L, index)) {
    push_raw(L, -1, "__name");
    const auto name = text_at(L, -1);
    lua_pop(L, 2);
    if (name) return "a " + *name;
  }
  return fmt::format("a {}", luaL_typename(L, index));
}

std::string text_argument(lua_State* L, int index, std::string_view what) {
  auto text = text_at(L, index);
  if (!text) misuse(fmt::format("{}: a string is expected, not {}", what, value_text(L, index)));
  return *text;
}

double number_argument(lua_State* L, int index, std::string_view what) {
  const auto number = number_at(L, index);
  if (!number) misuse(fmt::format("{}: a number is expected, not {}", what, value_text(L, index)));
  return *number;
}

int64_t integer_argument(lua_State* L, int index, std::string_view what) {
  const auto number = integer_at(L, index);
  if (!number) misuse(fmt::format("{}: a whole number is expected, not {}", what, value_text(L, index)));
  return *number;
}

namespace {

int64_t within(int64_t number, std::string_view what, int64_t least, int64_t most) {
  if (number >= least && number <= most) return number;
  if (most == INT64_MAX) misuse(fmt::format("{}: {} or more is expected, not {}", what, least, number));
  misuse(fmt::format("{}: {} to {} is expected, not {}", what, least, most, number));
}

void expect_table(lua_State* L, int index, std::string_view what, std::string_view kind) {
  if (!lua_istable(L, index)) misuse(fmt::format("{}: a {} is expected, not {}", what, kind, value_text(L, index)));
}

}  // namespace

int64_t integer_argument(lua_State* L, int index, std::string_view what, int64_t otherwise, int64_t least, int64_t most) {
  return lua_isnoneornil(L, index) ? otherwise : within(integer_argument(L, index, what), what, least, most);
}

bool boolean_argument(lua_State* L, int index, std::string_view what) {
  if (!lua_isboolean(L, index)) misuse(fmt::format("{}: true or false is expected, not {}", what, value_text(L, index)));
  return truth_at(L, index);
}

IntSet numbers_argument(lua_State* L, int index, std::string_view what) {
  if (const auto number = integer_at(L, index)) return IntSet::of(*number);
  std::string text = text_at(L, index).value_or("");
  if (lua_istable(L, index)) {
    for_each_element(L, index, what, [&](int i) {
      const auto number = integer_at(L, -1);
      if (!number) misuse(fmt::format("{}: element {}: a whole number is expected, not {}", what, i, value_text(L, -1)));
      text += fmt::format("{}{}", text.empty() ? "" : ",", *number);
    });
  }
  if (text.empty())
    misuse(fmt::format("{}: a number, a text like '0:10' or a list of numbers is expected, not {}", what, value_text(L, index)));
  auto set = IntSet::parse(text);
  if (!set) misuse(fmt::format("{}: {}", what, set.status().message()));
  return *set;
}

// ---- tables --------------------------------------------------------------------------------------------------------

void push_raw(lua_State* L, int index, const char* key) {
  if (!lua_istable(L, index)) return lua_pushnil(L);
  index = absolute(L, index);
  lua_pushstring(L, key);
  lua_rawget(L, index);
}

std::string text_field(lua_State* L, int index, const char* key) {
  push_raw(L, index, key);
  std::string text = text_at(L, -1).value_or("");
  lua_pop(L, 1);
  return text;
}

bool push_element(lua_State* L, int index, int i, std::string_view what) {
  expect_table(L, index, what, "list");
  if (!lua_checkstack(L, 8)) throw ScriptError("out_of_memory", fmt::format("{}: the Lua stack is full", what));
  lua_rawgeti(L, index, i);
  if (!lua_isnil(L, -1)) return true;
  lua_pop(L, 1);
  return false;
}

bool next_entry(lua_State* L, int index, std::string_view what) {
  expect_table(L, index, what, "table");
  return lua_next(L, index) != 0;
}

// ---- options -------------------------------------------------------------------------------------------------------

OptionTable::OptionTable(lua_State* L, int index, std::string_view call) : L_(L), index_(0), call_(call) {
  if (lua_isnoneornil(L, index)) return;
  if (!lua_istable(L, index)) misuse(fmt::format("{}: a table of named options is expected, not {}", call, value_text(L, index)));
  index_ = absolute(L, index);
}

std::string OptionTable::what(std::string_view key) const { return fmt::format("{}: option '{}'", call_, key); }

bool OptionTable::push(const char* key) {
  known_.emplace_back(key);
  if (index_ == 0) return false;
  push_raw(L_, index_, key);
  if (!lua_isnil(L_, -1)) return true;
  lua_pop(L_, 1);
  return false;
}

std::optional<std::string> OptionTable::text(const char* key) {
  std::optional<std::string> out;
  with(key, [&](int at) { out = text_argument(L_, at, what(key)); });
  return out;
}

std::optional<double> OptionTable::number(const char* key) {
  std::optional<double> out;
  with(key, [&](int at) { out = number_argument(L_, at, what(key)); });
  return out;
}

std::optional<int64_t> OptionTable::integer(const char* key) {
  std::optional<int64_t> out;
  with(key, [&](int at) { out = integer_argument(L_, at, what(key)); });
  return out;
}

std::optional<int64_t> OptionTable::integer(const char* key, int64_t least, int64_t most) {
  const auto number = integer(key);
  if (number) within(*number, what(key), least, most);
  return number;
}

std::optional<int> OptionTable::id(const char* key) {
  const auto number = integer(key, 0, INT32_MAX);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<bool> OptionTable::boolean(const char* key) {
  std::optional<bool> out;
  with(key, [&](int at) { out = boolean_argument(L_, at, what(key)); });
  return out;
}

std::optional<IntSet> OptionTable::numbers(const char* key) {
  std::optional<IntSet> out;
  with(key, [&](int at) { out = numbers_argument(L_, at, what(key)); });
  return out;
}

void OptionTable::finish() {
  if (index_ == 0) return;
  std::optional<std::string> unknown;  // the first by name, because table order is random
  for_each_entry(L_, index_, call_, [&] {
    const auto key = text_at(L_, -2);
    if (!key) misuse(fmt::format("{}: options are named; {} is not a name", call_, value_text(L_, -2)));
    const bool known = std::find(known_.begin(), known_.end(), *key) != known_.end();
    if (!known && (!unknown || *key < *unknown)) unknown = key;
  });
  if (unknown) misuse(with_suggestion(fmt::format("{}: unknown option '{}'", call_, *unknown), *unknown, known_));
}

}  // namespace msdbg::script
