// core.json_encode and core.json_decode: the JSON of docs/json.md for scripts. Numbers are exact in both directions.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "script/objects.h"

namespace msdbg::script {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 200;          // nesting limit; stops at a table that contains itself
constexpr double kExact = 9007199254740992.0;  // 2^53: below it every integer is a double
constexpr int kCdata = 10;             // LuaJIT's type number of FFI values
char g_null_key;                       // its address is json.null
constexpr const char* kArrayClass = "msdbg.json.array";  // registry: the metatable of arrays

[[noreturn]] void no_form(const std::string& path, const std::string& what) {
  misuse(fmt::format("json.encode: {}{}", path.empty() ? "" : path + ": ", what));
}

bool is_null(lua_State* L, int index) { return lua_islightuserdata(L, index) && lua_touserdata(L, index) == &g_null_key; }

bool marked_array(lua_State* L, int index) {
  if (!lua_getmetatable(L, index)) return false;
  push_raw(L, LUA_REGISTRYINDEX, kArrayClass);
  const bool same = lua_rawequal(L, -1, -2) != 0;
  lua_pop(L, 2);
  return same;
}

// The number of elements if the keys are exactly 1..n, else -1.
int64_t sequence_length(lua_State* L, int index) {
  int64_t keys = 0, largest = 0;
  bool numbers = true;
  for_each_entry(L, index, "json.encode", [&] {
    const auto key = integer_at(L, -2);
    numbers = numbers && key && *key >= 1;
    largest = std::max(largest, key.value_or(0));
    ++keys;
  });
  return numbers && largest == keys ? keys : -1;  // keys are distinct: n keys from 1 to n are a sequence
}

Json number(double value) {
  if (!std::isfinite(value)) return format_double(value);  // "NaN", "Infinity", "-Infinity"
  if (std::floor(value) == value && std::abs(value) <= kExact && !(value == 0 && std::signbit(value))) return static_cast<int64_t>(value);
  return value;
}

// int64_t and uint64_t of the FFI print as 12LL and 12ULL.
Json wide_integer(lua_State* L, int index, const std::string& path) {
  lua_getglobal(L, "tostring");
  lua_pushvalue(L, index);
  if (!protected_call(L, 1, 1)) throw PendingError();
  const std::string text = text_at(L, -1).value_or("");
  lua_pop(L, 1);
  if (text.ends_with("ULL")) return static_cast<uint64_t>(std::strtoull(text.c_str(), nullptr, 10));
  if (text.ends_with("LL")) return static_cast<int64_t>(std::strtoll(text.c_str(), nullptr, 10));
  no_form(path, fmt::format("a cdata value has no JSON form ({})", text));
}

// [-0, +0, e]; `index` is absolute
Json encode(lua_State* L, int index, int depth, const std::string& path) {
  if (depth > kDeepest || !lua_checkstack(L, 8)) {
    no_form("", fmt::format("nested deeper than {} levels; does the table contain itself?", kDeepest));
  }
  switch (lua_type(L, index)) {
    case LUA_TNIL: return nullptr;
    case LUA_TBOOLEAN: return truth_at(L, index);
    case LUA_TNUMBER: return number(*number_at(L, index));
    case LUA_TSTRING: return *text_at(L, index);
    case LUA_TTABLE: break;
    case kCdata: return wide_integer(L, index, path);
    default:
      if (is_null(L, index)) return nullptr;
      no_form(path, value_text(L, index) + " has no JSON form");
  }
  const int64_t length = sequence_length(L, index);
  if (length > 0 || (length == 0 && marked_array(L, index))) {
    Json out = Json::array();
    for_each_element(L, index, "json.encode",
                     [&](int i) { out.push_back(encode(L, lua_gettop(L), depth + 1, fmt::format("{}[{}]", path, i))); });
    return out;
  }
  Json out = Json::object();  // keys sorted by bytes: equal tables give equal text
  for_each_entry(L, index, "json.encode", [&] {
    const auto key = text_at(L, -2);
    if (!key) no_form(path, "keys are all strings or exactly 1..n; this table also has the key " + value_text(L, -2));
    out[*key] = encode(L, lua_gettop(L), depth + 1, path + "." + *key);
  });
  return out;
}

// core.json_encode(value, indent) -> text
int json_encode(lua_State* L) {
  const int64_t indent = integer_argument(L, 2, "json.encode: option 'indent'", -1, 0, 16);
  lua_settop(L, 1);
  return give(L, encode(L, 1, 0, "").dump(static_cast<int>(indent), ' ', false, Json::error_handler_t::replace));
}

struct DecodeStyle {
  bool special = false;  ///< "NaN", "Infinity" and "-Infinity" become numbers
  int wide = 0;          ///< stack index of the function that makes a 64-bit integer from its digits
};

// [-0, +1, e]
void decode(lua_State* L, const Json& value, const DecodeStyle& style, int depth) {
  if (depth > kDeepest || !lua_checkstack(L, 8)) {
    throw ScriptError("corrupt", fmt::format("json.decode: nested deeper than {} levels", kDeepest), true);
  }
  const auto integer = [&](bool exact, double as_double, const std::string& digits) {
    if (exact) return lua_pushnumber(L, as_double);
    lua_pushvalue(L, style.wide);
    push(L, digits);
    if (!protected_call(L, 1, 1)) throw PendingError();
  };
  switch (value.type()) {
    case Json::value_t::boolean: return lua_pushboolean(L, value.get<bool>());
    case Json::value_t::number_float: return lua_pushnumber(L, value.get<double>());
    case Json::value_t::number_integer: {
      const auto n = value.get<int64_t>();
      return integer(n >= -static_cast<int64_t>(kExact), static_cast<double>(n), fmt::format("{}LL", n));
    }
    case Json::value_t::number_unsigned: {
      const auto n = value.get<uint64_t>();
      return integer(n <= static_cast<uint64_t>(kExact), static_cast<double>(n), fmt::format("{}{}", n, n > INT64_MAX ? "ULL" : "LL"));
    }
    case Json::value_t::string: {
      const auto& text = value.get_ref<const std::string&>();
      if (style.special && (text == "NaN" || text == "Infinity" || text == "-Infinity")) return lua_pushnumber(L, *parse_double(text));
      return push(L, text);
    }
    case Json::value_t::array: {
      lua_createtable(L, static_cast<int>(std::min<size_t>(value.size(), 1 << 20)), 0);
      push_raw(L, LUA_REGISTRYINDEX, kArrayClass);
      lua_setmetatable(L, -2);
      int i = 0;
      for (const Json& element : value) {
        decode(L, element, style, depth + 1);
        lua_rawseti(L, -2, ++i);
      }
      return;
    }
    case Json::value_t::object:
      lua_createtable(L, 0, static_cast<int>(std::min<size_t>(value.size(), 1 << 20)));
      for (const auto& [key, element] : value.items()) {
        push(L, key);
        decode(L, element, style, depth + 1);
        lua_rawset(L, -3);
      }
      return;
    default: return lua_pushlightuserdata(L, &g_null_key);
  }
}

// core.json_decode(text, wide, special, lines) -> value
int json_decode(lua_State* L) {
  const std::string text = text_argument(L, 1, "json.decode: text");
  lua_settop(L, 3);
  Json value;
  try {
    value = Json::parse(text);
  } catch (const Json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: ..."; only the position and the text after it are useful.
    std::string_view what = error.what();
    if (const size_t at = what.find(" at line "); at != std::string_view::npos) what.remove_prefix(at + 4);
    throw ScriptError("corrupt", fmt::format("json.decode: {}", printable(what)), true);
  } catch (const Json::out_of_range& error) {
    throw ScriptError("corrupt", fmt::format("json.decode: a number is larger than any double: {}", printable(error.what())), true);
  }
  decode(L, value, {truth_at(L, 3), 2}, 0);
  return 1;
}

// core.json_array(table) -> the same table, encoded as an array even if it is empty
int json_array(lua_State* L) {
  if (!lua_istable(L, 1)) misuse("json.array: a table is expected, not " + value_text(L, 1));
  lua_settop(L, 1);
  push_raw(L, LUA_REGISTRYINDEX, kArrayClass);
  lua_setmetatable(L, 1);
  return 1;
}

int json_is_array(lua_State* L) {
  lua_pushboolean(L, lua_istable(L, 1) && marked_array(L, 1));
  return 1;
}

}  // namespace

void bind_json(lua_State* L) {
  lua_newtable(L);
  lua_setfield(L, LUA_REGISTRYINDEX, kArrayClass);
  lua_pushlightuserdata(L, &g_null_key);
  lua_setfield(L, -2, "json_null");
  add_functions(L, {{"json_encode", guard<json_encode>}, {"json_decode", guard<json_decode>},
                    {"json_array", guard<json_array>}, {"json_is_array", guard<json_is_array>}});
}

}  // namespace msdbg::script
