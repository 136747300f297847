// Bisect, trend, propagation and why on sessions in memory.
#include "msdbg/follow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

GraphPtr one_weight() { return fake_graph({{"w", "Parameter"}, {"Default/MatMul-op0", "MatMul", {"w"}}}); }

/// `steps` steps in which `w` turns NaN at `bad`; every `missing`th step lacks it.
void fill(FakeSession& session, int64_t steps, int64_t bad, int64_t missing = 0) {
  for (int64_t step = 0; step < steps; ++step) {
    session.put("Default/MatMul-op0", step, f32({1, 2}));
    if (missing > 0 && step % missing == 0) continue;
    session.put("w", step, f32({step >= bad ? std::nan("") : 1.0, 2.0}));
  }
}

BisectRank first_bad(FakeSession& session, const std::string& when = "nan or inf") {
  const Result<FollowTarget> target = follow_target(session, "w");
  EXPECT_TRUE(target.ok()) << target.status().message();
  const Result<BisectResult> found = bisect(session, *target, parse_predicate(when).value());
  EXPECT_TRUE(found.ok()) << found.status().message();
  return found && !found->ranks.empty() ? found->ranks.front() : BisectRank();
}

TEST(Bisect, AThousandStepsTakeElevenReadsAtMostWhereverTheAnswerLies) {
  for (int64_t bad : {0, 1, 2, 3, 250, 498, 499, 500, 501, 502, 750, 997, 998, 999, 1000}) {
    FakeSession session(one_weight());
    fill(session, 1000, bad);
    session.reset_counters();
    const BisectRank found = first_bad(session);
    EXPECT_LE(session.reads(), 11u) << bad;
    EXPECT_EQ(found.reads, session.reads()) << bad;
    if (bad == 1000) {
      EXPECT_FALSE(found.first.has_value());
    } else {
      EXPECT_EQ(found.first, bad);
      EXPECT_EQ(found.last_before, bad > 0 ? std::optional<int64_t>(bad - 1) : std::nullopt);
    }
    EXPECT_TRUE(found.monotone);
  }
}

TEST(Bisect, StepsWithoutTheTensorAreReplacedByTheNearest) {
  for (int64_t bad = 1; bad < 40; ++bad) {
    FakeSession session(one_weight());
    fill(session, 40, bad, 2);  // even steps lack it
    const int64_t first = bad % 2 == 1 ? bad : bad + 1;
    const BisectRank found = first_bad(session);
    if (first >= 40) {
      EXPECT_FALSE(found.first.has_value()) << bad;
    } else {
      EXPECT_EQ(found.first, first) << bad;
    }
    EXPECT_LE(session.reads(), 7u);
  }
}

TEST(Bisect, AStepBetweenThatNobodyCanJudgeIsNamed) {
  FakeSession session(one_weight());
  fill(session, 9, 5);
  session.erase(session.id("w", 5));
  session.erase(session.id("w", 4));
  const BisectRank found = first_bad(session);
  EXPECT_EQ(found.first, 6);
  EXPECT_EQ(found.last_before, 3);
  EXPECT_EQ((std::set<int64_t>(found.skipped.begin(), found.skipped.end())), (std::set<int64_t>{4, 5}));
}

TEST(Bisect, ASpikeThatPassesIsNotMonotone) {
  FakeSession session(one_weight());
  for (int64_t step = 0; step < 8; ++step) session.put("w", step, f32({step == 4 ? 100.0 : 1.0}));
  const BisectRank found = first_bad(session, "max(x) > 50");
  EXPECT_EQ(found.first, 4);
  EXPECT_FALSE(found.monotone);
  EXPECT_EQ(found.counterexample, 5);
}

/// `w` is good up to step 5 and all NaN from step 6 on.
void fill_with_nan(FakeSession& session) {
  for (int64_t step = 0; step < 10; ++step) session.put("w", step, step < 6 ? f32({1, 2}) : f32({std::nan(""), std::nan("")}));
}

TEST(Bisect, AnExpressionThatIsUndefinedIsNeitherYesNorNo) {
  FakeSession session(one_weight());
  fill_with_nan(session);
  const BisectRank found = first_bad(session, "max(abs(x)) > 100");
  EXPECT_FALSE(found.first);
  EXPECT_EQ(found.last_before, 5);
  EXPECT_FALSE(found.skipped.empty());
  for (const BisectProbe& probe : found.probes) {
    EXPECT_EQ(probe.state, probe.step < 6 ? InputState::kGood : InputState::kUnknown) << probe.step;
    EXPECT_EQ(probe.reason, probe.step < 6 ? "" : "NaN in the tensor");
  }
  // A test for NaN has an answer.
  EXPECT_EQ(first_bad(session, "count(isnan(x)) > 1").first, 6);
  const BisectRank never = first_bad(session, "count(isnan(x)) > 2");
  EXPECT_TRUE(never.skipped.empty());
  EXPECT_FALSE(never.first);
}

TEST(Bisect, AMeanWithOneNanIsUndefinedToo) {
  FakeSession session(one_weight());
  fill(session, 4, 2);
  const BisectRank found = first_bad(session, "mean(abs(x)) > 10");
  EXPECT_FALSE(found.first);
  EXPECT_EQ(found.skipped.size(), 2u);
  EXPECT_TRUE(first_bad(session, "mean(finite(abs(x))) > 10").skipped.empty());
}

TEST(Bisect, AConditionInThePlaceOfTheTensorIsExplained) {
  FakeSession session(one_weight());
  fill(session, 2, 1);
  for (const char* word : {"TO", "nan or inf", "TL abs_mean_gt=1", "max(abs(x)) > 3"}) {
    const auto target = follow_target(session, word);
    ASSERT_FALSE(target.ok()) << word;
    EXPECT_NE(target.status().message().find("a tensor or a selector is expected"), std::string::npos) << target.status().message();
  }
  EXPECT_EQ(follow_target(session, "nowhere-op0").status().message().find("expected"), std::string::npos);
}

TEST(Bisect, ACancelledSearchEndsAtOnce) {
  FakeSession session(one_weight());
  fill(session, 100, 50);
  FollowOptions options;
  int asked = 0;
  options.cancelled = [&] { return ++asked == 2; };
  const auto found = bisect(session, *follow_target(session, "w"), parse_predicate("nan").value(), options);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->interrupted);
  EXPECT_EQ(asked, 2);
}

TEST(Bisect, ATargetThatWasNeverDumpedIsAnError) {
  FakeSession session(one_weight());
  session.put("Default/MatMul-op0", 0, f32({1}));
  const Result<FollowTarget> target = follow_target(session, "w");
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(bisect(session, *target, parse_predicate("nan").value()).status().code(), Code::kNotFound);
  EXPECT_EQ(follow_target(session, "nosuchnode").status().code(), Code::kNotFound);
}

TEST(Bisect, AFunctionMayBeThePredicate) {
  FakeSession session(one_weight());
  for (int64_t step = 0; step < 16; ++step) session.put("w", step, f32({static_cast<double>(step)}));
  Predicate predicate;
  int calls = 0;
  predicate.when = Predicate::Function([&](const CheckedTensor& tensor) -> std::optional<bool> {
    ++calls;
    return tensor.stats->max >= 11;
  });
  const Result<BisectResult> found = bisect(session, follow_target(session, "w").value(), predicate);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->ranks.front().first, 11);
  EXPECT_LE(calls, 6);
}

// ---- trend -----------------------------------------------------------------------------------------------------------------

TEST(Trend, EveryStatisticHasItsValue) {
  FakeSession session(one_weight());
  session.put("w", 3, f32({-2, 0, 4, INFINITY, -INFINITY, std::nan("")}));
  const FollowTarget target = follow_target(session, "w").value();
  const std::vector<std::pair<std::string, double>> expected = {{"count", 6},
                                                                {"min", -2},
                                                                {"max", 4},
                                                                {"mean", 2.0 / 3},
                                                                {"abs_mean", 2},
                                                                {"std", std::sqrt(28.0 / 3)},
                                                                {"l2_norm", std::sqrt(20.0)},
                                                                {"nan_count", 1},
                                                                {"pos_inf_count", 1},
                                                                {"neg_inf_count", 1},
                                                                {"zero_count", 1},
                                                                {"pos_count", 1},
                                                                {"neg_count", 1},
                                                                {"zero_percentage", 100.0 / 6},
                                                                {"first_bad", 3},
                                                                {"dtype_max_count", 0}};
  EXPECT_EQ(expected.size(), statistic_names().size());
  for (const auto& [name, value] : expected) {
    const Result<TrendResult> result = trend(session, target, name);
    ASSERT_TRUE(result.ok()) << name << ": " << result.status().message();
    ASSERT_EQ(result->lines.size(), 1u);
    ASSERT_TRUE(result->lines[0].first.has_value()) << name;
    EXPECT_NEAR(*result->lines[0].first, value, 1e-6) << name;
  }
  EXPECT_NE(trend(session, target, "abs_men").status().message().find("abs_mean"), std::string::npos);
}

TEST(Trend, AStepWithoutAFiniteElementEndsTheLine) {
  FakeSession session(one_weight());
  fill(session, 4, 2);
  session.put("w", 3, f32({std::nan(""), std::nan("")}));
  const Result<TrendResult> result = trend(session, follow_target(session, "w").value(), "max");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->lines[0].ends, 3);
  EXPECT_EQ(result->lines[0].points[3].reason, "every element is NaN");
  EXPECT_EQ(trend(session, follow_target(session, "w").value(), "l2_norm")->lines[0].ends, 3);
}

std::vector<std::pair<int64_t, double>> series(int64_t n, double (*value)(int64_t)) {
  std::vector<std::pair<int64_t, double>> out;
  for (int64_t i = 0; i < n; ++i) out.emplace_back(i, value(i));
  return out;
}
double noise(int64_t i) { return std::sin(static_cast<double>(i * i) * 12.9898) * 0.1; }

TEST(ChangePoint, AJumpAKinkAndAnExplosionAreFoundWhereTheyAre) {
  const auto jump = change_point(series(40, [](int64_t i) { return (i >= 25 ? 3.0 : 1.0) + noise(i); }));
  ASSERT_TRUE(jump.has_value());
  EXPECT_EQ(jump->step, 25);
  EXPECT_FALSE(jump->log_scale);
  const auto kink = change_point(series(40, [](int64_t i) { return (i >= 20 ? static_cast<double>(i - 20) : 0.0) + noise(i); }));
  ASSERT_TRUE(kink.has_value());
  EXPECT_NEAR(static_cast<double>(kink->step), 20, 2);
  const auto explosion =
      change_point(series(30, [](int64_t i) { return (i >= 18 ? std::pow(10.0, static_cast<double>(i - 17)) : 1.0) * (1 + noise(i)); }));
  ASSERT_TRUE(explosion.has_value());
  EXPECT_TRUE(explosion->log_scale);
  EXPECT_NEAR(static_cast<double>(explosion->step), 18, 1);
}

TEST(ChangePoint, NoiseRampsConstantsAndShortSeriesHaveNone) {
  EXPECT_FALSE(change_point(series(60, noise)).has_value());
  EXPECT_FALSE(change_point(series(60, [](int64_t i) { return 0.5 * static_cast<double>(i) + noise(i); })).has_value());
  EXPECT_FALSE(change_point(series(60, [](int64_t) { return 7.25; })).has_value());
  EXPECT_FALSE(change_point(series(60, [](int64_t i) { return static_cast<double>(i) * 1e300; })).has_value());
  EXPECT_FALSE(change_point(series(5, [](int64_t i) { return i < 3 ? 0.0 : 100.0; })).has_value());
}

// ---- propagation -------------------------------------------------------------------------------------------------------------

GraphPtr forked() {
  return fake_graph({{"x", "Parameter"},
                     {"Default/Log-op0", "Log", {"x"}},
                     {"Default/Mul-op0", "Mul", {"Default/Log-op0"}},
                     {"Default/ReLU-op0", "ReLU", {"Default/Log-op0"}},
                     {"Default/Add-op0", "Add", {"Default/ReLU-op0"}},
                     {"Default/Neg-op0", "Neg", {"x"}}});
}

std::map<std::string, PropagationRole> roles(const Session& session, const Propagation& cone) {
  std::map<std::string, PropagationRole> out;
  for (const PropagationNode& node : cone.nodes) out[session.graph(0, 0)->node(node.node).name] = node.role;
  return out;
}

TEST(Propagation, ReportsWhichNodesPassOnAbsorbOrStayClean) {
  FakeSession session(forked());
  const double inf = INFINITY;
  session.put("x", 0, f32({0, 1}));
  const TensorId log = session.put("Default/Log-op0", 0, f32({-inf, 0}));
  const TensorId mul = session.put("Default/Mul-op0", 0, f32({-inf, 0}));
  session.put("Default/ReLU-op0", 0, f32({0, 0}));
  session.put("Default/Add-op0", 0, f32({1, 1}));
  session.put("Default/Neg-op0", 0, f32({0, -1}));
  PropagationOptions options;
  const Result<Propagation> down = propagation(session, log, options);
  ASSERT_TRUE(down.ok()) << down.status().message();
  const std::map<std::string, PropagationRole> expected = {{"Default/Log-op0", PropagationRole::kOrigin},
                                                           {"Default/Mul-op0", PropagationRole::kPassed},
                                                           {"Default/ReLU-op0", PropagationRole::kAbsorbed},
                                                           {"Default/Add-op0", PropagationRole::kClean}};
  EXPECT_EQ(roles(session, *down), expected);
  EXPECT_EQ(down->bad_in_step, 2u);
  EXPECT_EQ(down->bad_elsewhere, 0u);

  options.up = true;
  const Result<Propagation> up = propagation(session, mul, options);
  ASSERT_TRUE(up.ok());
  EXPECT_EQ(roles(session, *up)["Default/Log-op0"], PropagationRole::kOrigin);
  EXPECT_EQ(roles(session, *up)["Default/Mul-op0"], PropagationRole::kPassed);
  EXPECT_FALSE(roles(session, *up).contains("Default/ReLU-op0"));
}

TEST(Propagation, WithoutAGraphFileNoNodeAbsorbsIt) {
  GraphBuilder builder(0, 0);
  builder.set_from_file(false);
  for (const char* name : {"Default/Log-op0", "Default/ReLU-op0"}) {
    Node node;
    node.name = name;
    node.op = name == std::string("Default/Log-op0") ? "Log" : "ReLU";
    node.outputs = std::vector<OutputType>(1);
    builder.add(std::move(node));
  }
  FakeSession session(builder.build());
  session.put("Default/Log-op0", 0, f32({-INFINITY, 1}));
  session.put("Default/ReLU-op0", 0, f32({0, 1}));
  PropagationOptions options;
  options.predicate = parse_predicate("nan or inf").value();
  const auto found = propagation(session, resolve_tensor(session, "Log-op0", 0).value(), options);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_TRUE(found->holds);
  EXPECT_FALSE(found->edges_known);
  for (const PropagationNode& node : found->nodes) EXPECT_NE(node.role, PropagationRole::kAbsorbed);
}

TEST(Propagation, AnInputThatNobodyMadeIsFollowedThroughItsOperator) {
  // The graph does not contain the source of MatMul's input, but its value was recorded.
  FakeSession session(fake_graph({{"Default/MatMul-op0", "MatMul", {"data"}},
                                  {"Default/Add-op0", "Add", {"Default/MatMul-op0"}},
                                  {"Default/ReLU-op0", "ReLU", {"Default/Add-op0"}}}));
  const TensorId input = session.put("Default/MatMul-op0", 0, f32({NAN}), {Io::kInput, 0});
  for (const char* name : {"Default/MatMul-op0", "Default/Add-op0", "Default/ReLU-op0"}) session.put(name, 0, f32({NAN}));
  const Result<Propagation> down = propagation(session, input, {});
  ASSERT_TRUE(down.ok()) << down.status().message();
  const std::map<std::string, PropagationRole> expected = {
      {"Default/MatMul-op0", PropagationRole::kPassed},
      {"Default/Add-op0", PropagationRole::kPassed},
      {"Default/ReLU-op0", PropagationRole::kPassed}};
  EXPECT_EQ(roles(session, *down), expected);
}

/// w is read by MatMul and updated by ApplyMomentum; Print reads it after that.
GraphPtr updated() {
  return fake_graph({{"w", "Parameter"},
                     {"rate", "Parameter"},
                     {"Default/MatMul-op0", "MatMul", {"w"}},
                     {"Gradients/Mul-op0", "Mul", {"Default/MatMul-op0"}},
                     {"Default/optimizer-M/ApplyGradientDescent-op0", "ApplyGradientDescent", {"w", "rate", "Gradients/Mul-op0"}},
                     {"Default/Print-op0", "Abs", {"w"}}});
}

TEST(Propagation, AParameterThatWasBrokenBeforeHasTheValueWithWhichTheStepBegan) {
  FakeSession session(updated());
  session.put("w", 0, f32({NAN, 1, 2}));
  for (const char* name : {"w", "Default/MatMul-op0", "Gradients/Mul-op0", "Default/optimizer-M/ApplyGradientDescent-op0"})
    session.put(name, 1, f32({NAN, NAN, NAN}));
  session.put("rate", 1, f32({1}));
  for (const bool up : {false, true}) {
    PropagationOptions options;
    options.up = up;
    const Result<Propagation> cone = propagation(session, resolve_tensor(session, "w", 1).value(), options);
    ASSERT_TRUE(cone.ok()) << cone.status().message();
    EXPECT_EQ(cone->moment, ParameterMoment::kStart);
    EXPECT_EQ(cone->stats->nan_count, 1u);
    EXPECT_EQ(cone->nodes.at(0).stats->nan_count, 1u);
    EXPECT_EQ(roles(session, *cone).contains("Default/MatMul-op0"), !up);
  }
}

TEST(Propagation, AParameterThatTheStepBrokeReachesOnlyWhatReadsItAfterwards) {
  FakeSession session(updated());
  session.put("w", 0, f32({1, 1, 2}));
  session.put("w", 1, f32({NAN, 1, 2}));
  session.put("rate", 1, f32({1}));
  session.put("Default/MatMul-op0", 1, f32({NAN}));  // of its own data
  session.put("Gradients/Mul-op0", 1, f32({NAN}));
  session.put("Default/optimizer-M/ApplyGradientDescent-op0", 1, f32({NAN, 1, 2}));
  session.put("Default/Print-op0", 1, f32({NAN, 1, 2}));
  const Result<Propagation> cone = propagation(session, resolve_tensor(session, "w", 1).value(), {});
  ASSERT_TRUE(cone.ok()) << cone.status().message();
  EXPECT_EQ(cone->moment, ParameterMoment::kEnd);
  EXPECT_TRUE(cone->broke_at_end);
  const std::map<std::string, PropagationRole> expected = {{"w", PropagationRole::kOrigin}, {"Default/Print-op0", PropagationRole::kPassed}};
  EXPECT_EQ(roles(session, *cone), expected);
}

TEST(Propagation, ASoundTensorSpreadsNothing) {
  FakeSession session(forked());
  const TensorId log = session.put("Default/Log-op0", 0, f32({1, 0}));
  const Result<Propagation> cone = propagation(session, log, {});
  ASSERT_TRUE(cone.ok());
  EXPECT_FALSE(cone->holds);
  EXPECT_TRUE(cone->nodes.empty());
}

// ---- why -------------------------------------------------------------------------------------------------------------------------

TEST(Why, TheStepTheSlotAndTheNodeAreDistinguished) {
  FakeSession session(forked());
  session.put("Default/Log-op0", 0, f32({1}));
  session.put("Default/Log-op0", 1, f32({1}));
  session.put("Default/Neg-op0", 1, f32({1}));
  WhyOptions options;
  EXPECT_EQ(why(session, "Log-op0", options)->kind, WhyKind::kHasValue);
  EXPECT_EQ(why(session, "Log-op0:7", options)->kind, WhyKind::kNoSuchSlot);
  options.step = 0;
  EXPECT_EQ(why(session, "Neg-op0", options)->kind, WhyKind::kNotExecuted);
  options.step = 5;
  EXPECT_EQ(why(session, "Log-op0", options)->kind, WhyKind::kNoSuchStep);
  const Result<WhyAnswer> gone = why(session, "Default/Lgo-op0", {});
  ASSERT_TRUE(gone.ok());
  EXPECT_EQ(gone->kind, WhyKind::kNeverExisted);
  ASSERT_FALSE(gone->instead.empty());
  EXPECT_EQ(gone->instead[0], "Default/Log-op0");
}

TEST(Why, DamageAndLimitsAreNamed) {
  FakeSession session(forked());
  const TensorId log = session.put("Default/Log-op0", 0, f32({1, 2, 3, 4}));
  WhyOptions options;
  options.mem_limit_bytes = 8;
  EXPECT_EQ(why(session, "Log-op0", options)->kind, WhyKind::kOverLimit);
  session.set_problem(log, Status(Code::kCorrupt, "header cut short"));
  const Result<WhyAnswer> damaged = why(session, "Log-op0", {});
  EXPECT_EQ(damaged->kind, WhyKind::kUnreadable);
  EXPECT_NE(damaged->answer.find("header cut short"), std::string::npos);
}

TEST(Why, AFusedOperatorIsFoundByTheParametersItReads) {
  FakeSession session(fake_graph({{"fc1.weight", "Parameter"},
                                  {"fc2.weight", "Parameter"},
                                  {"Default/net/relu3-ReLU/MatMulReluFusion-op4", "MatMulReluFusion", {"fc1.weight"}},
                                  {"Default/net/relu4-ReLU/MatMulReluFusion-op5", "MatMulReluFusion", {"fc2.weight"}}}));
  session.put("Default/net/relu3-ReLU/MatMulReluFusion-op4", 0, f32({1}));
  const Result<WhyAnswer> second = why(session, "Default/net/fc2-Dense/MatMul-op1", {});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->kind, WhyKind::kFused);
  EXPECT_EQ(second->instead, std::vector<std::string>{"Default/net/relu4-ReLU/MatMulReluFusion-op5"});
  const Result<WhyAnswer> relu = why(session, "Default/net/relu3-ReLU/ReLU-op0", {});
  EXPECT_EQ(relu->instead, std::vector<std::string>{"Default/net/relu3-ReLU/MatMulReluFusion-op4"});
}

}  // namespace
}  // namespace msdbg
