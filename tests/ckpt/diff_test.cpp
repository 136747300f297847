// Numbers of the real pairs were computed with NumPy in double from the safetensors files.
#include <cmath>
#include <limits>

#include "msdbg/dump.h"
#include "ckpt/ckpt_support.h"

namespace msdbg::test {
namespace {

class Diff : public CheckpointTest {
 protected:
  ParameterDiff diff(const std::string& a, const std::string& b, const ParameterDiffOptions& options = {}) {
    a_ = open(a), b_ = open(b);
    auto result = diff_parameters({a_.get(), 0, 0, "a"}, {b_.get(), 0, 0, "b"}, options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result ? *result : ParameterDiff{};
  }
  ParameterDiff written(const std::string& a, const std::string& b) { return diff(write(a, "a.ckpt"), write(b, "b.ckpt")); }
  static const ParameterChange& of(const ParameterDiff& diff, const std::string& name) {
    static const ParameterChange none;
    for (const ParameterChange& change : diff.changes) {
      if (change.name == name) return change;
    }
    ADD_FAILURE() << name;
    return none;
  }
  std::unique_ptr<Checkpoint> a_, b_;
};

TEST_F(Diff, OneStepOfTheHealthyRunMovesTheLastBiasMost) {
  const ParameterDiff result = diff(lenet("ok", 0, ".ckpt"), lenet("ok", 1, ".safetensors"));
  ASSERT_EQ(result.changes.size(), 8u);
  EXPECT_EQ(result.count(ChangeKind::kChanged), 8u);
  EXPECT_EQ(result.changes[0].name, "fc3.bias");
  EXPECT_NEAR(update_ratio(*result.changes[0].values), 0.6206966716731824, 1e-12);
  EXPECT_EQ(result.changes[7].name, "fc1.weight");
  EXPECT_NEAR(update_ratio(*result.changes[7].values), 0.0001298671564129536, 1e-15);
  const Comparison& values = *of(result, "fc1.weight").values;
  EXPECT_EQ(values.count - values.within, 3369u);
  EXPECT_NEAR(values.max_abs_error, 7.287412881851196e-05, 1e-19);
  EXPECT_FALSE(result.equal());
}

TEST_F(Diff, TheExplodingRunBreaksInItsLastStep) {
  const ParameterDiff third = diff(lenet("explode", 2, ".ckpt"), lenet("explode", 3, ".ckpt"));
  EXPECT_NEAR(update_ratio(*of(third, "fc1.weight").values), 2296.8575324935678, 1e-8);
  EXPECT_FALSE(third.changes[0].breaks());
  const ParameterDiff last = diff(lenet("explode", 4, ".ckpt"), lenet("explode", 5, ".ckpt"));
  for (const ParameterChange& change : last.changes) {
    EXPECT_TRUE(change.breaks()) << change.name;
    EXPECT_EQ(change.values->nan_b, change.values->count);
    EXPECT_TRUE(std::isnan(update_ratio(*change.values)));
  }
}

TEST_F(Diff, EqualFilesAreEqual) {
  const ParameterDiff result = diff(lenet("ok", 2, ".ckpt"), lenet("ok", 2, ".ckpt"));
  EXPECT_TRUE(result.equal());
  EXPECT_EQ(result.count(ChangeKind::kUnchanged), 8u);
  // NaN equals itself bit for bit.
  EXPECT_TRUE(diff(lenet("explode", 5, ".ckpt"), lenet("explode", 5, ".safetensors")).equal());
}

TEST_F(Diff, EachKindOfChangeIsNamed) {
  const float inf = std::numeric_limits<float>::infinity();
  const ParameterDiff result =
      written(floats("same", {1, 2}) + floats("moved", {3, 4}) + floats("gone", {5, 6, 7}) + floats("shape", {1, 2, 3, 4}, {2, 2}) +
                  floats("type", {1, 2}) + floats("old.weight", {8, 9}) + floats("breaks", {1, 1}) + floats("zero", {0, 0}),
              floats("same", {1, 2}) + floats("moved", {3, 5}) + floats("shape", {1, 2, 3, 4}, {4}) +
                  record("type", "Float64", {2}, bytes_of<double>({1, 2})) + floats("new.weight", {8, 9}) + floats("extra", {1}) +
                  floats("breaks", {1, inf}) + floats("zero", {0, 1}));
  EXPECT_EQ(result.changes[0].name, "breaks");
  EXPECT_TRUE(result.changes[0].breaks());
  EXPECT_EQ(of(result, "same").kind, ChangeKind::kUnchanged);
  EXPECT_EQ(of(result, "moved").kind, ChangeKind::kChanged);
  EXPECT_DOUBLE_EQ(update_ratio(*of(result, "moved").values), 1.0 / 5.0);
  EXPECT_TRUE(std::isinf(update_ratio(*of(result, "zero").values)));
  EXPECT_EQ(of(result, "gone").kind, ChangeKind::kLost);
  EXPECT_EQ(of(result, "extra").kind, ChangeKind::kAdded);
  EXPECT_EQ(of(result, "shape").kind, ChangeKind::kReshaped);
  EXPECT_EQ(of(result, "shape").note, "the same values in their order");
  EXPECT_EQ(of(result, "type").kind, ChangeKind::kRetyped);
  EXPECT_EQ(of(result, "type").note, "the same values");
  EXPECT_EQ(of(result, "old.weight").kind, ChangeKind::kRenamed);
  EXPECT_EQ(of(result, "old.weight").new_name, "new.weight");
}

TEST_F(Diff, UniformContentRenamesOnlyIfTheNamesEndTheSame) {
  const ParameterDiff result =
      written(floats("a.bias", {0, 0}) + floats("b.bias", {0, 0}), floats("c.bias", {0, 0}) + floats("c.gamma", {0, 0}));
  EXPECT_EQ(of(result, "a.bias").new_name, "c.bias");
  EXPECT_EQ(of(result, "b.bias").kind, ChangeKind::kLost);
  EXPECT_EQ(of(result, "c.gamma").kind, ChangeKind::kAdded);
}

TEST_F(Diff, WhatCannotBeReadIsNotCalledEqual) {
  const std::string damaged = floats("w", {1}) + record("v", "Float32", {3}, "1234");
  const ParameterDiff result = written(damaged, damaged);
  EXPECT_EQ(of(result, "v").kind, ChangeKind::kNotCompared);
  EXPECT_FALSE(result.equal());
  EXPECT_FALSE(result.complete());
}

TEST_F(Diff, CheckpointsBelongToTheStepOfTheDumpThatEndedWithThem) {
  const std::string dumps = std::string(MSDBG_TEST_DATA) + "/dumps/lenet-2.7.1-";
  for (const auto& [run, steps] : {std::pair<std::string, int>{"ok", 3}, {"explode", 5}}) {
    const auto dump = open_dump(dumps + run);
    ASSERT_TRUE(dump.ok());
    for (int k = 0; k <= steps; ++k) {
      const auto checkpoint = open(lenet(run, k, ".ckpt"));
      const auto match = match_checkpoint({dump->get(), 0, 0, "dump"}, IntSet::all(), {checkpoint.get(), 0, 0, "checkpoint"});
      ASSERT_TRUE(match.ok()) << match.status().message();
      for (const StepMatch& step : match->steps) {
        EXPECT_EQ(step.matches(), step.step == k - 1) << run << " " << k << " step " << step.step;
        EXPECT_EQ(step.absent, 0u);
        EXPECT_EQ(step.equal, step.matches() ? 8u : 0u);
      }
    }
  }
}

}  // namespace
}  // namespace msdbg::test
