#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "msdbg/watch.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Decision judge(std::string_view condition_text, const TensorPtr& now, const TensorPtr& before = nullptr,
               Semantics semantics = Semantics::kCompat) {
  const Condition condition = parse_condition(condition_text).value();
  StatsRequest request;
  add_needs(condition, request);
  const Previous previous = !condition.spec->needs_previous   ? Previous::kNotNeeded
                            : !before                         ? Previous::kMissing
                            : before->count() != now->count() ? Previous::kSizeDiffers
                                                              : Previous::kPresent;
  const Stats stats = previous == Previous::kPresent
                          ? compute_stats(now->view(), before->view(), request)
                          : compute_stats(now->view(), StatsRequest{request.ranges, {}, false});
  return decide(condition, stats, request, previous, semantics);
}

TEST(Decide, NanSuppressesThresholdsAndNamesTheMode) {
  const Decision decision = judge("TL max_gt=0", f32({kNan, 5}));
  EXPECT_EQ(decision.verdict, Verdict::kNotChecked);
  EXPECT_EQ(decision.error_code, kErrorNan);
  EXPECT_EQ(decision.reason, "NaN in the tensor (semantics compat)");
  EXPECT_EQ(judge("TL max_gt=0", f32({kNan, -kInf})).reason, "NaN and Inf in the tensor (semantics compat)");
}

TEST(Decide, MissingPreviousIsNoCleanVerdict) {
  const Decision decision = judge("WNC", f32({1, 2}));
  EXPECT_EQ(decision.verdict, Verdict::kNotChecked);
  EXPECT_EQ(decision.error_code, kErrorNoPrevious);
  EXPECT_EQ(decision.reason, "no previous step");
  EXPECT_EQ(judge("WNC", f32({kInf, 2})).reason, "Inf in the tensor (semantics compat); no previous step");
}

TEST(Decide, MissingHistoryAddsItsBit) {
  const Condition condition = parse_condition("WCL").value();
  StatsRequest request;
  add_needs(condition, request);
  const TensorPtr tensor = f32({1, 2});
  const Decision decision =
      decide(condition, compute_stats(tensor->view()), request, Previous::kNoHistory, Semantics::kCompat);
  EXPECT_EQ(decision.error_code, kErrorNoPrevious | kErrorNoHistory);
  EXPECT_EQ(decision.reason, "no previous step; no execution history of the graph");
}

TEST(Decide, OtherSizeOfThePreviousValueIsNotCheckedWithoutACode) {
  for (const char* condition : {"WCL", "WCS", "WNC"}) {
    const Decision decision = judge(condition, f32({1, 2}), f32({1, 2, 3}));
    EXPECT_EQ(decision.verdict, Verdict::kNotChecked) << condition;
    EXPECT_EQ(decision.error_code, 0u);
    EXPECT_EQ(decision.reason, "previous value has another number of elements");
  }
}

TEST(Decide, NonFinitePreviousIsNotCheckedForRatiosButChangedForWnc) {
  const Decision ratio = judge("WCL", f32({1, 2}), f32({kNan, 2}));
  EXPECT_EQ(ratio.verdict, Verdict::kNotChecked);
  EXPECT_EQ(ratio.error_code, 0u);
  EXPECT_EQ(ratio.reason, "NaN or Inf in the previous value");
  EXPECT_EQ(judge("WNC", f32({1, 2}), f32({kNan, 2})).verdict, Verdict::kClean);
}

TEST(Decide, EmptyTensorsAreCleanEvenWithoutAPreviousValue) {
  for (const char* condition : {"TO", "TZ", "WNC", "WCL", "TL max_gt=0", "sd_lt 1"}) {
    EXPECT_EQ(judge(condition, f32({})).verdict, Verdict::kClean) << condition;
  }
}

TEST(Decide, HiddenAndSupportParametersHaveNoActualValue) {
  const Decision decision =
      judge("TR range_start_inclusive=0 range_end_inclusive=1 range_percentage_lt=60 max_min_gt=9", f32({0, 5}));
  ASSERT_EQ(decision.params.size(), 4u);
  EXPECT_FALSE(decision.params[0].actual);
  EXPECT_FALSE(decision.params[1].actual);
  EXPECT_EQ(decision.params[2].actual, 50);
  EXPECT_TRUE(decision.params[2].hit);
  EXPECT_EQ(decision.params[3].actual, 5);
  EXPECT_FALSE(decision.params[3].hit);
  EXPECT_TRUE(decision.hit());
}

TEST(Decide, OperatorOverflowIsNotDecidedFromElements) {
  EXPECT_EQ(judge("OO", f32({kInf})).verdict, Verdict::kNotChecked);
}

// ---- semantics finite ----------------------------------------------------------------------------------------------

TEST(DecideFinite, ThresholdsLookAtFiniteElements) {
  const Decision decision = judge("TL max_gt=4 mean_gt=3", f32({kNan, 5, kInf, 1}), nullptr, Semantics::kFinite);
  EXPECT_EQ(decision.verdict, Verdict::kHit);
  EXPECT_EQ(decision.error_code, 0u);
  EXPECT_EQ(decision.params[0].actual, 5);
  EXPECT_EQ(decision.params[1].actual, 3);
  EXPECT_FALSE(decision.params[1].hit);
}

TEST(DecideFinite, PercentagesAreOfFiniteElements) {
  const Decision zero = judge("TZ 100", f32({0, 0, kNan}), nullptr, Semantics::kFinite);
  EXPECT_TRUE(zero.hit());
  EXPECT_EQ(zero.params[0].actual, 100);
  const Decision range = judge("TR range_start_inclusive=0 range_end_inclusive=1 range_percentage_gt=40",
                               f32({0, 2, kInf}), nullptr, Semantics::kFinite);
  EXPECT_EQ(range.params[2].actual, 50);
}

TEST(DecideFinite, ChangeRunsOverPairsThatAreFiniteInBoth) {
  const Decision decision =
      judge("WCL abs_mean_update_ratio_gt=0.4 epsilon=0", f32({3, kNan, 1}), f32({2, 2, kInf}), Semantics::kFinite);
  EXPECT_TRUE(decision.hit());
  EXPECT_EQ(decision.params[0].actual, 0.5);
  EXPECT_TRUE(judge("WNC", f32({3, kNan}), f32({3, 4}), Semantics::kFinite).hit());
}

TEST(DecideFinite, NothingFiniteIsNotChecked) {
  EXPECT_EQ(judge("TZ 0", f32({kNan, kInf}), nullptr, Semantics::kFinite).reason, "no finite element");
  EXPECT_EQ(judge("WCL", f32({1, kNan}), f32({kNan, 1}), Semantics::kFinite).reason,
            "no element is finite in this and the previous step");
}

TEST(DecideFinite, OverflowFamilyIsUnchanged) {
  EXPECT_TRUE(judge("TO", f32({1, kInf}), nullptr, Semantics::kFinite).hit());
  EXPECT_FALSE(judge("nan", f32({1, kInf}), nullptr, Semantics::kFinite).hit());
}

// ---- statistics from a file ----------------------------------------------------------------------------------------

Stats file_row() {
  Stats row;
  row.dtype = DType::kFloat32;
  row.known = kStatCount | kStatMin | kStatMax | kStatNan | kStatPosInf | kStatNegInf;
  row.count = 10;
  row.min = -1;
  row.max = 2;
  return row;
}

Decision judge_row(std::string_view text, const Stats& row, Semantics semantics = Semantics::kCompat) {
  return decide(parse_condition(text).value(), row, {}, Previous::kNotNeeded, semantics);
}

TEST(DecideFromFile, KnownFieldsDecide) {
  EXPECT_EQ(judge_row("TL max_gt=1", file_row()).verdict, Verdict::kHit);
  EXPECT_EQ(judge_row("max_min_gt 3", file_row()).verdict, Verdict::kClean);
  EXPECT_EQ(judge_row("TO", file_row()).verdict, Verdict::kClean);
}

TEST(DecideFromFile, UnknownFieldsAreNotChecked) {
  for (const char* text : {"TL mean_gt=0", "TZ", "sd_gt 0", "WNC",
                           "TR range_start_inclusive=0 range_end_inclusive=1 range_percentage_lt=1"}) {
    const Decision decision = judge_row(text, file_row());
    EXPECT_EQ(decision.verdict, Verdict::kNotChecked) << text;
    EXPECT_EQ(decision.reason, "no tensor data (statistics only)") << text;
    EXPECT_EQ(decision.error_code, 0u) << text;
  }
}

TEST(DecideFromFile, WithoutNanCountsCompatCannotJudgeThresholds) {
  Stats row = file_row();
  row.known &= ~uint32_t{kStatNan};
  EXPECT_EQ(judge_row("TL max_gt=1", row).verdict, Verdict::kNotChecked);
  EXPECT_EQ(judge_row("TL max_gt=1", row, Semantics::kFinite).verdict, Verdict::kHit);
  EXPECT_EQ(judge_row("TO", row).verdict, Verdict::kNotChecked);
}

TEST(DecideFromFile, OneKnownInfIsEnoughForOverflow) {
  Stats row = file_row();
  row.known &= ~uint32_t{kStatNan};
  row.pos_inf_count = 1;
  EXPECT_EQ(judge_row("TO", row).verdict, Verdict::kHit);
}

// ---- needs ---------------------------------------------------------------------------------------------------------

TEST(AddNeeds, EqualRangesAndTolerancesAreShared) {
  StatsRequest request;
  for (const char* text :
       {"TR range_start_inclusive=0 range_end_inclusive=1 range_percentage_lt=1", "WNC rtol=0.1", "WNC rtol=0.1",
        "AR range_start_inclusive=0 range_end_inclusive=1 range_percentage_gt=9", "WCL", "TL max_gt=0"}) {
    add_needs(parse_condition(text).value(), request);
  }
  EXPECT_EQ(request.ranges.size(), 1u);
  EXPECT_EQ(request.close.size(), 1u);
  EXPECT_TRUE(request.change);
}

TEST(AddNeeds, ASpreadNeedsNoRange) {
  StatsRequest request;
  add_needs(parse_condition("TR max_min_gt=1 range_start_inclusive=0").value(), request);
  EXPECT_TRUE(request.ranges.empty());
  EXPECT_FALSE(request.needs_previous());
}

}  // namespace
}  // namespace msdbg
