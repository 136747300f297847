// Which ranks share a value: reductions, groups, shards, and equality in the first step.
#include <gtest/gtest.h>

#include "analysis/trained_ranks.h"

namespace msdbg {
namespace {

using namespace replica_test;

TEST(ReplicaParts, ShapesThatDifferAreShards) {
  Trained s(2, 2, [](int) { return Net{.group = "", .reduction = ""}; });
  for (int step : {0, 1}) {
    s.set(1, step, "fc.weight", f32({1, 2}));
    s.set(1, step, "moments.fc.weight", f32({1, 2}));
  }
  const ReplicasResult result = s.compare();
  EXPECT_TRUE(result.differences.empty());
  ASSERT_TRUE(left_out(result, "their shapes differ"));
  EXPECT_EQ(left_out(result, "their shapes differ")->tensors, 2u);
}

TEST(ReplicaParts, ValuesThatDifferOnEveryRankInTheFirstStepAreShards) {
  Trained s(4, 2, [](int) { return Net{.group = "", .reduction = ""}; });
  for (int step : {0, 1}) {
    for (int rank = 0; rank < 4; ++rank) s.set(rank, step, "fc.weight", f32({1.0 + rank, 2, 3}));
  }
  const ReplicasResult result = s.compare();
  EXPECT_TRUE(result.differences.empty());
  EXPECT_TRUE(left_out(result, "they differ in step 0, the first with them"));
}

TEST(ReplicaParts, WithoutAReductionEqualityInTheFirstStepDecides) {
  Trained s(3, 2, [](int) { return Net{.group = "", .reduction = ""}; });
  s.set(1, 1, "fc.weight", f32({7, 7, 7}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_TRUE(result.differences[0].assumed);
  EXPECT_EQ(set_of(result, ReplicaKind::kParameter)->reason, "equal in step 0");
}

/// A second weight whose gradient no collective reduces, and what `more` adds.
Net forgotten(const std::vector<FakeNode>& more = {}) {
  Net net;
  net.more = {{"lost.weight", "Parameter"},
              {"moments.lost.weight", "Parameter"},
              {"Default/MatMul-op2", "MatMul", {"x", "lost.weight"}},
              {"Gradients/MatMul-op3", "MatMul", {"Default/MatMul-op2"}},
              {"Default/optimizer-M/ApplyMomentum-op1", "ApplyMomentum",
               {"lost.weight", "moments.lost.weight", "learning_rate", "Gradients/MatMul-op3", "momentum"}}};
  net.more.insert(net.more.end(), more.begin(), more.end());
  return net;
}

void put_lost(Trained& s, int ranks) {
  for (int step : {0, 1}) {
    for (int rank = 0; rank < ranks; ++rank) {
      s.set(rank, step, "lost.weight", f32({1.0 + rank, 2.0 + step, 3}));
      s.set(rank, step, "moments.lost.weight", f32({5.0 + rank, 2.0 + step, 3}));
    }
  }
}

TEST(ReplicaParts, ShardsThatWereEqualByChanceAreNoReplicas) {
  Trained s(3, 2, [](int) {
    Net net = forgotten();
    net.reduction = "";
    return net;
  });
  for (int rank = 0; rank < 3; ++rank) {
    for (int step : {0, 1}) {
      for (const char* name : {"lost.weight", "moments.lost.weight"}) s.set(rank, step, name, f32({1, 2.0 + step, 3}));
    }
    s.set(rank, 1, "fc.weight", f32({5.0 + rank, 7, 7}));
  }
  const ReplicasResult result = s.compare();
  EXPECT_TRUE(result.differences.empty());
  const NotReplicated* const weight = left_out(result, "equal in step 0 by chance: they differ on every rank from step 1 on");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->examples, std::vector<std::string>{"fc.weight"});
}

TEST(ReplicaParts, AWeightWhoseGradientIsNotReducedDriftsApart) {
  Trained s(3, 2, [](int) { return forgotten(); });
  put_lost(s, 3);
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  const ReplicaDifference& found = result.differences[0];
  EXPECT_EQ(found.cause, ReplicaCause::kUnreduced);
  EXPECT_EQ(s.name(found.tensor), "lost.weight:output:0");
  EXPECT_EQ(found.steps, (std::vector<int64_t>{0, 1}));
  ASSERT_EQ(found.reached.size(), 1u);
  EXPECT_EQ(s.name(found.reached[0]), "moments.lost.weight:output:0");
  EXPECT_EQ(difference_sentence(found), "each of ranks 0-2 trains it alone: no collective reduces its gradient, although others are reduced");
}

TEST(ReplicaParts, AWeightThatIsNotReducedMayBeAShardWhereRanksExchangeMore) {
  Trained s(3, 2, [](int) { return forgotten({{"Default/AllGather-op0", "AllGather", {"Default/MatMul-op2"}}}); });
  put_lost(s, 3);
  const ReplicasResult result = s.compare();
  EXPECT_TRUE(result.differences.empty());
  EXPECT_TRUE(left_out(result, "they differ in step 0, the first with them"));
}

TEST(ReplicaParts, SlicesOfAnOptimizersStateAreNoReplicas) {
  Trained s(4);
  for (int rank = 0; rank < 4; ++rank) {
    for (int step : {0, 1}) s.set(rank, step, "moments.fc.weight", f32({1.0 + rank, 2.0 + step, 3}));
  }
  EXPECT_TRUE(s.compare().differences.empty());
  Trained cut(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (int step : {0, 1}) cut.set(rank, step, "moments.fc.weight", f32({1.0 + rank, 2.0 + step}));
  }
  EXPECT_TRUE(cut.compare().differences.empty());
}

TEST(ReplicaParts, OptimizerShardingSplitsWeights) {
  Trained s(4, 2, [](int) { return Net{.reduction = "ReduceScatter"}; });
  for (int rank = 0; rank < 4; ++rank) s.set(rank, 1, "fc.weight", f32({5.0 + rank, 7, 7}));
  const ReplicasResult result = s.compare();
  EXPECT_TRUE(result.differences.empty());
  EXPECT_TRUE(left_out(result, "their gradients pass ReduceScatter"));
}

TEST(ReplicaParts, GroupsShareAmongThemselves) {
  Trained s(4, 2, [](int rank) { return Net{.group = rank < 2 ? "2-17" : "2-18"}; });
  for (int rank : {2, 3}) {
    for (const char* name : {"fc.weight", "moments.fc.weight"}) {
      for (int step : {0, 1}) s.set(rank, step, name, f32({40.0 + step, 41, 42}));
    }
    for (int step : {0, 1}) {
      for (const std::string& name : {kReduce, std::string("Default/Mul-op0"), kApply}) s.set(rank, step, name, f32({50, 51, 52}));
    }
  }
  EXPECT_TRUE(s.compare().differences.empty());
  s.set(3, 1, "fc.weight", f32({40, 41, 42.5}));
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].odd, Ranks{3});
  EXPECT_EQ(result.differences[0].others, Ranks{2});
  EXPECT_FALSE(result.differences[0].decided);
  EXPECT_FALSE(result.differences[0].assumed);
}

/// Ranks 0 and 2, and 1 and 3, reduce gradients. fc.weight is equal on all of them in step 0; more.weight is a shard, if `sharded`.
ReplicasResult tensor_parallel(bool sharded, bool constant, const std::function<double(int rank, int step)>& drift) {
  const auto net = [](int rank) {
    Net made{.group = "data" + std::to_string(rank % 2)};
    FakeNode reduce{"Default/AllReduce-op5", "AllReduce", {"Gradients/MatMul-op5"}};
    reduce.attributes = {{"group", made.group}};
    made.more = {{"more.weight", "Parameter"}, {"Gradients/MatMul-op5", "MatMul", {kForward}}, reduce,
                 {"Default/optimizer-M/SGD-op5", "SGD", {"more.weight", "Default/AllReduce-op5", "learning_rate"}}};
    return made;
  };
  Trained s(4, 3, net);
  for (int rank = 0; rank < 4; ++rank) {
    for (int step = 0; step < 3; ++step) {
      const double own = drift(rank, step), slope = constant && step == 0 ? 0 : 1;
      s.set(rank, step, "fc.weight", f32({1 + own, 1 + slope - own, 1 + 2 * slope + own}));
      s.set(rank, step, "moments.fc.weight", f32({1 + own, 2, 3}));
      s.set(rank, step, "more.weight", f32({sharded ? 1.0 + rank % 2 : 1.0, 2, 3}));
    }
  }
  return s.compare();
}

TEST(ReplicaParts, AWeightThatIsNoShardIsEqualInAllGroups) {
  const auto by_group = [](int rank, int step) { return step > 0 && rank % 2 == 1 ? 0.125 : 0.0; };
  const ReplicasResult result = tensor_parallel(true, false, by_group);
  ASSERT_EQ(result.differences.size(), 1U);
  EXPECT_EQ(result.differences[0].odd, (Ranks{1, 3}));
  EXPECT_EQ(result.differences[0].others, (Ranks{0, 2}));
  EXPECT_EQ(result.differences[0].tensor.step, 1);
  EXPECT_EQ(result.differences[0].steps, (std::vector<int64_t>{1, 2}));
  EXPECT_FALSE(result.differences[0].decided);
  // Shards may begin alike.
  EXPECT_TRUE(tensor_parallel(false, false, by_group).differences.empty());
  EXPECT_TRUE(tensor_parallel(true, true, by_group).differences.empty());
}

TEST(ReplicaParts, TheOtherGroupsTellWhichRankOfTwoIsOdd) {
  const auto by_rank = [](int rank, int step) { return step > 0 && rank == 1 ? 0.125 : 0.0; };
  const ReplicasResult result = tensor_parallel(true, false, by_rank);
  ASSERT_FALSE(result.differences.empty());
  EXPECT_EQ(result.differences[0].odd, Ranks{1});
  EXPECT_EQ(result.differences[0].others, (Ranks{0, 2, 3}));
  EXPECT_TRUE(result.differences[0].decided);
  const ReplicasResult pair = tensor_parallel(false, false, by_rank);
  ASSERT_FALSE(pair.differences.empty());
  EXPECT_FALSE(pair.differences[0].decided);
}

}  // namespace
}  // namespace msdbg
