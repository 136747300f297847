// Expressions as watchpoints: the same check, the same results, nothing read twice.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "session/check_support.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

class ExpressionCheck : public ::testing::Test {
 protected:
  ExpressionCheck() : session_(fake_graph({{"Default/MatMul-op0", "MatMul"}, {"Default/ReLU-op1", "ReLU"}})) {
    session_.put("Default/MatMul-op0", 0, f32({1, -2, 3, -4}));
    session_.put("Default/MatMul-op0", 1, f32({10, -20, 30, -40}));
    session_.put("Default/ReLU-op1", 0, f32({0, 0, 0, NAN}));
    session_.put("Default/ReLU-op1", 1, f32({1, 1, 1, 1}));
  }
  static Watchpoint watch(int id, const std::string& text, const std::string& on = "**") {
    Watchpoint w;
    w.id = id;
    w.on = Selector::parse(on).value();
    w.rule = text;
    w.expression = std::get<Expression>(parse_when(text).value());
    return w;
  }
  FakeSession session_;
};

TEST_F(ExpressionCheck, HitsCarryTheMeasuredSide) {
  const std::vector<Watchpoint> watches{watch(1, "mean(abs(x)) > 5")};
  const CheckResult result = check(session_, watches, {}).value();
  ASSERT_EQ(result.hits.size(), 1u);
  EXPECT_EQ(result.hits[0].tensor.step, 1);
  ASSERT_EQ(result.hits[0].details.size(), 1u);
  EXPECT_EQ(result.hits[0].details[0], (std::pair<std::string, std::string>("actual", "25")));
  EXPECT_EQ(result.coverage.checked, 3u);  // one holds NaN
}

TEST_F(ExpressionCheck, SeveralPassesAndConditionsShareOneTensor) {
  std::vector<Watchpoint> watches{watch(1, "percent(abs(x - mean(x)) > 1) >= 75", "op:MatMul"), watch(2, "any(isnan(x))"),
                                  watch(3, "all(x == 1)")};
  Watchpoint overflow;
  overflow.id = 4;
  overflow.on = Selector::parse("**").value();
  overflow.condition = parse_condition("TO").value();
  overflow.rule = "tensor_overflow";
  watches.push_back(overflow);
  const CheckResult result = check(session_, watches, {}).value();
  std::map<int, int> hits;
  for (const Hit& hit : result.hits) ++hits[hit.watch_id];
  EXPECT_EQ(hits, (std::map<int, int>{{1, 2}, {2, 1}, {3, 1}, {4, 1}}));
}

/// "hit", "clean", or the reason why it is not checked.
std::string verdict_on(std::initializer_list<double> values, const std::string& when, CheckOptions options = {}) {
  FakeSession session(fake_graph({{"Default/MatMul-op0", "MatMul"}}));
  session.put("Default/MatMul-op0", 0, f32(values));
  Watchpoint watch;
  watch.id = 1;
  watch.on = Selector::parse("**").value();
  When parsed = parse_when(when).value();
  if (auto* expression = std::get_if<Expression>(&parsed)) watch.expression = *expression;
  else watch.condition = std::get<Condition>(parsed);
  const CheckResult result = check(session, std::vector<Watchpoint>{watch}, options).value();
  EXPECT_EQ(result.coverage.verdicts, result.not_checked.empty() ? 1u : 0u);
  if (!result.not_checked.empty()) return result.not_checked[0].reason;
  return result.hits.empty() ? "clean" : "hit";
}

TEST(ExpressionOnNan, IsNeverCleanWhereNothingWasCompared) {
  for (const char* when :
       {"mean(abs(x)) > 0.05", "max(x) > 3", "any(x > 3)", "not (mean(x) < 3)", "percent(x == 0) < 5", "count(x < 0) == 0"}) {
    EXPECT_EQ(verdict_on({NAN, NAN}, when), "NaN in the tensor") << when;
  }
  for (const char* when : {"mean(x) > 3", "any(x > 3)", "percent(abs(x) > 3 * std(x)) > 5"}) {
    EXPECT_EQ(verdict_on({1, NAN, 2}, when), "NaN in the tensor") << when;
  }
  EXPECT_EQ(verdict_on({1, INFINITY, -INFINITY}, "mean(x) > 3"), "Inf in the tensor");
  EXPECT_EQ(verdict_on({1, INFINITY}, "percent(abs(x) > 3 * std(x)) > 5"), "Inf in the tensor");
  EXPECT_EQ(verdict_on({0, 0}, "sum(x) / sum(x) > 1"), "the compared value is NaN");
}

TEST(ExpressionOnNan, IsDecidedWhereTheRestIsEnough) {
  EXPECT_EQ(verdict_on({1, NAN, 9}, "max(x) > 3"), "hit");
  EXPECT_EQ(verdict_on({1, NAN, 9}, "mean(x) > 3 or max(x) > 3"), "hit");
  EXPECT_EQ(verdict_on({1, NAN, 9}, "isnan(mean(x)) or mean(x) > 3"), "hit");
  EXPECT_EQ(verdict_on({1, NAN, 9}, "mean(finite(x)) > 6"), "clean");
  EXPECT_EQ(verdict_on({1, NAN, 9}, "size > 5 and mean(x) > 3 and isfinite(min(x))"), "clean");
  EXPECT_EQ(verdict_on({NAN, NAN}, "mean(finite(x)) > 6"), "NaN in the tensor");
}

TEST(ExpressionOnNan, IsDecidedWhereItAsksForNan) {
  for (const char* when : {"any(isnan(x))", "not all(isfinite(x))", "any(x != x)", "isnan(mean(x))"}) {
    EXPECT_EQ(verdict_on({NAN, NAN}, when), "hit") << when;
    EXPECT_EQ(verdict_on({1, 2}, when), "clean") << when;
  }
  EXPECT_EQ(verdict_on({NAN, NAN}, "any(isinf(x))"), "clean");
}

TEST(ExpressionOnNan, IsWhatTheUserSays) {
  CheckOptions hit, clean;
  hit.nan = NanVerdict::kHit;
  clean.nan = NanVerdict::kClean;
  for (const char* when : {"mean(x) > 3", "TL mean_gt=3"}) {
    EXPECT_EQ(verdict_on({1, NAN}, when, hit), "hit") << when;
    EXPECT_EQ(verdict_on({1, NAN}, when, clean), "clean") << when;
    EXPECT_EQ(verdict_on({1, 2}, when, hit), "clean") << when;
    EXPECT_EQ(verdict_on({8, 9}, when, clean), "hit") << when;
  }
  EXPECT_EQ(verdict_on({NAN, INFINITY}, "TL mean_gt=3", clean), "NaN and Inf in the tensor (semantics compat)");
}

TEST_F(ExpressionCheck, MissingPreviousIsNotChecked) {
  const std::vector<Watchpoint> watches{watch(1, "max(abs(x - prev)) > 30", "op:MatMul")};
  const CheckResult result = check(session_, watches, {}).value();
  ASSERT_EQ(result.hits.size(), 1u);
  EXPECT_EQ(result.hits[0].details[0].second, "36");
  ASSERT_EQ(result.not_checked.size(), 1u);
  EXPECT_EQ(result.not_checked[0].tensor.step, 0);
  EXPECT_EQ(result.not_checked[0].reason, "no previous step");
  EXPECT_EQ(result.not_checked[0].error_code, static_cast<uint32_t>(kErrorNoPrevious));
}

TEST_F(ExpressionCheck, RecheckOfStatisticsReadsNothing) {
  ASSERT_TRUE(check(session_, std::vector<Watchpoint>{watch(1, "mean(abs(x)) > 5")}, {}).ok());
  const CheckResult again = check(session_, std::vector<Watchpoint>{watch(1, "mean(abs(x)) > 1 and min(x) < 0")}, {}).value();
  EXPECT_EQ(again.coverage.bytes, 0u);
  EXPECT_EQ(again.coverage.from_cache, 4u);
  EXPECT_EQ(again.hits.size(), 2u);
}

TEST_F(ExpressionCheck, StatisticsOfNoKnownTypeDecideNoExpression) {
  Stats row;
  row.known = kStatCount | kStatMin | kStatMax | kStatNan | kStatPosInf | kStatNegInf;
  row.count = 3;
  row.max = 7;
  const TensorId id = session_.id("Default/ReLU-op1", 2);
  for (const DType dtype : {DType::kFloat32, DType::kUnknown}) {
    row.dtype = dtype;
    session_.set_statistics_only(id, row, {3});
    const CheckResult result =
        check(session_, std::vector<Watchpoint>{watch(1, "max(x) > 6", "op:ReLU")}, {.steps = IntSet::of(2)}).value();
    const bool known = dtype == DType::kFloat32;
    ASSERT_EQ(result.hits.size() + result.not_checked.size(), 1u) << known;
    EXPECT_EQ(result.hits.size(), known ? 1u : 0u);
    EXPECT_EQ(known ? "" : result.not_checked[0].reason, known ? "" : "the statistics do not say of what type they are");
  }
}

TEST(ParseWhen, DistinguishesConditionsFromExpressions) {
  EXPECT_TRUE(std::holds_alternative<Condition>(parse_when("TL max_gt=3").value()));
  EXPECT_TRUE(std::holds_alternative<Condition>(parse_when(" tensor_overflow ").value()));
  EXPECT_TRUE(std::holds_alternative<Expression>(parse_when("max(x) > 3").value()));
  EXPECT_TRUE(std::holds_alternative<Expression>(parse_when("not all(isfinite(x))").value()));
  const Status wrong = parse_when("tensor_owerflow").status();
  EXPECT_NE(wrong.message().find("tensor_overflow"), std::string::npos) << wrong.message();
  const Status caret = parse_when("mena(x) > 3").status();
  EXPECT_NE(caret.message().find("mean"), std::string::npos) << caret.message();
}

}  // namespace
}  // namespace msdbg
