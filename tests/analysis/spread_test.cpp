#include <gtest/gtest.h>

#include <cmath>

#include "msdbg/analysis.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

StepOrigins only_step(FakeSession& session) {
  const OriginResult result = find_origins(session, {}).value();
  EXPECT_EQ(result.steps.size(), 1u);
  return result.steps.empty() ? StepOrigins{} : result.steps[0];
}

std::vector<std::string> chain_names(const FakeSession& session, const std::vector<ChainLink>& chain) {
  std::vector<std::string> out;
  for (const ChainLink& link : chain) out.push_back(session.node(link.tensor).name + (link.bad ? "" : " sound"));
  return out;
}
using Names = std::vector<std::string>;

TEST(Spread, WayEndsWhereAReluAbsorbsTheNan) {
  FakeSession s(fake_graph({{"p", "Parameter"},
                            {"log", "Log", {"p"}},
                            {"mm", "MatMul", {"log"}},
                            {"relu", "ReLU", {"mm"}},
                            {"out", "Exp", {"relu"}}}));
  s.put("p", 0, f32({1}));
  s.put("log", 0, f32({NAN}));
  s.put("mm", 0, f32({NAN}));
  s.put("mm", 0, f32({NAN}), {Io::kInput, 0});
  s.put("relu", 0, f32({0}));
  s.put("out", 0, f32({1}));
  const StepOrigins step = only_step(s);
  const Origin& origin = step.origins.at(0);
  ASSERT_EQ(origin.chains.size(), 1u);
  EXPECT_EQ(chain_names(s, origin.chains[0]), (Names{"log", "mm", "relu sound"}));
  EXPECT_EQ(origin.reached, 3u);  // log, the recorded input of mm, mm
  EXPECT_EQ(step.bad_tensors, 3u);
}

TEST(Spread, WayEndsAtTheParameterThatTheOptimizerRuined) {
  FakeSession s(fake_graph({{"p", "Parameter"},
                            {"w", "Parameter"},
                            {"m", "Parameter"},
                            {"log", "Log", {"p"}},
                            {"Gradients/g", "MatMul", {"log"}},
                            {"opt", "ApplyMomentum", {"w", "m", "", "Gradients/g"}}}));
  s.put("p", 0, f32({1}));
  s.put("log", 0, f32({NAN}));
  s.put("Gradients/g", 0, f32({NAN}));
  s.put("opt", 0, f32({NAN}));
  s.put("w", 0, f32({NAN}));
  s.put("m", 0, f32({NAN}));
  const Origin origin = only_step(s).origins.at(0);
  // Momentum broke too, but the weight is what the user wants to see. The optimizer's output itself feeds nothing.
  ASSERT_EQ(origin.chains.size(), 1u);
  EXPECT_EQ(chain_names(s, origin.chains[0]), (Names{"log", "Gradients/g", "opt", "w"}));
  EXPECT_EQ(origin.reached, 5u);
}

TEST(Spread, OtherOriginsTensorsAreNotCounted) {
  FakeSession s(fake_graph({{"p", "Parameter"}, {"a", "Log", {"p"}}, {"b", "Exp", {"p"}}, {"bb", "Mul", {"b"}}}));
  s.put("p", 0, f32({1}));
  for (const char* name : {"a", "b", "bb"}) s.put(name, 0, f32({NAN}));
  const StepOrigins step = only_step(s);
  ASSERT_EQ(step.origins.size(), 2u);
  EXPECT_EQ(step.origins[0].reached, 1u);
  EXPECT_EQ(step.origins[1].reached, 2u);
  EXPECT_EQ(step.bad_tensors, 3u);
}

TEST(Spread, EveryBadTensorFollowsFromTheFirstOriginThatReachesIt) {
  FakeSession s(fake_graph(
      {{"p", "Parameter"}, {"a", "Log", {"p"}}, {"b", "Exp", {"p"}}, {"both", "Add", {"b", "a"}}, {"bb", "Mul", {"b"}}}));
  s.put("p", 0, f32({1}));
  for (const char* name : {"a", "b", "both", "bb"}) s.put(name, 0, f32({NAN}));
  std::vector<std::string> follows;
  for (const auto& [tensor, origin] : only_step(s).follows) follows.push_back(s.node(tensor).name + " " + std::to_string(origin));
  EXPECT_EQ(follows, (std::vector<std::string>{"a 0", "b 1", "both 0", "bb 1"}));
}

TEST(Spread, ChainsStayFewHoweverManyWaysThereAre) {
  std::vector<testing::FakeNode> nodes = {{"p", "Parameter"}, {"a", "Log", {"p"}}};
  for (int i = 0; i < 40; ++i) {
    const std::string name = "u" + std::to_string(i);
    nodes.push_back({name, "Exp", {i % 4 == 0 ? "a" : "u" + std::to_string(i - 1)}});
  }
  FakeSession s(fake_graph(nodes));
  s.put("p", 0, f32({1}));
  s.put("a", 0, f32({NAN}));
  for (int i = 0; i < 40; ++i) s.put("u" + std::to_string(i), 0, f32({NAN}));
  const Origin origin = only_step(s).origins.at(0);
  EXPECT_EQ(origin.reached, 41u);
  EXPECT_LE(origin.chains.size(), 4u);
  EXPECT_GE(origin.chains.size(), 1u);
}

TEST(Spread, ComparisonSwallowsNothing) {
  FakeSession s(fake_graph({{"p", "Parameter"}, {"a", "Log", {"p"}}, {"g", "Greater", {"a"}}}));
  s.put("p", 0, f32({1}));
  s.put("a", 0, f32({NAN}));
  const std::vector<double> no = {0};
  s.put("g", 0, testing::make_tensor(DType::kBool, {1}, no));
  EXPECT_TRUE(only_step(s).origins.at(0).chains.empty());

  FakeSession finite(s.graphs()[0]);
  finite.put("p", 0, f32({1}));
  finite.put("a", 0, f32({1000}));
  finite.put("g", 0, testing::make_tensor(DType::kBool, {1}, no));
  OriginOptions large;
  large.predicate = parse_predicate("TL max_gt=100").value();
  EXPECT_TRUE(find_origins(finite, large).value().steps.at(0).origins.at(0).chains.empty());
}

TEST(Spread, ValueThatWasRepairedOnTheWayIsNotFollowed) {
  FakeSession s(fake_graph({{"p", "Parameter"}, {"a", "Log", {"p"}}, {"b", "Mul", {"a"}}}));
  s.put("p", 0, f32({1}));
  s.put("a", 0, f32({NAN}));
  s.put("b", 0, f32({1}), {Io::kInput, 0});
  s.put("b", 0, f32({1}));
  const Origin origin = only_step(s).origins.at(0);
  EXPECT_EQ(origin.reached, 1u);
  EXPECT_TRUE(origin.chains.empty());
}

}  // namespace
}  // namespace msdbg
