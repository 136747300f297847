// What C++ that runs inside an entry of the prompt needs to call Lua again.
#pragma once

#include "script/objects.h"

namespace msdbg::script {

/// Leaves the stack as it was.
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

/// The session of the command that runs now, else the global `s`; nil without any.  [-0, +1, -]
void push_session(Vm& vm);
/// What the error object on top says. A defect of the library is kInternal.
Status status_of_error(lua_State* L);

}  // namespace msdbg::script
