// The way back from a bad tensor, through steps and graphs.
#include <gtest/gtest.h>

#include <cmath>

#include "msdbg/follow.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeNode;
using testing::FakeSession;
constexpr double kInf = INFINITY;

// x -> Log -> MatMul(w); ApplyMomentum updates w with the gradient of MatMul.
GraphPtr trains(int id = 0) {
  return fake_graph({{"x", "Parameter"},
                     {"w", "Parameter"},
                     {"moments.w", "Parameter"},
                     {"Default/Log-op0", "Log", {"x"}},
                     {"Default/MatMul-op0", "MatMul", {"Default/Log-op0", "w"}},
                     {"Gradients/Mul-op0", "Mul", {"Default/MatMul-op0"}},
                     {"Default/optimizer-M/ApplyMomentum-op0", "ApplyMomentum", {"w", "moments.w", "", "Gradients/Mul-op0"}}},
                    0, id);
}
GraphPtr evaluates(int id) {
  return fake_graph({{"w", "Parameter"}, {"Default/eval-Net/MatMul-op0", "MatMul", {"w"}}}, 0, id);
}

/// One step of trains(): what Log gives, what MatMul and its gradient are, what w holds afterwards.
void put_step(FakeSession& s, int64_t step, double log, double forward, double weight) {
  s.put("x", step, f32({0}));
  s.put("Default/Log-op0", step, f32({log}));
  s.put("Default/MatMul-op0", step, f32({forward}));
  s.put("Gradients/Mul-op0", step, f32({forward}));
  s.put("Default/optimizer-M/ApplyMomentum-op0", step, f32({weight}));
  s.put("w", step, f32({weight}));
  s.put("moments.w", step, f32({weight}));
}

/// "w@1 <- ApplyMomentum-op0@0 <- ...: origin"
std::string trail_of(FakeSession& s, const TensorId& tensor, const std::string& when = "nan or inf") {
  PropagationOptions options;
  options.up = true;
  options.predicate = parse_predicate(when).value();
  const Result<Propagation> found = propagation(s, tensor, options);
  EXPECT_TRUE(found.ok()) << found.status().message();
  if (!found || !found->trail) return "no trail";
  std::string text;
  for (const TrailLink& link : found->trail->links) {
    const std::string& name = s.node(link.tensor).name;
    text += (text.empty() ? "" : " <- ") + name.substr(name.rfind('/') + 1) + "@" + std::to_string(link.tensor.step);
  }
  text += ": " + std::string(trail_end_name(found->trail->end));
  return found->trail->reason.empty() ? text : text + ", " + found->trail->reason;
}

TEST(Trail, AParameterOfTheStepOfTheFaultIsAVictim) {
  FakeSession s(trains());
  put_step(s, 0, -kInf, NAN, NAN);
  EXPECT_EQ(trail_of(s, s.id("w", 0)), "w@0 <- ApplyMomentum-op0@0 <- Mul-op0@0 <- MatMul-op0@0 <- Log-op0@0: origin");
  EXPECT_EQ(trail_of(s, s.id("Default/MatMul-op0", 0)), "MatMul-op0@0 <- Log-op0@0: origin");
}

TEST(Trail, LeadsToTheStepThatBrokeTheParameter) {
  FakeSession s(trains());
  put_step(s, 0, 1, 1, 1);
  put_step(s, 1, -kInf, NAN, NAN);
  for (int64_t step = 2; step < 6; ++step) put_step(s, step, 1, NAN, NAN);
  const std::string fault = "ApplyMomentum-op0@1 <- Mul-op0@1 <- MatMul-op0@1 <- Log-op0@1: origin";
  EXPECT_EQ(trail_of(s, s.id("w", 5)), "w@5 <- " + fault);
  EXPECT_EQ(trail_of(s, s.id("Default/MatMul-op0", 5)), "MatMul-op0@5 <- w@5 <- " + fault);
  EXPECT_EQ(trail_of(s, s.id("w", 5), "any(isnan(x))"), "w@5 <- " + fault.substr(0, fault.find(" <- Log")) + ": origin");
}

TEST(Trail, EndsWhereNoDumpedStepWroteTheParameter) {
  FakeSession s(trains());
  put_step(s, 3, 1, NAN, NAN);
  s.put("Default/MatMul-op0", 3, f32({NAN}), {Io::kInput, 1});
  EXPECT_EQ(trail_of(s, s.id("Default/MatMul-op0", 3)), "MatMul-op0@3 <- w@3: input, no dumped step before writes w");
}

TEST(Trail, SaysWhereAStepBetweenIsMissing) {
  FakeSession s(trains());
  put_step(s, 0, 1, 1, 1);
  put_step(s, 4, 1, NAN, NAN);
  s.put("Default/MatMul-op0", 4, f32({NAN}), {Io::kInput, 1});
  EXPECT_EQ(trail_of(s, s.id("Default/MatMul-op0", 4)),
            "MatMul-op0@4 <- w@4: unknown, w was sound or not dumped after step 0, and bad when step 4 began");
}

TEST(Trail, GraphsOfAStepAreOrderedByTheirTime) {
  for (const bool before : {true, false}) {
    FakeSession s(std::vector<GraphPtr>{trains(0), evaluates(1)});
    put_step(s, 0, 1, 1, 1);
    put_step(s, 1, -kInf, NAN, NAN);
    const TensorId value = s.put(s.id("w", 1, {}, 0, 0, 1), f32({NAN}));
    const TensorId result = s.put(s.id("Default/eval-Net/MatMul-op0", 1, {}, 0, 0, 1), f32({NAN}));
    s.set_time(s.id("Default/optimizer-M/ApplyMomentum-op0", 1), 200);
    s.set_time(s.id("Default/optimizer-M/ApplyMomentum-op0", 0), 50);
    s.set_time(result, before ? 300 : 100);
    const std::string fault = "w@1 <- ApplyMomentum-op0@1 <- Mul-op0@1 <- MatMul-op0@1 <- Log-op0@1: origin";
    EXPECT_EQ(trail_of(s, result), before
                                       ? "MatMul-op0@1 <- " + fault
                                       : "MatMul-op0@1 <- w@1: unknown, w was sound or not dumped after step 0, and bad when step 1 began");
    if (!before) continue;
    OriginOptions options;
    const OriginResult origins = find_origins(s, options).value();
    ASSERT_EQ(origins.steps.size(), 2u);
    ASSERT_EQ(origins.steps[1].origins.size(), 1u);
    const Origin& origin = origins.steps[1].origins[0];
    EXPECT_EQ(origin.kind, OriginKind::kParameter);
    EXPECT_EQ(origin.tensor, value);
    ASSERT_TRUE(origin.update.has_value());
    EXPECT_EQ(*origin.update, s.id("Default/optimizer-M/ApplyMomentum-op0", 1));
  }
}

TEST(Trail, OperatorsThatWereNotDumpedAreSeenAtTheirConsumers) {
  FakeSession s(trains());
  put_step(s, 0, -kInf, NAN, NAN);
  s.erase(s.id("Default/MatMul-op0", 0));
  s.erase(s.id("Gradients/Mul-op0", 0));
  s.put("Gradients/Mul-op0", 0, f32({NAN}), {Io::kInput, 0});
  s.put("Default/optimizer-M/ApplyMomentum-op0", 0, f32({NAN}), {Io::kInput, 3});
  EXPECT_EQ(trail_of(s, s.id("w", 0)), "w@0 <- ApplyMomentum-op0@0 <- Mul-op0@0 <- MatMul-op0@0 <- Log-op0@0: origin");
}

}  // namespace
}  // namespace msdbg
