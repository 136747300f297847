// Interrupts requested before or between the steps of a script, and the state afterwards.
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "script/support.h"

namespace msdbg::testing {
namespace {

using Interrupt = ScriptTest;

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
  EXPECT_TRUE(contains(type("hits"), "interrupted: "));
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

}  // namespace
}  // namespace msdbg::testing
