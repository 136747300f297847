#include <gtest/gtest.h>

#include <limits>

#include "msdbg/watch.h"

namespace msdbg {
namespace {

using Params = std::map<std::string, double, std::less<>>;

std::string refusal(std::string_view id, const Params& params) {
  const auto made = make_condition(id, params);
  if (made.ok()) return "accepted: " + made->text();
  EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
  return made.status().message();
}

bool refused(std::string_view id, const Params& params, std::string_view because) {
  const std::string why = refusal(id, params);
  if (why.find(because) != std::string::npos && why.find("accepted:") != 0) return true;
  ADD_FAILURE() << why;
  return false;
}

TEST(MakeCondition, SeveralCheckParametersMayStandTogether) {
  const auto made = make_condition("TL", {{"max_gt", 3}, {"abs_mean_gt", 0}});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->text(), "tensor_too_large abs_mean_gt 0, max_gt 3");
}

TEST(MakeCondition, FillsTheCatalogueDefault) {
  EXPECT_EQ(make_condition("TZ", {})->param("zero_percentage_ge"), 100);
  EXPECT_EQ(make_condition("WCL", {})->param("abs_mean_update_ratio_gt"), 0.1);
  EXPECT_EQ(make_condition("WCS", {})->param("abs_mean_update_ratio_lt"), 1e-4);
  EXPECT_EQ(make_condition("WNC", {})->param("rtol"), 1e-5);
  EXPECT_EQ(make_condition("WI", {})->param("zero_percentage_ge"), 100);
}

TEST(MakeCondition, AHiddenParameterDoesNotReplaceTheCheck) {
  const auto made = make_condition("WNC", {{"atol", 0}});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->param("rtol"), 1e-5);
  EXPECT_EQ(made->param("atol"), 0);
}

TEST(MakeCondition, DefaultIsNotAddedBesideAnotherCheck) {
  EXPECT_EQ(make_condition("WI", {{"max_gt", 1}})->text(), "weight_initialization max_gt 1");
}

TEST(MakeCondition, RefusesThresholdConditionsWithoutACheck) {
  for (std::string_view id : {"TL", "WL", "GL", "TS", "WS", "GV", "TR", "AR", "max_gt", "sd_lt"}) {
    EXPECT_TRUE(refused(id, {}, "give at least one of")) << id;
  }
  EXPECT_TRUE(refused("TR", {{"range_start_inclusive", 0}, {"range_end_inclusive", 1}}, "give at least one of"));
}

TEST(MakeCondition, RefusesParametersOfAParameterlessCondition) {
  EXPECT_TRUE(refused("TO", {{"max_gt", 1}}, "takes no parameter"));
  EXPECT_TRUE(refused("nan", {{"param", 1}}, "takes no parameter"));
}

TEST(MakeCondition, RefusesUnknownNamesAndListsTheKnown) {
  EXPECT_TRUE(refused("TL", {{"max_lt", 1}}, "no parameter 'max_lt' (has abs_mean_gt, max_gt, min_gt, mean_gt)"));
}

TEST(MakeCondition, RefusesValuesOutsideTheInterval) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(refused("TL", {{"abs_mean_gt", -0.5}}, "abs_mean_gt = -0.5 is not accepted: use [0, Inf)"));
  EXPECT_TRUE(refused("TL", {{"max_gt", kNan}}, "NaN"));
  EXPECT_TRUE(refused("TS", {{"max_lt", -kInf}}, "a finite number"));
  EXPECT_TRUE(refused("TZ", {{"zero_percentage_ge", 100.5}}, "[0, 100] percent"));
  EXPECT_TRUE(refused("TR", {{"max_min_lt", 0}}, "(0, Inf)"));
  EXPECT_TRUE(refused("WCL", {{"abs_mean_update_ratio_gt", -1}}, "a fraction"));
  EXPECT_TRUE(refused("WNC", {{"equal_nan", 2}}, "0 or 1"));
}

TEST(MakeCondition, SpreadAboveZeroMeansNotConstant) { EXPECT_TRUE(make_condition("TR", {{"max_min_gt", 0}}).ok()); }

TEST(MakeCondition, APercentageNeedsBothBounds) {
  EXPECT_TRUE(
      refused("TR", {{"range_percentage_lt", 5}, {"range_end_inclusive", 1}}, "range_start_inclusive is missing"));
  EXPECT_TRUE(
      refused("AR", {{"range_percentage_gt", 5}, {"range_start_inclusive", 1}}, "range_end_inclusive is missing"));
}

TEST(MakeCondition, BoundsMustBeInOrder) {
  EXPECT_TRUE(refused("TR", {{"range_percentage_lt", 5}, {"range_start_inclusive", 3}, {"range_end_inclusive", 0}},
                      "range_start_inclusive = 3 is above range_end_inclusive = 0"));
  EXPECT_TRUE(
      make_condition("TR", {{"range_percentage_lt", 5}, {"range_start_inclusive", 3}, {"range_end_inclusive", 3}})
          .ok());
}

TEST(MakeCondition, ExtraBoundsBesideASpreadAreIgnored) {
  EXPECT_TRUE(make_condition("TR", {{"max_min_gt", 1}, {"range_start_inclusive", 3}}).ok());
}

TEST(MakeCondition, UnknownConditionIsAnInvalidArgument) { EXPECT_TRUE(refused("TX", {}, "no condition 'TX'")); }

TEST(ParseCondition, ReadsNamesWithEqualSignsBlanksAndCommas) {
  const char* wanted = "tensor_range range_start_inclusive 0, range_end_inclusive 1, range_percentage_lt 5";
  for (const char* text : {"TR range_start_inclusive=0,range_end_inclusive=1,range_percentage_lt=5",
                           "tr range_percentage_lt = 5 range_end_inclusive 1 , range_start_inclusive 0", wanted}) {
    const auto parsed = parse_condition(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed->text(), wanted);
  }
}

TEST(ParseCondition, ALoneNumberIsTheFirstCheckParameter) {
  EXPECT_EQ(parse_condition("TZ 50")->text(), "tensor_all_zero zero_percentage_ge 50");
  EXPECT_EQ(parse_condition("max_gt 1e-9")->text(), "max_gt param 1e-09");
}

TEST(ParseCondition, WithoutParametersTakesDefaults) {
  EXPECT_EQ(parse_condition("TO")->text(), "tensor_overflow");
  EXPECT_EQ(parse_condition("weight_not_changed")->param("rtol"), 1e-5);
}

TEST(ParseCondition, ReadsTrueAndFalse) {
  EXPECT_EQ(parse_condition("WNC equal_nan=true")->param("equal_nan"), 1);
  EXPECT_FALSE(parse_condition("TL max_gt=true").ok());
}

TEST(ParseCondition, SaysWhatIsWrong) {
  auto why = [](std::string_view text) {
    const auto parsed = parse_condition(text);
    return parsed.ok() ? "accepted" : parsed.status().message();
  };
  EXPECT_NE(why("").find("empty condition"), std::string::npos);
  EXPECT_NE(why("TO 3").find("takes no parameter"), std::string::npos);
  EXPECT_NE(why("TL max_gt").find("max_gt has no value"), std::string::npos);
  EXPECT_NE(why("TL max_gt=a").find("'a' is not a number"), std::string::npos);
  EXPECT_NE(why("TL max_gt=1 max_gt=2").find("given twice"), std::string::npos);
  EXPECT_NE(why("TZ 50 60").find("'50': a parameter name is expected"), std::string::npos);
}

}  // namespace
}  // namespace msdbg
