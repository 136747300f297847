// Ctrl-C in loops that never leave the virtual machine: the real signal, sent by another thread. Not built with the thread
// sanitizer, which delays signals until the next libc call; such loops make none.
#include <pthread.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "script/support.h"

namespace msdbg::testing {
namespace {

class Signal : public ScriptTest {
 protected:
  /// Runs `text` and sends SIGINT from another thread, once per run.
  ScriptOutcome run_interrupted(const std::string& text) {
    const pthread_t vm_thread = pthread_self();
    std::thread killer([vm_thread] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      ::usleep(150000);  // the loop is compiled within a few milliseconds
      pthread_kill(vm_thread, SIGINT);
    });
    const ScriptOutcome outcome = script->run_text(text, "@loop.lua");
    killer.join();
    return outcome;
  }

  void expect_interrupted(const std::string& text) {
    const ScriptOutcome outcome = run_interrupted(text);
    EXPECT_EQ(outcome.exit_status, 130) << text;
    EXPECT_EQ(outcome.error, "interrupted");
    EXPECT_TRUE(interrupt_requested()) << "whoever runs scripts clears the flag";
  }
};

TEST_F(Signal, CompiledLoopStops) { expect_interrupted("while true do end"); }
TEST_F(Signal, CompiledLoopWithWorkStops) { expect_interrupted("local n = 0\nwhile true do\n  n = n + 1\nend"); }
TEST_F(Signal, NestedForLoopsStop) {
  expect_interrupted("local n = 0\nfor i = 1, 1e15 do for j = 1, 1000 do n = n + j end end");
}
TEST_F(Signal, LoopOfPcallsStops) { expect_interrupted("while true do pcall(function() while true do end end) end"); }
TEST_F(Signal, LoopOfPcallsWithoutErrorsStops) {
  expect_interrupted("local function f() return 1 end\nwhile true do pcall(f) end");
}
TEST_F(Signal, LoopInACoroutineStops) {
  expect_interrupted(
      "local f = coroutine.wrap(function() while true do pcall(function() while true do end end) end end)\nf()");
}
TEST_F(Signal, YieldingCoroutineStops) {
  expect_interrupted(
      "local f = coroutine.wrap(function() while true do coroutine.yield(1) end end)\nwhile true do f() end");
}
TEST_F(Signal, ViewLoopStops) {
  expect_interrupted(
      "local v = s:tensor('MatMul-op0'):view()\nlocal sum = 0\nwhile true do\n  for i = 0, v.n - 1 do sum = sum + v[i] "
      "end\nend");
}
TEST_F(Signal, LoopInAWatchFunctionStops) {
  expect_interrupted("s:watch { on = '**', when = function() while true do end end }\ns:check()");
}

// Regular profiler ticks would sooner or later meet the recording of a loop over pairs(), which LuaJIT does not survive.
TEST_F(Signal, ProfilerTicksOnRequestOnly) {
  itimerval timer = {};
  ASSERT_EQ(getitimer(ITIMER_PROF, &timer), 0);
  EXPECT_GT(timer.it_value.tv_sec, 24 * 3600);
}

TEST_F(Signal, StoppedProfilerLeavesCtrlCToInterpretedLoops) {
  expect_interrupted("require('jit.profile').stop()\njit.off()\nwhile true do end");
}

TEST_F(Signal, MachineWithoutExitChecksStillStopsInterpretedLoops) {
  auto options = small_options();
  options.interruptible = false;
  auto other = Script::create(options);
  ASSERT_TRUE(other.ok());
  script = std::move(*other);
  expect_interrupted("jit.off()\nwhile true do end");
}

}  // namespace
}  // namespace msdbg::testing
