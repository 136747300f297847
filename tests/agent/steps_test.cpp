// When the training is held, and which step it reports.
#include <gtest/gtest.h>

#include "agent/chain_net.h"

namespace msdbg::test {
namespace {


struct Steps : testing::Test, Chain {};

TEST_F(Steps, NewReleasesCountAfterTheHold) {
  run({});
  EXPECT_EQ(holds(), "0, 0 Assign-op3, 1 Assign-op3, 2 Assign-op3");
  EXPECT_EQ(server.calls().back().metadata().cur_step(), 3);
}

TEST_F(Steps, AscendNeverNamesAnOperator) {
  run({}, "2.2.0", "Ascend");
  EXPECT_EQ(holds(), "0, 0, 1, 2");
  const std::vector<Call> waits = server.calls("WaitCMD");
  EXPECT_EQ(waits[0].messages, waits[1].messages);
}

TEST_F(Steps, OldAscendCountsBeforeTheHold) {
  run({}, "1.5.0", "Ascend");
  EXPECT_EQ(holds(), "0, 1, 2, 3");
}

TEST_F(Steps, AscendOf23IsHeldOnlyInitially) {
  run({}, "2.3.0", "Ascend");
  EXPECT_EQ(holds(), "0");
}

TEST_F(Steps, FirstReleasesCountWhenAStepBegins) {
  run({Answer::run_node(), Answer::run()}, "1.1.0");
  EXPECT_EQ(holds(), "0, 1 Mul-op1, 1 Assign-op3, 2 Assign-op3, 3 Assign-op3");
}

TEST_F(Steps, MiddleReleasesAreHeldBeforeTheNextStep) {
  run({Answer::run_node(), Answer::run()}, "1.5.0");
  EXPECT_EQ(holds(), "0, 0 Mul-op1, 1 Assign-op3, 2 Assign-op3");  // and not after the last step
  EXPECT_EQ(server.calls().back().metadata().cur_step(), 3);
}

TEST_F(Steps, NextNodeTakesThePlaceOfTheHoldAtTheEnd) {
  const Answer next = Answer::run_node();
  run({next, next, next, next, next, Answer::run()});
  EXPECT_EQ(holds(), "0, 0 Mul-op1, 0 Split-op2, 0 Assign-op3, 1 Mul-op1, 1 Split-op2, 1 Assign-op3, 2 Assign-op3");
}

TEST_F(Steps, NamedNodeIsStoppedBehind) {
  run({Answer::run_node(kSplit), Answer::run()});
  EXPECT_EQ(holds(), "0, 0 Split-op2, 0 Assign-op3, 1 Assign-op3, 2 Assign-op3");
}

TEST_F(Steps, NodeThatNeverComesStopsAtTheEndOfTheStep) {
  run({Answer::run_node("Default/no-Such/Node-op9"), Answer::run_node("Nope")});
  EXPECT_EQ(holds(), "0, 0 Assign-op3, 1 Assign-op3, 2 Assign-op3");
}

TEST_F(Steps, NamedNodeBehindANodeStopMayComeInTheNextStep) {
  run({Answer::run_node(kSplit), Answer::run_node(kMul), Answer::run()});
  EXPECT_EQ(holds(), "0, 0 Split-op2, 1 Mul-op1, 1 Assign-op3, 2 Assign-op3");
}

TEST_F(Steps, MiddleReleasesSkipTheHoldOnlyBehindTheVeryLastOperator) {
  run({Answer::run_node(kSplit), Answer::run_node("Nope"), Answer::run_node(kAssign), Answer::run_node(kAssign)},
      "1.5.0");
  EXPECT_EQ(holds(), "0, 0 Split-op2, 1 Assign-op3, 1 Assign-op3, 2 Assign-op3");
}

TEST_F(Steps, FirstReleaseIsNeverHeldAtTheEndWhileSteppingByNode) {
  run({Answer::run_node(kSplit), Answer::run_node(kMul), Answer::run()}, "1.0.1");
  EXPECT_EQ(holds(), "0, 1 Split-op2, 2 Mul-op1, 2 Assign-op3, 3 Assign-op3");
}

TEST_F(Steps, AscendTakesNodeLevelForStepLevel) {
  run({Answer::run_node(), Answer::run_node(kMul)}, "2.2.0", "Ascend");
  EXPECT_EQ(holds(), "0, 0, 1, 2");
}

TEST_F(Steps, UnknownLevelActsLikeStep) {
  run({Answer::run("fortnight")});
  EXPECT_EQ(holds(), "0, 0 Assign-op3, 1 Assign-op3, 2 Assign-op3");
}

TEST_F(Steps, RecheckRunsNothing) {
  run({Answer::recheck(), Answer::recheck()});
  EXPECT_EQ(holds(), "0, 0, 0, 0 Assign-op3, 1 Assign-op3, 2 Assign-op3");
  EXPECT_TRUE(server.calls("SendWatchpointHits").empty());
}

TEST_F(Steps, FirstReleaseTakesRecheckForRun) {
  run({Answer::recheck()}, "1.0.1");
  EXPECT_EQ(holds(), "0, 1 Assign-op3, 2 Assign-op3, 3 Assign-op3");
}

TEST_F(Steps, ExitAtAnOperatorStaysSilentToTheEndOfTheStep) {
  run({Answer::run_node(), Answer::exit()});
  EXPECT_EQ(holds(), "0, 0 Mul-op1");
  EXPECT_EQ(server.calls().back().metadata().cur_node(), kAssign);
  EXPECT_EQ(server.calls().back().metadata().cur_step(), 1);
}

}  // namespace
}  // namespace msdbg::test
