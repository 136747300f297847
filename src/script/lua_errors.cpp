// Converts C++ errors to Lua objects, and anything that Lua raised to one form.
#include <fmt/format.h>

#include <cstring>

#include "script/lua_classes.h"
#include "script/objects.h"

namespace msdbg::script {
namespace {

constexpr const char* kErrorClass = "msdbg.error";
constexpr std::string_view kLibraryChunk = "=msdbg.";

bool is_error_object(lua_State* L, int index) {
  if (!lua_istable(L, index) || !lua_getmetatable(L, index)) return false;
  luaL_getmetatable(L, kErrorClass);
  const bool same = lua_rawequal(L, -1, -2) != 0;
  lua_pop(L, 2);
  return same;
}

// "file.lua:3" of the innermost Lua caller that is not part of the library.
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

// "file.lua:3: text" -> position and text. A position has a line number between two colons.
std::pair<std::string, std::string> split_place(const std::string& text) {
  for (size_t colon = text.find(':'); colon != std::string::npos; colon = text.find(':', colon + 1)) {
    size_t end = colon + 1;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > colon + 1 && text.compare(end, 2, ": ") == 0) return {text.substr(0, end), text.substr(end + 2)};
    if (text.find('\n') < colon) break;
  }
  return {"", text};
}

void push_error_table(lua_State* L, std::string_view code, std::string_view message, std::string_view where,
                      bool expected) {
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
  if (lua_type(L, index) == LUA_TSTRING || lua_type(L, index) == LUA_TNUMBER)
    lua_pushvalue(L, index), lua_tostring(L, -1);
  else
    lua_pushfstring(L, "(error object is a %s)", luaL_typename(L, index));
}

// Removes frames that are useless to a reader: C functions and the library's own Lua.
std::string useful_traceback(const std::string& full) {
  std::string out;
  for (const std::string_view line : split(full, '\n')) {
    const std::string_view text = trim(line);
    if (text.starts_with("stack traceback:") || text.starts_with("[C]") || text.starts_with("msdbg.") || text.empty())
      continue;
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
  if (text_field(L, 1, "traceback").empty()) {
    luaL_traceback(L, L, nullptr, 1);
    push(L, useful_traceback(text_at(L, -1).value_or("")));
    lua_setfield(L, 1, "traceback");
  }
  lua_settop(L, 1);
  return 1;
}

int error_to_string(lua_State* L) {
  return give(L, error_text(read_error(L, 1), false));
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
  view.code = text_field(L, index, "code");
  view.message = text_field(L, index, "message");
  view.where = text_field(L, index, "where");
  view.traceback = text_field(L, index, "traceback");
  push_raw(L, index, "expected");
  view.expected = truth_at(L, -1);
  lua_pop(L, 1);
  return view;
}

std::string error_text(const ErrorView& error, bool with_traceback) {
  // The entry itself is visible; msdbg.repl covers a tail call, which leaves no frame of its own.
  const bool at_prompt = error.where.starts_with("prompt:") || error.where.starts_with("msdbg.repl:");
  std::string text =
      error.where.empty() || at_prompt ? error.message : fmt::format("{}: {}", error.where, error.message);
  if (with_traceback && !error.expected && error.traceback.find('\n') != std::string::npos)
    text += "\n" + error.traceback;
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
  push(L, status.message());
  push(L, code_name(status.code()));
  return 3;
}

void define_error_class(lua_State* L) {
  luaL_newmetatable(L, kErrorClass);
  lua_pushcfunction(L, guard<error_to_string>);
  lua_setfield(L, -2, "__tostring");
  set_field(L, "__name", "error");
  lua_pop(L, 1);
}

}  // namespace msdbg::script
