// Watchpoints: which tensors they cover, when they are judged, and the contents of a hit.
#include <gtest/gtest.h>

#include <limits>

#include "agent/chain_net.h"

namespace msdbg::test {
namespace {

using Condition = debugger::WatchCondition;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Hits everything, whether zero or not.
Watch any(int id) { return Watch(id, Condition::tensor_all_zero).param("zero_percentage_ge", 0); }

Watch large(int id, double max) {
  return Watch(id, Condition::tensor_too_large)
      .unused("abs_mean_gt")
      .param("max_gt", max)
      .unused("min_gt")
      .unused("mean_gt");
}

Watch changed(int id) {
  return Watch(id, Condition::tensor_change_too_large).param("abs_mean_update_ratio_gt", 0.1).unused("epsilon");
}

struct Watching : testing::Test, Chain {
  Watching() { steps = 1; }
};

TEST_F(Watching, HitStopsBehindTheOperator) {
  run({large(1, 3).leaf(kMul).answer(), Answer::run()});
  EXPECT_EQ(hits(), "1:Mul-op1:0");
  EXPECT_EQ(holds(), "0, 0, 0 Mul-op1, 0 Assign-op3");
}

TEST_F(Watching, ParametersComeBackInFull) {
  run({large(1, 3).leaf(kMul).answer()});
  const debugger::WatchpointHit found = hit(0, 0);
  EXPECT_EQ(found.watch_condition().condition(), Condition::tensor_too_large);
  ASSERT_EQ(found.watch_condition().params_size(), 4);
  EXPECT_TRUE(found.watch_condition().params(0).disabled());
  EXPECT_FALSE(found.watch_condition().params(0).hit());
  EXPECT_TRUE(found.watch_condition().params(1).hit());
  EXPECT_EQ(found.watch_condition().params(1).value(), 3);
  EXPECT_EQ(found.watch_condition().params(1).actual_value(), 4);
  EXPECT_TRUE(found.tensor().finished());
}

TEST_F(Watching, EveryOutputIsJudgedAndTheLastComesFirst) {
  run({any(1).leaf(kSplit).answer()});
  EXPECT_EQ(hits(), "1:Split-op2:1 1:Split-op2:0");
}

TEST_F(Watching, HitCarriesTheNameThatWasWatched) {
  run({any(1).leaf("Folded[5]/scope/w").answer()});
  EXPECT_EQ(server.calls("SendWatchpointHits").size(), 1u);
  EXPECT_EQ(hit(0, 0).tensor().node_name(), "Folded[5]/scope/w");
}

TEST_F(Watching, InputsAreJudgedAtTheEndOfTheStep) {
  run({any(1).leaf("net/w").answer()});
  EXPECT_EQ(hits(), "1:w:0");
  EXPECT_EQ(holds(), "0, 0, 0 Assign-op3");
}

TEST_F(Watching, BareParameterNameDoesNotCauseARead) {
  steps = 2;
  run({any(1).leaf("x").answer()});
  EXPECT_EQ(hits(), "");
}

TEST_F(Watching, BareParameterNameIsJudgedWhenItsReaderIsRead) {
  run({any(1).leaf("x").leaf("@none").answer(), large(2, 1e9).leaf(kMul).answer()});
  EXPECT_EQ(hits(), "1:x:0");
}

TEST_F(Watching, WeightsAreReadableToTheEndOfTheFirstStep) {
  steps = 2;
  run({any(1).leaf("moments.w").answer()});
  EXPECT_EQ(hits(), "1:moments.w:0");
}

TEST_F(Watching, StarReadsAndMatchesEverything) {
  run({any(4).scope("*").answer()});
  EXPECT_EQ(hits(), "4:*:0 | 4:*:1 4:*:0 | 4:*:0 | 4:*:0 4:*:0 4:*:0 4:*:0 4:*:0");
}

TEST_F(Watching, ScopeReadsButDoesNotMatchFrom15On) {
  run({any(1).scope("Default/net-Net").answer(), any(2).leaf("w").answer()});
  EXPECT_EQ(hits(), "2:w:0");
}

TEST_F(Watching, ScopeMatchesByPrefixBefore15) {
  run({any(1).scope("Default/net-Net").answer()}, "1.3.0");
  EXPECT_EQ(hits(), "1:net-Net:0 | 1:net-Net:1 1:net-Net:0");
}

TEST_F(Watching, FirstReleaseReportsTheTensorsOwnName) {
  run({Watch(1, Condition::max_gt).value(3).scope("Default/net-Net").answer()}, "1.0.1");
  EXPECT_EQ(hits(), "1:Mul-op1:0 | 1:Split-op2:0");
  EXPECT_EQ(hit(0, 0).watch_condition().params_size(), 0);
}

TEST_F(Watching, FirstReleaseKnowsNothingOfLaterConditions) {
  run({any(1).leaf(kMul).answer()}, "1.0.1");
  EXPECT_EQ(hits(), "");
}

TEST_F(Watching, LegacyConditionHasOneParameter) {
  run({Watch(1, Condition::mean_gt).param("param", 2).leaf(kMul).answer()});
  ASSERT_EQ(hits(), "1:Mul-op1:0");
  EXPECT_EQ(hit(0, 0).watch_condition().params(0).actual_value(), 2.5);
}

TEST_F(Watching, SameIdReplacesTheNodes) {
  run({any(1).leaf(kMul).answer(), any(1).leaf(kSplit).answer()});
  EXPECT_EQ(hits(), "1:Split-op2:1 1:Split-op2:0");
}

TEST_F(Watching, DeletingAnUnknownIdHasNoEffect) {
  run({any(1).leaf(kMul).answer(), Answer::remove(99)});
  EXPECT_EQ(hits(), "1:Mul-op1:0");
}

TEST_F(Watching, DeletedWatchpointIsSilent) {
  run({any(1).leaf(kMul).answer(), any(2).leaf(kMul).answer(), Answer::remove(1)});
  EXPECT_EQ(hits(), "2:Mul-op1:0");
}

TEST_F(Watching, TensorIsJudgedOncePerStep) {
  steps = 2;
  run({any(1).leaf(kMul).answer()});
  EXPECT_EQ(hits(), "1:Mul-op1:0 | 1:Mul-op1:0");
}

TEST_F(Watching, ReplacingDoesNotJudgeAgainInTheSameStep) {
  run({any(1).leaf(kMul).answer(), Answer::run(), large(1, 0).leaf(kMul).answer()});
  EXPECT_EQ(hits(), "1:Mul-op1:0");
}

TEST_F(Watching, RecheckJudgesWhateverWasJudged) {
  run({any(1).leaf(kMul).answer(), Answer::run(), large(1, 0).leaf(kMul).answer(), Answer::recheck()});
  EXPECT_EQ(hits(), "1:Mul-op1:0 | 1:Mul-op1:0");
  EXPECT_EQ(hit(1, 0).watch_condition().condition(), Condition::tensor_too_large);
}

TEST_F(Watching, InitialRecheckJudgesInitializationOnly) {
  const auto initial = [](int id) {
    return Watch(id, Condition::tensor_initialization)
        .param("zero_percentage_ge", 100)
        .unused("max_gt")
        .unused("min_lt");
  };
  run({initial(1).scope("*").answer(), any(2).scope("*").answer(), Answer::recheck(), Answer::remove(2)});
  EXPECT_EQ(hits(), "1:*:0");  // the momentum; never again after the first run
}

TEST_F(Watching, NaNIsReportedAsAnErrorAndSuspends) {
  net.compute = [this](int) { net.mul = {1, kNaN, 3, 4}; };
  run({large(1, 0).leaf(kMul).answer(), Watch(2, Condition::tensor_general_overflow).leaf(kMul).answer()});
  EXPECT_EQ(hits(), "1:Mul-op1:0/1 2:Mul-op1:0");
  EXPECT_FALSE(hit(0, 0).watch_condition().params(1).hit());
  EXPECT_EQ(holds(), "0, 0, 0, 0 Mul-op1, 0 Assign-op3");
}

TEST_F(Watching, InfinityHasAnotherBit) {
  net.compute = [this](int) { net.mul = {1, kInfinity, kNaN, 4}; };
  run({large(1, 0).leaf(kMul).answer()});
  EXPECT_EQ(hits(), "1:Mul-op1:0/3");
}

TEST_F(Watching, ChangeWithoutAPreviousValueIsAnErrorEveryStep) {
  steps = 2;
  run({changed(1).leaf("net/w").answer()});
  EXPECT_EQ(hits(), "1:w:0/4 | 1:w:0/4");
}

TEST_F(Watching, ChangeIsJudgedAgainstThePreviousStepWhereItIsKept) {
  for (const auto& [version, backend] : std::vector<std::pair<std::string, std::string>>{
           {"2.2.0", "Ascend"}, {"1.6.0", "GPU"}, {"1.5.0", "GPU"}}) {
    Chain other;
    other.steps = 4;
    other.net.update = [&other](int step) {
      if (step == 1) other.net.w = {2, 2, 2, 2};
    };
    other.run({changed(1).leaf("net/w").answer()}, version, backend);
    EXPECT_EQ(other.hits(), "1:w:0") << version;
    ASSERT_EQ(other.server.calls("SendWatchpointHits").size(), 1u);
    EXPECT_NEAR(other.hit(0, 0).watch_condition().params(0).actual_value(), 1.0, 1e-6) << version;
  }
}

TEST_F(Watching, OldReleasesReadTolerancesInTheWrongOrder) {
  // Only atol distinguishes a change of 1 from 0; the old client reads the second value as rtol.
  const Answer watch = Watch(1, Condition::tensor_not_changed)
                           .param("rtol", 0)
                           .param("atol", 5)
                           .unused("equal_nan")
                           .leaf("net/moments.w")
                           .answer();
  net.update = [this](int) { net.moment = {1, 1, 1, 1}; };
  run({watch}, "1.6.0");
  EXPECT_EQ(hits(), "1:moments.w:0");
  Chain old;
  old.steps = 1;
  old.net.update = [&old](int) { old.net.moment = {1, 1, 1, 1}; };
  old.run({watch}, "1.5.0");
  EXPECT_EQ(old.hits(), "");
}

TEST_F(Watching, RangeIsReadByPlaceAndOpenEndsAreInfinite) {
  run({Watch(1, Condition::tensor_range)
           .unused("range_start_inclusive")
           .param("range_end_inclusive", 2)
           .unused("range_percentage_lt")
           .param("range_percentage_gt", 49)
           .unused("max_min_lt")
           .unused("max_min_gt")
           .leaf(kMul)
           .answer()});
  ASSERT_EQ(hits(), "1:Mul-op1:0");
  EXPECT_EQ(hit(0, 0).watch_condition().params(3).actual_value(), 50);
}

TEST_F(Watching, AscendReportsEverythingAtTheEndOfTheStepInOrderOfExecution) {
  run({any(1).leaf(kSplit).leaf("o/w").leaf(kMul).leaf("Default--data-0").answer()}, "2.2.0", "Ascend");
  EXPECT_EQ(hits(), "1:w:0 1:Default--data-0:0 1:Mul-op1:0 1:Split-op2:1 1:Split-op2:0");
}

TEST_F(Watching, SeveralWatchpointsOnOneTensorShareAName) {
  run({any(1).leaf("first/w").answer(), any(2).leaf("second/w").answer()});
  EXPECT_EQ(hits(), "1:w:0 2:w:0");
  EXPECT_EQ(hit(0, 0).tensor().node_name(), hit(0, 1).tensor().node_name());
}

TEST_F(Watching, ConditionWithoutNodesOrWithAnUnknownNumberNeverHits) {
  debugger::EventReply odd;
  odd.mutable_set_cmd()->set_id(2);
  odd.mutable_set_cmd()->add_watch_nodes()->set_node_name(kMul);
  odd.mutable_set_cmd()->mutable_watch_condition()->set_condition(static_cast<Condition::Condition>(77));
  run({any(1).answer(), Answer::of(odd), Watch(3, Condition::overflow).leaf(kMul).answer()});
  EXPECT_EQ(hits(), "");
}

// ---- the device's overflow flag --------------------------------------------------------------------------------------

struct Flagged : Watching {
  Flagged() {
    steps = 3;
    net.flag = [](agent::Agent& agent, int step) {
      if (step == 1) agent.overflowed(1);  // Split
    };
  }
  static Watch overflow(int id) { return Watch(id, Condition::overflow); }
};

TEST_F(Flagged, OperatorHitsWithEachOutputAtTheEndOfItsStep) {
  net.compute = [this](int) { net.mul = net.first = {1, kNaN, 3, 4}; };  // values do not matter to it
  run({overflow(1).leaf(kMul).leaf(kSplit).leaf("net/w").answer()}, "2.2.0", "Ascend");
  EXPECT_EQ(hits(), "1:Split-op2:1 1:Split-op2:0");
  EXPECT_EQ(hit(0, 0).watch_condition().condition(), Condition::overflow);
  EXPECT_EQ(hit(0, 0).watch_condition().params_size(), 0);
  EXPECT_EQ(holds(), "0, 0, 0, 1, 2");
}

TEST_F(Flagged, OldReleasesOnAnAscendHaveTheFlagToo) {
  for (const char* version : {"1.0.1", "1.5.0"}) {
    Chain other;
    other.steps = 3;
    other.net.flag = net.flag;
    other.run({overflow(1).leaf(kSplit).answer()}, version, "Ascend");
    EXPECT_EQ(other.hits(), "1:Split-op2:1 1:Split-op2:0") << version;
  }
}

TEST_F(Flagged, GpuHasNoFlag) {
  run({overflow(1).leaf(kSplit).answer(), Answer::run(), Answer::run(), Answer::recheck()});
  EXPECT_EQ(hits(), "");
}

TEST_F(Flagged, RecheckFindsTheFlagOfTheStepAtHand) {
  run({Answer::run(), Answer::run(), overflow(1).leaf(kSplit).answer(), Answer::recheck(), Answer::run(), Answer::recheck()},
      "2.2.0", "Ascend");
  EXPECT_EQ(hits(), "1:Split-op2:1 1:Split-op2:0");
}

TEST_F(Flagged, ConditionsOnElementsStandBesideIt) {
  run({overflow(1).leaf(kSplit).answer(), any(2).leaf(kSplit).answer()}, "2.2.0", "Ascend");
  EXPECT_EQ(hits(), "2:Split-op2:1 2:Split-op2:0 | 1:Split-op2:1 2:Split-op2:1 1:Split-op2:0 2:Split-op2:0 | 2:Split-op2:1 2:Split-op2:0");
}

TEST_F(Flagged, OperatorThatTheGraphDoesNotHaveIsReported) {
  server.then_always(Answer::run());
  agent::Options options = options_for(server);
  options.backend = "Ascend";
  agent::Agent agent(options);
  ASSERT_TRUE(agent.add_graph(net.describe()).ok());
  net.flag = [](agent::Agent& a, int) { a.overflowed(77); };
  net.train(agent, 1);
  EXPECT_EQ(agent.problem(), "an overflow of operator 77, which the graph does not have");
}

TEST_F(Watching, FailedReportDoesNotStopTheTraining) {
  steps = 2;
  server.always("SendWatchpointHits", Answer::broken());
  run({any(1).leaf(kMul).answer()});
  EXPECT_EQ(hits(), "1:Mul-op1:0 | 1:Mul-op1:0");
}

TEST_F(Watching, ParameterSentAsHitComesBackAsHit) {
  debugger::EventReply command;
  auto& set = *command.mutable_set_cmd();
  set.set_id(1);
  set.add_watch_nodes()->set_node_name(kMul);
  set.mutable_watch_condition()->set_condition(Condition::tensor_all_zero);
  auto* param = set.mutable_watch_condition()->add_params();
  param->set_name("zero_percentage_ge");
  param->set_value(100);
  param->set_hit(true);
  run({Answer::of(command)});
  EXPECT_EQ(hits(), "1:Mul-op1:0");
}

}  // namespace
}  // namespace msdbg::test
