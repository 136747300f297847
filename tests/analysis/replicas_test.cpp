// Values that ranks must share, on sessions in memory.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "analysis/trained_ranks.h"

namespace msdbg {
namespace {

using namespace replica_test;

TEST(Replicas, EqualRanksHaveNoDifference) {
  Trained s(4);
  const ReplicasResult result = s.compare();
  EXPECT_TRUE(result.differences.empty());
  EXPECT_TRUE(result.not_checked.empty());
  EXPECT_EQ(result.nothing, "");
  // Weight, moments, rate, momentum, AllReduce, Mul, ApplyMomentum.
  EXPECT_EQ(result.coverage.checked, 7u * 4 * 2);
  const ReplicaSet* weights = set_of(result, ReplicaKind::kParameter);
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->ranks, (Ranks{0, 1, 2, 3}));
  EXPECT_FALSE(weights->assumed);
  EXPECT_EQ(weights->reason, "their gradients pass AllReduce of hccl_world_group");
  ASSERT_TRUE(left_out(result, "data of the rank"));
  EXPECT_EQ(left_out(result, "data of the rank")->examples, std::vector<std::string>{"x"});
  ASSERT_TRUE(left_out(result, "written from data"));
  EXPECT_EQ(left_out(result, "written from data")->examples, std::vector<std::string>{"bn.moving_mean"});
}

TEST(Replicas, MajorityTellsTheOddRankAndTheFirstOperatorThatShowsIt) {
  Trained s(4, 3);
  for (int rank = 0; rank < 4; ++rank) s.set(rank, 1, kForward, f32({1, 2, rank == 2 ? 12.0 : 3}), kIn1);
  for (int step : {1, 2}) {
    s.set(2, step, kApply, f32({1, 2, 99}));
    s.set(2, step, "fc.weight", f32({1, 2, 99}));
  }
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  const ReplicaDifference& found = result.differences[0];
  EXPECT_EQ(s.name(found.tensor), "fc.weight:output:0");
  EXPECT_EQ(s.name(found.seen), kForward + ":input:1");
  EXPECT_EQ(found.seen.step, 1);
  EXPECT_EQ(found.odd, Ranks{2});
  EXPECT_EQ(found.others, (Ranks{0, 1, 3}));
  EXPECT_TRUE(found.decided);
  EXPECT_EQ(found.elements, 1u);
  EXPECT_EQ(found.of, 3u);
  ASSERT_EQ(found.first.size(), 1u);
  EXPECT_EQ(found.first[0].at, std::vector<int64_t>{2});
  EXPECT_EQ(found.first[0].expected, 3);
  EXPECT_EQ(found.first[0].actual, 12);
  // 3 and 12 differ in the exponent only: by a factor of 4.
  EXPECT_EQ(found.bits, std::vector<int>{24});
  EXPECT_TRUE(found.single_flip);
  EXPECT_EQ(found.steps, (std::vector<int64_t>{1, 2}));
  ASSERT_EQ(found.reached.size(), 1u);
  EXPECT_EQ(s.name(found.reached[0]), kApply + ":output:0");
  EXPECT_EQ(difference_sentence(found),
            "rank 2 differs from ranks 0-1, 3 in 1 of 3 elements: [2] is 12 instead of 3, a single flipped bit (24)");
}

TEST(Replicas, TheLowestRankCanBeTheOddOne) {
  Trained s(3);
  s.set(0, 1, "fc.weight", f32({0, 0, 0}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].odd, Ranks{0});
  EXPECT_EQ(result.differences[0].cause, ReplicaCause::kValue);
  EXPECT_EQ(result.differences[0].elements, 3u);
  EXPECT_FALSE(result.differences[0].single_flip);
}

TEST(Replicas, OfTwoRanksNobodyKnowsTheOddOne) {
  Trained s(2);
  s.set(1, 1, "fc.weight", f32({0, 0, 0}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_FALSE(result.differences[0].decided);
  EXPECT_EQ(result.differences[0].others, Ranks{0});
  EXPECT_EQ(result.differences[0].odd, Ranks{1});
  EXPECT_EQ(difference_sentence(result.differences[0]),
            "rank 0 and rank 1 differ in 3 of 3 elements: [0] is 2 on rank 0 and 0 on rank 1; nobody can tell which is wrong");
}

TEST(Replicas, AnOptimizerThatWroteAnotherWeightMayHaveTakenAnOddState) {
  Trained s(3);
  for (int rank = 0; rank < 3; ++rank) s.set(rank, 1, kForward, f32({1, 2, 3}), kIn1);
  for (int rank = 0; rank < 3; ++rank) s.erase(s.id(kApply, 1, {}, 0, rank));
  s.set(2, 1, "fc.weight", f32({2, 4, 7}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].cause, ReplicaCause::kUnknown);
  EXPECT_EQ(result.differences[0].not_seen, std::vector<std::string>{"moments.fc.weight"});
}

TEST(Replicas, AStateThatIsOddBehindTheUpdateBroughtTheDifference) {
  Trained s(3);
  for (int rank = 0; rank < 3; ++rank) s.set(rank, 1, kForward, f32({1, 2, 3}), kIn1);
  for (int rank = 0; rank < 3; ++rank) s.erase(s.id(kApply, 1, {}, 0, rank));
  s.set(2, 1, "fc.weight", f32({2, 4, 7}));
  s.set(2, 1, "moments.fc.weight", f32({2, 4, 8}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  const ReplicaDifference& found = result.differences[0];
  EXPECT_EQ(found.cause, ReplicaCause::kValue);
  EXPECT_EQ(s.name(found.tensor), "moments.fc.weight:output:0");
  EXPECT_EQ(found.elements, 1u);
  ASSERT_EQ(found.first.size(), 1u);
  EXPECT_EQ(found.first[0].actual, 8);
  ASSERT_EQ(found.reached.size(), 1u);
  EXPECT_EQ(s.name(found.reached[0]), "fc.weight:output:0");
}

/// Three ranks whose Adam takes epsilon from a constant of the graph; `x` is data.
std::unique_ptr<FakeSession> with_epsilon(const std::vector<double>& epsilon) {
  std::vector<GraphPtr> graphs;
  for (int rank = 0; rank < 3; ++rank) {
    FakeNode reduce{kReduce, "AllReduce", {"Gradients/MatMul-op1"}};
    reduce.attributes = {{"group", "hccl_world_group"}};
    graphs.push_back(fake_graph(
        {{"x", "Parameter"}, {"w", "Parameter"}, {"moment1.w", "Parameter"}, {"moment2.w", "Parameter"}, {"learning_rate", "Parameter"},
         {"beta1_power", "Parameter"}, {"beta2_power", "Parameter"}, {"data-1", "Const"}, {"data-2", "Const"}, {"data-3", "Const"},
         {kForward, "MatMul", {"x", "w"}}, {"Gradients/MatMul-op1", "MatMul", {kForward}}, reduce,
         {"Default/optimizer-Adam/Adam-op0", "Adam",
          {"w", "moment1.w", "moment2.w", "beta1_power", "beta2_power", "learning_rate", "data-1", "data-2", "data-3", kReduce}}},
        rank));
  }
  auto s = std::make_unique<FakeSession>(graphs);
  for (int rank = 0; rank < 3; ++rank) {
    const auto put = [&](const std::string& name, TensorPtr value, Slot slot = {}) { s->put(s->id(name, 0, slot, 0, rank), std::move(value)); };
    put("x", f32({1.0 + rank}));
    put(kForward, f32({2, 3}), kIn1);
    for (const char* name : {"moment1.w", "moment2.w"}) put(name, f32({1, 1}));
    for (const char* name : {"learning_rate", "beta1_power", "beta2_power"}) put(name, f32(Shape{}, std::vector<double>{0.5}));
    put(kReduce, f32({4, 4}));
    const double own = epsilon[static_cast<size_t>(rank)];
    put("Default/optimizer-Adam/Adam-op0", f32(Shape{}, std::vector<double>{own}), Slot{Io::kInput, 8});
    put("w", f32({1 + own, 2 + own}));
  }
  return s;
}

TEST(Replicas, AConstantOfTheOptimizerThatDiffersIsNamed) {
  const auto s = with_epsilon({0.5, 0.5, 0.25});
  const ReplicasResult result = replicas(*s, {}).value();
  ASSERT_EQ(result.differences.size(), 1u);
  const ReplicaDifference& found = result.differences[0];
  EXPECT_EQ(s->tensor_name(found.tensor), "w:output:0");
  EXPECT_EQ(found.odd, Ranks{2});
  EXPECT_EQ(found.cause, ReplicaCause::kValue);
  EXPECT_EQ(found.arguments, "epsilon = 0.25 instead of 0.5");
  EXPECT_TRUE(found.not_seen.empty());
  ASSERT_TRUE(found.called);
  EXPECT_EQ(s->tensor_name(*found.called), "Default/optimizer-Adam/Adam-op0:output:0");
  const auto equal = with_epsilon({0.5, 0.5, 0.5});
  EXPECT_TRUE(replicas(*equal, {}).value().differences.empty());
}

TEST(Replicas, ACopyThatWasOddBeforeAllBecameNanIsFound) {
  Trained s(3);
  for (int rank = 0; rank < 3; ++rank) {
    s.set(rank, 1, kForward, f32({1, rank == 2 ? NAN : 2, 3}), kIn1);
    for (const char* name : {"fc.weight", "moments.fc.weight"}) s.set(rank, 1, name, f32({NAN, NAN, NAN}));
    s.set(rank, 1, kApply, f32({NAN, NAN, NAN}));
  }
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(s.name(result.differences[0].seen), kForward + ":input:1");
  EXPECT_EQ(result.differences[0].odd, Ranks{2});
  EXPECT_EQ(result.differences[0].elements, 1u);
}

TEST(Replicas, EachGroupHasItsOwnReasonAndItsOwnDifferences) {
  Trained s(6, 2, [](int rank) { return Net{rank < 3 ? "3-11111111" : "3-22222222"}; });
  s.set(5, 1, "fc.weight", f32({0, 0, 0}));
  const ReplicasResult result = s.compare();
  int sets = 0;
  for (const ReplicaSet& set : result.sets) {
    if (set.what != ReplicaKind::kParameter) continue;
    ++sets;
    const bool first = set.ranks == Ranks{0, 1, 2};
    EXPECT_EQ(set.reason, std::string("their gradients pass AllReduce of ") + (first ? "3-11111111" : "3-22222222"));
    EXPECT_EQ(set.different, first ? 0u : 1u);
  }
  EXPECT_EQ(sets, 2);
}

TEST(Replicas, BitsOfAFlipThatMakesNan) {
  Trained s(3);
  for (int rank = 0; rank < 3; ++rank) s.set(rank, 1, "fc.weight", f32({1.5, 4, 6}));
  s.set(1, 1, "fc.weight", f32({NAN, 4, 6}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].bits, std::vector<int>{30}) << "0x3fc00000 and 0x7fc00000";
  EXPECT_TRUE(result.differences[0].single_flip);
}

TEST(Replicas, TwoAgainstTwoIsUndecided) {
  Trained s(4);
  for (int rank : {1, 3}) s.set(rank, 1, "fc.weight", f32({0, 0, 0}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_FALSE(result.differences[0].decided);
  EXPECT_EQ(result.differences[0].odd, (Ranks{1, 3}));
}

TEST(Replicas, EveryNanIsTheSame) {
  Trained s(3);
  for (int rank = 0; rank < 3; ++rank) s.set(rank, 1, "fc.weight", f32({rank == 0 ? NAN : -NAN, 1, 2}));
  EXPECT_TRUE(s.compare().differences.empty());
  s.set(1, 1, "fc.weight", f32({5, 1, 2}));
  ASSERT_EQ(s.compare().differences.size(), 1u);
}

TEST(Replicas, ZeroAndMinusZeroDiffer) {
  Trained s(3);
  for (int rank = 0; rank < 3; ++rank) s.set(rank, 1, "fc.weight", f32({rank == 2 ? -0.0 : 0.0, 1, 2}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].bits, std::vector<int>{31});
}

TEST(Replicas, ARateOfItsOwnIsTheCauseOfWhatFollows) {
  Trained s(3);
  s.set(1, 1, "learning_rate", f32(Shape{}, std::vector<double>{0.25}));
  s.set(1, 1, kApply, f32({7, 7, 7}));
  s.set(1, 1, "fc.weight", f32({7, 7, 7}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].cause, ReplicaCause::kSetting);
  EXPECT_EQ(s.name(result.differences[0].tensor), "learning_rate:output:0");
  EXPECT_EQ(result.differences[0].reached.size(), 2u);
  EXPECT_EQ(difference_sentence(result.differences[0]), "rank 1 differs from ranks 0, 2 in 1 of 1 element: 0.25 instead of 0.5");
}

TEST(Replicas, ARateThatDiffersFromTheFirstStepOnIsNoShard) {
  Trained s(2);
  for (int step : {0, 1}) s.set(1, step, "learning_rate", f32(Shape{}, std::vector<double>{0.3}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].cause, ReplicaCause::kSetting);
  EXPECT_EQ(result.differences[0].tensor.step, 0);
}

// A shard of a weight may have one element; then the moments of it have one, too, and steer nothing.
TEST(Replicas, TheMomentOfAWeightWithOneElementIsNoSetting) {
  Trained s(2, 2, [](int) { return Net{.group = "", .reduction = ""}; });
  for (int rank : {0, 1}) {
    for (int step : {0, 1}) {
      s.set(rank, step, "fc.weight", f32({1.0 + rank}));
      if (step > 0) s.set(rank, step, "moments.fc.weight", f32({5.0 + rank}));
      else s.erase(s.id("moments.fc.weight", step, {}, 0, rank));
      s.set(rank, step, kApply, f32({9.0 + rank}));
    }
  }
  const ReplicasResult result = s.compare();
  EXPECT_TRUE(result.differences.empty());
  EXPECT_TRUE(left_out(result, "they differ in step 0"));
}

TEST(Replicas, AnOperatorWithEqualInputsComputedIt) {
  Trained s(3);
  s.set(1, 1, "Default/Mul-op0", f32({9, 9, 9}));
  for (int rank = 0; rank < 3; ++rank) s.set(rank, 1, "Default/Mul-op0", f32({2, 2, 2}), kIn0);
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].cause, ReplicaCause::kOperator);
  EXPECT_EQ(s.name(result.differences[0].tensor), "Default/Mul-op0:output:0");
}

TEST(Replicas, AnUpdateWithoutRecordedInputsMayHaveTakenAnotherWeight) {
  Trained s(3);
  s.set(1, 1, kApply, f32({7, 7, 7}));
  s.set(1, 1, "fc.weight", f32({7, 7, 7}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].cause, ReplicaCause::kUnknown);
}

TEST(Replicas, ACollectiveThatDeliversDifferentResults) {
  Trained s(3);
  s.set(2, 1, kReduce, f32({7, 7, 7}));
  s.set(2, 1, "Default/Mul-op0", f32({7, 7, 7}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].cause, ReplicaCause::kCollective);
  EXPECT_EQ(s.name(result.differences[0].tensor), kReduce + ":output:0");
}

TEST(Replicas, TwoFaultsInOneStepAreTwoDifferences) {
  Trained s(5);
  s.set(1, 1, "fc.weight", f32({7, 7, 7}));
  s.set(3, 1, "fc.weight", f32({8, 8, 8}));
  s.set(4, 1, "moments.fc.weight", f32({9, 9, 9}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 3u);
  std::vector<Ranks> odd;
  for (const ReplicaDifference& found : result.differences) odd.push_back(found.odd);
  std::ranges::sort(odd);
  EXPECT_EQ(odd, (std::vector<Ranks>{{1}, {3}, {4}}));
}

TEST(Replicas, AMissingStepOfOneRankIsNotChecked) {
  Trained s(3);
  TensorQuery step;
  step.ranks = IntSet::of(2);
  step.steps = IntSet::of(1);
  for (const TensorId& id : s.tensors(step)) s.erase(id);
  const ReplicasResult result = s.compare();
  EXPECT_TRUE(result.differences.empty());
  EXPECT_EQ(result.coverage.not_checked, 7u);
  ASSERT_EQ(result.not_checked.size(), 7u);
  EXPECT_EQ(result.not_checked[0].reason, "rank 2 has no step 1");
  EXPECT_EQ(result.not_checked[0].tensor.rank, 2);
}

TEST(Replicas, ATensorThatOneRankLacksOrCannotReadIsNotChecked) {
  Trained s(3);
  s.erase(s.id("fc.weight", 1, {}, 0, 1));
  s.set_read_error(s.id("momentum", 1, {}, 0, 2), Status(Code::kIoError, "disk on fire"));
  const ReplicasResult result = s.compare();
  EXPECT_TRUE(result.differences.empty());
  ASSERT_EQ(result.not_checked.size(), 2u);
  EXPECT_EQ(result.not_checked[0].reason, "disk on fire");
  EXPECT_EQ(result.not_checked[1].reason, "rank 1 did not dump it, but ranks 0, 2 did");
}

TEST(Replicas, ARankWithAnotherGraphIsLeftOutByName) {
  const std::vector<FakeNode> another = {{"other", "Parameter"}, {"Default/ReLU-op0", "ReLU", {"other"}}};
  std::vector<GraphPtr> graphs = {training(0), training(1), fake_graph(another, 2)};
  FakeSession s(graphs);
  for (int rank : {0, 1}) s.put(s.id("fc.weight", 0, {}, 0, rank), f32({1, 2, 3}));
  s.put(s.id("Default/ReLU-op0", 0, {}, 0, 2), f32({1}));
  const Result<ReplicasResult> result = replicas(s, {});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->differences.empty());
  EXPECT_EQ(result->coverage.checked, 2u);
  EXPECT_EQ(set_of(*result, ReplicaKind::kParameter)->ranks, (Ranks{0, 1}));
}

TEST(Replicas, OneRankHasNothingToCompare) {
  Trained s(1);
  EXPECT_EQ(s.compare().nothing, "rank 0 is the only one");
  Trained four(4);
  EXPECT_EQ(four.compare({.ranks = IntSet::of(2)}).nothing, "rank 2 is the only one");
}

TEST(Replicas, RecordedInputsStandInForParametersThatWereNotDumped) {
  Trained s(3);
  for (int rank = 0; rank < 3; ++rank) {
    for (int step : {0, 1}) {
      s.erase(s.id("fc.weight", step, {}, 0, rank));
      s.set(rank, step, kForward, f32({1, 2, rank == 1 && step == 1 ? 8.0 : 3.0}), kIn1);
    }
  }
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(s.name(result.differences[0].tensor), "fc.weight:output:0");
  EXPECT_EQ(s.name(result.differences[0].seen), kForward + ":input:1");
}

TEST(Replicas, EachTensorIsReadOnceWhereAllAreEqual) {
  Trained s(4);
  s.reset_counters();
  const ReplicasResult result = s.compare();
  EXPECT_EQ(s.reads(), result.coverage.checked);
}

}  // namespace
}  // namespace msdbg
