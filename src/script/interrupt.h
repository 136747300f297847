// Ctrl-C while Lua runs, and os.exit: both arm a hook that raises at every instruction until the entry has ended.
#pragma once

#include <csignal>

#include "script/objects.h"

namespace msdbg::script {

/// Lets compiled loops obey the hook: the VM profiler in line mode puts an exit check into traces. The profiler serves
/// one VM of a process at a time; jit.p shares it.
void start_exit_checks(lua_State* L);
void stop_exit_checks(lua_State* L);

/// Makes every following Lua instruction of `vm` raise "interrupted" or end the script. On the thread that runs the VM;
/// async-signal-safe.
void arm_hook(Vm& vm);

/// Lives while C++ is inside Lua: the SIGINT handler of the process is ours, and the hook is cleared at the end.
/// A second Ctrl-C before the first was handled ends the process.
class Entry {
 public:
  explicit Entry(Vm& vm);
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  Vm& vm_;
  Vm* outer_;
  struct sigaction before_ = {};
};

}  // namespace msdbg::script
