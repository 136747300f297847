// `#3` in a command: a row of the list printed last.
#include "script/support.h"

namespace msdbg::testing {
namespace {

using Rows = ScriptTest;

TEST_F(Rows, OfNodesAreNames) {
  ASSERT_TRUE(contains(type("nodes"), "3  Default/net/relu-ReLU/ReLU-op0"));
  EXPECT_EQ(type("_[3].op"), "ReLU");
  EXPECT_TRUE(contains(type("node #3"), "node     Default/net/relu-ReLU/ReLU-op0"));
  EXPECT_TRUE(contains(type("show #3:output:0"), "ReLU-op0:output:0  float32[2,3]  step 0"));
  EXPECT_EQ(type("where #3[0,:] x > 2"), "[2] = 3");
  EXPECT_TRUE(contains(type("watch #4 TO"), "on =Default/net/Log-op0 (1 node)"));
  EXPECT_TRUE(contains(type("nodes #2"), "1  Default/net/MatMul-op0"));  // from now on there is one row
  EXPECT_TRUE(contains(type("node #1"), "node     Default/net/MatMul-op0"));
}

TEST_F(Rows, OfLuaListsCount) {
  type("s:nodes 'Log'");
  EXPECT_TRUE(contains(type("show #1"), "Log-op0:output:0"));
  type("watch ** TO");
  type("s:check()");
  EXPECT_TRUE(contains(type("show #2"), "Log-op0:output:0  float32[2,3]  step 1"));
}

TEST_F(Rows, OfTensorsComeWithTheirStep) {
  ASSERT_TRUE(contains(type("tensors Log --steps all"), "2     1  Default/net/Log-op0"));
  EXPECT_TRUE(contains(type("show #2"), "step 1"));
  EXPECT_TRUE(contains(type("show #2 --step 0"), "step 0"));
  EXPECT_EQ(type("_[2].step"), "1");
  type("stats ReLU");
  EXPECT_TRUE(contains(type("worst #1 1"), "[1,1] = 5"));
  EXPECT_TRUE(contains(type("trend abs_mean #1"), "abs_mean of Default/net/relu-ReLU/ReLU-op0:output:0"));
}

TEST_F(Rows, OfHitsFramesAndWatchpoints) {
  type("watch op:ReLU TZ 50");
  type("watch op:Log TO");
  type("check");
  EXPECT_TRUE(contains(type("hits"), "1     0  warning   TZ"));
  EXPECT_TRUE(contains(type("hits #1"), "step 0"));
  EXPECT_TRUE(contains(type("why #1"), "ReLU-op0"));
  EXPECT_EQ(type("unwatch #1"), "error: #1 is not a watchpoint; watches lists them");
  type("watches");
  EXPECT_EQ(type("show #1"), "error: #1 is a watchpoint, not a node or a tensor");
  EXPECT_EQ(type("unwatch #1"), "watch 1 removed");
  type("watches");
  EXPECT_EQ(type("unwatch #2"), "watch 2 removed");
  EXPECT_TRUE(contains(type("bt Log-op0"), "#0  Log-op0"));
  EXPECT_TRUE(contains(type("show #0"), "Log-op0:output:0"));
}

TEST_F(Rows, OfTrendsAreTensorsOfTheCurrentStep) {
  ASSERT_TRUE(contains(type("trend abs_mean op:ReLU or op:Log"), "\n2  ")) << type("trend abs_mean op:ReLU or op:Log");
  EXPECT_TRUE(contains(type("show #2"), "Log-op0:output:0  float32[2,3]  step 0"));
  type("trend abs_mean op:ReLU or op:Log");
  EXPECT_EQ(type("#_ .. _[2].op"), "2Log");
}

TEST_F(Rows, OfComparisonsAreTensorsOfA) {
  ASSERT_TRUE(contains(type("diff --steps-a 1 --steps-b 0"), "\n2  ")) << type("diff --steps-a 1 --steps-b 0");
  const std::string node = type("_[2].node_a");
  EXPECT_TRUE(contains(type("show #2"), "step 1"));
  EXPECT_TRUE(contains(type("node #2"), "node     " + node));
}

TEST_F(Rows, OfOriginsAreWhatBroke) {
  ASSERT_TRUE(contains(type("origin"), "first bad  #1 ")) << type("origin");
  EXPECT_EQ(type("_[1].op"), "Log");
  EXPECT_TRUE(contains(type("origin --steps all --wide"), "#2 ")) << type("origin --steps all --wide");
  EXPECT_TRUE(contains(type("show #2"), "Log-op0:output:0  float32[2,3]  step 1"));
  run("local s = msdbg.open 'fake' assert(not tostring(msdbg.origin(s)):find '#')");
}

TEST_F(Rows, TablesOfCommandsShowTheirNumbersAndThoseOfScriptsDoNot) {
  type("watch ** TO");
  EXPECT_TRUE(contains(type("check"), "\n1     0  ")) << type("check");
  EXPECT_TRUE(contains(type("stats Log --steps all"), "\n2     1  "));
  run("local s = msdbg.open 'fake' s:watch { on = '**', when = 'TO' } assert(tostring(s:check()):find '\\n   0  ')");
}

TEST_F(Rows, UnknownNumbersListWhatExists) {
  EXPECT_TRUE(contains(type("show #1"), "error: #1: no list was printed yet"));
  type("nodes Log");
  EXPECT_EQ(type("show #2"), "error: #2: the last list has no such row; it has only #1");
  type("nodes");
  EXPECT_EQ(type("show #77"), "error: #77: the last list has no such row; it has #1 to #5");
  EXPECT_EQ(type("show #0"), "error: #0: the last list has no such row; it has #1 to #5");
}

TEST_F(Rows, LengthsAndQuotedWordsStayWhatTheyAre) {
  type("nodes");
  type("t = { 1, 2, 3 }");
  EXPECT_EQ(type("p #t"), "3");
  EXPECT_EQ(type("#t"), "3");
  EXPECT_TRUE(contains(type("nodes '#1'"), "matches no node"));
}

}  // namespace
}  // namespace msdbg::testing
