// The prompt of a live session: commands, short forms, and the prompt text.
#include "script/live_support.h"

namespace msdbg::testing {
namespace {

using LivePrompt = LiveScriptTest;

TEST_F(LivePrompt, ShowsStepStateAndWatches) {
  EXPECT_EQ(script->prompt(), "trainer step 0 held > ");
  type("watch @gradient TO");
  EXPECT_EQ(script->prompt(), "trainer step 0 held [1 watch] > ");
  type("watch ** TO");
  type("step 2");
  EXPECT_EQ(script->prompt(), "trainer step 1 held [2 watches] > ");
  type("terminate");
  EXPECT_EQ(script->prompt(), "trainer step 1 ended [2 watches] > ");
}

TEST_F(LivePrompt, CommandsRunTheTraining) {
  EXPECT_EQ(type("step"), "step 0 is done; training is held");
  EXPECT_EQ(type("next"), "step 1, after Default/net/MatMul-op0; training is held");
  EXPECT_EQ(type("run_to ReluGrad-op0"), "step 1, after Gradients/Default/net/ReluGrad-op0; training is held");
  EXPECT_EQ(type("continue"), "training has ended after 3 steps");
}

TEST_F(LivePrompt, ShortFormsAreThoseOfGdb) {
  EXPECT_EQ(type("n"), "step 0, after Default/net/MatMul-op0; training is held");
  EXPECT_EQ(type("s"), "step 0 is done; training is held");
  EXPECT_EQ(type("s 1"), "step 1 is done; training is held");
  EXPECT_EQ(type("r ReLU-op0"), "step 2, after Default/net/relu-ReLU/ReLU-op0; training is held");
  EXPECT_EQ(type("c"), "training has ended after 3 steps");
}

TEST_F(LivePrompt, RunIsWhatDebuggersCallIt) {
  EXPECT_EQ(type("until MatMul-op0"), "step 0, after Default/net/MatMul-op0; training is held");
  EXPECT_EQ(type("r"), "training has ended after 3 steps");
  EXPECT_EQ(script->prompt(), "trainer step 2 ended > ");
}

TEST_F(LivePrompt, DisplaysFollowTheTraining) {
  EXPECT_EQ(type("display s.completed_steps"), "1: s.completed_steps = 0");
  EXPECT_EQ(type("step"), "step 0 is done; training is held\n1: s.completed_steps = 1");
  EXPECT_EQ(type("n"), "step 1, after Default/net/MatMul-op0; training is held\n1: s.completed_steps = 1");
  EXPECT_EQ(type("1 + 1"), "2");
  EXPECT_TRUE(contains(type("s:step(1)"), "1: s.completed_steps = 2"));
}

TEST_F(LivePrompt, BacktraceLooksAtTheStepAtHand) {
  type("step 3");
  EXPECT_TRUE(contains(type("bt ReluGrad-op0"), "began here: the inputs of ReluGrad are finite"));
  EXPECT_TRUE(contains(type("bt ReluGrad-op0"), "1 of 2 NaN"));
}

TEST_F(LivePrompt, ShortFormsGiveWayToVariables) {
  type("n = 5");
  EXPECT_EQ(type("n"), "5");
  EXPECT_EQ(type("s.completed_steps"), "0");
  EXPECT_EQ(type("s:step().step"), "0");
}

TEST_F(LivePrompt, RecheckAndHitsSpeakOfTheStep) {
  type("step 3");
  type("watch @gradient TO");
  EXPECT_EQ(type("recheck"), "step 2  HIT  1 hit; training is held\n  ReluGrad-op0:output:0  TO  1 of 2 NaN");
  EXPECT_TRUE(contains(type("hits"), "\n1     2  error     TO    Gradients/Default/net/ReluGrad-op0  1 of 2 NaN"));
  EXPECT_TRUE(contains(type("check"), "1 hit"));
}

TEST_F(LivePrompt, InfoDescribesThePeer) {
  const std::string text = type("info");
  EXPECT_TRUE(contains(text, "held before its first step")) << text;
  EXPECT_TRUE(contains(text, "MindSpore 2.2.0")) << text;
  EXPECT_TRUE(contains(text, "127.0.0.1:41234")) << text;
  EXPECT_TRUE(contains(text, "note: weights are read once per step")) << text;
}

TEST_F(LivePrompt, GotoCountsBack) {
  type("step 2");
  EXPECT_EQ(type("goto -1"), "");
  EXPECT_EQ(script->prompt(), "trainer step 0 (of 1) held > ");
  EXPECT_EQ(type("goto now"), "");
  EXPECT_EQ(script->prompt(), "trainer step 1 held > ");
}

TEST_F(LivePrompt, DetachLetsTheTrainingRun) {
  EXPECT_EQ(type("detach"),
            "the training runs on without watchpoints, as long as msdbg stays; attach holds it again, wait follows it to its end");
  EXPECT_EQ(type("wait"), "ended");
}

TEST_F(LivePrompt, PauseWaitsForTheNextSuspension) {
  EXPECT_EQ(type("pause"), "paused in step 0, 0 steps completed; training is held");
}

TEST_F(LivePrompt, DumpsSayWhatToUseInstead) {
  script->set_session(small_session());
  EXPECT_TRUE(contains(type("step"), "a dump cannot be driven"));
  EXPECT_TRUE(contains(type("c"), "a dump cannot be driven"));
  EXPECT_TRUE(contains(type("s"), "<session dump"));
}

TEST_F(LivePrompt, MistakesShowTheUsage) {
  EXPECT_TRUE(contains(type("step x"), "a number of steps is expected, not 'x'; usage: step [N]"));
  EXPECT_TRUE(contains(type("run_to"), "run_to: which node?; usage: run_to NODE"));
}

TEST_F(LivePrompt, CompletionKnowsTheCommands) {
  const auto found = script->complete("run_to Relu", 11);
  EXPECT_TRUE(std::find(found.begin(), found.end(), "ReluGrad-op0") != found.end());
  EXPECT_EQ(script->complete("contin", 6).front(), "continue");
  EXPECT_TRUE(contains(type("help live"), "msdbg listen"));
  EXPECT_TRUE(contains(type("help step"), "step [N]"));
}

TEST_F(LivePrompt, CommandsOfAWatchpointRunWhenItHits) {
  type("seen = 0");
  type("watch op:MatMul TL max_gt=2.5");
  EXPECT_EQ(script->eval("commands 1").state, Script::EvalState::kIncomplete);
  EXPECT_EQ(script->eval("commands 1\nseen = seen + 1").state, Script::EvalState::kIncomplete);
  EXPECT_EQ(type("commands 1\nseen = seen + 1\ncontinue\nseen = 100\nend"), "watch 1: 3 commands when it hits");
  // `continue` ends the list; each of the three steps hits, and the fourth command reaches the end.
  EXPECT_TRUE(contains(type("c"), "training has ended after 3 steps"));
  EXPECT_EQ(type("seen"), "3");
}

TEST_F(LivePrompt, CommandsCanBeRemoved) {
  type("seen = 0");
  type("watch op:MatMul TL max_gt=2.5");
  type("commands seen = 1");  // the last one
  type("commands 1 seen = 1");
  EXPECT_EQ(type("commands 1\nend"), "watch 1: no commands");
  type("c");
  EXPECT_EQ(type("seen"), "0");
}

TEST_F(LivePrompt, CommandsDoNotRunWithoutAStop) {
  type("seen = 0");
  type("watch op:MatMul TL max_gt=2.5");
  type("commands 1 seen = seen + 1");
  type("step");
  type("recheck");
  type("hits");
  EXPECT_EQ(type("seen"), "1");
}

TEST_F(LivePrompt, AFailingCommandIsNamed) {
  type("watch op:MatMul TL max_gt=2.5");
  type("commands 1 stats nowhere");
  EXPECT_TRUE(contains(type("c"), "'stats nowhere', a command of a watchpoint: "));
  EXPECT_EQ(type("1 + 1"), "2");
}

TEST_F(LivePrompt, DetachCanBeTakenBack) {
  type("step");
  type("watch @gradient TO");
  type("detach");
  EXPECT_TRUE(contains(type("c"), "not held"));
  EXPECT_EQ(type("attach"), "paused in step 1, 2 steps completed; training is held");
  EXPECT_EQ(training->in_force.size(), 1u);
  EXPECT_TRUE(contains(type("attach"), "not detached"));
}

TEST_F(LivePrompt, FinishEndsTheStepThatIsUnderWay) {
  EXPECT_TRUE(contains(type("finish"), "step runs the next one"));
  type("n");
  EXPECT_EQ(type("finish"), "step 0 is done; training is held");
  EXPECT_TRUE(contains(type("finish"), "has ended already"));
}

}  // namespace
}  // namespace msdbg::testing
