#include "net.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <thread>

#include "data.h"
#include "faults.h"
#include "group.h"
#include "trainer/recorder.h"

namespace trainer {
namespace {

constexpr int64_t kFaultStep = 4;

class Training {
 public:
  explicit Training(Fault fault = Fault::kNone, int width = 32) : fault_(fault), net_(NetOptions{.width = width}) {}

  /// Runs one more step and returns what it showed.
  Recorder step() {
    Recorder recorder;
    data_.fill(step_, net_.batch);
    plant(fault_, kFaultStep, step_, net_);
    net_.train_step(&recorder);
    ++step_;
    return recorder;
  }
  Recorder run_to(int64_t step) {
    while (step_ < step) this->step();
    return this->step();
  }
  Net& net() { return net_; }

 private:
  Fault fault_;
  Data data_{1};
  Net net_;
  int64_t step_ = 0;
};

TEST(Trainer, LossFallsOverThirtySteps) {
  Training training;
  training.step();
  const float first = training.net().loss();
  float last = 0.0F;
  for (int i = 0; i < 29; ++i) last = (training.step(), training.net().loss());
  EXPECT_GT(first, 1.5F);
  EXPECT_LT(last, 0.5F * first);
}

TEST(Trainer, TwoRunsWithOneSeedAgreeToTheBit) {
  Training a, b;
  a.run_to(5);
  b.run_to(5);
  EXPECT_EQ(a.net().fc1.weight, b.net().fc1.weight);
  EXPECT_EQ(a.net().loss(), b.net().loss());
}

TEST(Trainer, EveryOperatorRunsOnceAndInOrder) {
  Training training;
  const Recorder recorder = training.step();
  ASSERT_EQ(recorder.order().size(), static_cast<size_t>(kOpCount));
  for (uint32_t i = 0; i < kOpCount; ++i) EXPECT_EQ(recorder.order()[i], static_cast<Op>(i));
}

TEST(Trainer, GradientsAgreeWithDifferenceQuotients) {
  Data data(1);
  for (int layer = 0; layer < 3; ++layer) {
    const auto loss_with = [&](float shift, Recorder* recorder) {
      Net net(NetOptions{.width = 8});
      data.fill(0, net.batch);
      Dense& dense = layer == 0 ? net.fc1 : layer == 1 ? net.fc2 : net.fc3;
      dense.weight[5] += shift;
      net.train_step(recorder);
      return net.loss();
    };
    Recorder recorder;
    loss_with(0.0F, &recorder);
    const Op op = layer == 0 ? kFc1WeightGrad : layer == 1 ? kFc2WeightGrad : kFc3WeightGrad;
    const float gradient = recorder.values(op)[5];
    const float quotient = (loss_with(0.005F, nullptr) - loss_with(-0.005F, nullptr)) / 0.01F;
    EXPECT_NEAR(gradient, quotient, 0.02F * std::fabs(quotient) + 1e-3F) << "layer " << layer;
  }
}

TEST(Trainer, HealthyStepsAreFinite) {
  Training training;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(training.step().first_unsound(), kOpCount);
}

TEST(Trainer, LogOfZeroBeginsAtTheLogarithm) {
  Training training(Fault::kLogOfZero);
  EXPECT_EQ(training.run_to(kFaultStep - 1).first_unsound(), kOpCount);
  const Recorder recorder = training.step();
  EXPECT_EQ(recorder.first_unsound(), kLog);
  const Values log = recorder.values(kLog);
  EXPECT_EQ(std::count(log.begin(), log.end(), -std::numeric_limits<float>::infinity()), kClasses);
  EXPECT_TRUE(std::none_of(log.begin(), log.end(), [](float x) { return std::isnan(x); }));
  for (const Op op : {kPick, kPickSum, kLoss, kGradLog, kGradLogits, kFc3WeightGrad, kFc1WeightGrad, kFc1WeightUpdate}) {
    EXPECT_FALSE(recorder.sound(op)) << op;
  }
  EXPECT_TRUE(std::isnan(training.net().loss()));
  EXPECT_EQ(training.step().first_unsound(), kFc1MatMul);
}

TEST(Trainer, BadBatchIsNotFiniteFromTheFirstOperatorOn) {
  Training training(Fault::kBadBatch);
  EXPECT_EQ(training.run_to(kFaultStep - 1).first_unsound(), kOpCount);
  const Recorder recorder = training.step();
  EXPECT_EQ(recorder.first_unsound(), kFc1MatMul);
  EXPECT_TRUE(std::isnan(training.net().batch.inputs[0]));
  EXPECT_FALSE(std::isnan(training.net().batch.inputs[kFeatures]));
  EXPECT_TRUE(std::isnan(recorder.values(kFc1MatMul)[0]));
}

TEST(Trainer, DeadReluIsZeroFromItsStepOn) {
  Training training(Fault::kDeadRelu);
  const auto all_zero = [](const Values& values) {
    return std::all_of(values.begin(), values.end(), [](float x) { return x == 0.0F; });
  };
  EXPECT_FALSE(all_zero(training.run_to(kFaultStep - 1).values(kRelu2)));
  for (int i = 0; i < 5; ++i) {
    const Recorder recorder = training.step();
    EXPECT_TRUE(all_zero(recorder.values(kRelu2)));
    EXPECT_FALSE(all_zero(recorder.values(kRelu1)));
    EXPECT_TRUE(all_zero(recorder.values(kFc2WeightGrad)));
  }
}

TEST(Trainer, FrozenLayerKeepsItsWeightWhileTheOthersMove) {
  Training training(Fault::kFrozenLayer);
  Values before = training.net().fc2.weight;
  training.run_to(kFaultStep - 1);
  EXPECT_NE(training.net().fc2.weight, before);
  before = training.net().fc2.weight;
  const Values other = training.net().fc1.weight;
  const Recorder recorder = training.step();
  EXPECT_EQ(training.net().fc2.weight, before);
  EXPECT_EQ(recorder.values(kFc2WeightUpdate), before);
  EXPECT_NE(training.net().fc1.weight, other);
  EXPECT_NE(recorder.values(kFc2WeightGrad), Values(before.size()));
}

TEST(Trainer, ExplodingRateEndsInNaN) {
  Training training(Fault::kExplodingRate);
  const Values before = training.run_to(kFaultStep - 1).values(kFc3WeightUpdate);
  EXPECT_FLOAT_EQ(training.net().learning_rate[0], 0.05F);
  const auto largest = [](const Values& values) {
    return std::fabs(*std::max_element(values.begin(), values.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); }));
  };
  float grown = 0.0F;
  int steps = 0;
  for (Recorder recorder = training.step(); recorder.first_unsound() == kOpCount; recorder = training.step()) {
    grown = largest(recorder.values(kFc3WeightUpdate));
    ASSERT_LT(++steps, 40) << "the loss stayed finite";
  }
  EXPECT_GT(grown, 2.0F * largest(before));
  EXPECT_GE(steps, 2);
  training.step();
  EXPECT_TRUE(std::isnan(training.net().fc1.weight[0]));
}

TEST(Trainer, FaultNamesAreThoseOfTheOption) {
  EXPECT_EQ(fault_from_name("log-of-zero"), Fault::kLogOfZero);
  EXPECT_EQ(fault_from_name("none"), Fault::kNone);
  EXPECT_EQ(fault_from_name("log of zero"), std::nullopt);
}

/// Two ranks in this process, each on its own thread.
TEST(Ranks, TheirWeightsStayEqualAndTheirDataDiffers) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  std::array<Values, 2> inputs, weights;
  const auto train = [&](int rank) {
    Group group(rank, 2, {ends[rank]});
    Net net(NetOptions{.width = 8, .batch = 4}, &group);
    const Data data(1);
    for (int64_t step = 0; step < 5; ++step) {
      data.fill(step, rank, 2, net.batch);
      net.train_step(nullptr);
    }
    EXPECT_FALSE(group.broken());
    inputs[static_cast<size_t>(rank)] = net.batch.inputs;
    weights[static_cast<size_t>(rank)] = net.fc1.weight;
  };
  std::thread other([&] { train(1); });
  train(0);
  other.join();
  EXPECT_NE(inputs[0], inputs[1]);
  EXPECT_EQ(weights[0], weights[1]);
}

TEST(Ranks, TheEndOfOneIsNoticedByTheOther) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  ::close(ends[1]);
  Group group(0, 2, {ends[0]});
  Values in(4), out(4);
  group.sum(in, out);
  EXPECT_TRUE(group.broken());
}

}  // namespace
}  // namespace trainer
