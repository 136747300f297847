// Helpers for C++ that runs inside an entry of the prompt and calls Lua again.
#pragma once

#include "script/objects.h"

namespace msdbg::script {

/// Restores the height of the stack.
class StackMark {
 public:
  explicit StackMark(lua_State* L) : L_(L), top_(lua_gettop(L)) {}
  ~StackMark() { lua_settop(L_, top_); }
  StackMark(const StackMark&) = delete;
  StackMark& operator=(const StackMark&) = delete;

 private:
  lua_State* L_;
  int top_;
};

/// The session of the running command, else the global `s`; nil without either.  [-0, +1, -]
void push_session(Vm& vm);
/// The error object on top as a Status. A defect of the library is kInternal.
Status status_of_error(lua_State* L);

}  // namespace msdbg::script
