// Two sessions from literals: what is found, which node is blamed, and what is reported about other nodes.
#include <gtest/gtest.h>

#include <cmath>

#include "msdbg/diff.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;
using testing::make_tensor;

// x -> first -> second
GraphPtr chain() {
  return fake_graph({{"x", "Parameter"}, {"net/Abs-op0", "Abs", {"x"}}, {"net/Exp-op0", "Exp", {"net/Abs-op0"}}});
}

void fill(FakeSession& session, int64_t step, double x, double first, double second) {
  session.put("x", step, f32({x, 1}));
  session.put("net/Abs-op0", step, f32({first, 1}));
  session.put("net/Exp-op0", step, f32({second, 1}));
}

const TensorDiff* find(const DiffResult& result, const FakeSession& b, const std::string& name, int64_t step = 0) {
  for (const TensorDiff& entry : result.tensors) {
    if (b.node(entry.b).name == name && entry.b.step == step) return &entry;
  }
  return nullptr;
}

TEST(DiffSessions, EqualBitsAreEqual) {
  FakeSession a(chain()), b(chain());
  fill(a, 0, 1, 2, 3);
  fill(b, 0, 1, 2, 3);
  const DiffResult result = diff_sessions(a, b, {}).value();
  EXPECT_TRUE(result.is_equal());
  EXPECT_TRUE(result.is_complete());
  EXPECT_EQ(result.equal, 3u);
  EXPECT_FALSE(result.first);
}

TEST(DiffSessions, TheCulpritDiffersWhileItsInputsAgree) {
  FakeSession a(chain()), b(chain());
  fill(a, 0, 1, 2.5, 4);
  fill(b, 0, 1, 2, 3);
  const DiffResult result = diff_sessions(a, b, {}).value();
  ASSERT_TRUE(result.first);
  const TensorDiff& first = result.tensors[*result.first];
  EXPECT_EQ(b.node(first.b).name, "net/Abs-op0");
  EXPECT_EQ(first.role, DiffRole::kCulprit);
  EXPECT_TRUE(std::isinf(first.amplification.value()));
  EXPECT_EQ(result.culprits, std::vector<size_t>{*result.first});
  const TensorDiff* second = find(result, b, "net/Exp-op0");
  EXPECT_EQ(second->role, DiffRole::kVictim);
  EXPECT_EQ(second->worst_input, "input:0 net/Abs-op0");
  // |4-3| / |(3,1)| over |2.5-2| / |(2,1)|
  EXPECT_NEAR(second->amplification.value(), (1 / std::sqrt(10.0)) / (0.5 / std::sqrt(5.0)), 1e-12);
}

// x -> Dropout -> Exp -> (with w) MatMul
GraphPtr with_dropout() {
  return fake_graph({{"x", "Parameter"},
                     {"w", "Parameter"},
                     {"net/Dropout-op0", "Dropout", {"x"}},
                     {"net/Exp-op0", "Exp", {"net/Dropout-op0"}},
                     {"net/MatMul-op0", "MatMul", {"net/Exp-op0", "w"}}});
}

void fill_dropout(FakeSession& session, double dropped, double weight) {
  session.put("x", 0, f32({1, 1}));
  session.put("w", 0, f32({weight, 1}));
  session.put("net/Dropout-op0", 0, f32({dropped, 1}));
  session.put("net/Exp-op0", 0, f32({dropped, 1}));
  session.put("net/MatMul-op0", 0, f32({dropped * weight, 1}));
}

TEST(DiffSessions, RandomOperatorsAreNoCulpritsAndTheComparisonGoesOn) {
  FakeSession a(with_dropout()), b(with_dropout());
  fill_dropout(a, 0, 3);
  fill_dropout(b, 2, 5);
  const DiffResult result = diff_sessions(a, b, {}).value();
  ASSERT_EQ(result.random.size(), 1u);
  EXPECT_EQ(b.node(result.tensors[result.random[0]].b).name, "net/Dropout-op0");
  EXPECT_EQ(find(result, b, "net/Dropout-op0")->role, DiffRole::kRandom);
  EXPECT_TRUE(find(result, b, "net/Exp-op0")->behind_random);
  EXPECT_FALSE(find(result, b, "net/MatMul-op0")->behind_random);
  ASSERT_TRUE(result.first);
  EXPECT_EQ(b.node(result.tensors[*result.first].b).name, "w");
  EXPECT_EQ(result.culprits, std::vector<size_t>{*result.first});
  EXPECT_FALSE(result.is_only_random());
}

TEST(DiffSessions, WhereOnlyRandomOperatorsDifferNobodyIsToBlame) {
  FakeSession a(with_dropout()), b(with_dropout());
  fill_dropout(a, 0, 3);
  fill_dropout(b, 2, 3);
  const DiffResult result = diff_sessions(a, b, {}).value();
  EXPECT_FALSE(result.is_equal());
  EXPECT_TRUE(result.is_only_random());
  EXPECT_TRUE(result.culprits.empty());
  EXPECT_TRUE(find(result, b, "net/MatMul-op0")->behind_random);
}

// x -> Dropout -> MatMul with w -> its gradient -> the optimizer, which writes w
GraphPtr trained_with_dropout() {
  return fake_graph({{"x", "Parameter"},
                     {"w", "Parameter"},
                     {"net/Dropout-op0", "Dropout", {"x"}},
                     {"net/MatMul-op0", "MatMul", {"net/Dropout-op0", "w"}},
                     {"Gradients/MatMul-op1", "MatMul", {"net/MatMul-op0"}},
                     {"optimizer/Assign-op0", "Assign", {"w", "Gradients/MatMul-op1"}}});
}

void fill_trained(FakeSession& session, int64_t step, double dropped, double before, double after) {
  session.put("x", step, f32({1, 1}));
  session.put("net/Dropout-op0", step, f32({dropped, 1}));
  session.put(session.id("net/MatMul-op0", step, {Io::kInput, 1}), f32({before, 1}));
  session.put("net/MatMul-op0", step, f32({dropped * before, 1}));
  session.put("Gradients/MatMul-op1", step, f32({dropped * before, 2}));
  session.put("optimizer/Assign-op0", step, f32({after, 1}));
  session.put("w", step, f32({after, 1}));
}

TEST(DiffSessions, WhatTheOptimizerMadeOfARandomOperatorIsBehindItInTheNextStep) {
  FakeSession a(trained_with_dropout()), b(trained_with_dropout());
  fill_trained(a, 0, 2, 3, 4);
  fill_trained(b, 0, 5, 3, 7);
  // The same draw, but other weights.
  fill_trained(a, 1, 2, 4, 8);
  fill_trained(b, 1, 2, 7, 9);
  const DiffResult result = diff_sessions(a, b, {}).value();
  EXPECT_TRUE(find(result, b, "w", 0)->behind_random);
  EXPECT_TRUE(find(result, b, "net/MatMul-op0", 1)->behind_random);
  EXPECT_TRUE(find(result, b, "w", 1)->behind_random);
  EXPECT_TRUE(result.is_only_random());
  EXPECT_TRUE(result.culprits.empty());
}

TEST(DiffSessions, AnotherGraphThatReadsSuchAWeightIsBehindItToo) {
  const auto graphs = [] {
    GraphPtr evaluation = fake_graph({{"x", "Parameter"}, {"w", "Parameter"}, {"net/MatMul-op9", "MatMul", {"x", "w"}}}, 0, 1);
    return std::vector<GraphPtr>{trained_with_dropout(), evaluation};
  };
  FakeSession a(graphs()), b(graphs());
  const auto fill_both = [](FakeSession& session, double dropped, double after) {
    fill_trained(session, 0, dropped, 3, after);
    session.put(session.id("x", 1, {}, 0, 0, 1), f32({1, 1}));
    session.put(session.id("w", 1, {}, 0, 0, 1), f32({after, 1}));
    session.put(session.id("net/MatMul-op9", 1, {}, 0, 0, 1), f32({after, 2}));
  };
  fill_both(a, 2, 4);
  fill_both(b, 5, 7);
  const DiffResult result = diff_sessions(a, b, {}).value();
  EXPECT_TRUE(find(result, b, "w", 1)->behind_random);
  EXPECT_TRUE(find(result, b, "net/MatMul-op9", 1)->behind_random);
  EXPECT_TRUE(result.culprits.empty());
}

TEST(DiffSessions, AnotherSeedIsAnotherDraw) {
  const GraphPtr graph = fake_graph({{"x", "Parameter"}, {"data-5", "Const"}, {"net/Dropout-op0", "Dropout", {"x", "data-5"}}});
  FakeSession a(graph), b(graph);
  const auto fill_seeded = [](FakeSession& session, double seed, float dropped) {
    session.put("x", 0, f32({1, 1}));
    session.put("data-5", 0, make_tensor(DType::kInt64, {1}, std::vector<double>{seed}));
    session.put("net/Dropout-op0", 0, f32({dropped, 1}));
  };
  fill_seeded(a, 1, 0);
  fill_seeded(b, 2, 2);
  const DiffResult result = diff_sessions(a, b, {}).value();
  EXPECT_EQ(find(result, b, "net/Dropout-op0")->role, DiffRole::kRandom);
}

TEST(DiffSessions, ARandomOperatorWithOtherInputsIsAVictimLikeAnyOther) {
  FakeSession a(with_dropout()), b(with_dropout());
  fill_dropout(a, 2, 3);
  fill_dropout(b, 4, 3);
  a.put("x", 0, f32({7, 1}));
  const DiffResult result = diff_sessions(a, b, {}).value();
  EXPECT_TRUE(result.random.empty());
  EXPECT_EQ(find(result, b, "net/Dropout-op0")->role, DiffRole::kVictim);
  EXPECT_EQ(b.node(result.tensors[result.first.value()].b).name, "x");
}

TEST(DiffSessions, WhatRoundingExplainsIsWithinTolerance) {
  FakeSession a(chain()), b(chain());
  fill(a, 0, 1, 2, 3.0000005);
  fill(b, 0, 1, 2, 3);
  const DiffResult result = diff_sessions(a, b, {}).value();
  EXPECT_TRUE(result.is_equal());
  EXPECT_EQ(result.close, 1u);
  DiffOptions exact;
  exact.rtol = 0;
  EXPECT_EQ(diff_sessions(a, b, exact).value().different, 1u);
}

TEST(DiffSessions, SmallValuesAmongLargeOnesMayBeOffByWhatTheLargeOnesAre) {
  FakeSession a(chain()), b(chain());
  fill(a, 0, 1, 2, 3);
  fill(b, 0, 1, 2, 3);
  a.put("net/Exp-op0", 0, f32({1000, 1e-5}));
  b.put("net/Exp-op0", 0, f32({1000, 0}));
  EXPECT_TRUE(diff_sessions(a, b, {}).value().is_equal());
  a.put("net/Exp-op0", 0, f32({1e-3, 1e-5}));
  b.put("net/Exp-op0", 0, f32({1e-3, 0}));
  EXPECT_FALSE(diff_sessions(a, b, {}).value().is_equal());
}

TEST(DiffSessions, RecordedInputsSpeakWhereAProducerHasNoCounterpart) {
  FakeSession a(chain());
  FakeSession b(fake_graph({{"x", "Parameter"},
                            {"net/Abs-op0", "Abs", {"x"}},
                            {"net/Log-op0", "Log", {"net/Abs-op0"}},
                            {"net/Exp-op0", "Exp", {"net/Log-op0"}}}));
  fill(a, 0, 1, 2, 3);
  fill(b, 0, 1, 2, 5);
  a.put("net/Exp-op0", 0, f32({2, 1}), {Io::kInput, 0});
  b.put("net/Exp-op0", 0, f32({0.7, 0}), {Io::kInput, 0});
  for (const bool turned : {false, true}) {
    const DiffResult result = turned ? diff_sessions(b, a, {}).value() : diff_sessions(a, b, {}).value();
    ASSERT_TRUE(result.first);
    const TensorDiff& first = result.tensors[*result.first];
    EXPECT_EQ(first.role, DiffRole::kVictim);
    EXPECT_EQ(first.worst_input, turned ? "input:0 net/Abs-op0, in A net/Log-op0 (only in A)" : "input:0 net/Log-op0 (only in B)");
    EXPECT_EQ((turned ? result.only_a : result.only_b).size(), 1u);
  }
}

TEST(DiffSessions, WithoutAnInputTheBlameIsOpen) {
  FakeSession a(chain()), b(chain());
  for (FakeSession* session : {&a, &b}) fill(*session, 0, 1, 2, session == &a ? 3 : 4);
  a.erase(a.id("net/Abs-op0", 0));
  const DiffResult result = diff_sessions(a, b, {}).value();
  const TensorDiff* entry = find(result, b, "net/Exp-op0");
  EXPECT_EQ(entry->role, DiffRole::kUnknown);
  EXPECT_EQ(entry->unknown_input, "input:0 net/Abs-op0");
  EXPECT_EQ(result.uncompared, 1u);
  EXPECT_FALSE(result.is_complete());
}

TEST(DiffSessions, ReshapedAndRetypedTensorsAreEntriesAndTheRestIsCompared) {
  FakeSession a(chain()), b(chain());
  fill(a, 0, 1, 2, 3);
  fill(b, 0, 1, 2, 3);
  a.put("net/Abs-op0", 0, f32({2, 1, 0}));
  const double values[] = {3, 1};
  b.put("net/Exp-op0", 0, make_tensor(DType::kFloat16, {2}, values));
  const DiffResult result = diff_sessions(a, b, {}).value();
  EXPECT_EQ(find(result, b, "net/Abs-op0")->state, DiffState::kReshaped);
  EXPECT_EQ(find(result, b, "net/Exp-op0")->state, DiffState::kClose);
  EXPECT_EQ(result.reshaped, 1u);
  EXPECT_EQ(result.dtype_changes, 1u);
  EXPECT_EQ(result.equal, 1u);
}

TEST(DiffSessions, StepsOfOneSideAreNoted) {
  FakeSession a(chain()), b(chain());
  for (int64_t step : {0, 1, 2}) fill(a, step, 1, 2, 3);
  for (int64_t step : {1, 5}) fill(b, step, 1, 2, 3);
  const DiffResult result = diff_sessions(a, b, {}).value();
  EXPECT_EQ(result.steps, (std::vector<std::pair<int64_t, int64_t>>{{1, 1}}));
  ASSERT_EQ(result.notes.size(), 2u);
  EXPECT_EQ(result.notes[0].text, "steps 0, 2: only in A");
  EXPECT_EQ(result.notes[1].text, "step 5: only in B");
}

TEST(DiffSessions, StepsChosenForEachSideArePairedInOrder) {
  FakeSession a(chain());
  fill(a, 1, 1, 2, 3);
  fill(a, 4, 1, 2, 9);
  DiffOptions options;
  options.steps_a = IntSet::of(1);
  options.steps_b = IntSet::of(4);
  const DiffResult result = diff_sessions(a, a, options).value();
  EXPECT_EQ(result.steps, (std::vector<std::pair<int64_t, int64_t>>{{1, 4}}));
  EXPECT_EQ(result.different, 1u);
  EXPECT_EQ(diff_sessions(a, a, {}).status().code(), Code::kInvalidArgument);
}

TEST(DiffSessions, AnUpdatedParameterComesBehindTheOperators) {
  const auto net = [] {
    return fake_graph({{"w", "Parameter"}, {"net/Mul-op0", "Mul", {"w"}}, {"opt/AssignAdd-op0", "AssignAdd", {"w", "net/Mul-op0"}}});
  };
  FakeSession a(net()), b(net());
  for (FakeSession* session : {&a, &b}) {
    const double grad = session == &a ? 2 : 3;
    session->put("net/Mul-op0", 0, f32({1, 1}), {Io::kInput, 0});
    session->put("net/Mul-op0", 0, f32({grad, 1}));
    session->put("w", 0, f32({1 + grad, 2}));
  }
  const DiffResult result = diff_sessions(a, b, {}).value();
  ASSERT_EQ(result.tensors.size(), 2u);
  EXPECT_EQ(b.node(result.tensors[0].b).name, "net/Mul-op0");
  EXPECT_EQ(result.tensors[0].role, DiffRole::kCulprit);
  EXPECT_EQ(b.node(result.tensors[1].b).name, "w");
  EXPECT_EQ(result.tensors[1].role, DiffRole::kVictim);
}

TEST(DiffSessions, ThreadsDoNotChangeTheResult) {
  FakeSession a(chain()), b(chain());
  for (int64_t step = 0; step < 20; ++step) {
    fill(a, step, 1, 2, 3 + static_cast<double>(step % 3));
    fill(b, step, 1, 2, 3);
  }
  DiffOptions one, many;
  one.threads = 1;
  many.threads = 4;
  const DiffResult x = diff_sessions(a, b, one).value(), y = diff_sessions(a, b, many).value();
  EXPECT_EQ(x.different, y.different);
  EXPECT_EQ(x.first, y.first);
  EXPECT_EQ(x.culprits, y.culprits);
}

TEST(DiffSessions, UnreadableTensorsAreEntriesWithTheirReason) {
  FakeSession a(chain()), b(chain());
  fill(a, 0, 1, 2, 3);
  fill(b, 0, 1, 2, 3);
  b.set_read_error(b.id("net/Exp-op0", 0), Status(Code::kIoError, "the file shrank"));
  const DiffResult result = diff_sessions(a, b, {}).value();
  EXPECT_EQ(find(result, b, "net/Exp-op0")->reason, "the file shrank");
  EXPECT_EQ(result.uncompared, 1u);
  EXPECT_EQ(result.equal, 2u);
}

TEST(DiffSessions, NothingInCommonIsAnError) {
  FakeSession a(chain()), b(fake_graph({{"y", "Parameter"}, {"other/Sin-op0", "Sin", {"y"}}}));
  fill(a, 0, 1, 2, 3);
  b.put("y", 0, f32({1}));
  b.put("other/Sin-op0", 0, f32({1}));
  EXPECT_EQ(diff_sessions(a, b, {}).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace msdbg
