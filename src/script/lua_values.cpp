// Values and options that cross the border, checked.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "script/lua_support.h"

namespace msdbg::script {

void push_text(lua_State* L, std::string_view text) { lua_pushlstring(L, text.data(), text.size()); }

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
  if (luaL_getmetafield(L, index, "__name")) {
    std::string name = "a " + text_at(L, -1).value_or("value");
    lua_pop(L, 1);
    return name;
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

bool boolean_argument(lua_State* L, int index, std::string_view what) {
  if (!lua_isboolean(L, index))
    misuse(fmt::format("{}: true or false is expected, not {}", what, value_text(L, index)));
  return lua_toboolean(L, index) != 0;
}

IntSet numbers_argument(lua_State* L, int index, std::string_view what) {
  std::string text;
  if (const auto number = integer_at(L, index)) return IntSet::of(*number);
  if (const auto given = text_at(L, index))
    text = *given;
  else if (lua_istable(L, index)) {
    for (int i = 1;; ++i) {
      lua_rawgeti(L, index, i);
      const auto number = integer_at(L, -1);
      const bool end = lua_isnil(L, -1);
      lua_pop(L, 1);
      if (end) break;
      if (!number) misuse(fmt::format("{}: element {} is no whole number", what, i));
      text += fmt::format("{}{}", text.empty() ? "" : ",", *number);
    }
  }
  if (text.empty())
    misuse(fmt::format("{}: a number, a text like '0:10' or a list of numbers is expected, not {}", what,
                       value_text(L, index)));
  auto set = IntSet::parse(text);
  if (!set) misuse(fmt::format("{}: {}", what, set.status().message()));
  return *set;
}

// ---- options -------------------------------------------------------------------------------------------------------

OptionTable::OptionTable(lua_State* L, int index, std::string_view call) : L_(L), index_(0), call_(call) {
  if (lua_isnoneornil(L, index)) return;
  if (!lua_istable(L, index))
    misuse(fmt::format("{}: a table of named options is expected, not {}", call, value_text(L, index)));
  index_ = index;
}

bool OptionTable::push(const char* key) {
  known_.emplace_back(key);
  if (index_ == 0) return false;
  lua_pushstring(L_, key);
  lua_rawget(L_, index_);
  if (!lua_isnil(L_, -1)) return true;
  lua_pop(L_, 1);
  return false;
}

void OptionTable::wrong(const char* key, std::string_view expected) {
  misuse(fmt::format("{}: option '{}': {} is expected, not {}", call_, key, expected, value_text(L_, -1)));
}

std::optional<std::string> OptionTable::text(const char* key) {
  if (!push(key)) return std::nullopt;
  auto value = text_at(L_, -1);
  if (!value) wrong(key, "a string");
  lua_pop(L_, 1);
  return value;
}

std::optional<double> OptionTable::number(const char* key) {
  if (!push(key)) return std::nullopt;
  const auto value = number_at(L_, -1);
  if (!value) wrong(key, "a number");
  lua_pop(L_, 1);
  return value;
}

std::optional<int64_t> OptionTable::integer(const char* key) {
  if (!push(key)) return std::nullopt;
  const auto value = integer_at(L_, -1);
  if (!value) wrong(key, "a whole number");
  lua_pop(L_, 1);
  return value;
}

std::optional<bool> OptionTable::boolean(const char* key) {
  if (!push(key)) return std::nullopt;
  if (!lua_isboolean(L_, -1)) wrong(key, "true or false");
  const bool value = lua_toboolean(L_, -1) != 0;
  lua_pop(L_, 1);
  return value;
}

std::optional<IntSet> OptionTable::numbers(const char* key) {
  if (!push(key)) return std::nullopt;
  IntSet set = numbers_argument(L_, lua_gettop(L_), fmt::format("{}: option '{}'", call_, key));
  lua_pop(L_, 1);
  return set;
}

std::vector<std::string> OptionTable::unread() {
  std::vector<std::string> out;
  if (index_ == 0) return out;
  lua_pushnil(L_);
  while (lua_next(L_, index_) != 0) {
    lua_pop(L_, 1);
    const auto key = text_at(L_, -1);
    if (!key) misuse(fmt::format("{}: options are named, {} is no name", call_, value_text(L_, -1)));
    if (std::find(known_.begin(), known_.end(), *key) == known_.end()) out.push_back(*key);
  }
  return out;
}

void OptionTable::finish() {
  for (const std::string& key : unread())
    misuse(with_suggestion(fmt::format("{}: unknown option '{}'", call_, key), key, known_));
}

}  // namespace msdbg::script
