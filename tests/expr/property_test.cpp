// Random expressions on random tensors, on every target, compared with the plain interpreter.
#include <gtest/gtest.h>

#include <cmath>

#include "msdbg/sanitizers.h"
#include "expr/random_case.h"

namespace msdbg::test {
namespace {

/// Sanitizers search for other mistakes than wrong numbers, and take ten times as long.
#if defined(MSDBG_ASAN) || defined(MSDBG_TSAN)
constexpr int kShare = 5;
#else
constexpr int kShare = 1;
#endif

bool is_narrow(DType dtype) {
  return item_size(dtype) <= 2 || dtype == DType::kFloat32;
}

/// Restores the processor's best target at the end.
struct EveryTarget {
  ~EveryTarget() { EXPECT_TRUE(set_simd_target(simd_targets().back()).ok()); }
};

struct Tally {
  int compared = 0, open = 0;

  void check(double got, Number want, const std::string& what) {
    if (std::isinf(want.error)) {
      ++open;
      return;
    }
    ++compared;
    if (std::isnan(want.value)) {
      EXPECT_TRUE(std::isnan(got)) << what << ": " << got << " for NaN";
    } else if (got != want.value) {
      EXPECT_LE(std::fabs(got - want.value), want.error) << what << ": " << got << " for " << want.value;
    }
  }
};

/// Walks a tensor in blocks of `cut` elements, like a session.
void walk(const ExpressionSet& set, ExpressionRun& run, const RandomTensor& x, const RandomTensor* prev, size_t cut) {
  StatsRequest request = set.stats_request();
  request.ranges.insert(request.ranges.begin(), {-0.5, 0.5});  // belongs to another user
  StatsPass stats_pass(x.dtype, request);
  const auto each = [&](auto use) {
    for (uint64_t first = 0; first < x.count; first += cut) {
      const size_t n = static_cast<size_t>(std::min<uint64_t>(cut, x.count - first));
      use(x.data() + first * item_size(x.dtype), prev ? prev->data() + first * item_size(prev->dtype) : nullptr, n);
    }
  };
  each([&](const std::byte* block, const std::byte* before, size_t n) {
    stats_pass.update(block, n);
    if (run.wants_blocks()) run.update(block, before, n);
  });
  const Stats stats = stats_pass.finish();
  int passes = 1;
  while (run.end_pass(stats, request)) {
    ++passes;
    each([&](const std::byte* block, const std::byte* before, size_t n) { run.update(block, before, n); });
  }
  EXPECT_EQ(passes, std::max(1, set.passes()));
}

void run_scalars(uint64_t seed, int cases, int depth) {
  const EveryTarget restore;
  Tally tally;
  for (int i = 0; i < cases / kShare && !testing::Test::HasFailure(); ++i) {
    Random random(seed * 1000003 + static_cast<uint64_t>(i));
    const bool with_previous = random() % 3 == 0;
    const DType dtype = random_dtype(random), prev_dtype = random() % 4 == 0 ? random_dtype(random) : dtype;
    const uint64_t count = random_count(random);
    const RandomTensor x = random_tensor(random, dtype, count), prev = random_tensor(random, prev_dtype, count);

    const Grammar grammar{with_previous, depth};
    std::vector<FormulaPtr> formulas;
    std::vector<Expression> expressions;
    const unsigned how_many = 1 + random() % 4;
    for (unsigned k = 0; k < how_many; ++k) {
      formulas.push_back(random() % 3 == 0 ? random_condition(random, grammar) : random_scalar(random, grammar));
      Result<Expression> parsed = Expression::parse(formulas.back()->text(), ExpressionKind::kAny);
      ASSERT_TRUE(parsed.ok()) << parsed.status().message();
      expressions.push_back(*parsed);
    }
    const ExpressionSet set(expressions);
    const bool narrow = is_narrow(dtype) && (!set.needs_previous() || is_narrow(prev_dtype));
    const TensorView x_view = x.view(), prev_view = prev.view();
    Interpreter interpreter(x_view, &prev_view, 7, 1, narrow);
    std::vector<Number> wanted;
    for (const FormulaPtr& formula : formulas) wanted.push_back(interpreter.scalar(*formula));

    const size_t cut = random() % 2 == 0 ? StatsPass::kStatsBlock : 1 + random() % 3000;
    for (std::string_view target : simd_targets()) {
      ASSERT_TRUE(set_simd_target(target).ok());
      ExpressionRun run(set, {dtype, with_previous ? prev_dtype : DType::kUnknown, count, 7, 1});
      walk(set, run, x, with_previous ? &prev : nullptr, cut);
      for (size_t k = 0; k < formulas.size(); ++k) {
        const std::optional<ExpressionValue> value = run.value(k);
        ASSERT_TRUE(value.has_value());
        tally.check(value->number, wanted[k],
                    std::string(target) + " case " + std::to_string(i) + " " + std::string(dtype_name(dtype)) + "[" +
                        std::to_string(count) + "] prev " + std::string(dtype_name(prev_dtype)) + "\n" + formulas[k]->text());
      }
    }
  }
  // The test is useful only if the interpreter knows the answer.
  EXPECT_GT(tally.compared, 5 * tally.open);
  testing::Test::RecordProperty("compared", tally.compared);
  testing::Test::RecordProperty("open", tally.open);
}

TEST(Random, ShortExpressionsAgreeWithTheInterpreter) { run_scalars(1, 4000, 2); }
TEST(Random, ExpressionsAgreeWithTheInterpreter) { run_scalars(2, 3000, 4); }
TEST(Random, LongExpressionsAgreeWithTheInterpreter) { run_scalars(3, 600, 7); }

TEST(Random, ElementsAgreeWithTheInterpreter) {
  const EveryTarget restore;
  Tally tally;
  for (int i = 0; i < 2000 / kShare && !testing::Test::HasFailure(); ++i) {
    Random random(77000000 + static_cast<uint64_t>(i));
    const bool with_previous = random() % 3 == 0, truth = random() % 2 == 0;
    const DType dtype = random_dtype(random);
    const uint64_t count = random_count(random);
    const RandomTensor x = random_tensor(random, dtype, count), prev = random_tensor(random, dtype, count);
    const FormulaPtr formula = random_elements(random, {with_previous, 3}, truth);
    Result<Expression> expression = Expression::parse(formula->text(), ExpressionKind::kAny);
    ASSERT_TRUE(expression.ok()) << expression.status().message();
    const TensorView x_view = x.view(), prev_view = prev.view();
    Interpreter interpreter(x_view, &prev_view, 7, 1, is_narrow(dtype));
    std::vector<Number> wanted;
    for (uint64_t k = 0; k < count; ++k) wanted.push_back(interpreter.element(*formula, k));
    for (std::string_view target : simd_targets()) {
      ASSERT_TRUE(set_simd_target(target).ok());
      const std::string what =
          std::string(target) + " case " + std::to_string(i) + " " + std::string(dtype_name(dtype)) + "\n" + formula->text();
      const Result<std::vector<double>> values = evaluate_elements(*expression, x_view, &prev_view, {7, 1});
      ASSERT_TRUE(values.ok()) << values.status().message();
      for (uint64_t k = 0; k < count; ++k) tally.check((*values)[k], wanted[k], what);
      if (!truth) continue;
      const Result<std::vector<uint64_t>> places = where(*expression, x_view, count, &prev_view, {7, 1});
      ASSERT_TRUE(places.ok());
      std::vector<uint64_t> expected;
      for (uint64_t k = 0; k < count; ++k) {
        if ((*values)[k] != 0) expected.push_back(k);
      }
      EXPECT_EQ(*places, expected) << what;
    }
  }
  EXPECT_GT(tally.compared, 10 * tally.open);
}

}  // namespace
}  // namespace msdbg::test
