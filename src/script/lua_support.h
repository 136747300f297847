// What every binding file stands on: errors across the border, guarded C functions, checked arguments, and userdata
// that own a shared_ptr. Only files of src/script include this.
//
// Rules of the border:
// - A function that Lua calls is registered as guard<fn>. It reports misuse by throwing ScriptError, never by a luaL_*
//   helper, so that C++ objects in its frame are always destroyed before lua_error runs.
// - Code that enters Lua from C++ uses protected_call(), so that no Lua error ever crosses a C++ frame of the core.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <lua.hpp>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msdbg/base.h"

namespace msdbg::script {

struct Vm;
/// The Vm that owns `L`, coroutines included.
Vm& vm_of(lua_State* L);

// ---- errors --------------------------------------------------------------------------------------------------------

/// Thrown by bindings; guard turns it into the error object that Lua sees.
class ScriptError : public std::exception {
 public:
  /// `code` is a word such as code_name() gives. `expected`: a mistake of the user or of the data, shown without
  /// traceback.
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

/// Thrown when the error value already lies on top of the Lua stack.
class PendingError : public std::exception {};

/// The caller's words are wrong.
[[noreturn]] void misuse(std::string message);
/// `text` with " (did you mean 'x'?)" when a candidate resembles `word`.
std::string with_suggestion(std::string text, std::string_view word, std::span<const std::string> candidates);

/// [-0, +0, m]
void define_error_class(lua_State* L);
/// {code, message, where, expected} with the error metatable; `where` is the nearest caller outside the library.  [-0,
/// +1, m]
void push_error(lua_State* L, std::string_view code, std::string_view message, bool expected);
/// What a failed protected_call left: an error object.
struct ErrorView {
  std::string code, message, where, traceback;
  bool expected = false;
};
ErrorView read_error(lua_State* L, int index);
/// For people: where, message, cause; then the traceback unless the error was expected.
std::string error_text(const ErrorView& error, bool with_traceback);

/// lua_pcall with the message handler that turns anything into an error object. True on success; otherwise one error
/// object is left.  [-(nargs + 1), +(nresults|1), -]
bool protected_call(lua_State* L, int nargs, int nresults);

template <int (*fn)(lua_State*)>
int guard(lua_State* L) {
  try {
    return fn(L);
  } catch (const ScriptError& error) {
    push_error(L, error.code(), error.message(), error.expected());
  } catch (const PendingError&) {
    // the value is on the stack
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

/// nil, message, code.  [-0, +3, m]
int push_absence(lua_State* L, const Status& status);

// ---- values --------------------------------------------------------------------------------------------------------

void push_text(lua_State* L, std::string_view text);
/// Bytes of a string; numbers are not converted.
std::optional<std::string> text_at(lua_State* L, int index);
std::optional<double> number_at(lua_State* L, int index);
/// A number without fraction within +-2^53.
std::optional<int64_t> integer_at(lua_State* L, int index);
/// How a value looks in an error message: 'text', 12, a table, <tensor ...>.
std::string value_text(lua_State* L, int index);

std::string text_argument(lua_State* L, int index, std::string_view what);
double number_argument(lua_State* L, int index, std::string_view what);
int64_t integer_argument(lua_State* L, int index, std::string_view what);
bool boolean_argument(lua_State* L, int index, std::string_view what);

inline void set_field(lua_State* L, const char* key, std::string_view value) {
  push_text(L, value), lua_setfield(L, -2, key);
}
inline void set_field(lua_State* L, const char* key, const char* value) {
  push_text(L, value), lua_setfield(L, -2, key);
}
inline void set_field(lua_State* L, const char* key, bool value) {
  lua_pushboolean(L, value), lua_setfield(L, -2, key);
}
inline void set_field(lua_State* L, const char* key, double value) {
  lua_pushnumber(L, value), lua_setfield(L, -2, key);
}
template <std::integral T>
requires(!std::same_as<T, bool>) void set_field(lua_State* L, const char* key, T value) {
  set_field(L, key, static_cast<double>(value));
}

/// Named fields of an options table. Reading marks a key as known; finish() raises on the others.
class OptionTable {
 public:
  /// `index` may hold nothing or nil: then there are no options. `call` is named in messages: "tensor".
  OptionTable(lua_State* L, int index, std::string_view call);

  std::optional<std::string> text(const char* key);
  std::optional<double> number(const char* key);
  std::optional<int64_t> integer(const char* key);
  std::optional<bool> boolean(const char* key);
  /// `0:10`, 3, or {0, 4}.
  std::optional<IntSet> numbers(const char* key);
  /// Pushes the value if there is one.  [-0, +(0|1), m]
  bool push(const char* key);
  void know(std::string key) { known_.push_back(std::move(key)); }
  lua_State* state() const { return L_; }
  /// Keys that were not read. Error: a key that is no string.
  std::vector<std::string> unread();
  void finish();

 private:
  [[noreturn]] void wrong(const char* key, std::string_view expected);

  lua_State* L_;
  int index_;  ///< 0: no table
  std::string call_;
  std::vector<std::string> known_;
};

/// A set of numbers in the forms of OptionTable::numbers. `what` names it in messages.
IntSet numbers_argument(lua_State* L, int index, std::string_view what);

// ---- userdata ------------------------------------------------------------------------------------------------------

struct Member {
  const char* name;
  lua_CFunction function;  ///< guarded
};

/// What Lua knows about a class. Fields are called with the object and give one value.
struct ClassSpec {
  const char* name;  ///< "tensor"; the metatable lies in the registry as "msdbg.tensor"
  std::span<const Member> methods;
  std::span<const Member> fields;
  std::span<const Member> meta;                                ///< __tostring, __len, __call, ...
  std::span<const std::pair<const char*, const char*>> hints;  ///< names that are no fields, and why
  lua_CFunction index_number;                                  ///< for obj[1]; may be null
};
/// Makes the metatable; __index raises on unknown names, __newindex always.  [-0, +0, m]
void define_class(lua_State* L, const ClassSpec& spec, lua_CFunction collect, lua_CFunction equal);

template <typename T>
struct ClassName;  // specialised in objects.h: static constexpr const char* value

template <typename T>
std::shared_ptr<T>* holder_at(lua_State* L, int index) {
  void* memory = lua_touserdata(L, index);
  if (memory == nullptr || lua_islightuserdata(L, index) || !lua_getmetatable(L, index)) return nullptr;
  luaL_getmetatable(L, ClassName<T>::registry);
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
  luaL_getmetatable(L, ClassName<T>::registry);
  lua_setmetatable(L, -2);
}

template <typename T>
int collect_object(lua_State* L) {
  if (auto* holder = holder_at<T>(L, 1)) holder->reset();  // the memory itself belongs to Lua; reset() may run twice
  return 0;
}

template <typename T>
int equal_objects(lua_State* L) {
  const T* a = object_at<T>(L, 1);
  const T* b = object_at<T>(L, 2);
  lua_pushboolean(L, a != nullptr && a == b);
  return 1;
}

}  // namespace msdbg::script
