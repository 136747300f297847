// Errors on the border between Lua and the core, and the guard that makes a C++ function safe to call from Lua. Only files of
// src/script include this.
//
// Rules of the border:
// - A function that Lua calls is registered as guard<fn>. It reports misuse by throwing ScriptError, never by a luaL_*
//   helper, so C++ objects in its frame are always destroyed before lua_error runs.
// - Code that enters Lua from C++ uses protected_call(), so no Lua error ever crosses a C++ frame of the core.
#pragma once

#include <exception>
#include <lua.hpp>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "msdbg/base.h"

namespace msdbg::script {

struct Vm;
/// The Vm that owns `L`, including its coroutines.
Vm& vm_of(lua_State* L);

/// Thrown by bindings; guard turns it into an error object for Lua.
class ScriptError : public std::exception {
 public:
  /// `code` is a word from code_name(). `expected`: a mistake of the user or in the data, shown without traceback.
  ScriptError(std::string code, std::string message, bool expected = false)
      : code_(std::move(code)), message_(std::move(message)), expected_(expected) {}
  explicit ScriptError(const Status& status);

  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& code() const { return code_; }
  const std::string& message() const { return message_; }
  bool expected() const { return expected_; }

 private:
  std::string code_, message_;
  bool expected_;
};

/// Thrown when the error value is already on top of the Lua stack.
class PendingError : public std::exception {};

/// Raises an error about wrong arguments.
[[noreturn]] void misuse(std::string message);
/// `text` with " (did you mean 'x'?)" when a candidate resembles `word`.
std::string with_suggestion(std::string text, std::string_view word, std::span<const std::string> candidates);

/// [-0, +0, m]
void define_error_class(lua_State* L);
/// {code, message, where, expected} with the error metatable; `where` is the nearest caller outside the library.  [-0, +1, m]
void push_error(lua_State* L, std::string_view code, std::string_view message, bool expected);
/// The error object that a failed protected_call left.
struct ErrorView {
  std::string code, message, where, traceback;
  bool expected = false;
};
ErrorView read_error(lua_State* L, int index);
/// For people: position, message, cause; then the traceback unless the error was expected.
std::string error_text(const ErrorView& error, bool with_traceback);

/// lua_pcall with a message handler that turns anything into an error object. True on success; otherwise leaves one error object.
/// [-(nargs + 1), +(nresults|1), -]
bool protected_call(lua_State* L, int nargs, int nresults);

template <int (*fn)(lua_State*)>
int guard(lua_State* L) {
  try {
    const int results = fn(L);
    MSDBG_CHECK(results <= lua_gettop(L));
    return results;
  } catch (const ScriptError& error) {
    push_error(L, error.code(), error.message(), error.expected());
  } catch (const PendingError&) {
    // the error value is on the stack
  } catch (const std::bad_alloc&) {
    push_error(L, "out_of_memory", "there is not enough memory for this", true);
  } catch (const std::exception& error) {
    push_error(L, "internal", error.what(), false);
  }
  return lua_error(L);
}

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw ScriptError(result.status());
  return std::move(result.value());
}

}  // namespace msdbg::script
