#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "msdbg/watch.h"

namespace msdbg {
namespace {

TEST(Catalogue, HoldsSeventeenConditionsAndTwelveOldOnes) {
  size_t current = 0, old = 0;
  for (const ConditionSpec& spec : condition_catalogue()) (spec.abbr.empty() ? old : current)++;
  EXPECT_EQ(current, 17u);
  EXPECT_EQ(old, 12u);
}

TEST(Catalogue, IdsAndAbbreviationsAreUnique) {
  std::set<std::string_view> seen;
  for (const ConditionSpec& spec : condition_catalogue()) {
    EXPECT_TRUE(seen.insert(spec.id).second) << spec.id;
    EXPECT_TRUE(spec.abbr.empty() || seen.insert(spec.abbr).second) << spec.abbr;
  }
}

TEST(Catalogue, EveryConditionExplainsItself) {
  for (const ConditionSpec& spec : condition_catalogue()) {
    EXPECT_FALSE(spec.summary.empty()) << spec.id;
    EXPECT_FALSE(spec.advice.empty()) << spec.id;
    EXPECT_LE(spec.summary.size(), 72u) << spec.id;
  }
}

TEST(Catalogue, ChangeConditionsNeedThePreviousValue) {
  for (const ConditionSpec& spec : condition_catalogue()) {
    EXPECT_EQ(spec.needs_previous, spec.enumerator >= 18 && spec.enumerator <= 20) << spec.id;
  }
}

TEST(Catalogue, OnlyTheOverflowFamilyIsAnError) {
  for (const ConditionSpec& spec : condition_catalogue()) {
    const bool overflow = spec.enumerator <= 2 || spec.enumerator == 13;
    EXPECT_EQ(spec.severity, overflow ? Severity::kError : Severity::kWarning) << spec.id;
  }
}

TEST(Catalogue, RangeParametersStandInWireOrder) {
  const ConditionSpec& spec = *find_condition("TR").value();
  ASSERT_EQ(spec.params.size(), 6u);
  EXPECT_EQ(spec.params[0].name, "range_start_inclusive");
  EXPECT_EQ(spec.params[1].name, "range_end_inclusive");
  EXPECT_EQ(spec.params[2].name, "range_percentage_lt");
  EXPECT_EQ(spec.params[5].name, "max_min_gt");
}

TEST(FindCondition, TakesIdAndAbbreviationInAnyCase) {
  EXPECT_EQ(find_condition("tensor_overflow").value()->abbr, "TO");
  EXPECT_EQ(find_condition("wcl").value()->id, "weight_change_too_large");
  EXPECT_EQ(find_condition(" Tensor_All_Zero ").value()->id, "tensor_all_zero");
  EXPECT_EQ(find_condition("sd_gt").value()->enumerator, 11);
}

TEST(FindCondition, NamesTheNearestIdForAMisspeltOne) {
  const auto found = find_condition("tensor_overflo");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), Code::kNotFound);
  EXPECT_NE(found.status().message().find("tensor_overflow"), std::string::npos) << found.status().message();
}

TEST(FindCondition, AnEmptyNameIsNoOldCondition) { EXPECT_FALSE(find_condition("").ok()); }

TEST(ErrorTexts, OneTextPerBitAscending) {
  EXPECT_EQ(error_texts(kErrorNan | kErrorNoPrevious),
            (std::vector<std::string>{"NaN in the tensor", "no previous step"}));
  EXPECT_EQ(error_texts(63).size(), 6u);
  EXPECT_TRUE(error_texts(0).empty());
}

TEST(RecommendedLiveRules, LetWeightsGrowThatBeginSmall) {
  // Its first update changes a weight of 0.01 by many times its size.
  const auto rules = recommended_live_rules(true, true, false);
  const auto found = std::ranges::find(rules, "weight_change_too_large", &PresetRule::name);
  ASSERT_NE(found, rules.end());
  EXPECT_EQ(found->from_step, 3);
}

TEST(ParseSemantics, KnowsTwoWords) {
  EXPECT_EQ(parse_semantics("Finite").value(), Semantics::kFinite);
  EXPECT_EQ(parse_semantics("compat").value(), Semantics::kCompat);
  EXPECT_EQ(parse_semantics("strict").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(semantics_name(Semantics::kFinite), "finite");
}

}  // namespace
}  // namespace msdbg
