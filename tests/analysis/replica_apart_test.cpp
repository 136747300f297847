// Weights that every rank has another one of, although they were equal at first.
#include <algorithm>
#include <string>

#include "analysis/trained_ranks.h"

namespace msdbg {
namespace {

using namespace testing;
using namespace replica_test;

/// Nothing reduces the gradient of fc.weight. The weights of a step are `shared`, or each rank has its own.
class Apart : public Trained {
 public:
  explicit Apart(int ranks, const std::vector<bool>& shared, const std::function<Net(int)>& net = [](int) { return Net{.reduction = ""}; })
      : Trained(ranks, static_cast<int>(shared.size()), net) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (size_t step = 0; step < shared.size(); ++step) put_weight(rank, static_cast<int64_t>(step), shared[step] ? 0 : rank);
    }
  }

 private:
  void put_weight(int rank, int64_t step, int own) {
    std::vector<double> values;
    for (int i = 0; i < 12; ++i) values.push_back(1 + 0.25 * i + 0.01 * static_cast<double>(step) * ((i * (own + 3)) % 7 - 3));
    for (const char* name : {"fc.weight", "moments.fc.weight"}) set(rank, step, name, f32(Shape{12}, values));
    set(rank, step, kApply, f32(Shape{12}, values));
    set(rank, step, "Default/Mul-op0", f32(Shape{12}, values));
  }
};

TEST(ReplicaApart, RanksThatExchangeNothingTrainByThemselves) {
  for (const int ranks : {2, 3, 4}) {
    const ReplicasResult result = Apart(ranks, {true, false, false}).compare();
    ASSERT_EQ(result.differences.size(), 1U) << ranks;
    const ReplicaDifference& difference = result.differences.front();
    EXPECT_EQ(difference.cause, ReplicaCause::kApart);
    EXPECT_EQ(difference.tensor.step, 1);
    EXPECT_FALSE(difference.decided);
    EXPECT_EQ(difference.steps, (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(all_ranks(difference).size(), static_cast<size_t>(ranks));
    EXPECT_NE(difference_sentence(difference).find("trains it alone: no exchange between them is recorded"), std::string::npos);
    const ReplicaSet* const weights = set_of(result, ReplicaKind::kParameter);
    ASSERT_NE(weights, nullptr);
    EXPECT_EQ(weights->different, 1U);
  }
}

TEST(ReplicaApart, WeightsThatAreEqualAgainAreNoFault) {
  for (const int ranks : {2, 3}) {
    const ReplicasResult result = Apart(ranks, {true, false, false, true, false}).compare();
    EXPECT_TRUE(result.differences.empty()) << ranks;
    const NotReplicated* const weights = left_out(result, "each rank has another one from step 1 on, until they are equal again in step 3");
    ASSERT_NE(weights, nullptr);
    EXPECT_EQ(weights->examples.front(), "fc.weight");
    EXPECT_EQ(set_of(result, ReplicaKind::kParameter), nullptr);
    uint64_t compared = 0;  // the numbers that steer the optimizer are left
    for (const ReplicaSet& set : result.sets) compared += set.tensors;
    EXPECT_EQ(result.coverage.checked, compared * 5 * static_cast<uint64_t>(ranks));
  }
}

TEST(ReplicaApart, AnExchangeMayBeOfShardsThatBeganAlike) {
  const auto net = [](int) { return Net{.reduction = "", .more = {{"Default/AllGather-op0", "AllGather", {kForward}}}}; };
  const ReplicasResult result = Apart(3, {true, false, false}, net).compare();
  EXPECT_TRUE(result.differences.empty());
  EXPECT_NE(left_out(result, "each rank trains them by itself, or they are shards that began alike"), nullptr);
}

TEST(ReplicaApart, StagesOfAPipelineRunOtherOperators) {
  const auto net = [](int rank) {
    Net made{.reduction = ""};
    if (rank == 2) made.more = {{"Default/Loss-op0", "MSELoss", {kForward}}};
    return made;
  };
  const ReplicasResult result = Apart(3, {true, false, false}, net).compare();
  EXPECT_TRUE(result.differences.empty());
  EXPECT_NE(left_out(result, "shards that began alike"), nullptr);
}

/// Five more weights that no collective reduces; `moved` of them differ on every rank from step 1 on, and fc.weight stays equal.
ReplicasResult with_more(int moved, bool constant = false) {
  const auto net = [](int) {
    Net made{.reduction = "", .more = {{"Default/AllGather-op0", "AllGather", {kForward}}}};
    for (int i = 0; i < 5; ++i) {
      const std::string name = "more" + std::to_string(i) + ".weight", at = std::to_string(i + 5);
      made.more.push_back({name, "Parameter"});
      made.more.push_back({"Gradients/MatMul-op" + at, "MatMul", {kForward}});
      made.more.push_back({"Default/optimizer-M/SGD-op" + at, "SGD", {name, "Gradients/MatMul-op" + at, "learning_rate"}});
    }
    return made;
  };
  Apart s(3, {true, true, true}, net);
  for (int rank = 0; rank < 3; ++rank) {
    for (int step = 0; step < 3; ++step) {
      for (int i = 0; i < 5; ++i) {
        const double own = i < moved && step > 0 ? 0.01 * (1 + rank) * step : 0, slope = constant && step == 0 ? 0 : 0.5;
        s.set(rank, step, "more" + std::to_string(i) + ".weight", f32({1 + own, 1 + slope - 2 * own, 1 + 2 * slope + 3 * own}));
      }
    }
  }
  return s.compare();
}

TEST(ReplicaApart, AWeightWhoseGradientIsLeftOutDriftsWhileAllOthersStayEqual) {
  const ReplicasResult result = with_more(1);
  ASSERT_EQ(result.differences.size(), 1U);
  EXPECT_EQ(result.differences[0].cause, ReplicaCause::kApart);
  EXPECT_EQ(result.differences[0].staying, 5U);
  EXPECT_EQ(difference_sentence(result.differences[0]), "each of ranks 0-2 trains it alone: 5 other weights stay equal");
}

TEST(ReplicaApart, ManyThatDriftMayBeShardsAndSoMayConstants) {
  EXPECT_TRUE(with_more(2).differences.empty());
  EXPECT_TRUE(with_more(1, true).differences.empty());
}

TEST(ReplicaApart, EachGroupOfRanksThatSharesAWeightIsNamed) {
  const auto net = [](int rank) {
    Net made{.reduction = "", .more = {{"Default/AllGather-op0", "AllGather", {kForward}}}};
    for (int i = 0; i < 5; ++i) {
      const std::string name = "more" + std::to_string(i) + ".weight", at = std::to_string(i + 5);
      FakeNode reduce{"Default/AllReduce-op" + at, "AllReduce", {"Gradients/MatMul-op" + at}};
      reduce.attributes = {{"group", "data" + std::to_string(rank % 2)}};
      made.more.push_back({name, "Parameter"});
      made.more.push_back({"Gradients/MatMul-op" + at, "MatMul", {kForward}});
      made.more.push_back(reduce);
      made.more.push_back({"Default/optimizer-M/SGD-op" + at, "SGD", {name, "Default/AllReduce-op" + at, "learning_rate"}});
    }
    return made;
  };
  Trained s(4, 3, net);
  for (int rank = 0; rank < 4; ++rank) {
    for (int step = 0; step < 3; ++step) {
      const double shard = rank % 2, own = 0.01 * step * (1 + rank);
      for (const char* name : {"fc.weight", "moments.fc.weight"}) s.set(rank, step, name, f32({1 + shard + own, 2 - own, 4 + own}));
      for (int i = 0; i < 5; ++i) s.set(rank, step, "more" + std::to_string(i) + ".weight", f32({1 + shard, 2, 4}));
    }
  }
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1U);
  EXPECT_EQ(result.differences[0].cause, ReplicaCause::kApart);
  EXPECT_EQ(all_ranks(result.differences[0]), (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(result.differences[0].seen.rank, 2);  // compared within its group
  EXPECT_EQ(result.differences[0].expected.rank, 0);
  EXPECT_EQ(std::ranges::count(result.sets, 1U, &ReplicaSet::different), 2);
}

TEST(ReplicaApart, OfTwoRanksThatExchangeOneTookOtherGradients) {
  const auto net = [](int) { return Net{.reduction = "", .more = {{"Default/AllGather-op0", "AllGather", {kForward}}}}; };
  const ReplicasResult result = Apart(2, {true, false, false}, net).compare();
  ASSERT_EQ(result.differences.size(), 1U);
  EXPECT_NE(result.differences.front().cause, ReplicaCause::kApart);
  EXPECT_FALSE(result.differences.front().decided);
}

}  // namespace
}  // namespace msdbg
