// Weights and optimizers as origins: what was bad before the step, and what the step or an earlier one did.
#include "analysis/origin_support.h"

namespace msdbg {
namespace {

TEST(Origin, WeightThatTheStepItselfBrokeWasNotBadBefore) {
  FakeSession s(fake_graph({{"x", "Parameter"},
                            {"fc.weight", "Parameter"},
                            {"Default/mm-op0", "mm", {"x", "fc.weight"}},
                            {"Gradients/log-op0", "log", {"Default/mm-op0"}},
                            {"Default/mul_-op0", "mul_", {"fc.weight"}, 1, {}, {{"updates", "0"}}},
                            {"Default/add_-op0", "add_", {"Default/mul_-op0", "Gradients/log-op0"}, 1, {}, {{"updates", "0"}}}}));
  s.put("x", 3, f32({1}));
  s.put("fc.weight", 3, f32({NAN}));
  s.put("Default/mm-op0", 3, f32({0}));
  s.put("Gradients/log-op0", 3, f32({-kInf}));
  s.put("Default/mul_-op0", 3, f32({1}));
  s.put("Default/add_-op0", 3, f32({NAN}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(names(s, result.steps[0]), Names{"Gradients/log-op0:output:0"});
}

TEST(Origin, ParameterThatWasBadWhenTheStepBegan) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  put_healthy(s, 1);
  for (const char* name : {"fc.weight", "moments.fc.weight", "Default/optimizer-M/ApplyMomentum-op0"}) {
    s.put(name, 0, f32({NAN}));
    s.put(name, 1, f32({NAN}));
  }
  s.put("Default/MatMul-op0", 1, f32({NAN}));
  s.put("Gradients/Mul-op0", 1, f32({NAN}));
  OriginOptions only_second;
  only_second.steps = IntSet::of(1);
  const OriginResult result = search(s, "nan", only_second);
  ASSERT_EQ(result.steps.size(), 1u);
  const StepOrigins& step = result.steps[0];
  // The momentum broke in the same update as the weight and is not a separate origin.
  ASSERT_EQ(names(s, step), Names{"fc.weight:output:0"});
  EXPECT_EQ(step.origins[0].kind, OriginKind::kParameter);
  EXPECT_EQ(step.origins[0].tensor.step, 0);
  ASSERT_TRUE(step.origins[0].update);
  EXPECT_EQ(s.tensor_name(*step.origins[0].update), "Default/optimizer-M/ApplyMomentum-op0:output:0");
  EXPECT_EQ(step.origins[0].update->step, 0);
}

TEST(Origin, ForwardInputShowsTheParameterOfTheFirstStep) {
  FakeSession s(small_net());
  put_healthy(s, 5);
  s.put("Default/MatMul-op0", 5, f32({NAN}), kIn1);
  s.put("Default/MatMul-op0", 5, f32({NAN}));
  s.put("fc.weight", 5, f32({NAN}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(names(s, result.steps[0])[0], "fc.weight:output:0");
  EXPECT_EQ(result.steps[0].origins[0].kind, OriginKind::kParameter);
  EXPECT_FALSE(result.steps[0].origins[0].update);
}

TEST(Origin, OptimizerThatOverflowsByItselfIsTheOrigin) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  put_healthy(s, 1);
  const std::string optimizer = "Default/optimizer-M/ApplyMomentum-op0";
  s.put(optimizer, 1, f32({kInf}));
  s.put(optimizer, 1, f32({kInf}), kIn0);  // recorded after the launch: the new value
  s.put("fc.weight", 1, f32({kInf}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(names(s, result.steps[0]), Names{optimizer + ":output:0"});
  EXPECT_EQ(result.steps[0].origins[0].reached, 3u);
}

TEST(Origin, UnwrittenOptimizerOutputsOfOldReleasesAreIgnored) {
  FakeSession s(small_net());
  s.mutable_info().epoch = "B";
  put_healthy(s, 0);
  s.put("Default/optimizer-M/ApplyMomentum-op0", 0, f32({NAN}));
  EXPECT_TRUE(search(s).steps.empty());
}

TEST(Origin, WeightThatBecameLargeSomeStepsAgo) {
  FakeSession s(small_net());
  for (int64_t step = 0; step < 5; ++step) {
    put_healthy(s, step);
    s.put("fc.weight", step, f32({step < 2 ? 0.5 : 1e30 + static_cast<double>(step) * 1e28}));
  }
  s.put("Default/MatMul-op0", 4, f32({kInf}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  const std::vector<Grown>& grown = result.steps[0].origins.at(0).grown;
  ASSERT_EQ(grown.size(), 1u);
  EXPECT_EQ(s.tensor_name(grown[0].parameter), "fc.weight:output:0");
  EXPECT_EQ(grown[0].parameter.step, 1);
  EXPECT_EQ(grown[0].since, 2);
  EXPECT_EQ(grown[0].before, 0.5);
  EXPECT_FLOAT_EQ(static_cast<float>(grown[0].largest), 1.02e30F);
}

// The file of step 1 shows the weight after its update.
TEST(Origin, WhatAProductBecameShowsThatAWeightWasLarge) {
  for (const double made : {250.0, 1e30}) {
    FakeSession s(small_net());
    put_healthy(s, 0);
    put_healthy(s, 1);
    s.put("fc.weight", 1, f32({NAN}));
    s.put("Default/MatMul-op0", 1, f32({made}));  // of two inputs up to 2
    s.put("Default/ReLU-op0", 1, f32({made}));
    s.put("Gradients/Mul-op0", 1, f32({kInf}));
    const OriginResult result = search(s);
    ASSERT_EQ(result.steps.size(), 1u);
    EXPECT_EQ(names(s, result.steps[0]).front(), "Gradients/Mul-op0:output:0");
    const std::vector<Grown>& grown = result.steps[0].origins.at(0).grown;
    EXPECT_EQ(grown.size(), made > 1000 ? 1u : 0u) << "1 before, and 62.5 at least: not 100 times as large";
    if (grown.empty()) continue;
    EXPECT_EQ(s.tensor_name(grown[0].parameter), "fc.weight:output:0");
    EXPECT_EQ(grown[0].parameter.step, 0);
    EXPECT_EQ(grown[0].before, 1);
    EXPECT_FLOAT_EQ(static_cast<float>(grown[0].largest), 2.5e29F);
    ASSERT_TRUE(grown[0].seen_by);
    EXPECT_EQ(s.tensor_name(*grown[0].seen_by), "Default/MatMul-op0:output:0");
  }
}

TEST(Origin, WeightThatAlwaysWasLargeOrGrewSlowlyHasNotGrown) {
  for (const double factor : {1.0, 20.0}) {
    FakeSession s(small_net());
    for (int64_t step = 0; step < 5; ++step) {
      put_healthy(s, step);
      s.put("fc.weight", step, f32({1e25 * std::pow(factor, static_cast<double>(step))}));
    }
    s.put("Default/MatMul-op0", 4, f32({kInf}));
    const OriginResult result = search(s);
    ASSERT_EQ(result.steps.size(), 1u);
    EXPECT_TRUE(result.steps[0].origins.at(0).grown.empty()) << factor;
  }
}

TEST(Origin, StepsLeftOutOfTheDumpMakeTheOldParameterUnknown) {
  FakeSession s(small_net());
  put_healthy(s, 0);
  put_healthy(s, 2);
  s.put("Default/MatMul-op0", 2, f32({NAN}));
  s.put("fc.weight", 2, f32({NAN}));
  const OriginResult result = search(s);
  ASSERT_EQ(result.steps.size(), 1u);
  const Origin& origin = result.steps[0].origins[0];
  EXPECT_EQ(s.tensor_name(origin.tensor), "Default/MatMul-op0:output:0");
  EXPECT_FALSE(origin.certain);
  EXPECT_NE(origin.inputs[1].reason.find("step 1 was not dumped"), std::string::npos);
}

}  // namespace
}  // namespace msdbg
