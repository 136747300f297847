// Values that cross the border: push() for values to Lua, and checked readers for arguments.
//
// A caller may pass anything. lua_rawgeti on a number reads invalid memory, lua_getfield runs a metamethod that may raise,
// lua_tonumber converts silently. The functions below check the type first; the test script_kit forbids the bare ones in other
// files.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "script/lua_errors.h"

namespace msdbg::script {

// ---- values for Lua ------------------------------------------------------------------------------------------------

// Pushes one value: a text, a boolean, a number, nil for an absent optional, or a list of the elements of a range.  [-0, +1, m]
inline void push(lua_State* L, std::string_view text) { lua_pushlstring(L, text.data(), text.size()); }
inline void push(lua_State* L, const char* text) { push(L, std::string_view(text)); }
template <std::same_as<bool> T>
void push(lua_State* L, T value) {
  lua_pushboolean(L, value);
}
template <typename T>
requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) void push(lua_State* L, T value) {
  lua_pushnumber(L, static_cast<double>(value));
}
template <typename T>
void push(lua_State* L, const std::optional<T>& value) {
  if (value) push(L, *value);
  else lua_pushnil(L);
}

/// Pushes a list; `push_element(element)` pushes the value of each element.  [-0, +1, m]
template <std::ranges::input_range R, typename F>
void push_list(lua_State* L, R&& range, F push_element) {
  if constexpr (std::ranges::sized_range<R>) lua_createtable(L, static_cast<int>(std::ranges::size(range)), 0);
  else lua_newtable(L);
  int i = 0;
  for (auto&& element : range) {
    push_element(element);
    lua_rawseti(L, -2, ++i);
  }
}
template <std::ranges::input_range R>
requires(!std::convertible_to<R, std::string_view>) void push(lua_State* L, R&& range) {
  push_list(L, range, [L](const auto& element) { push(L, element); });
}

/// nil instead of an empty text.
inline std::optional<std::string> text_or_nil(std::string text) {
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}
inline std::string without_last_newline(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

/// push() at the end of a function: returns the number of results.  [-0, +1, m]
template <typename T>
int give(lua_State* L, const T& value) {
  push(L, value);
  return 1;
}
/// nil, message, code.  [-0, +3, m]
int push_absence(lua_State* L, const Status& status);

/// Sets a field of the table on top; an absent optional sets nothing.  [-0, +0, m]
template <typename T>
void set_field(lua_State* L, const char* key, const T& value) {
  push(L, value);
  lua_setfield(L, -2, key);
}

// ---- values of a caller --------------------------------------------------------------------------------------------

/// The bytes of a string; numbers are not converted.
std::optional<std::string> text_at(lua_State* L, int index);
std::optional<double> number_at(lua_State* L, int index);
/// An integer within +-2^53.
std::optional<int64_t> integer_at(lua_State* L, int index);
/// False for nil and false only, as in Lua.
inline bool truth_at(lua_State* L, int index) { return lua_toboolean(L, index) != 0; }
/// A value as shown in an error message: 'text', 12, a table, <tensor ...>.
std::string value_text(lua_State* L, int index);
/// -1 counted from the bottom: stays valid while values are pushed.
inline int absolute(lua_State* L, int index) { return index < 0 && index > LUA_REGISTRYINDEX ? lua_gettop(L) + index + 1 : index; }

std::string text_argument(lua_State* L, int index, std::string_view what);
double number_argument(lua_State* L, int index, std::string_view what);
int64_t integer_argument(lua_State* L, int index, std::string_view what);
/// `otherwise` for no value or nil. Error: outside of `least` to `most`.
int64_t integer_argument(lua_State* L, int index, std::string_view what, int64_t otherwise, int64_t least, int64_t most);
bool boolean_argument(lua_State* L, int index, std::string_view what);
/// A set of numbers: 3, "0:10", or {0, 4}.
IntSet numbers_argument(lua_State* L, int index, std::string_view what);

/// Field `key` of a table without metamethods; nil if there is no table.  [-0, +1, m]
void push_raw(lua_State* L, int index, const char* key);
/// The same as text; "" if it is not a string.  [-0, +0, m]
std::string text_field(lua_State* L, int index, const char* key);
/// Element `i` of a list without metamethods. False, with nothing pushed, for nil. Error: not a table.  [-0, +(0|1), -]
bool push_element(lua_State* L, int index, int i, std::string_view what);
/// Calls `f(i)` with element `i` of a list on top, from 1 to the first nil; drops anything that f leaves on the stack.
/// Error: "WHAT: a list is expected, not 3".  [-0, +0, e]
template <typename F>
void for_each_element(lua_State* L, int index, std::string_view what, F f) {
  index = absolute(L, index);
  const int top = lua_gettop(L);
  for (int i = 1; push_element(L, index, i, what); ++i) {
    f(i);
    lua_settop(L, top);
  }
}
/// {"a", "b"} or {1, 2}: a list of std::string, double or int64_t.
template <typename T>
std::vector<T> list_argument(lua_State* L, int index, std::string_view what) {
  std::vector<T> out;
  for_each_element(L, index, what, [&](int i) {
    const std::string element = std::string(what) + ": element " + std::to_string(i);
    if constexpr (std::same_as<T, std::string>) out.push_back(text_argument(L, -1, element));
    else if constexpr (std::same_as<T, int64_t>) out.push_back(integer_argument(L, -1, element));
    else out.push_back(number_argument(L, -1, element));
  });
  return out;
}
/// Moves to the next entry of a table, like lua_next(). Error: not a table.  [-1, +(0|2), e]
bool next_entry(lua_State* L, int index, std::string_view what);
/// Calls `f()` with the key at -2 and the value at -1 for each entry of a table, in any order. Error as above.  [-0, +0, e]
template <typename F>
void for_each_entry(lua_State* L, int index, std::string_view what, F f) {
  index = absolute(L, index);
  const int top = lua_gettop(L);
  for (lua_pushnil(L); next_entry(L, index, what); lua_settop(L, top + 1)) f();
}

/// Named fields of an options table. Reading a key marks it as known; finish() raises on the others.
class OptionTable {
 public:
  /// No value or nil at `index` means no options. Messages name `call`: "tensor".
  OptionTable(lua_State* L, int index, std::string_view call);

  std::optional<std::string> text(const char* key);
  std::optional<double> number(const char* key);
  std::optional<int64_t> integer(const char* key);
  std::optional<bool> boolean(const char* key);
  /// `0:10`, 3, or {0, 4}.
  std::optional<IntSet> numbers(const char* key);
  /// `{"a", "b"}`, for T std::string, double or int64_t; empty if the option is missing.
  template <typename T>
  std::vector<T> list(const char* key) {
    std::vector<T> out;
    with(key, [&](int at) { out = list_argument<T>(L_, at, what(key)); });
    return out;
  }
  std::optional<int64_t> integer(const char* key, int64_t least, int64_t most);
  /// The number of a rank or graph.
  std::optional<int> id(const char* key);
  /// Calls `f(index)` with the value, for options with other forms.
  template <typename F>
  bool with(const char* key, F f) {
    if (!push(key)) return false;
    const int top = lua_gettop(L_);
    f(top);
    lua_settop(L_, top - 1);
    return true;
  }
  /// Pushes the value if it exists.  [-0, +(0|1), m]
  bool push(const char* key);
  /// "CALL: option 'KEY'"
  std::string what(std::string_view key) const;
  void know(std::string key) { known_.push_back(std::move(key)); }
  lua_State* state() const { return L_; }
  /// Error: a key that was not read, or is not a string.
  void finish();

 private:
  lua_State* L_;
  int index_;  ///< 0: no table
  std::string call_;
  std::vector<std::string> known_;
};

}  // namespace msdbg::script
