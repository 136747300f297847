// The cost of a set of expressions: passes, reused statistics, shared parts.
#include <gtest/gtest.h>

#include <algorithm>

#include "msdbg/expr.h"

namespace msdbg {
namespace {

ExpressionSet make_set(std::initializer_list<const char*> texts) {
  std::vector<Expression> expressions;
  for (const char* text : texts) {
    Result<Expression> expression = Expression::parse(text, ExpressionKind::kAny);
    EXPECT_TRUE(expression.ok()) << expression.status().message();
    expressions.push_back(*expression);
  }
  return ExpressionSet(expressions);
}

TEST(Plan, StatisticsAnswerPlainReductions) {
  for (const char* text :
       {"mean(abs(x)) > 10", "any(not isfinite(x))", "max(x) - min(x) > 3 * std(x)", "percent(x == 0) >= 50", "norm2(x) / sqrt(size) > 1",
        "all(x >= 0)", "norminf(x) > dtype_max / 2", "max(abs(x)) > 1", "mean(finite(x)) < sum(abs(finite(x)))", "count(isnan(-x)) > 0",
        "count(abs(x) > 1e-3) > 5", "any(3 < x)", "percent(finite(x) <= -2) > 1", "not all(x != 7)"}) {
    const ExpressionSet set = make_set({text});
    EXPECT_EQ(set.passes(), 1) << text;
    EXPECT_TRUE(set.decided_by_stats()) << text;
    EXPECT_TRUE(set.decided_by_stats(0)) << text;
  }
  EXPECT_EQ(make_set({"mean(abs(x)) > 1"}).stats_fields(0) & (kStatAbsMean | kStatMin), kStatAbsMean);
  EXPECT_EQ(make_set({"mean(abs(x)) > 1"}).stats_request().ranges.size(), 0u);
}

TEST(Plan, CountsBesideALimitBecomeRanges) {
  const ExpressionSet set = make_set({"percent(abs(x) > 2) > 5", "count(2 < abs(x)) > 1", "any(x >= 1)", "all(abs(x) <= 2)", "any(x > 0)"});
  ASSERT_EQ(set.stats_request().ranges.size(), 2u);
  EXPECT_EQ(set.stats_request().ranges[0], (RangeRequest{-2, 2}));
  EXPECT_EQ(set.stats_request().ranges[1].low, 1);
  EXPECT_TRUE(set.decided_by_stats());
  EXPECT_EQ(set.stats_fields(4) & kStatRanges, 0u);
}

TEST(Plan, WhatTheStatisticsDoNotKnowIsComputedInTheirPass) {
  for (const char* text : {"any(x * 2 > 1)", "mean(x ^ 2) > 1", "min(abs(x)) > 1", "any(x > step)", "any(x != prev)", "std(abs(x)) > 1"}) {
    const ExpressionSet set = make_set({text});
    EXPECT_EQ(set.passes(), 1) << text;
    EXPECT_TRUE(set.has_first_pass_work()) << text;
    EXPECT_FALSE(set.decided_by_stats()) << text;
  }
}

TEST(Plan, NestedReductionsCostPasses) {
  EXPECT_EQ(make_set({"percent(abs(x) > 3 * std(x)) > 5"}).passes(), 2);
  EXPECT_FALSE(make_set({"percent(abs(x) > 3 * std(x)) > 5"}).has_first_pass_work());
  EXPECT_EQ(make_set({"any(x > mean(abs(x - mean(x))))"}).passes(), 3);
  EXPECT_EQ(make_set({"any(x > mean(x))", "max(x) > 1"}).passes(), 2);
  EXPECT_EQ(make_set({"size > 3 and step < 10"}).passes(), 0);
  EXPECT_EQ(make_set({"1 + 1 == 2"}).passes(), 0);
  EXPECT_EQ(make_set({"x > 3"}).passes(), 0);
  EXPECT_EQ(make_set({"x > max(x) / 2"}).passes(), 1);
}

TEST(Plan, ConstantPartsAreFolded) {
  const ExpressionSet set = make_set({"any(x >= 2 * 3 + max(1, -2) ^ 2) and not (1 > 2)", "sqrt(2 * 8) <= x or false and true == false"});
  ASSERT_EQ(set.stats_request().ranges.size(), 1u);
  EXPECT_EQ(set.stats_request().ranges[0].low, 7);
  // Folded with the constant on its other side, this is the same condition as a plainly written one.
  EXPECT_EQ(make_set({"count(2 + 2 < x) > 1", "count(x > 4) > 2"}).stats_request().ranges.size(), 1u);
}

TEST(Plan, ExplainShowsThePasses) {
  EXPECT_EQ(Expression::parse("percent(abs(x) > 3 * std(x)) > 5")->explain(),
            "percent(abs(x) > 3 * std(x)) > 5\n"
            "  pass 1: the statistics pass, nothing added\n"
            "    std(x)  from the statistics\n"
            "  pass 2: 2 operations per element\n"
            "    percent(abs(x) > 3 * std(x))\n"
            "  the tensor is read 2 times\n");
  EXPECT_EQ(Expression::parse("mean(abs(x)) > 10 * mean(abs(prev))")->explain(),
            "mean(abs(x)) > 10 * mean(abs(prev))\n"
            "  pass 1: besides the statistics, 1 operation per element\n"
            "    mean(abs(x))  from the statistics\n"
            "    mean(abs(prev))\n"
            "  needs the previous step\n");
  EXPECT_EQ(Expression::parse("count( abs(x)\n > 3 ) > 5")->explain(),
            "count( abs(x)\n > 3 ) > 5\n"
            "  pass 1: the statistics pass, nothing added\n"
            "    count( abs(x) > 3 )  from the statistics, as a range\n");
  EXPECT_EQ(Expression::parse("size > 3")->explain(),
            "size > 3\n"
            "  no pass: no element is read\n");
  EXPECT_EQ(Expression::parse("x * 2 > mean(x)", ExpressionKind::kElementTruth)->explain(),
            "x * 2 > mean(x)\n"
            "  pass 1: the statistics pass, nothing added\n"
            "    mean(x)  from the statistics\n"
            "  then 2 operations per element for the values\n");
}

TEST(Plan, ExpressionsOfOneTensorShareTheirParts) {
  // The square root is computed once, its sum serves two, and a comparison is the same from both sides.
  EXPECT_EQ(make_set({"mean(sqrt(x)) > 1", "sum(sqrt(x)) > 100", "any(sqrt(x) > prev)", "all(prev < sqrt(x))", "count(prev < sqrt(x)) > 3"})
                .explain(),
            "mean(sqrt(x)) > 1\n"
            "sum(sqrt(x)) > 100\n"
            "any(sqrt(x) > prev)\n"
            "all(prev < sqrt(x))\n"
            "count(prev < sqrt(x)) > 3\n"
            "  pass 1: besides the statistics, 3 operations per element\n"
            "    mean(sqrt(x))\n"
            "    sum(sqrt(x))\n"
            "    any(sqrt(x) > prev)\n"
            "    all(prev < sqrt(x))\n"
            "    count(prev < sqrt(x))\n"
            "  needs the previous step\n");
  // Powers, signs and the order of commutative operands do not hide that two are the same.
  const std::string two = make_set({"norm2(x * prev) > 1", "norm2(-(prev * x)) > 2"}).explain();
  EXPECT_NE(two.find("2 operations per element"), std::string::npos) << two;
  const std::string squares = make_set({"sum(x ^ 2) > 1", "mean(x * x) > 2"}).explain();
  EXPECT_NE(squares.find("2 operations per element"), std::string::npos) << squares;
}

TEST(Plan, GrowthByRepeatedPowersIsLinear) {
  std::string text = "x";
  for (int i = 0; i < 60; ++i) text = "(" + text + ")^4";
  const ExpressionSet set = make_set({("any(" + text + " > 1)").c_str()});
  EXPECT_NE(set.explain().find("121 operations per element"), std::string::npos) << set.explain();
}

TEST(Plan, NamesForCompletion) {
  const std::vector<std::string>& names = expression_names();
  for (const char* name : {"x", "prev", "dtype_min_normal", "percent", "norminf", "finite", "isfinite", "and", "inf", "true"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
}

}  // namespace
}  // namespace msdbg
