// msdbg listen without a user: scripts, entries, the end of input, recordings, and the exit status.
#include "app/live_fixture.h"

namespace msdbg::testing {
namespace {

class LiveBatch : public ::testing::Test {
 protected:
  // Starts msdbg and, once it listens, the training.
  void start(std::vector<std::string> words, const std::vector<std::string>& training_words) {
    words.insert(words.begin(), {MSDBG_PROGRAM, "listen", "--port", "0"});
    debugger = std::make_unique<test::Process>(words);
    const auto line = debugger->wait_for("MS_DEBUGGER_PORT=");
    ASSERT_TRUE(line) << debugger->output();
    training = start_training(port_in(*line), training_words);
  }
  static ::testing::AssertionResult has(const test::Process& process, const std::string& part) {
    if (process.output().find(part) != std::string::npos) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "'" << part << "' is not in: " << process.output();
  }

  Folder folder;
  std::unique_ptr<test::Process> debugger, training;
};

TEST_F(LiveBatch, ShowsWhatToSetOnTheTrainingSide) {
  start({"-e", "quit"}, {"--steps", "3"});
  EXPECT_EQ(debugger->wait(), 0);
  EXPECT_TRUE(has(*debugger, "listening on 127.0.0.1:"));
  EXPECT_TRUE(has(*debugger, ". On the training side:\n  export ENABLE_MS_DEBUGGER=1 MS_DEBUGGER_HOST=127.0.0.1 MS_DEBUGGER_PORT="));
  EXPECT_TRUE(has(*debugger, "connected: MindSpore 2.2.0, GPU 0, 1 graph"));
}

TEST_F(LiveBatch, AScriptGetsSessionAndArgumentsAndSetsTheStatus) {
  const std::string script = folder.write("three.lua", R"(
    local r = s:step(3)
    print(arg[1], ..., r.reason, r.completed_steps)
    s:terminate()
    os.exit(7))");
  start({"--script", script, "--", "--limit"}, {"--steps", "1000000"});
  EXPECT_EQ(debugger->wait(), 7);
  EXPECT_TRUE(has(*debugger, "--limit\t--limit\tdone\t3"));
  EXPECT_EQ(training->wait(), 0);
  EXPECT_TRUE(has(*training, "stopped by the debugger after"));
}

TEST_F(LiveBatch, ATrainingThatAScriptLeavesHeldIsEnded) {
  start({"--script", folder.write("one.lua", "s:step()")}, {"--steps", "1000000"});
  EXPECT_EQ(debugger->wait(), 0);
  EXPECT_TRUE(has(*debugger, "terminating it (detach would let it run)"));
  EXPECT_EQ(training->wait(), 0);
}

TEST_F(LiveBatch, AFailingScriptEndsTheTrainingToo) {
  start({"--script", folder.write("bad.lua", "s:step()\nlocal x = nil + 1")}, {"--steps", "1000000"});
  EXPECT_EQ(debugger->wait(), 5);
  EXPECT_TRUE(has(*debugger, "bad.lua:2: attempt to perform arithmetic on a nil value"));
  EXPECT_TRUE(has(*debugger, "terminating it"));
  EXPECT_EQ(training->wait(), 0);
}

TEST_F(LiveBatch, ADetachedTrainingIsAnsweredToItsEnd) {
  start({"--script", folder.write("let_go.lua", "s:step(2) s:detach()")}, {"--steps", "40"});
  EXPECT_EQ(debugger->wait(), 0);
  EXPECT_TRUE(has(*debugger, "msdbg stays until it has ended"));
  EXPECT_EQ(training->wait(), 0);
  EXPECT_TRUE(has(*training, "done: 40 steps"));
}

TEST_F(LiveBatch, TheEndOfInputEndsTheTraining) {
  start({}, {"--steps", "1000000"});  // standard input is empty
  EXPECT_EQ(debugger->wait(), 0);
  EXPECT_TRUE(has(*debugger, "terminating it"));
  EXPECT_EQ(training->wait(), 0);
}

TEST_F(LiveBatch, EntriesRunBeforeTheEnd) {
  start({"-e", "watch @all TO", "-e", "continue", "-e", "terminate", "--batch"},
        {"--steps", "100", "--fault", "log-of-zero", "--fault-step", "4"});
  EXPECT_EQ(debugger->wait(), 0);
  EXPECT_TRUE(has(*debugger, "step 4  HIT  1 hit"));
  EXPECT_TRUE(has(*debugger, "log-Log/Log-op15:output:0  TO") || has(*debugger, "Log-op15:output:0  TO"));
  EXPECT_EQ(training->wait(), 0);
}

TEST_F(LiveBatch, ALuaErrorInACallbackKeepsTheSession) {
  start({"-e", "s:on('step', function() error 'in the callback' end)", "-e", "continue", "--batch"}, {"--steps", "1000000"});
  EXPECT_EQ(debugger->wait(), 5);
  EXPECT_TRUE(has(*debugger, "in the callback"));
  EXPECT_TRUE(has(*debugger, "the training is held in step 0, 1 completed; terminating it"));
  EXPECT_EQ(training->wait(), 0);
}

TEST_F(LiveBatch, ARecordingIsASession) {
  const std::string file = folder.path() + "/training.rec";
  start({"--record", file, "-e", "watch @all TO", "-e", "continue", "-e", "terminate", "--batch"},
        {"--steps", "100", "--fault", "log-of-zero", "--fault-step", "4"});
  EXPECT_EQ(debugger->wait(), 0);
  for (const char* command : {"open", ""}) {
    std::vector<std::string> words{MSDBG_PROGRAM, file, "-e", "watch @all TO", "-e", "continue", "-e", "s", "--batch"};
    if (*command != '\0') words.insert(words.begin() + 1, command);
    test::Process replay(words);
    EXPECT_EQ(replay.wait(), 0) << replay.output();
    EXPECT_TRUE(has(replay, "step 4  HIT  1 hit"));
    EXPECT_FALSE(has(replay, "terminating it (detach"));
  }
  test::Process check({MSDBG_PROGRAM, "check", file});
  EXPECT_EQ(check.wait(), 3);
  EXPECT_TRUE(has(check, "is a recording of a live session, which is played step by step: msdbg open"));
  test::Process script(
      {MSDBG_PROGRAM, "run", folder.write("look.lua", "local s = msdbg.open(arg[1]) print(s.kind, s.state, s.can.step)"), file});
  EXPECT_EQ(script.wait(), 0);
  EXPECT_TRUE(has(script, "recording\theld\ttrue"));
}

TEST_F(LiveBatch, ControlCEndsScriptAndTraining) {
  const std::string script = folder.write("endless.lua", "print 'running'\nio.stdout:flush()\nwhile true do s:continue() end");
  start({"--script", script}, {"--steps", "1000000", "--step-sleep-ms", "2"});
  ASSERT_TRUE(debugger->wait_for("running")) << debugger->output();
  debugger->send_signal(SIGINT);
  EXPECT_EQ(debugger->wait(), 130);
  EXPECT_TRUE(has(*debugger, "terminating it"));
  EXPECT_EQ(training->wait(), 0);
  EXPECT_TRUE(has(*training, "stopped by the debugger"));
}

TEST_F(LiveBatch, AKilledTrainingIsAResultForTheScript) {
  const std::string script = folder.write("lost.lua", R"(
    s:on("step", function()
      print "running"
      io.stdout:flush()
    end)
    local r = s:continue()
    print(r)
    os.exit(r.reason == "lost" and 9 or 0))");
  start({"--script", script}, {"--steps", "1000000", "--step-sleep-ms", "2"});
  ASSERT_TRUE(debugger->wait_for("running")) << debugger->output();
  training->send_signal(SIGKILL);
  EXPECT_EQ(debugger->wait(), 9) << debugger->output();
  EXPECT_TRUE(has(*debugger, "the connection to the training broke"));
}

TEST_F(LiveBatch, ACommandForATrainingThatIsGoneHasAStatusOfItsOwn) {
  const std::string script = folder.write("gone.lua", R"(
    print "waiting"
    io.stdout:flush()
    while s.state == "held" do end
    s:step())");
  start({"--script", script}, {"--steps", "1000000"});
  ASSERT_TRUE(debugger->wait_for("waiting")) << debugger->output();
  training->send_signal(SIGKILL);
  EXPECT_EQ(debugger->wait(), 6) << debugger->output();
  EXPECT_TRUE(has(*debugger, "gone.lua:5: step: "));
}

TEST_F(LiveBatch, ACommandBehindANormalEndIsAMistakeOfTheScript) {
  start({"--script", folder.write("end.lua", "s:continue()\ns:step()")}, {"--steps", "2"});
  EXPECT_EQ(debugger->wait(), 5) << debugger->output();
  EXPECT_TRUE(has(*debugger, "end.lua:2: step: the training has ended"));
}

TEST_F(LiveBatch, AScriptThatCannotRunIsToldBeforeATrainingIsWaitedFor) {
  test::Process missing({MSDBG_PROGRAM, "listen", "--port", "0", "--script", "no/such.lua"});
  EXPECT_EQ(missing.wait(), 5);
  EXPECT_TRUE(has(missing, "no/such.lua"));
  EXPECT_FALSE(has(missing, "listening"));
  test::Process half({MSDBG_PROGRAM, "listen", "--port", "0", "--script", folder.write("half.lua", "s:watch {\n")});
  EXPECT_EQ(half.wait(), 5);
  EXPECT_TRUE(has(half, "half.lua:"));
  EXPECT_FALSE(has(half, "listening"));
}

TEST_F(LiveBatch, NobodyComing) {
  test::Process waiting({MSDBG_PROGRAM, "listen", "--port", "0", "--timeout", "0.2"});
  EXPECT_EQ(waiting.wait(), 3);
  EXPECT_TRUE(has(waiting, "no training"));
}

TEST_F(LiveBatch, ABusyPortIsNamed) {
  test::Process first({MSDBG_PROGRAM, "listen", "--port", "0"});
  const auto line = first.wait_for("MS_DEBUGGER_PORT=");
  ASSERT_TRUE(line);
  test::Process second({MSDBG_PROGRAM, "listen", "--port", port_in(*line)});
  EXPECT_EQ(second.wait(), 3);
  EXPECT_TRUE(has(second, port_in(*line)));
}

TEST_F(LiveBatch, AScriptMayListenItself) {
  const std::string script = folder.write("own.lua", R"(
    local s = msdbg.listen { port = 0 }
    for step, r in s:each_step() do print("step", step) if r.completed_steps == 3 then break end end
    s:detach())");
  debugger = std::make_unique<test::Process>(std::vector<std::string>{MSDBG_PROGRAM, "run", script});
  const auto line = debugger->wait_for("MS_DEBUGGER_PORT=");
  ASSERT_TRUE(line) << debugger->output();
  training = start_training(port_in(*line), {"--steps", "20"});
  EXPECT_EQ(debugger->wait(), 0);
  EXPECT_TRUE(has(*debugger, "step\t2\n"));
  EXPECT_EQ(training->wait(), 0);
  EXPECT_TRUE(has(*training, "done: 20 steps"));
}

TEST_F(LiveBatch, OtherAddressesAreWarnedAbout) {
  test::Process waiting({MSDBG_PROGRAM, "listen", "--port", "0", "--bind", "0.0.0.0", "--timeout", "0"});
  EXPECT_EQ(waiting.wait(), 3);
  EXPECT_TRUE(has(waiting, "neither encryption nor login"));
}

}  // namespace
}  // namespace msdbg::testing
