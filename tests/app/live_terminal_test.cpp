// A user at the terminal with a real training: events while typing, Ctrl-C, and the question at the end.
#include "app/live_fixture.h"
#include "app/terminal.h"

namespace msdbg::testing {
namespace {

constexpr const char* kForever = "1000000";

class LiveTerminal : public ::testing::Test {
 protected:
  void start(std::vector<std::string> words, const std::vector<std::string>& training_words) {
    words.insert(words.begin(), {"listen", "--port", "0"});
    terminal = std::make_unique<Terminal>(words, folder.path(), kind);
    ASSERT_TRUE(terminal->see("MS_DEBUGGER_PORT=")) << terminal->screen();
    ASSERT_TRUE(terminal->see("\n")) << terminal->screen();
    training = start_training(port_in(terminal->screen()), training_words);
    ASSERT_TRUE(terminal->see("connected: MindSpore 2.2.0")) << terminal->screen();
  }
  void start_prompt(const std::vector<std::string>& training_words) {
    start({}, training_words);
    ASSERT_TRUE(terminal->see("step 0 held > ")) << terminal->screen();
  }

  /// The id of the process that msdbg has left in the background, or 0.
  static pid_t process_in(const std::string& text) {
    const std::string mark = "in the background (process ";
    const size_t at = text.find(mark);
    return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + mark.size());
  }
  /// Whether a process that is not our child ends within a minute. Its status may not have been collected.
  static bool ends(pid_t process) {
    for (int i = 0; i < 6000; ++i) {
      std::ifstream file("/proc/" + std::to_string(process) + "/stat");
      std::string text;
      std::getline(file, text);
      if (text.empty() || text.substr(text.rfind(')') + 2, 1) == "Z") return true;
      ::usleep(10000);
    }
    return false;
  }

  const char* kind = "xterm";
  Folder folder;
  std::unique_ptr<Terminal> terminal;
  std::unique_ptr<test::Process> training;
};

TEST_F(LiveTerminal, StepsAndEndsTheTraining) {
  start_prompt({"--steps", kForever});
  terminal->type("step 3\r");
  EXPECT_TRUE(terminal->see("step 2 is done; training is held")) << terminal->screen();
  terminal->type("quit\r");
  ASSERT_TRUE(terminal->see("Detach (d) or terminate (t)?")) << terminal->screen();
  terminal->type("t\r");
  EXPECT_EQ(terminal->wait_for_exit(), 0);
  EXPECT_EQ(training->wait(), 0);
  EXPECT_NE(training->output().find("stopped by the debugger"), std::string::npos) << training->output();
}

TEST_F(LiveTerminal, AnUnclearAnswerGoesBackToThePrompt) {
  start_prompt({"--steps", kForever});
  terminal->type("quit\r");
  ASSERT_TRUE(terminal->see("Detach (d) or terminate (t)?")) << terminal->screen();
  terminal->type("what\r");
  ASSERT_TRUE(terminal->see("back at the prompt")) << terminal->screen();
  terminal->type("40 + 2\r");
  EXPECT_TRUE(terminal->see("42")) << terminal->screen();
}

TEST_F(LiveTerminal, ATrainingThatRunsOnIsAnsweredInTheBackground) {
  start_prompt({"--steps", "60", "--step-sleep-ms", "20", "--retry-unit-ms", "400"});
  terminal->type("watch @gradient TO\r");
  ASSERT_TRUE(terminal->see("[1 watch] > ")) << terminal->screen();
  terminal->type("quit 4\r");
  ASSERT_TRUE(terminal->see("Detach (d) or terminate (t)?")) << terminal->screen();
  terminal->type("d\r");
  EXPECT_EQ(terminal->wait_for_exit(), 4) << terminal->screen();
  const pid_t behind = process_in(terminal->screen());
  ASSERT_GT(behind, 0) << terminal->screen();
  EXPECT_EQ(training->wait(), 0);
  EXPECT_NE(training->output().find("done: 60 steps"), std::string::npos) << training->output();
  EXPECT_TRUE(ends(behind)) << "the process in the background stayed";
}

TEST_F(LiveTerminal, SeveralRanksThatRunOnAreAnsweredInTheBackground) {
  start({"--ranks", "3"}, {"--ranks", "3", "--steps", "60", "--step-sleep-ms", "10"});
  ASSERT_TRUE(terminal->see("step 0 held 3 ranks > ")) << terminal->screen();
  terminal->type("step 2\r");
  ASSERT_TRUE(terminal->see("step 1 is done; training is held")) << terminal->screen();
  terminal->type("quit\r");
  ASSERT_TRUE(terminal->see("Detach (d) or terminate (t)?")) << terminal->screen();
  terminal->type("d\r");
  EXPECT_EQ(terminal->wait_for_exit(), 0) << terminal->screen();
  const pid_t behind = process_in(terminal->screen());
  ASSERT_GT(behind, 0) << terminal->screen();
  EXPECT_EQ(training->wait(), 0) << training->output();
  for (const char* rank : {"rank 0: done: 60 steps", "rank 1: done: 60 steps", "rank 2: done: 60 steps"})
    EXPECT_NE(training->output().find(rank), std::string::npos) << training->output();
  EXPECT_TRUE(ends(behind)) << "the process in the background stayed";
}

// It ends before it asks for a command again, so what arrives is its goodbye alone: in the background, or before that.
TEST_F(LiveTerminal, ATrainingThatEndsSoonEndsWhatAnswersItInTheBackground) {
  for (const char* ranks : {"1", "3"}) {
    start({"--ranks", ranks}, {"--ranks", ranks, "--steps", "25", "--step-sleep-ms", "10"});
    ASSERT_TRUE(terminal->see("step 0 held ")) << terminal->screen();
    terminal->type("quit\r");
    ASSERT_TRUE(terminal->see("Detach (d) or terminate (t)?")) << terminal->screen();
    terminal->type("d\r");
    EXPECT_EQ(terminal->wait_for_exit(), 0) << terminal->screen();
    const pid_t behind = process_in(terminal->screen());
    EXPECT_EQ(training->wait(), 0) << training->output();
    if (behind > 0) EXPECT_TRUE(ends(behind)) << "the process in the background stayed, with ranks: " << ranks;
    else EXPECT_NE(terminal->screen().find("the training has ended"), std::string::npos) << terminal->screen();
  }
}

TEST_F(LiveTerminal, ControlCHoldsAllRanks) {
  start({"--ranks", "2"}, {"--ranks", "2", "--steps", kForever, "--step-sleep-ms", "2"});
  ASSERT_TRUE(terminal->see("step 0 held 2 ranks > ")) << terminal->screen();
  terminal->type("c\r");
  ASSERT_TRUE(terminal->see(" a second, ")) << terminal->screen();
  terminal->type("\x03");
  ASSERT_TRUE(terminal->see("interrupted ")) << terminal->screen();
  terminal->type("pause\r");
  ASSERT_TRUE(terminal->see("training is held")) << terminal->screen();
  terminal->type("terminate\r");
  EXPECT_TRUE(terminal->see("training has ended after ")) << terminal->screen();
  EXPECT_EQ(training->wait(), 0) << training->output();
}

TEST_F(LiveTerminal, WhatADebuggerInTheBackgroundAnswersEndsItWhenItIsKilled) {
  start_prompt({"--steps", kForever, "--step-sleep-ms", "2"});
  terminal->type("detach\r");
  ASSERT_TRUE(terminal->see("running > ")) << terminal->screen();
  terminal->type("\x04");  // no question: it was already detached
  EXPECT_EQ(terminal->wait_for_exit(), 0) << terminal->screen();
  const pid_t behind = process_in(terminal->screen());
  ASSERT_GT(behind, 0) << terminal->screen();
  ::kill(behind, SIGTERM);
  EXPECT_TRUE(ends(behind));
  EXPECT_EQ(training->wait(), 1) << training->output();
}

TEST_F(LiveTerminal, AttachHoldsADetachedTrainingAgain) {
  start_prompt({"--steps", kForever, "--step-sleep-ms", "2"});
  terminal->type("detach\r");
  ASSERT_TRUE(terminal->see("running > ")) << terminal->screen();
  terminal->type("attach\r");
  ASSERT_TRUE(terminal->see("training is held")) << terminal->screen();
  terminal->type("step\r");
  EXPECT_TRUE(terminal->see("is done; training is held")) << terminal->screen();
}

TEST_F(LiveTerminal, ARunningTrainingShowsHowFarItIs) {
  start_prompt({"--steps", kForever, "--step-sleep-ms", "2"});
  terminal->type("c\r");
  EXPECT_TRUE(terminal->see(" a second, ")) << terminal->screen();
  terminal->type("\x03");
  EXPECT_TRUE(terminal->see("interrupted")) << terminal->screen();
}

TEST_F(LiveTerminal, TheStepsBeforeAHitCanBeLookedAt) {
  start_prompt({"--steps", "20", "--fault", "log-of-zero", "--fault-step", "5"});
  EXPECT_TRUE(terminal->see("history: statistics of 6 weights")) << terminal->screen();
  terminal->type("watch @all TO\r");
  ASSERT_TRUE(terminal->see("[1 watch] > ")) << terminal->screen();
  terminal->type("c\r");
  ASSERT_TRUE(terminal->see("HIT")) << terminal->screen();
  terminal->type("goto -1\r");
  ASSERT_TRUE(terminal->see("(of 5)")) << terminal->screen();
  terminal->type("stats fc1.weight\r");
  EXPECT_TRUE(terminal->see("   4  fc1.weight")) << terminal->screen();
}

TEST_F(LiveTerminal, WhatCannotBeReadIsKeptFromTheNextStepOn) {
  start_prompt({"--steps", kForever});
  terminal->type("step\r");
  ASSERT_TRUE(terminal->see("step 0 held > ")) << terminal->screen();
  terminal->type("stats Sub-op10\r");
  ASSERT_TRUE(terminal->see("it is watched: step, and ask again")) << terminal->screen();
  terminal->type("step\r");
  ASSERT_TRUE(terminal->see("step 1 held > ")) << terminal->screen();
  terminal->type("stats Sub-op10\r");
  EXPECT_TRUE(terminal->see("float32[32,10]")) << terminal->screen();
}

TEST_F(LiveTerminal, ControlCHoldsTheTraining) {
  start_prompt({"--steps", kForever, "--step-sleep-ms", "2"});
  terminal->type("c\r");
  ASSERT_TRUE(terminal->see("\n")) << terminal->screen();
  ::usleep(200000);  // it runs
  terminal->type("\x03");
  ASSERT_TRUE(terminal->see("interrupted")) << terminal->screen();
  terminal->type("pause\r");
  EXPECT_TRUE(terminal->see("training is held")) << terminal->screen();
  terminal->type("step\r");
  EXPECT_TRUE(terminal->see("is done; training is held")) << terminal->screen();
}

TEST_F(LiveTerminal, EventsAppearAboveTheLineBeingTyped) {
  start_prompt({"--steps", kForever});
  terminal->type("40 +");
  ASSERT_TRUE(terminal->see("40 +")) << terminal->screen();
  training->send_signal(SIGKILL);
  ASSERT_TRUE(terminal->see("lost")) << terminal->screen();     // the event, or the prompt that is redrawn
  ASSERT_TRUE(terminal->see("lost > 40 +")) << terminal->screen();
  terminal->type(" 2\r");
  EXPECT_TRUE(terminal->see("42")) << terminal->screen();
  terminal->type("quit\r");  // nothing is left to ask about
  EXPECT_EQ(terminal->wait_for_exit(), 0) << terminal->screen();
}

TEST_F(LiveTerminal, EventsAppearWithoutLineEditing) {
  kind = "dumb";
  start_prompt({"--steps", kForever});
  training->send_signal(SIGKILL);
  EXPECT_TRUE(terminal->see("lost > ")) << terminal->screen();
  terminal->type("40 + 2\r");
  EXPECT_TRUE(terminal->see("42")) << terminal->screen();
}

TEST_F(LiveTerminal, ASecondTrainingIsTurnedAwayVisibly) {
  start_prompt({"--steps", kForever});
  const auto second = start_training(port_in(terminal->screen()), {"--steps", kForever});
  EXPECT_TRUE(terminal->see("refused a second training")) << terminal->screen();
  terminal->type("step\r");
  EXPECT_TRUE(terminal->see("step 0 is done; training is held")) << terminal->screen();
}

TEST_F(LiveTerminal, AnotherTrainingMayTakeThePlaceOfALostOne) {
  start_prompt({"--steps", kForever});
  terminal->type("step 3\r");
  ASSERT_TRUE(terminal->see("step 2 held > ")) << terminal->screen();
  terminal->type("\r");
  training->send_signal(SIGKILL);
  ASSERT_TRUE(terminal->see("lost > ")) << terminal->screen();
  training = start_training(port_in(terminal->screen()), {"--steps", kForever});
  ASSERT_TRUE(terminal->see("step 0 held > ")) << terminal->screen();
  terminal->type("step 2\r");
  EXPECT_TRUE(terminal->see("step 1 is done; training is held")) << terminal->screen();
}

TEST_F(LiveTerminal, ControlCEndsALoopOverSteps) {
  start_prompt({"--steps", kForever, "--step-sleep-ms", "2"});
  terminal->type("for step in s:each_step() do end\r");
  ::usleep(200000);
  terminal->type("\x03");
  ASSERT_TRUE(terminal->see("interrupted")) << terminal->screen();
  terminal->type("pause\r");
  EXPECT_TRUE(terminal->see("training is held")) << terminal->screen();
}

TEST_F(LiveTerminal, ControlCInAScriptGivesThePrompt) {
  start({"--script", folder.write("endless.lua", "while true do s:step() end\n")}, {"--steps", kForever, "--step-sleep-ms", "2"});
  ::usleep(200000);
  terminal->type("\x03");
  ASSERT_TRUE(terminal->see("quit asks whether to detach or terminate")) << terminal->screen();
  terminal->type("step\r");
  EXPECT_TRUE(terminal->see("is done; training is held")) << terminal->screen();
}

TEST_F(LiveTerminal, ControlCEndsTheWaitForATraining) {
  Terminal waiting({"listen", "--port", "0"}, folder.path());
  ASSERT_TRUE(waiting.see("MS_DEBUGGER_PORT=")) << waiting.screen();
  ::usleep(100000);
  waiting.type("\x03");
  EXPECT_EQ(waiting.wait_for_exit(), 130) << waiting.screen();
}

}  // namespace
}  // namespace msdbg::testing
