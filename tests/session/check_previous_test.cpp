// Conditions that need the previous value.
#include <algorithm>
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

/// One parameter, its values by step.
struct Weight : FakeSession {
  Weight(std::initializer_list<std::pair<int64_t, TensorPtr>> values)
      : FakeSession(fake_graph({{"Default/w", "Parameter"}})) {
    for (const auto& [step, tensor] : values) put("Default/w", step, tensor);
  }
};

TEST(CheckPrevious, IsTheLastStepThatWasDumped) {
  Weight session{{0, f32({1, 1})}, {4, f32({1, 1})}, {9, f32({3, 3})}};
  const CheckResult result =
      checked(session, {watch(1, "**", "WNC"), watch(2, "**", "WCL abs_mean_update_ratio_gt=1.9")});
  EXPECT_EQ(hits(session, result), (Lines{"step 4 Default/w:output:0 weight_not_changed",
                                          "step 9 Default/w:output:0 weight_change_too_large"}));
  EXPECT_NEAR(result.hits[1].params[0].actual.value(), 2, 1e-8);
  EXPECT_EQ(result.hits[1].details.at(0), (std::pair<std::string, std::string>("message", "in 5 steps")));
}

TEST(CheckPrevious, AChangeOfManyStepsIsJudgedByWhatEachOfThemIsWorth) {
  Weight session{{0, f32({1, 1})}, {50, f32({3, 3})}, {100, f32({3, 3})}};
  std::vector<Watchpoint> watches = {watch(1, "**", "WCL abs_mean_update_ratio_gt=0.3"),
                                     watch(2, "**", "WCL abs_mean_update_ratio_gt=0.03"),
                                     watch(3, "**", "WCS abs_mean_update_ratio_lt=0.1")};
  Watchpoint expression;
  expression.id = 4;
  expression.on = Selector::parse("**").value();
  expression.expression = Expression::parse("mean(abs(x - prev)) > 1").value();
  watches.push_back(expression);
  const CheckResult result = checked(session, watches, {.semantics = Semantics::kFinite});
  ASSERT_EQ(result.hits.size(), 3u);
  const auto hit_of = [&](int id) {
    return *std::find_if(result.hits.begin(), result.hits.end(), [&](const Hit& hit) { return hit.watch_id == id; });
  };
  EXPECT_NEAR(hit_of(2).params[0].actual.value(), 0.04, 1e-8);
  EXPECT_EQ(hit_of(2).details.at(0), (std::pair<std::string, std::string>("message", "for each of 50 steps")));
  EXPECT_EQ(hit_of(3).tensor.step, 100);
  EXPECT_EQ(hit_of(3).details.at(0), (std::pair<std::string, std::string>("message", "in 50 steps")));
  EXPECT_EQ(hit_of(4).tensor.step, 50);
  EXPECT_EQ(hit_of(4).details.at(1), (std::pair<std::string, std::string>("steps", "50")));
}

TEST(CheckPrevious, StepsOfOtherGraphsAreNotMissing) {
  FakeSession session(std::vector<GraphPtr>{fake_graph({{"Default/w", "Parameter"}}), fake_graph({{"Default/v", "Parameter"}}, 0, 1)});
  for (const int64_t step : {0, 2}) session.put("Default/w", step, f32({1.0 + static_cast<double>(step)}));
  session.put(session.id("Default/v", 1, {}, 0, 0, 1), f32({1}));
  const CheckResult result = checked(session, {watch(1, "=Default/w", "WCL abs_mean_update_ratio_gt=1.9")});
  ASSERT_EQ(result.hits.size(), 1u);
  EXPECT_TRUE(result.hits[0].details.empty());
}

TEST(CheckPrevious, OfALoopBodyIsTheSameExecution) {
  FakeSession session(fake_graph({{"Default/body", "Add"}}));
  for (uint32_t execution : {0u, 1u}) {
    session.put("Default/body", 0, f32({1.0 + execution}), {}, execution);
    session.put("Default/body", 1, f32({2}), {}, execution);
  }
  const CheckResult result = checked(session, {watch(1, "**", "WNC")}, {.steps = IntSet::of(1)});
  ASSERT_EQ(result.hits.size(), 1u);
  EXPECT_EQ(result.hits[0].tensor.execution, 1u);
}

TEST(CheckPrevious, MissingHistoryGivesBothBits) {
  Weight session{{0, f32({1})}, {1, f32({1})}};
  session.set_history_missing(0, 0);
  EXPECT_EQ(
      open_questions(session, checked(session, {watch(1, "**", "WNC")}, {.steps = IntSet::of(1)})),
      (Lines{
          "step 1 Default/w:output:0 weight_not_changed: no previous step; no execution history of the graph [20]"}));
}

TEST(CheckPrevious, OfAnotherSizeIsNotChecked) {
  Weight session{{0, f32({1})}, {1, f32({1, 2})}};
  EXPECT_EQ(
      open_questions(session, checked(session, {watch(1, "**", "WCL")}, {.steps = IntSet::of(1)})),
      (Lines{"step 1 Default/w:output:0 weight_change_too_large: previous value has another number of elements [0]"}));
}

TEST(CheckPrevious, AnEmptyOneCountsAsMissing) {
  Weight session{{0, f32({})}, {1, f32({1, 2})}};
  EXPECT_EQ(open_questions(session, checked(session, {watch(1, "**", "WCL")}, {.steps = IntSet::of(1)})),
            (Lines{"step 1 Default/w:output:0 weight_change_too_large: previous step 0 cannot be used: the value is "
                   "empty [4]"}));
}

TEST(CheckPrevious, AnEmptyTensorIsCleanWithoutOne) {
  Weight session{{0, f32({})}};
  const CheckResult result = checked(session, {watch(1, "**", "WCL"), watch(2, "**", "TO")});
  EXPECT_EQ(result.coverage.checked, 1u);
  EXPECT_TRUE(result.hits.empty());
}

TEST(CheckPrevious, OfAnotherTypeIsWidenedWithItsOwn) {
  FakeSession session(fake_graph({{"Default/w", "Parameter"}}));
  const double values[] = {1.5, 2};
  session.put("Default/w", 0, testing::make_tensor(DType::kFloat16, {2}, values));
  session.put("Default/w", 1, f32({1.5, 2}));
  EXPECT_EQ(hits(session, checked(session, {watch(1, "**", "WNC rtol=0 atol=0")}, {.steps = IntSet::of(1)})),
            (Lines{"step 1 Default/w:output:0 weight_not_changed"}));
}

TEST(CheckPrevious, ThatCannotBeReadIsNamedAndTheRestIsStillJudged) {
  Weight session{{0, f32({1, 2})}, {1, f32({1, NAN})}, {2, f32({5, 6})}};
  session.set_read_error(session.id("Default/w", 0), Status(Code::kIoError, "w.npy shrank"), 1);
  session.set_problem(session.id("Default/w", 1), Status(Code::kCorrupt, "w.npy has no header"));
  const CheckResult result =
      checked(session, {watch(1, "**", "WCL"), watch(2, "**", "TL max_gt=4")}, {.steps = IntSet::parse("2").value()});
  EXPECT_EQ(hits(session, result), (Lines{"step 2 Default/w:output:0 tensor_too_large"}));
  EXPECT_EQ(open_questions(session, result), (Lines{"step 2 Default/w:output:0 weight_change_too_large: previous step "
                                                    "1 cannot be used: w.npy has no header [4]"}));
}

TEST(CheckPrevious, ThatFailsHalfwayIsNamedAndTheRestIsStillJudged) {
  FakeSession session(fake_graph({{"Default/w", "Parameter"}}));
  const std::vector<double> values(100'000, 3);
  session.put("Default/w", 0, f32({100'000}, values));
  session.put("Default/w", 1, f32({100'000}, values));
  session.set_read_error(session.id("Default/w", 0), Status(Code::kIoError, "w.npy shrank"), 70'000);
  const CheckResult result =
      checked(session, {watch(1, "**", "WNC"), watch(2, "**", "TL mean_gt=2")}, {.steps = IntSet::of(1)});
  EXPECT_EQ(hits(session, result), (Lines{"step 1 Default/w:output:0 tensor_too_large"}));
  EXPECT_EQ(open_questions(session, result),
            (Lines{"step 1 Default/w:output:0 weight_not_changed: previous step 0 cannot be used: w.npy shrank [4]"}));
}

}  // namespace
}  // namespace msdbg
