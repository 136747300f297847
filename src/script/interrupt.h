// Ctrl-C while Lua runs, and os.exit: both arm a hook that raises at every instruction until the entry ends.
#pragma once

#include <csignal>

#include "script/objects.h"

namespace msdbg::script {

/// Makes compiled loops obey the hook: the VM profiler in line mode adds an exit check to traces. The profiler serves one VM per
/// process at a time; jit.p uses the same one.
void start_exit_checks(lua_State* L);
void stop_exit_checks(lua_State* L);

/// Makes every following Lua instruction of `vm` raise "interrupted" or end the script. Call it on the thread of the VM;
/// async-signal-safe.
void arm_hook(Vm& vm);

/// Exists while C++ is inside Lua: installs our SIGINT handler, and clears the hook at the end. A second Ctrl-C before the first
/// was handled ends the process.
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
