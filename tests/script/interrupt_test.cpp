// Ctrl-C: the real signal, sent by another thread while the virtual machine is busy.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "script/support.h"

namespace msdbg::testing {
namespace {

class Interrupt : public ScriptTest {
 protected:
  /// Runs `text` and sends SIGINT from another thread until it has ended, but only once per run.
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

TEST_F(Interrupt, CompiledLoopStops) { expect_interrupted("while true do end"); }
TEST_F(Interrupt, CompiledLoopWithWorkStops) { expect_interrupted("local n = 0\nwhile true do\n  n = n + 1\nend"); }
TEST_F(Interrupt, NestedForLoopsStop) {
  expect_interrupted("local n = 0\nfor i = 1, 1e15 do for j = 1, 1000 do n = n + j end end");
}
TEST_F(Interrupt, LoopOfPcallsStops) {
  expect_interrupted("while true do pcall(function() while true do end end) end");
}
TEST_F(Interrupt, LoopOfPcallsWithoutErrorsStops) {
  expect_interrupted("local function f() return 1 end\nwhile true do pcall(f) end");
}
TEST_F(Interrupt, LoopInACoroutineStops) {
  expect_interrupted(
      "local f = coroutine.wrap(function() while true do pcall(function() while true do end end) end end)\nf()");
}
TEST_F(Interrupt, YieldingCoroutineStops) {
  expect_interrupted(
      "local f = coroutine.wrap(function() while true do coroutine.yield(1) end end)\nwhile true do f() end");
}
TEST_F(Interrupt, ViewLoopStops) {
  expect_interrupted(
      "local v = s:tensor('MatMul-op0'):view()\nlocal sum = 0\nwhile true do\n  for i = 0, v.n - 1 do sum = sum + v[i] "
      "end\nend");
}
TEST_F(Interrupt, LoopInAWatchFunctionStops) {
  expect_interrupted("s:watch { on = '**', when = function() while true do end end }\ns:check()");
}

TEST_F(Interrupt, RequestBeforeTheStartStopsAtOnce) {
  request_interrupt();
  EXPECT_EQ(script->run_text("while true do end", "@loop.lua").exit_status, 130);
}

TEST_F(Interrupt, PromptGoesOnAfterwards) {
  request_interrupt();
  EXPECT_EQ(script->eval("while true do end").output, "interrupted");
  clear_interrupt();
  EXPECT_EQ(type("40 + 2"), "42");
  EXPECT_EQ(type("#s:nodes '**'"), "5");
}

TEST_F(Interrupt, PartialCheckIsKept) {
  type("s:watch { on = '**', when = 'TO' }");
  auto interrupting = small_session();
  interrupting->set_read_hook([](const TensorId&) { request_interrupt(); });
  script->set_session(std::move(interrupting));
  type("watch ** TO");
  const auto result = script->eval("check");
  EXPECT_EQ(result.state, Script::EvalState::kError);
  EXPECT_TRUE(contains(result.output, "interrupted"));
  clear_interrupt();
  EXPECT_EQ(type("s.last_result.interrupted"), "true");
  EXPECT_TRUE(contains(type("hits"), "partial"));
}

TEST_F(Interrupt, HandlerOfTheProgramIsPutBack) {
  static std::atomic<int> seen;
  seen = 0;
  struct sigaction mine = {}, before = {};
  mine.sa_handler = [](int) { ++seen; };
  sigaction(SIGINT, &mine, &before);
  type("1 + 1");
  raise(SIGINT);
  EXPECT_EQ(seen, 1);
  EXPECT_FALSE(interrupt_requested());
  sigaction(SIGINT, &before, nullptr);
}

TEST_F(Interrupt, ASecondOneEndsTheProcess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto options = small_options();
  options.open = [](const std::string&, const DumpOptions&) -> Result<std::unique_ptr<Session>> {
    raise(SIGINT);
    raise(SIGINT);
    return Status(Code::kInternal, "still here");
  };
  EXPECT_EXIT((*Script::create(options))->run_text("msdbg.open 'x'", "@x.lua"), ::testing::ExitedWithCode(130), "");
}

TEST_F(Interrupt, MachineWithoutExitChecksStillStopsInterpretedLoops) {
  auto options = small_options();
  options.interruptible = false;
  auto other = Script::create(options);
  ASSERT_TRUE(other.ok());
  script = std::move(*other);
  expect_interrupted("jit.off()\nwhile true do end");
}

}  // namespace
}  // namespace msdbg::testing
