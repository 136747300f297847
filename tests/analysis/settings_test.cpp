// The hyper-parameters of ranks, on sessions in memory.
#include "msdbg/settings.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeNode;
using testing::FakeSession;
using Ranks = std::vector<int>;

constexpr Slot kIn2{Io::kInput, 2};
const Attribute kMomentumNames{"input_names", R"(["variable", "accumulation", "learning_rate", "gradient", "momentum"])"};

/// ApplyMomentum with its rate from `rate`: a parameter, constant or operator.
GraphPtr net(int rank, const std::string& rate, const std::string& momentum = "momentum") {
  return fake_graph({{"fc.weight", "Parameter"},
                     {"moments.fc.weight", "Parameter"},
                     {"learning_rate", "Parameter"},
                     {"momentum", "Parameter"},
                     {"global_step", "Parameter"},
                     {"data-1", "Const"},
                     {"Gradients/Grad-op0", "Grad", {"fc.weight"}},
                     {"Default/Gather-op0", "Gather", {"learning_rate", "global_step"}},
                     {"Default/ApplyMomentum-op0", "ApplyMomentum",
                      {"fc.weight", "moments.fc.weight", rate, "Gradients/Grad-op0", momentum}, 1, {}, {kMomentumNames}}},
                    rank);
}

TensorPtr number(double value) { return f32(Shape{}, std::vector<double>{value}); }

FakeSession session_of(int ranks, const std::string& rate = "learning_rate") {
  std::vector<GraphPtr> graphs;
  for (int rank = 0; rank < ranks; ++rank) graphs.push_back(net(rank, rate));
  return FakeSession(graphs);
}
void put(FakeSession& s, const std::string& name, int rank, int64_t step, double value, Slot slot = {}) {
  s.put(s.id(name, step, slot, 0, rank), number(value));
}

SettingsResult found(FakeSession& s, const FollowOptions& options = {}) { return settings(s, options).value(); }

const Setting* named(const SettingsResult& result, const std::string& name) {
  for (const Setting& setting : result.settings) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

TEST(Settings, ParametersOfTheOptimizerAreListedByRole) {
  FakeSession s = session_of(1);
  for (int step = 0; step < 2; ++step) {
    put(s, "learning_rate", 0, step, 0.5);
    put(s, "momentum", 0, step, 0.25);
    put(s, "global_step", 0, step, step + 1);
    s.put("fc.weight", step, f32({1, 2}));
    s.put("moments.fc.weight", step, number(3));  // belongs to one weight
  }
  const SettingsResult result = found(s);
  std::string names;
  for (const Setting& setting : result.settings) names += setting.name + " ";
  EXPECT_EQ(names, "learning_rate momentum global_step ");
  const Setting& counter = result.settings[2];
  EXPECT_EQ(counter.role, SettingRole::kStepCounter);
  EXPECT_EQ(counter.from, SettingFrom::kParameter);
  EXPECT_EQ(counter.series.front().values, (std::vector<std::optional<double>>{1, 2}));
  EXPECT_FALSE(counter.differs());
}

TEST(Settings, TheRankWithAnotherRateIsOdd) {
  FakeSession s = session_of(4);
  for (int rank = 0; rank < 4; ++rank) {
    for (int step = 0; step < 3; ++step) put(s, "learning_rate", rank, step, rank == 2 && step > 0 ? 5 : 0.5);
  }
  const SettingsResult result = found(s);
  const Setting* const rate = named(result, "learning_rate");
  ASSERT_NE(rate, nullptr);
  EXPECT_TRUE(rate->differs());
  EXPECT_TRUE(rate->has_majority());
  ASSERT_EQ(rate->series.size(), 2u);
  EXPECT_EQ(rate->series[0].ranks, (Ranks{0, 1, 3}));
  EXPECT_EQ(rate->series[1].ranks, Ranks{2});
  EXPECT_EQ(rate->series[1].values, (std::vector<std::optional<double>>{0.5, 5, 5}));
}

TEST(Settings, OfTwoRanksNeitherIsOdd) {
  FakeSession s = session_of(2);
  for (int rank = 0; rank < 2; ++rank) put(s, "momentum", rank, 0, rank);
  const SettingsResult result = found(s);
  EXPECT_TRUE(named(result, "momentum")->differs());
  EXPECT_FALSE(named(result, "momentum")->has_majority());
}

TEST(Settings, AStepThatARankLacksIsNoDifference) {
  FakeSession s = session_of(3);
  for (int rank = 0; rank < 3; ++rank) {
    for (int step = 0; step < 2; ++step) {
      if (rank != 1 || step == 0) put(s, "learning_rate", rank, step, 0.5);
    }
  }
  const SettingsResult result = found(s);
  EXPECT_FALSE(named(result, "learning_rate")->differs());
}

TEST(Settings, NaNEqualsNaN) {
  FakeSession s = session_of(2);
  for (int rank = 0; rank < 2; ++rank) put(s, "learning_rate", rank, 0, NAN);
  const SettingsResult result = found(s);
  EXPECT_FALSE(named(result, "learning_rate")->differs());
  EXPECT_TRUE(std::isnan(*named(result, "learning_rate")->series.front().values.front()));
}

TEST(Settings, AnInlineConstantIsReadFromTheGraph) {
  std::vector<GraphPtr> graphs;
  for (int rank = 0; rank < 2; ++rank) {
    GraphBuilder builder(rank, 0);
    Node weight, constant, gradient, update;
    weight.name = "fc.weight";
    weight.op = "Parameter";
    weight.kind = NodeKind::kParameter;
    constant.name = "Default/data-1";
    constant.op = "Const";
    constant.kind = NodeKind::kConstant;
    constant.constant_value = rank == 0 ? "0.125" : "0.25";
    gradient.name = "Default/Grad-op0";
    gradient.op = "Grad";
    for (Node* node : {&weight, &constant, &gradient}) node->outputs = std::vector<OutputType>(1);
    const NodeId ids[] = {builder.add(weight), builder.add(constant), builder.add(gradient)};
    update.name = "Default/ApplyGradientDescent-op0";
    update.op = "ApplyGradientDescent";
    update.attributes = {{"input_names", R"(["var", "alpha", "delta"])"}};
    for (const NodeId id : ids) {
      Edge edge;
      edge.node = id;
      edge.name = builder.node(id).name;
      update.inputs.push_back(edge);
    }
    update.outputs = std::vector<OutputType>(1);
    builder.add(update);
    graphs.push_back(builder.build());
  }
  FakeSession s(graphs);
  for (int rank = 0; rank < 2; ++rank) s.put(s.id("fc.weight", 0, {}, 0, rank), f32({1, 2}));
  const SettingsResult result = found(s);
  const Setting* const rate = named(result, "alpha (ApplyGradientDescent)");
  ASSERT_NE(rate, nullptr);
  EXPECT_EQ(rate->role, SettingRole::kLearningRate);
  EXPECT_EQ(rate->from, SettingFrom::kConstant);
  ASSERT_EQ(rate->series.size(), 2u);
  EXPECT_EQ(rate->series[0].values, std::vector<std::optional<double>>{0.125});
  EXPECT_EQ(rate->series[1].values, std::vector<std::optional<double>>{0.25});
}

TEST(Settings, AScheduleIsReadWhereTheOptimizerTakesIt) {
  FakeSession s = session_of(1, "Default/Gather-op0");
  for (int step = 0; step < 2; ++step) {
    s.put("fc.weight", step, f32({1, 2}));
    put(s, "Default/ApplyMomentum-op0", 0, step, step == 0 ? 0.5 : 0.25, kIn2);
  }
  const SettingsResult result = found(s);
  const Setting* const rate = named(result, "learning_rate (ApplyMomentum)");
  ASSERT_NE(rate, nullptr);
  EXPECT_EQ(rate->from, SettingFrom::kComputed);
  EXPECT_EQ(rate->series.front().values, (std::vector<std::optional<double>>{0.5, 0.25}));
}

TEST(Settings, AnOperatorWithAnAlphaIsNoOptimizer) {
  GraphBuilder builder(0, 0);
  Node constant, add;
  constant.name = "Default/data-1";
  constant.op = "Const";
  constant.kind = NodeKind::kConstant;
  constant.constant_value = "1";
  constant.outputs = std::vector<OutputType>(1);
  Edge edge;
  edge.node = builder.add(constant);
  edge.name = constant.name;
  add.name = "Default/AddExt-op0";
  add.op = "AddExt";
  add.attributes = {{"input_names", R"(["input", "other", "alpha"])"}};
  add.inputs = {edge, edge, edge};
  add.outputs = std::vector<OutputType>(1);
  builder.add(add);
  FakeSession s(builder.build());
  s.put("Default/AddExt-op0", 0, number(1));
  EXPECT_TRUE(found(s).settings.empty());
}

TEST(Settings, OnlyTheChosenRanksAndStepsAreRead) {
  FakeSession s = session_of(3);
  for (int rank = 0; rank < 3; ++rank) {
    for (int step = 0; step < 3; ++step) put(s, "learning_rate", rank, step, rank);
  }
  FollowOptions options;
  options.ranks = IntSet::of(1);
  options.steps = IntSet::of(2);
  const SettingsResult result = found(s, options);
  EXPECT_EQ(result.ranks, Ranks{1});
  EXPECT_EQ(result.steps, std::vector<int64_t>{2});
  EXPECT_EQ(named(result, "learning_rate")->series.front().ranks, Ranks{1});
}

}  // namespace
}  // namespace msdbg
