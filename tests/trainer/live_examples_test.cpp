// The live scripts in examples, each with a real training: what they print and write, and how both programs end.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "trainer/live_pair.h"

namespace msdbg::test {
namespace {

const std::string kLoss = "Default/network-WithLossCell/_loss_fn-MaskedLogLikelihood/";
const std::string kNet = "Default/network-WithLossCell/_backbone-Net/";

std::string script(const std::string& name) { return std::string(MSDBG_EXAMPLES) + "/" + name + ".lua"; }
size_t lines_of(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

TEST(LiveExamples, HuntFindsTheOperatorOfALogOfZeroAndEndsTheTraining) {
  LivePair pair(script("apps/live_hunt"), {}, {"--steps", "200", "--fault", "log-of-zero", "--fault-step", "5"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "first bad operator: step 5  Gradients/" + kLoss +
                                             "log-Log/gradLog-expand/Div-op20 is not finite\n"))
      << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "net.cpp:")) << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "input:1  sound      " + kLoss + "mask-Mask/Mul-op14\n")) << pair.script_text;
  EXPECT_EQ(pair.script_status, 1);
  EXPECT_TRUE(contains(pair.training_text, "stopped by the debugger after 6 steps")) << pair.training_text;
  EXPECT_EQ(pair.training_status, 0);
}

TEST(LiveExamples, HuntFollowsADeadGradientThroughTheLayersToTheBias) {
  LivePair pair(script("apps/live_hunt"), {}, {"--steps", "200", "--fault", "dead-relu", "--fault-step", "3"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "step 3  all zero: Gradients/" + kNet + "fc3-Dense/")) << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "step 3  2 operators of " + kNet + "relu2-ReLU\n")) << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "step 4  5 operators of " + kNet + "fc2-Dense\n")) << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text,
                       "first bad operator: step 5  " + kNet + "fc2-Dense/BiasAdd-op5 is too large\n"))
      << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "wrong from the start of the step: fc2.bias\n")) << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "recheck with abs_mean_gt 100: ")) << pair.script_text;
  EXPECT_EQ(pair.script_status, 1);
  EXPECT_EQ(pair.training_status, 0);
}

TEST(LiveExamples, HuntOnAnAscendFollowsTheValuesOfOneStep) {
  LivePair pair(script("apps/live_hunt"), {},
                {"--steps", "200", "--fault", "bad-batch", "--fault-step", "5", "--backend", "Ascend"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "first bad operator: step 5  " + kNet + "fc1-Dense/MatMul-op1 is not finite\n"))
      << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "  input:0  not finite inputs\n")) << pair.script_text;
  EXPECT_EQ(pair.script_status, 1);
  EXPECT_EQ(pair.training_status, 0);
}

TEST(LiveExamples, HuntLetsTheTrainingRunOnWhenAsked) {
  LivePair pair(script("apps/live_hunt"), {"100", "1000", "10", "detach"},
                {"--steps", "200", "--fault", "exploding-rate", "--fault-step", "5"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "too large: Gradients/")) << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "recheck with abs_mean_gt 100: 2 hits\n")) << pair.script_text;
  EXPECT_EQ(pair.script_status, 1);
  EXPECT_TRUE(contains(pair.training_text, "done: 200 steps")) << pair.training_text;
  EXPECT_EQ(pair.training_status, 0);
}

TEST(LiveExamples, HuntSaysBeforeTheHuntThatItsEndIsMisspelt) {
  LivePair pair(script("apps/live_hunt"), {"100", "1000", "10", "detatch"}, {"--steps", "200"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "argument 4 is terminate or detach, not 'detatch'")) << pair.script_text;
  EXPECT_FALSE(contains(pair.script_text, "nothing found")) << pair.script_text;
  EXPECT_EQ(pair.script_status, 5);
}

TEST(LiveExamples, HuntSaysBeforeTheHuntThatANumberIsMisspelt) {
  LivePair pair(script("apps/live_hunt"), {"100", "1O00"}, {"--steps", "200"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "argument 2 is a number, not '1O00'")) << pair.script_text;
  EXPECT_EQ(pair.script_status, 5);
}

TEST(LiveExamples, HuntKeepsItsBudgetOfSteps) {
  LivePair pair(script("apps/live_hunt"), {"100", "12"}, {"--steps", "200"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "nothing found: done after 12 steps\n")) << pair.script_text;
  EXPECT_EQ(pair.script_status, 0);
  EXPECT_TRUE(contains(pair.training_text, "stopped by the debugger")) << pair.training_text;
  EXPECT_EQ(pair.training_status, 0);
}

TEST(LiveExamples, HuntKeepsItsBudgetOfMinutes) {
  LivePair pair(script("apps/live_hunt"), {"100", "1000000", "0.01"}, {"--steps", "100000", "--step-sleep-ms", "20"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "nothing found: paused after ")) << pair.script_text;
  EXPECT_EQ(pair.script_status, 0);
  EXPECT_TRUE(contains(pair.training_text, "stopped by the debugger")) << pair.training_text;
}

TEST(LiveExamples, FirstBadNamesTheOperatorAndAsksTheSameValuesAgain) {
  LivePair pair(script("live/first_bad"), {}, {"--steps", "200", "--fault", "log-of-zero", "--fault-step", "5"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "step 4  nothing to see\nstep 5  HIT  1 hit")) << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "first bad  " + kLoss + "log-Log/Log-op15:output:0")) << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "recheck with tensor_all_zero zero_percentage_ge 3: 5 tensors of this step")) << pair.script_text;
  EXPECT_EQ(pair.script_status, 1);
  EXPECT_EQ(pair.training_status, 0);
}

TEST(LiveExamples, FirstBadIsContentWithAHealthyTraining) {
  LivePair pair(script("live/first_bad"), {"3"}, {"--steps", "200"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "step 2  nothing to see\nstep 2 is done; training is held\n")) << pair.script_text;
  EXPECT_EQ(pair.script_status, 0);
}

TEST(LiveExamples, RateWatchdogEndsATrainingWhoseRateExplodes) {
  LivePair pair(script("live/rate_watchdog"), {}, {"--steps", "200", "--fault", "exploding-rate", "--fault-step", "5"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "fc3.weight changed by 0.")) << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "learning rate 0.8\n")) << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "3 steps in a row: the training was ended\n")) << pair.script_text;
  EXPECT_EQ(pair.script_status, 1);
  EXPECT_TRUE(contains(pair.training_text, "stopped by the debugger")) << pair.training_text;
  EXPECT_EQ(pair.training_status, 0);
}

TEST(LiveExamples, RateWatchdogLeavesAHealthyTrainingAlone) {
  LivePair pair(script("live/rate_watchdog"), {"0.5"}, {"--steps", "30", "--backend", "Ascend"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "the training has ended by itself after 30 steps\n")) << pair.script_text;
  EXPECT_FALSE(contains(pair.script_text, "changed by")) << pair.script_text;
  EXPECT_EQ(pair.script_status, 0);
  EXPECT_TRUE(contains(pair.training_text, "done: 30 steps")) << pair.training_text;
}

TEST(LiveExamples, SaveFirstHitWritesTheValueAndTheInputsOfItsOperator) {
  const ScratchDirectory directory;
  LivePair pair(script("live/save_first_hit"), {directory.path()},
                {"--steps", "40", "--fault", "log-of-zero", "--fault-step", "5"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "step 5  tensor_overflow on " + kLoss + "log-Log/Log-op15:output:0\n"))
      << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "2 files\n")) << pair.script_text;
  const Words names = directory.names();
  ASSERT_EQ(names.size(), 2U);
  for (const std::string& name : names) {
    EXPECT_TRUE(contains(name, "log-Log_Log-op15_")) << name;
    const std::string file = text_of(directory.file(name));
    EXPECT_EQ(file.substr(1, 5), "NUMPY");
    EXPECT_TRUE(contains(file, "'<f4'")) << name;
    EXPECT_TRUE(contains(file, "(32, 10)")) << name;
  }
  // The last 1280 bytes are the elements: the first sample's ten inputs of the logarithm are zero.
  const std::string input = text_of(directory.file(names[0]));
  ASSERT_GE(input.size(), 1280U);
  EXPECT_EQ(input.substr(input.size() - 1280, 40), std::string(40, '\0')) << names[0];
  EXPECT_EQ(pair.script_status, 0);
  EXPECT_TRUE(contains(pair.training_text, "done: 40 steps")) << pair.training_text;
}

TEST(LiveExamples, SaveFirstHitReportsThatThereWasNone) {
  const ScratchDirectory directory;
  LivePair pair(script("live/save_first_hit"), {directory.path()}, {"--steps", "6"});
  ASSERT_TRUE(pair.finish());
  EXPECT_TRUE(contains(pair.script_text, "no hit in 6 steps\n")) << pair.script_text;
  EXPECT_TRUE(directory.names().empty());
  EXPECT_EQ(pair.script_status, 0);
  EXPECT_EQ(pair.training_status, 0);
}

TEST(LiveExamples, OvernightKeepsADiaryAndNeverStops) {
  const ScratchDirectory directory;
  const std::string log = directory.file("log.jsonl");
  LivePair pair(script("live/overnight"), {log}, {"--steps", "25", "--fault", "log-of-zero", "--fault-step", "8"});
  ASSERT_TRUE(pair.finish());
  EXPECT_EQ(pair.script_status, 0);
  EXPECT_TRUE(contains(pair.training_text, "done: 25 steps")) << pair.training_text;
  EXPECT_TRUE(contains(pair.script_text, "step 0      loss 3.5")) << pair.script_text;
  EXPECT_TRUE(contains(pair.script_text, "step 8      loss null       hits ")) << pair.script_text;
  const std::string text = text_of(log);
  EXPECT_EQ(lines_of(text), 25U);
  EXPECT_TRUE(text.starts_with("{\"step\":0,\"time\":")) << text;
  EXPECT_TRUE(contains(text, "\"hits\":0}\n")) << text;
  EXPECT_TRUE(contains(text, "{\"step\":24,")) << text;
}

TEST(LiveExamples, OvernightLetsGoAfterItsSteps) {
  const ScratchDirectory directory;
  const std::string log = directory.file("log.jsonl");
  LivePair pair(script("live/overnight"), {log, "5"}, {"--steps", "60"});
  ASSERT_TRUE(pair.finish());
  EXPECT_EQ(lines_of(text_of(log)), 5U);
  EXPECT_EQ(pair.script_status, 0);
  EXPECT_TRUE(contains(pair.training_text, "done: 60 steps")) << pair.training_text;
}

}  // namespace
}  // namespace msdbg::test
