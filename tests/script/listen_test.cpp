// msdbg.listen: options, waiting, refusals, and messages to the user meanwhile.
#include "script/live_support.h"

namespace msdbg::testing {
namespace {

using Listen = LiveScriptTest;

TEST_F(Listen, ReturnsWhenATrainingIsHeld) {
  run("local s = msdbg.listen(); assert(s.state == 'held' and s.current_step == 0); s:terminate()");
  EXPECT_EQ(listened.port, 50051);
  EXPECT_EQ(listened.bind, "127.0.0.1");
  ASSERT_GE(told.size(), 2u);
  EXPECT_EQ(told[0],
            "listening on 127.0.0.1:50051. On the training side:\n"
            "  export ENABLE_MS_DEBUGGER=1 MS_DEBUGGER_HOST=127.0.0.1 MS_DEBUGGER_PORT=50051");
  EXPECT_EQ(told[1], "connected: MindSpore 2.2.0, GPU 0, 1 graph");
}

TEST_F(Listen, OptionsArePassedOn) {
  run("msdbg.listen { port = 0, ranks = 3, bind = '0.0.0.0', record = 'x.rec', mem_limit = 512, history = 4, answer_timeout = 2.5,"
      " wait = 5 }:terminate()");
  EXPECT_EQ(listened.port, 0);
  EXPECT_EQ(listened.ranks, 3);
  EXPECT_EQ(listened.bind, "0.0.0.0");
  EXPECT_EQ(listened.record, "x.rec");
  EXPECT_EQ(listened.mem_limit_bytes, uint64_t{512} << 20);
  EXPECT_EQ(listened.history_steps, 4);
  EXPECT_EQ(listened.view_deadline, std::chrono::milliseconds(2500));
}

TEST_F(Listen, WarnsWhenOthersCanReachThePort) {
  run("msdbg.listen { bind = '0.0.0.0' }:terminate()");
  ASSERT_FALSE(told.empty());
  EXPECT_TRUE(contains(told[0], "neither encryption nor login"));
}

TEST_F(Listen, MayReturnAtOnce) {
  run(R"(local s = msdbg.listen { wait = false }
         assert(s.state == "waiting" and s.address == "127.0.0.1:50051")
         assert(s:wait { timeout = 5 } == "held" and s.state == "held")
         s:terminate())");
}

TEST_F(Listen, NobodyIsAnAbsence) {
  run(R"(local s, why, code = msdbg.listen { port = 2, wait = 0.01 }
         assert(s == nil and why:find "no training process came" and code == "not_found"))");
}

TEST_F(Listen, RefusedPeersAndClosedPortsAreErrors) {
  EXPECT_TRUE(contains(failure("msdbg.listen { port = 3 }"), "MindSpore 2.4.0 was refused"));
  EXPECT_TRUE(contains(failure("msdbg.listen { port = 1 }"), "cannot be opened"));
}

TEST_F(Listen, WrongOptionsAreNamed) {
  EXPECT_TRUE(contains(failure("msdbg.listen { port = 70000 }"), "0 to 65535 is expected, not 70000"));
  EXPECT_TRUE(contains(failure("msdbg.listen { ranks = 0 }"), "1 to 256 is expected, not 0"));
  EXPECT_TRUE(contains(failure("msdbg.listen { prot = 1 }"), "did you mean 'port'"));
  EXPECT_TRUE(contains(failure("msdbg.listen { wait = 'x' }"), "seconds or false is expected"));
  EXPECT_TRUE(contains(failure("msdbg.listen { history = -1 }"), "option 'history'"));
  EXPECT_TRUE(contains(failure("msdbg.listen { answer_timeout = 0 }"), "option 'answer_timeout'"));
}

TEST_F(Listen, ControlCEndsTheWait) {
  request_interrupt();
  EXPECT_EQ(script->run_text("msdbg.listen { port = 2 }", "@test.lua").exit_status, 130);
}

TEST_F(Listen, ProgramsWithoutLiveSessionsSaySo) {
  auto plain = Script::create(small_options());
  ASSERT_TRUE(plain.ok());
  EXPECT_TRUE(contains((*plain)->eval("msdbg.listen()").output, "without live sessions"));
}

TEST_F(Listen, EverySessionIsATraining) {
  type("a = msdbg.listen { port = 0 }");
  EXPECT_EQ(script->trainings().size(), 2u);  // `s` is another
  EXPECT_EQ(script->event_descriptors().size(), 2u);
  type("a:terminate()");
  EXPECT_EQ(script->trainings().size(), 1u);
}

}  // namespace
}  // namespace msdbg::testing
