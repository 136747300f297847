// What a check examines, and its results.
#include <cmath>

#include "check_support.h"

namespace msdbg {
namespace {

using testing::checked;
using testing::f32;
using testing::fake_graph;
using testing::FakeSession;
using testing::hits;
using testing::Lines;
using testing::open_questions;
using testing::watch;

/// w -> matmul -> relu, with a constant next to it; relu breaks in step 1.
struct Chain : FakeSession {
  Chain()
      : FakeSession(fake_graph({{"Default/w", "Parameter"},
                                {"Default/cst1", "Const"},
                                {"Default/matmul", "MatMul", {"Default/w"}},
                                {"Default/relu", "ReLU", {"Default/matmul"}}})) {
    put("Default/cst1", 0, f32({NAN}));
    for (int64_t step : {0, 1}) {
      put("Default/w", step, f32({1, 2}));
      put("Default/matmul", step, f32({3, 4}));
      put("Default/matmul", step, f32({1, 2}), Slot{Io::kInput, 0});
      put("Default/relu", step, step == 0 ? f32({5, 6}) : f32({INFINITY, 6}));
    }
  }
};

TEST(Check, FindsTheTensorThatBroke) {
  Chain session;
  const CheckResult result = checked(session, {watch(1, "**", "TO")});
  EXPECT_EQ(hits(session, result), (Lines{"step 1 Default/relu:output:0 tensor_overflow"}));
  EXPECT_EQ(result.hits[0].abbr, "TO");
  EXPECT_EQ(result.hits[0].severity, Severity::kError);
  EXPECT_EQ(result.hits[0].dtype, DType::kFloat32);
  EXPECT_EQ(result.hits[0].shape, (Shape{2}));
  EXPECT_EQ(result.hits[0].stats.pos_inf_count, 1u);
  EXPECT_TRUE(result.not_checked.empty());
}

TEST(Check, CoverageCountsTensorsNotWatchpoints) {
  Chain session;
  const CheckResult result =
      checked(session, {watch(1, "**", "TO"), watch(2, "**", "TL max_gt=100"), watch(3, "=Default/w", "WNC")});
  EXPECT_EQ(result.coverage.tensors, 6u);
  // relu of step 1 holds Inf, w of step 0 has no previous value.
  EXPECT_EQ(result.coverage.checked, 4u);
  EXPECT_EQ(result.coverage.not_checked, 2u);
  EXPECT_EQ(result.coverage.bytes, 6u * 8u + 8u);
  EXPECT_EQ(open_questions(session, result),
            (Lines{"step 0 Default/w:output:0 weight_not_changed: no previous step [4]",
                   "step 1 Default/relu:output:0 tensor_too_large: Inf in the tensor (semantics compat) [2]"}));
}

TEST(Check, EachTensorIsReadOnceForAllWatchpoints) {
  Chain session;
  checked(session, {watch(1, "**", "TO"), watch(2, "**", "TZ 50"), watch(3, "**", "TL max_gt=2 mean_gt=0")});
  EXPECT_EQ(session.reads(), 6u);
}

TEST(Check, ResultsStandInExecutionOrderThenByRuleAndId) {
  Chain session;
  const CheckResult result = checked(
      session,
      {watch(4, "**", "TS max_lt=100"), watch(3, "**", "TL max_gt=0"), watch(2, "=Default/relu", "TL max_gt=1")},
      {.steps = IntSet::of(0)});
  EXPECT_EQ(hits(session, result),
            (Lines{"step 0 Default/matmul:output:0 tensor_too_large", "step 0 Default/matmul:output:0 tensor_too_small",
                   "step 0 Default/relu:output:0 tensor_too_large", "step 0 Default/relu:output:0 tensor_too_large",
                   "step 0 Default/relu:output:0 tensor_too_small", "step 0 Default/w:output:0 tensor_too_large",
                   "step 0 Default/w:output:0 tensor_too_small"}));
  EXPECT_EQ(result.hits[2].watch_id, 2);
  EXPECT_EQ(result.hits[3].watch_id, 3);
}

TEST(Check, InputsAreLookedAtWhenAskedFor) {
  Chain session;
  Watchpoint inputs = watch(1, "=Default/matmul", "TL max_gt=0");
  inputs.inputs = true;
  inputs.outputs = false;
  EXPECT_EQ(hits(session, checked(session, {inputs}, {.steps = IntSet::of(0)})),
            (Lines{"step 0 Default/matmul:input:0 tensor_too_large"}));
}

TEST(Check, InputAndOutputWatchpointsDoNotMix) {
  Chain session;
  Watchpoint inputs = watch(1, "=Default/matmul", "TL max_gt=0");
  inputs.inputs = true;
  inputs.outputs = false;
  const CheckResult result =
      checked(session, {inputs, watch(2, "=Default/matmul", "TS max_lt=100")}, {.steps = IntSet::of(0)});
  EXPECT_EQ(hits(session, result), (Lines{"step 0 Default/matmul:input:0 tensor_too_large",
                                          "step 0 Default/matmul:output:0 tensor_too_small"}));
}

TEST(Check, ASlotNarrowsTheWatchpoint) {
  FakeSession session(fake_graph({{"Default/topk", "TopK", {}, 2}}));
  session.put("Default/topk", 0, f32({1}));
  session.put("Default/topk", 0, f32({2}), Slot{Io::kOutput, 1});
  Watchpoint second = watch(1, "**", "TL max_gt=0");
  second.slot = 1;
  EXPECT_EQ(hits(session, checked(session, {second})), (Lines{"step 0 Default/topk:output:1 tensor_too_large"}));
}

TEST(Check, ConstantsAreLeftOutUnlessNamed) {
  Chain session;
  EXPECT_EQ(checked(session, {watch(1, "@all", "TO")}).coverage.tensors, 6u);
  for (const char* selector : {"@constant", "=Default/cst1", "op:Const"}) {
    EXPECT_EQ(hits(session, checked(session, {watch(1, selector, "TO")})),
              (Lines{"step 0 Default/cst1:output:0 tensor_overflow"}))
        << selector;
  }
  Watchpoint of_nodes = watch(1, "@all", "TO");
  const std::vector<NodeRef> all = Selector::parse("=Default/cst1 or op:MatMul").value().resolve(session.graphs());
  of_nodes.on = Selector::of_nodes(all, session.graphs());
  EXPECT_EQ(hits(session, checked(session, {of_nodes})), (Lines{"step 0 Default/cst1:output:0 tensor_overflow"}));
  const auto only_constants = check(session, std::vector{watch(1, "cst", "TO")}, {});
  ASSERT_FALSE(only_constants.ok());
  EXPECT_NE(only_constants.status().message().find("names only constants"), std::string::npos);
}

TEST(Check, ADisabledWatchpointIsNotEvenResolved) {
  Chain session;
  Watchpoint off = watch(1, "=nobody", "TO");
  off.enabled = false;
  EXPECT_EQ(checked(session, {off}).coverage.tensors, 0u);
}

TEST(Check, ASelectorWithoutNodesIsAnErrorUnlessOptional) {
  Chain session;
  Watchpoint nobody = watch(1, "=Default/relo", "TO");
  const auto result = check(session, std::vector{nobody}, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kNotFound);
  EXPECT_NE(result.status().message().find("nearest: relu"), std::string::npos) << result.status().message();
  nobody.optional = true;
  EXPECT_EQ(checked(session, {nobody}).coverage.tensors, 0u);
}

TEST(Check, AWatchpointWithoutAQuestionIsAnError) {
  Chain session;
  EXPECT_EQ(check(session, std::vector{watch(1, "**", ScriptCheck())}, {}).status().message(),
            "watchpoint 1 has neither a condition, an expression nor a script");
}

TEST(Check, AStepThatDoesNotExistIsAnErrorThatListsTheOthers) {
  Chain session;
  const auto result = check(session, std::vector{watch(1, "**", "TO")}, {.steps = IntSet::of(7)});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(), "no step 7 (have 0-1)");
}

TEST(Check, ARankThatDoesNotExistIsAnErrorThatListsTheOthers) {
  Chain session;
  const auto result = check(session, std::vector{watch(1, "**", "TO")}, {.ranks = IntSet::of(4)});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(), "no rank 4 (have 0)");
}

TEST(Check, OnlyTheStepsAskedForAreLookedAt) {
  Chain session;
  const CheckResult result = checked(session, {watch(1, "**", "TO")}, {.steps = IntSet::of(0)});
  EXPECT_EQ(result.steps, (std::vector<int64_t>{0}));
  EXPECT_TRUE(result.hits.empty());
}

TEST(Check, RanksAndGraphsAreKeptApart) {
  FakeSession session({fake_graph({{"Default/a", "Add"}}, 0, 0), fake_graph({{"Default/a", "Add"}}, 1, 0)});
  session.put(session.id("Default/a", 0, {}, 0, 0), f32({1}));
  session.put(session.id("Default/a", 0, {}, 0, 1), f32({NAN}));
  const CheckResult both = checked(session, {watch(1, "**", "TO")});
  ASSERT_EQ(both.hits.size(), 1u);
  EXPECT_EQ(both.hits[0].tensor.rank, 1);
  EXPECT_TRUE(checked(session, {watch(1, "**", "TO")}, {.ranks = IntSet::of(0)}).hits.empty());
}

TEST(Check, HitsBeyondTheLimitAreCountedNotKept) {
  Chain session;
  const CheckResult result = checked(session, {watch(1, "**", "TL max_gt=0")}, {.steps = IntSet::of(0), .max_hits = 2});
  EXPECT_EQ(result.hits.size(), 2u);
  EXPECT_EQ(result.total_hits, 3u);
}

TEST(Check, FiniteSemanticsJudgeWhatCompatSuppresses) {
  Chain session;
  const CheckResult result =
      checked(session, {watch(1, "=Default/relu", "TL max_gt=5")}, {.semantics = Semantics::kFinite});
  EXPECT_EQ(hits(session, result),
            (Lines{"step 0 Default/relu:output:0 tensor_too_large", "step 1 Default/relu:output:0 tensor_too_large"}));
  EXPECT_EQ(result.semantics, Semantics::kFinite);
}

TEST(Check, EveryExecutionOfALoopBodyIsLookedAt) {
  FakeSession session(fake_graph({{"Default/body", "Add"}}));
  session.put("Default/body", 0, f32({1}), {}, 0);
  session.put("Default/body", 0, f32({NAN}), {}, 1);
  const CheckResult result = checked(session, {watch(1, "**", "TO")});
  ASSERT_EQ(result.hits.size(), 1u);
  EXPECT_EQ(result.hits[0].tensor.execution, 1u);
  EXPECT_EQ(result.coverage.tensors, 2u);
}

}  // namespace
}  // namespace msdbg
