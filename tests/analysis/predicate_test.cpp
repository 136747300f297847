#include <gtest/gtest.h>

#include <cmath>

#include "analysis/evidence.h"
#include "msdbg/analysis.h"

namespace msdbg {
namespace {

using Builtin = Predicate::Builtin;

Builtin builtin_of(std::string_view text) {
  const Result<Predicate> predicate = parse_predicate(text);
  EXPECT_TRUE(predicate.ok()) << text;
  return std::get<Builtin>(predicate->when);
}

TEST(ParsePredicate, KnowsTheThreeWords) {
  EXPECT_EQ(builtin_of("nan or inf"), Builtin::kNanOrInf);
  EXPECT_EQ(builtin_of(" NaN  or Inf "), Builtin::kNanOrInf);
  EXPECT_EQ(builtin_of("nan"), Builtin::kNan);
  EXPECT_EQ(builtin_of("INF"), Builtin::kInf);
}

TEST(ParsePredicate, OverflowConditionsAreTheSameQuestion) {
  EXPECT_EQ(builtin_of("TO"), Builtin::kNanOrInf);
  EXPECT_EQ(builtin_of("gradient_exploding"), Builtin::kNanOrInf);
}

TEST(ParsePredicate, ConditionKeepsItsText) {
  const Result<Predicate> predicate = parse_predicate("TL max_gt=3");
  ASSERT_TRUE(predicate.ok());
  EXPECT_TRUE(std::holds_alternative<Condition>(predicate->when));
  EXPECT_EQ(predicate->text, "tensor_too_large max_gt 3");
}

TEST(ParsePredicate, WrongWordSaysWhatIsAccepted) {
  const Result<Predicate> predicate = parse_predicate("broken");
  ASSERT_FALSE(predicate.ok());
  EXPECT_NE(predicate.status().message().find("broken"), std::string::npos);
  EXPECT_NE(predicate.status().message().find("'nan or inf'"), std::string::npos);
}

TEST(BadElement, EachPredicateTakesItsOwn) {
  EXPECT_TRUE(is_bad_element(Builtin::kNanOrInf, NAN));
  EXPECT_TRUE(is_bad_element(Builtin::kNanOrInf, -INFINITY));
  EXPECT_FALSE(is_bad_element(Builtin::kNanOrInf, 1e308));
  EXPECT_TRUE(is_bad_element(Builtin::kNan, NAN));
  EXPECT_FALSE(is_bad_element(Builtin::kNan, INFINITY));
  EXPECT_TRUE(is_bad_element(Builtin::kInf, INFINITY));
  EXPECT_FALSE(is_bad_element(Builtin::kInf, NAN));
}

}  // namespace
}  // namespace msdbg
