#include "script/lua_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "script/objects.h"

namespace msdbg::script {
namespace {

constexpr const char* kErrorClass = "msdbg.error";
constexpr std::string_view kLibraryChunk = "=msdbg.";

std::string field_text(lua_State* L, int index, const char* key) {
  lua_pushstring(L, key);
  lua_rawget(L, index);
  std::string text = text_at(L, -1).value_or("");
  lua_pop(L, 1);
  return text;
}

bool is_error_object(lua_State* L, int index) {
  if (!lua_istable(L, index) || !lua_getmetatable(L, index)) return false;
  luaL_getmetatable(L, kErrorClass);
  const bool same = lua_rawequal(L, -1, -2) != 0;
  lua_pop(L, 2);
  return same;
}

// "file.lua:3" of the innermost Lua caller that is no part of the library.
std::string caller_place(lua_State* L) {
  lua_Debug frame;
  for (int level = 0; lua_getstack(L, level, &frame); ++level) {
    lua_getinfo(L, "Sl", &frame);
    if (std::strcmp(frame.what, "C") == 0 || frame.currentline <= 0) continue;
    if (std::string_view(frame.source).starts_with(kLibraryChunk)) continue;
    return fmt::format("{}:{}", frame.short_src, frame.currentline);
  }
  return "";
}

// "file.lua:3: text" -> place and text. A place has a line number between two colons.
std::pair<std::string, std::string> split_place(const std::string& text) {
  for (size_t colon = text.find(':'); colon != std::string::npos; colon = text.find(':', colon + 1)) {
    size_t end = colon + 1;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > colon + 1 && text.compare(end, 2, ": ") == 0) return {text.substr(0, end), text.substr(end + 2)};
    if (text.find('\n') < colon) break;
  }
  return {"", text};
}

void push_error_table(lua_State* L, std::string_view code, std::string_view message, std::string_view where, bool expected) {
  lua_createtable(L, 0, 6);
  set_field(L, "code", code);
  set_field(L, "message", message);
  if (!where.empty()) set_field(L, "where", where);
  set_field(L, "expected", expected);
  luaL_getmetatable(L, kErrorClass);
  lua_setmetatable(L, -2);
}

// [-0, +1, m] the text of any value, __tostring included, without letting it raise
void push_readable(lua_State* L, int index) {
  if (luaL_callmeta(L, index, "__tostring")) {
    if (lua_isstring(L, -1)) return;
    lua_pop(L, 1);
  }
  if (lua_type(L, index) == LUA_TSTRING || lua_type(L, index) == LUA_TNUMBER) lua_pushvalue(L, index), lua_tostring(L, -1);
  else lua_pushfstring(L, "(error object is a %s)", luaL_typename(L, index));
}

// Drops the frames that tell a reader nothing: C functions and the library's own Lua.
std::string useful_traceback(const std::string& full) {
  std::string out;
  for (const std::string_view line : split(full, '\n')) {
    const std::string_view text = trim(line);
    if (text.starts_with("stack traceback:") || text.starts_with("[C]") || text.starts_with("msdbg.") || text.empty()) continue;
    out += fmt::format("{}  {}", out.empty() ? "" : "\n", text);
  }
  return out;
}

int on_error(lua_State* L) {
  if (!is_error_object(L, 1)) {
    std::string text, place;
    const bool plain = lua_type(L, 1) == LUA_TSTRING;
    push_readable(L, 1);
    std::tie(place, text) = split_place(text_at(L, -1).value_or(""));
    lua_pop(L, 1);
    push_error_table(L, "error", text, place, false);
    if (!plain) {
      lua_pushvalue(L, 1);
      lua_setfield(L, -2, "cause");
    }
    lua_replace(L, 1);
  }
  if (field_text(L, 1, "traceback").empty()) {
    luaL_traceback(L, L, nullptr, 1);
    push_text(L, useful_traceback(text_at(L, -1).value_or("")));
    lua_setfield(L, 1, "traceback");
  }
  lua_settop(L, 1);
  return 1;
}

int error_to_string(lua_State* L) {
  push_text(L, error_text(read_error(L, 1), false));
  return 1;
}

}  // namespace

ScriptError::ScriptError(const Status& status)
    : code_(code_name(status.code())), message_(status.message()), expected_(status.code() != Code::kInternal) {}

void misuse(std::string message) { throw ScriptError("invalid_argument", std::move(message)); }

std::string with_suggestion(std::string text, std::string_view word, std::span<const std::string> candidates) {
  const auto close = nearest(word, candidates, 1);
  if (!close.empty()) text += fmt::format(" (did you mean '{}'?)", close.front());
  return text;
}

void push_error(lua_State* L, std::string_view code, std::string_view message, bool expected) {
  push_error_table(L, code, message, caller_place(L), expected);
}

ErrorView read_error(lua_State* L, int index) {
  if (index < 0) index = lua_gettop(L) + index + 1;
  ErrorView view;
  if (!lua_istable(L, index)) {
    view.message = text_at(L, index).value_or("an error without text");
    return view;
  }
  view.code = field_text(L, index, "code");
  view.message = field_text(L, index, "message");
  view.where = field_text(L, index, "where");
  view.traceback = field_text(L, index, "traceback");
  lua_getfield(L, index, "expected");
  view.expected = lua_toboolean(L, -1) != 0;
  lua_pop(L, 1);
  return view;
}

std::string error_text(const ErrorView& error, bool with_traceback) {
  // What was typed is in sight; msdbg.repl stands there for a tail call, which leaves no frame of its own.
  const bool at_prompt = error.where.starts_with("prompt:") || error.where.starts_with("msdbg.repl:");
  std::string text = error.where.empty() || at_prompt ? error.message : fmt::format("{}: {}", error.where, error.message);
  if (with_traceback && !error.expected && error.traceback.find('\n') != std::string::npos) text += "\n" + error.traceback;
  return text;
}

bool protected_call(lua_State* L, int nargs, int nresults) {
  const int base = lua_gettop(L) - nargs;
  lua_pushcfunction(L, on_error);
  lua_insert(L, base);
  const int status = lua_pcall(L, nargs, nresults, base);
  lua_remove(L, base);
  if (status != 0 && !is_error_object(L, -1)) {
    // The handler itself failed (no memory, an error inside it).
    std::string text = text_at(L, -1).value_or("an error in the error handler");
    lua_pop(L, 1);
    push_error_table(L, status == LUA_ERRMEM ? "out_of_memory" : "error", text, "", false);
  }
  return status == 0;
}

int push_absence(lua_State* L, const Status& status) {
  lua_pushnil(L);
  push_text(L, status.message());
  push_text(L, code_name(status.code()));
  return 3;
}

// ---- values --------------------------------------------------------------------------------------------------------

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
    case LUA_TNONE: return "nothing";
    case LUA_TNIL: return "nil";
    case LUA_TBOOLEAN: return lua_toboolean(L, index) ? "true" : "false";
    case LUA_TNUMBER: return format_double(lua_tonumber(L, index));
    case LUA_TSTRING: return fmt::format("'{}'", printable(text_at(L, index).value().substr(0, 60)));
    default: break;
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
  if (!lua_isboolean(L, index)) misuse(fmt::format("{}: true or false is expected, not {}", what, value_text(L, index)));
  return lua_toboolean(L, index) != 0;
}

IntSet numbers_argument(lua_State* L, int index, std::string_view what) {
  std::string text;
  if (const auto number = integer_at(L, index)) return IntSet::of(*number);
  if (const auto given = text_at(L, index)) text = *given;
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
  if (text.empty()) misuse(fmt::format("{}: a number, a text like '0:10' or a list of numbers is expected, not {}", what, value_text(L, index)));
  auto set = IntSet::parse(text);
  if (!set) misuse(fmt::format("{}: {}", what, set.status().message()));
  return *set;
}

// ---- options -------------------------------------------------------------------------------------------------------

OptionTable::OptionTable(lua_State* L, int index, std::string_view call) : L_(L), index_(0), call_(call) {
  if (lua_isnoneornil(L, index)) return;
  if (!lua_istable(L, index)) misuse(fmt::format("{}: a table of named options is expected, not {}", call, value_text(L, index)));
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
  for (const std::string& key : unread()) misuse(with_suggestion(fmt::format("{}: unknown option '{}'", call_, key), key, known_));
}

// ---- classes -------------------------------------------------------------------------------------------------------

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
  misuse(fmt::format("{}: fields cannot be assigned (here: {})", text_at(L, lua_upvalueindex(1)).value_or("object"), value_text(L, 2)));
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
  if (spec.index_number != nullptr) lua_pushcfunction(L, spec.index_number);
  else lua_pushnil(L);
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

void define_error_class(lua_State* L) {
  luaL_newmetatable(L, kErrorClass);
  lua_pushcfunction(L, guard<error_to_string>);
  lua_setfield(L, -2, "__tostring");
  set_field(L, "__name", "error");
  lua_pop(L, 1);
}

}  // namespace msdbg::script
