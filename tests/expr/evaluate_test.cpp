// The semantics of expressions: precedence, NaN and infinities, float arithmetic, empty tensors, previous values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "msdbg/expr.h"

namespace msdbg {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
struct Tensor {
  std::vector<T> values;
  Shape shape;
  DType dtype;

  Tensor(DType type, std::vector<T> content) : values(std::move(content)), shape{static_cast<int64_t>(values.size())}, dtype(type) {}
  TensorView view() const { return {dtype, shape, reinterpret_cast<const std::byte*>(values.data()), values.size()}; }
};
using Floats = Tensor<float>;
Floats floats(std::vector<float> values) { return Floats(DType::kFloat32, std::move(values)); }

double value(std::string_view text, const TensorView& x, const TensorView* prev = nullptr, ExpressionPlace place = {}) {
  Result<Expression> expression = Expression::parse(text, ExpressionKind::kAny);
  EXPECT_TRUE(expression.ok()) << expression.status().message();
  if (!expression.ok()) return kNan;
  Result<ExpressionValue> result = evaluate(*expression, x, prev, place);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? result->number : kNan;
}
double value(std::string_view text) { return value(text, floats({1, 2, 3}).view()); }

TEST(Evaluate, ExpGivesDenormalNumbers) {
  const Tensor<double> wide(DType::kFloat64, {-723, -744, -708.5, -800, -kInf, kNan, 1});
  const std::vector<double> found = *evaluate_elements(*Expression::parse("exp(x)", ExpressionKind::kAny), wide.view());
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(found[i] / std::exp(wide.values[i]), 1, 1e-8) << wide.values[i];
  EXPECT_EQ(found[3], 0);
  EXPECT_EQ(found[4], 0);
  EXPECT_TRUE(std::isnan(found[5]));
  EXPECT_NEAR(found[6], std::exp(1.0), 1e-14);
  const std::vector<double> narrow =
      *evaluate_elements(*Expression::parse("exp(x)", ExpressionKind::kAny), floats({-100, -103, -87.2F}).view());
  EXPECT_NEAR(narrow[0] / std::exp(-100.0), 1, 0.05);
  EXPECT_GT(narrow[1], 0);
  EXPECT_NEAR(narrow[2] / std::exp(-87.2), 1, 1e-5);
}

TEST(Evaluate, OperatorsBindAsWritten) {
  EXPECT_EQ(value("2 + 3 * 4"), 14);
  EXPECT_EQ(value("(2 + 3) * 4"), 20);
  EXPECT_EQ(value("2 - 3 - 4"), -5);
  EXPECT_EQ(value("24 / 4 / 2"), 3);
  EXPECT_EQ(value("2 ^ 3 ^ 2"), 512);
  EXPECT_EQ(value("-2 ^ 2"), -4);
  EXPECT_EQ(value("2 ^ -1"), 0.5);
  EXPECT_EQ(value("2 * -3"), -6);
  EXPECT_EQ(value("- -3"), 3);
  EXPECT_EQ(value("1 + 1 < 3 and not 1 > 2 or false"), 1);
  EXPECT_EQ(value("true or true and false"), 1);
  EXPECT_EQ(value("not true == false"), 1);
  EXPECT_EQ(value("max(1, 5, 3) - min(4, 2)"), 3);
  EXPECT_EQ(value("1e-3 * 1E+3 + .5"), 1.5);
  // The same with elements, which are not folded.
  EXPECT_EQ(value("sum(-x ^ 2)"), -14);
  EXPECT_EQ(value("sum(2 ^ x ^ 2)"), 2 + 16 + 512);
  EXPECT_EQ(value("sum(12 / x / 2)"), 6 + 3 + 2);
  EXPECT_EQ(value("sum(x - 1 - x)"), -3);
  EXPECT_EQ(value("count(not x > 2 and x > 1 or x == 3)"), 2);
  EXPECT_EQ(value("sum(x ^ 3) + sum(x ^ 4) + sum(x ^ 0)"), 36 + 98 + 3);
}

TEST(Evaluate, ReductionsOfPlainValues) {
  const Floats x = floats({-1, 2, 0, 4, -5, 0});
  EXPECT_EQ(value("sum(x)", x.view()), 0);
  EXPECT_EQ(value("mean(x)", x.view()), 0);
  EXPECT_EQ(value("min(x)", x.view()), -5);
  EXPECT_EQ(value("max(x)", x.view()), 4);
  EXPECT_EQ(value("norm1(x)", x.view()), 12);
  EXPECT_EQ(value("norm2(x)", x.view()), std::sqrt(46.0));
  EXPECT_EQ(value("norminf(x)", x.view()), 5);
  EXPECT_DOUBLE_EQ(value("std(x)", x.view()), std::sqrt(46.0 / 5));
  EXPECT_DOUBLE_EQ(value("std(x + 0)", x.view()), std::sqrt(46.0 / 5));
  EXPECT_EQ(value("count(x > 0)", x.view()), 2);
  EXPECT_EQ(value("percent(x == 0)", x.view()), 2 * 100.0 / 6);
  EXPECT_EQ(value("any(x > 4)", x.view()), 0);
  EXPECT_EQ(value("all(x > -6)", x.view()), 1);
  EXPECT_EQ(value("size", x.view()), 6);
  EXPECT_EQ(value("sum(sign(x)) + sum(floor(x / 2)) + sum(abs(x))", x.view()), -0.0 + (-1 + 1 + 0 + 2 - 3 + 0) + 12);
}

TEST(Evaluate, NanAndInfinitiesFollowTheRules) {
  const Floats nan = floats({1, NAN, 3}), up = floats({1, INFINITY, 3}), mixed = floats({-INFINITY, INFINITY, 3}),
               none = floats({NAN, NAN});
  // Each with the statistics, and with a separate pass.
  for (const char* x : {"x", "(x * 1)"}) {
    const auto of = [&](const char* name, const Floats& tensor) { return value(std::string(name) + "(" + x + ")", tensor.view()); };
    for (const char* name : {"sum", "mean", "std", "norm1", "norm2", "norminf"}) EXPECT_TRUE(std::isnan(of(name, nan))) << name << x;
    EXPECT_EQ(of("min", nan), 1);
    EXPECT_EQ(of("max", nan), 3);
    for (const char* name : {"sum", "mean", "norm1", "norm2", "norminf", "max"}) EXPECT_EQ(of(name, up), kInf) << name << x;
    EXPECT_TRUE(std::isnan(of("std", up)));
    EXPECT_EQ(of("min", up), 1);
    EXPECT_TRUE(std::isnan(of("sum", mixed)));
    EXPECT_TRUE(std::isnan(of("mean", mixed)));
    EXPECT_EQ(of("norm1", mixed), kInf);
    EXPECT_EQ(of("min", mixed), -kInf);
    EXPECT_TRUE(std::isnan(of("min", none)));
    EXPECT_TRUE(std::isnan(of("max", none)));
  }
  EXPECT_EQ(value("mean(finite(x))", nan.view()), 2);
  EXPECT_EQ(value("mean(finite(x) * 2)", nan.view()), 4);
  EXPECT_EQ(value("sum(finite(x))", mixed.view()), 3);
  EXPECT_EQ(value("percent(finite(x) > 1)", nan.view()), 50);
  EXPECT_EQ(value("percent(x > 1)", up.view()), 2 * 100.0 / 3);
  EXPECT_EQ(value("std(finite(x + 0))", up.view()), std::sqrt(2.0));
  EXPECT_TRUE(std::isnan(value("mean(finite(x))", none.view())));
  EXPECT_EQ(value("count(isnan(x)) + 10 * count(isinf(x)) + 100 * count(isfinite(x))", mixed.view()), 120);
  EXPECT_EQ(value("count(x != x)", nan.view()), 1);
  EXPECT_EQ(value("count(x == nan) + count(x < nan) + count(x > nan)", nan.view()), 0);
  EXPECT_EQ(value("count(x == inf) + count(x > 1e300)", up.view()), 2);
  EXPECT_TRUE(std::isnan(value("max(1, nan)")));
  EXPECT_EQ(value("count(isnan(max(x, 2))) + count(isnan(min(2, x)))", nan.view()), 2);
}

TEST(Evaluate, NothingHasNoMeanAndNoHits) {
  const Floats x = floats({});
  EXPECT_EQ(value("any(x > 0)", x.view()), 0);
  EXPECT_EQ(value("all(x > 0)", x.view()), 1);
  EXPECT_EQ(value("count(x > 0) + sum(x) + norm1(x) + norm2(x) + norminf(x) + sum(x * 2) + norm2(x * 2) + norminf(x * 2)", x.view()), 0);
  for (const char* text :
       {"percent(x > 0)", "percent(x * 2 > 0)", "mean(x)", "min(x)", "max(x)", "std(x)", "mean(x * 2)", "min(x * 2)", "std(x * 2)"}) {
    EXPECT_TRUE(std::isnan(value(text, x.view()))) << text;
  }
  EXPECT_EQ(value("percent(x > 0) > 5 or percent(x > 0) <= 5", x.view()), 0);
  EXPECT_EQ(value("std(x)", floats({7}).view()), 0);
  EXPECT_EQ(value("std(x * 2)", floats({7}).view()), 0);
}

TEST(Evaluate, ArithmeticIsThatOfTheType) {
  // 1 + 2^-24 is 1 in float.
  EXPECT_EQ(value("count(x + 2 ^ -24 == 1)", floats({1}).view()), 1);
  EXPECT_EQ(value("count(x + 2 ^ -24 == 1)", Tensor<double>(DType::kFloat64, {1}).view()), 0);
  EXPECT_EQ(value("count(x + 2 ^ -24 == 1)", Tensor<int32_t>(DType::kInt32, {1}).view()), 0);
  EXPECT_EQ(value("count(x + 2 ^ -24 == 1)", Tensor<int8_t>(DType::kInt8, {1}).view()), 1);
  EXPECT_EQ(value("count(isinf(x * 10))", floats({3e38f, 1}).view()), 1);
  // A half is widened to float and does not overflow at 65504.
  EXPECT_EQ(value("max(x * 2)", Tensor<uint16_t>(DType::kFloat16, {float_to_half(65504)}).view()), 131008);
  EXPECT_EQ(value("sum(x * 1)", Tensor<int64_t>(DType::kInt64, {int64_t{1} << 40, 1}).view()), 0x1p40 + 1);
  // Sums keep what floats cannot represent.
  EXPECT_EQ(value("sum(x * 1)", floats(std::vector<float>(5000, 16777215)).view()), 5000.0 * 16777215);
  // The squares of large doubles overflow.
  const Tensor<double> huge(DType::kFloat64, {3e200, 4e200});
  EXPECT_DOUBLE_EQ(value("norm2(x)", huge.view()), 5e200);
  EXPECT_DOUBLE_EQ(value("norm2(x * 1)", huge.view()), 5e200);
  EXPECT_DOUBLE_EQ(value("std(x * 1)", huge.view()), std::sqrt(0.5) * 1e200);
  const Tensor<double> tiny(DType::kFloat64, {3e-200, 4e-200});
  EXPECT_DOUBLE_EQ(value("norm2(x * 1)", tiny.view()), 5e-200);
}

TEST(Evaluate, ComparisonsWithSingleValuesAreExact) {
  // 0.1f is slightly above 0.1, however it is compared.
  const Floats x = floats({0.1f});
  for (const char* text : {"any(x > 0.1)", "max(x) > 0.1", "any(x + 0 > 0.1)", "any(0.1 < abs(x))", "count(x >= 0.1) == 1",
                           "not any(x == 0.1)", "all(x != 0.1)", "not any(x + 0 <= 0.1)", "not any(-x >= -0.1)", "all(x == max(x))",
                           "all(x + 0 == max(x))", "any(x < 1e300)", "not any(x + 0 > 1e300)"}) {
    EXPECT_EQ(value(text, x.view()), 1) << text;
  }
  EXPECT_EQ(value("all(x > 0.1) and all(x + 0 > 1e300)", floats({INFINITY}).view()), 1);
}

TEST(Evaluate, EqualValuesHaveNoDeviation) {
  for (size_t n : {2u, 100u, 2048u, 5000u}) {
    EXPECT_EQ(value("std(x * 1)", floats(std::vector<float>(n, 0.1f)).view()), 0);
    EXPECT_EQ(value("std(x * 1)", Tensor<double>(DType::kFloat64, std::vector<double>(n, 0.1)).view()), 0);
    EXPECT_EQ(value("sum(x) == size", floats(std::vector<float>(n, 1)).view()), 1);
  }
  std::vector<float> last(5000, 0.1f);
  last.back() = 0.2f;
  EXPECT_GT(value("std(x * 1)", floats(last).view()), 0);
}

TEST(Evaluate, PreviousValues) {
  const Floats x = floats({1, 2, 3}), prev = floats({1, 1, 5}), other = floats({1});
  const TensorView previous = prev.view(), shorter = other.view();
  EXPECT_EQ(value("sum(x - prev)", x.view(), &previous), -1);
  EXPECT_EQ(value("mean(abs(prev)) > mean(abs(x))", x.view(), &previous), 1);
  EXPECT_EQ(value("count(x == prev)", x.view(), &previous), 1);
  const Tensor<int64_t> wide(DType::kInt64, {1, 1, int64_t{1} << 53});
  const TensorView wide_view = wide.view();
  EXPECT_EQ(value("max(prev - x)", x.view(), &wide_view), 0x1p53 - 3);

  const Expression expression = *Expression::parse("any(x != prev)");
  const Result<ExpressionValue> missing = evaluate(expression, x.view());
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_EQ(missing.status().message(), "no previous step");
  EXPECT_EQ(evaluate(expression, x.view(), &shorter).status().message(), "the previous value has 1 elements, this one 3");
}

TEST(Evaluate, ExpressionsWithoutThePreviousValueDoNotWaitForIt) {
  const Floats x = floats({1, 2, 3});
  const Expression parts[] = {*Expression::parse("any(x != prev)"), *Expression::parse("sum(x * 2) > 11")};
  const ExpressionSet set(parts);
  EXPECT_TRUE(set.needs_previous());
  ExpressionRun run(set, {DType::kFloat32, DType::kUnknown, 3});
  StatsPass stats(DType::kFloat32, set.stats_request());
  run.update(x.view().data, nullptr, 3);
  EXPECT_FALSE(run.end_pass(stats.finish(), set.stats_request()));
  EXPECT_FALSE(run.value(0).has_value());
  ASSERT_TRUE(run.value(1).has_value());
  EXPECT_TRUE(run.value(1)->truth());
}

TEST(Evaluate, ScalarNames) {
  const Floats x = floats({1});
  EXPECT_EQ(value("step * 10 + rank", x.view(), nullptr, {3, 2}), 32);
  EXPECT_TRUE(std::isnan(value("step", x.view())));
  EXPECT_EQ(value("dtype_max", x.view()), dtype_max(DType::kFloat32));
  EXPECT_EQ(value("dtype_eps", x.view()), 0x1p-23);
  EXPECT_EQ(value("dtype_min_normal", x.view()), 0x1p-126);
  EXPECT_EQ(value("any(x == dtype_max)", Tensor<uint16_t>(DType::kFloat16, {float_to_half(65504)}).view()), 1);
}

TEST(Evaluate, ComparisonsReportWhatTheyMeasured) {
  const Floats x = floats({1, 2, 3});
  const auto measured = [&](const char* text) { return *evaluate(*Expression::parse(text, ExpressionKind::kAny), x.view()); };
  ExpressionValue result = measured("mean(abs(x)) > 10");
  EXPECT_FALSE(result.truth());
  EXPECT_EQ(result.actual, 2);
  EXPECT_EQ(result.threshold, 10);
  result = measured("1 <= max(x)");
  EXPECT_TRUE(result.truth());
  EXPECT_EQ(result.actual, 3);
  EXPECT_EQ(result.threshold, 1);
  result = measured("max(x) > 2 * min(x)");
  EXPECT_EQ(result.actual, 3);
  EXPECT_EQ(result.threshold, 2);
  EXPECT_FALSE(measured("any(x > 1)").actual.has_value());
  EXPECT_FALSE(measured("sum(x)").is_truth);
}

TEST(Evaluate, WhereListsTheFirstPlaces) {
  std::vector<float> values(70000, 1);
  values[3] = values[4095] = values[65536] = values[69999] = 9;
  const Floats x = floats(values);
  const Expression expression = *Expression::parse("x > mean(x)", ExpressionKind::kElementTruth);
  EXPECT_EQ(*where(expression, x.view(), 10), (std::vector<uint64_t>{3, 4095, 65536, 69999}));
  EXPECT_EQ(*where(expression, x.view(), 2), (std::vector<uint64_t>{3, 4095}));
  EXPECT_TRUE(where(expression, x.view(), 0)->empty());
  EXPECT_FALSE(where(*Expression::parse("any(x > 1)"), x.view(), 1).ok());
}

TEST(Evaluate, ElementsComeAsDoubles) {
  const Tensor<int8_t> x(DType::kInt8, {-2, 0, 4});
  EXPECT_EQ(*evaluate_elements(*Expression::parse("x / max(x)", ExpressionKind::kAny), x.view()), (std::vector<double>{-0.5, 0, 1}));
  EXPECT_EQ(*evaluate_elements(*Expression::parse("x > 0", ExpressionKind::kAny), x.view()), (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(*evaluate_elements(*Expression::parse("x", ExpressionKind::kAny), x.view()), (std::vector<double>{-2, 0, 4}));
  EXPECT_FALSE(evaluate_elements(*Expression::parse("max(x)", ExpressionKind::kAny), x.view()).ok());
  const Shape shape = {int64_t{1} << 25};
  const TensorView large{DType::kInt8, shape, x.view().data, uint64_t{1} << 25};
  EXPECT_EQ(evaluate_elements(*Expression::parse("x", ExpressionKind::kAny), large).status().code(), Code::kOutOfMemory);
}

TEST(Evaluate, TypesWithoutElementsAreRefused) {
  const Shape shape = {1};
  const std::byte bytes[16] = {};
  const Result<ExpressionValue> result = evaluate(*Expression::parse("any(x > 1)"), TensorView{DType::kComplex64, shape, bytes, 1});
  EXPECT_EQ(result.status().code(), Code::kUnsupported);
  EXPECT_EQ(result.status().message(), "no expression is defined for complex64");
}

TEST(Evaluate, ARunOverTypesWithoutElementsIsAnInternalError) {
  const std::vector<Expression> expressions = {*Expression::parse("any(x - prev > 1)")};
  const ExpressionSet set(expressions);
  for (size_t i = 0; i <= kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (is_evaluable(dtype)) continue;
    EXPECT_THROW(ExpressionRun(set, {dtype, DType::kFloat32, 1}), InternalError) << i;
    if (dtype != DType::kUnknown) {
      EXPECT_THROW(ExpressionRun(set, {DType::kFloat32, dtype, 1}), InternalError) << i;
    }
  }
}

TEST(Evaluate, NoElementsGiveTheEmptyAnswer) {
  const std::vector<Expression> expressions = {*Expression::parse("any(x * prev > 1)"), *Expression::parse("sum(x * x) == 0")};
  const ExpressionSet set(expressions);
  ExpressionRun run(set, {DType::kFloat16, DType::kFloat64, 0});
  run.update(nullptr, nullptr, 0);
  StatsPass stats(DType::kFloat16, set.stats_request());
  stats.update(nullptr, 0);
  while (run.end_pass(stats.finish(), set.stats_request())) run.update(nullptr, nullptr, 0);
  EXPECT_FALSE(run.value(0)->truth());
  EXPECT_TRUE(run.value(1)->truth());
}

// Unaligned values, with previous values of a type with other lanes.
TEST(Evaluate, AlignmentAndTypeOfThePreviousDoNotMatter) {
  std::vector<std::byte> room(8 * 100 + 8), before(8 * 100 + 8);
  const Shape shape = {100};
  for (size_t shift : {0, 1, 3, 4}) {
    for (int i = 0; i < 100; ++i) {
      const auto x = static_cast<float>(i);
      const double p = i % 2 == 0 ? x : x + 1;
      std::memcpy(room.data() + shift + 4 * static_cast<size_t>(i), &x, sizeof x);
      std::memcpy(before.data() + shift + 8 * static_cast<size_t>(i), &p, sizeof p);
    }
    const TensorView view{DType::kFloat32, shape, room.data() + shift, 100}, previous{DType::kFloat64, shape, before.data() + shift, 100};
    EXPECT_EQ(evaluate(*Expression::parse("sum(prev - x)", ExpressionKind::kAny), view, &previous)->number, 50) << shift;
    EXPECT_EQ(evaluate(*Expression::parse("count(x != prev)", ExpressionKind::kAny), view, &previous)->number, 50) << shift;
  }
}

TEST(Evaluate, TheInterruptEndsIt) {
  const Floats x = floats({1, 2, 3});
  request_interrupt();
  const Result<ExpressionValue> result = evaluate(*Expression::parse("any(x * 2 > 1)"), x.view());
  clear_interrupt();
  EXPECT_EQ(result.status().code(), Code::kInterrupted);
}

}  // namespace
}  // namespace msdbg
