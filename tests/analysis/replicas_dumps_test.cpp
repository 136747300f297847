// Replicas in the real dumps of four ranks, and in dumps made from them.
#include <gtest/gtest.h>

#include <set>

#include "msdbg/dump.h"
#include "msdbg/replicas.h"
#include "support/made_ranks.h"
#include "support/rank_dumps.h"

namespace msdbg {
namespace {

using test::RankDump;
using Ranks = std::vector<int>;
const std::string kScope = "Default/network-WithLossCell/_backbone-LeNet5/";

struct Compared {
  std::unique_ptr<Session> session;
  ReplicasResult result;
  std::string name(const TensorId& id) const { return session->tensor_name(id); }
};

Compared compare(const std::string& path, const FollowOptions& options = {}) {
  Compared out;
  Result<std::unique_ptr<Session>> opened = open_dump(path);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  if (!opened) return out;
  out.session = std::move(*opened);
  Result<ReplicasResult> result = replicas(*out.session, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  if (result) out.result = std::move(*result);
  return out;
}
Compared of_real(const std::string& name) { return compare(std::string(MSDBG_TEST_DATA) + "/dumps/" + name); }

uint64_t tensors_of(const ReplicasResult& result, ReplicaKind what) {
  uint64_t sum = 0;
  for (const ReplicaSet& set : result.sets) {
    if (set.what == what) sum += set.tensors;
  }
  return sum;
}

TEST(ReplicasDumps, HealthyRanksAreEqualBitForBit) {
  const Compared ok = of_real("ranks-2.7.1-ok");
  EXPECT_TRUE(ok.result.differences.empty());
  EXPECT_TRUE(ok.result.not_checked.empty());
  EXPECT_EQ(ok.result.ranks, (Ranks{0, 1, 2, 3}));
  // Every parameter but inputs0 and inputs1, every AllReduce, every Mul behind one, every ApplyMomentum and the step counter.
  EXPECT_EQ(tensors_of(ok.result, ReplicaKind::kParameter), 8u);
  EXPECT_EQ(tensors_of(ok.result, ReplicaKind::kOptimizerState), 11u);
  EXPECT_EQ(tensors_of(ok.result, ReplicaKind::kCollectiveOutput), 8u);
  EXPECT_EQ(tensors_of(ok.result, ReplicaKind::kComputed), 8u);
  EXPECT_EQ(tensors_of(ok.result, ReplicaKind::kUpdate), 9u);
  EXPECT_EQ(ok.result.coverage.checked, 44u * 4 * 2);
  ASSERT_EQ(ok.result.not_replicated.size(), 1u);
  EXPECT_EQ(ok.result.not_replicated[0].examples, (std::vector<std::string>{"inputs0", "inputs1"}));
}

TEST(ReplicasDumps, NanEverywhereIsEqual) {
  const Compared bad = of_real("ranks-2.7.1-badbatch");
  EXPECT_TRUE(bad.result.differences.empty());
  // NaN may hide a copy that was odd when the step began: in the step with the first ones, recorded inputs are compared as well.
  EXPECT_EQ(bad.result.coverage.checked, 44u * 4 * 3 + 61u * 4);
}

TEST(ReplicasDumps, AFlippedBitOfOneWeightIsFound) {
  const Compared flip = of_real("ranks-2.7.1-flip");
  ASSERT_EQ(flip.result.differences.size(), 1u);
  const ReplicaDifference& found = flip.result.differences[0];
  EXPECT_EQ(found.cause, ReplicaCause::kValue);
  EXPECT_EQ(flip.name(found.tensor), "fc1.weight:output:0");
  EXPECT_EQ(found.tensor.rank, 1);
  EXPECT_EQ(found.tensor.step, 1);
  EXPECT_EQ(flip.name(found.seen), kScope + "fc1-Dense/MatMul-op0:input:1");
  EXPECT_EQ(found.odd, Ranks{1});
  EXPECT_EQ(found.others, (Ranks{0, 2, 3}));
  EXPECT_TRUE(found.decided);
  EXPECT_FALSE(found.assumed);
  EXPECT_EQ(found.elements, 1u);
  EXPECT_EQ(found.of, 864u);
  ASSERT_EQ(found.first.size(), 1u);
  EXPECT_EQ(found.first[0].at, (std::vector<int64_t>{5, 17}));
  EXPECT_FLOAT_EQ(static_cast<float>(found.first[0].expected), 0.0218744911F);
  EXPECT_FLOAT_EQ(static_cast<float>(found.first[0].actual), 0.0874979645F);
  EXPECT_EQ(found.bits, std::vector<int>{24});
  EXPECT_TRUE(found.single_flip);
  EXPECT_EQ(found.steps, (std::vector<int64_t>{1, 2}));
  // Besides the parameter only the operator that updates it: every AllReduce output is equal.
  ASSERT_EQ(found.reached.size(), 1u);
  EXPECT_EQ(flip.name(found.reached[0]), "Default/optimizer-Momentum/ApplyMomentum-op5:output:0");
}

TEST(ReplicasDumps, TwoRanksCannotTellWhichIsOdd) {
  RankDump dump("ranks-2.7.1-flip");
  dump.copy_rank(0, 0).copy_rank(1, 1);
  const Compared two = compare(dump.path());
  ASSERT_EQ(two.result.differences.size(), 1u);
  EXPECT_FALSE(two.result.differences[0].decided);
  EXPECT_TRUE(two.result.differences[0].single_flip);
}

TEST(ReplicasDumps, OfThreeRanksTheMajorityDecides) {
  RankDump dump("ranks-2.7.1-flip");
  dump.copy_rank(1, 0, false).copy_rank(2, 1).copy_rank(3, 2);
  const Compared three = compare(dump.path());
  ASSERT_EQ(three.result.differences.size(), 1u);
  EXPECT_EQ(three.result.differences[0].odd, Ranks{0});
  EXPECT_EQ(three.result.differences[0].others, (Ranks{1, 2}));
}

TEST(ReplicasDumps, TwoFaultsOnTwoOfEightRanks) {
  RankDump dump("ranks-2.7.1-ok");
  dump.copy_ranks(8);
  dump.flip(dump.file(5, 1, "Parameter.conv2_weight"), 7, 30);
  dump.set(dump.file(3, 1, "Parameter.moments_fc2_bias"), 3, 1.5F);
  const Compared eight = compare(dump.path());
  ASSERT_EQ(eight.result.differences.size(), 2u);
  std::set<std::pair<std::string, int>> found;
  for (const ReplicaDifference& difference : eight.result.differences) {
    EXPECT_EQ(difference.tensor.step, 1);
    EXPECT_EQ(difference.elements, 1u);
    found.insert({eight.session->node(difference.tensor).name, difference.odd.front()});
  }
  EXPECT_EQ(found, (std::set<std::pair<std::string, int>>{{"conv2.weight", 5}, {"moments.fc2.bias", 3}}));
}

TEST(ReplicasDumps, ALearningRateOfItsOwnIsNamed) {
  RankDump dump("ranks-2.7.1-ok");
  dump.copy_ranks(4);
  for (int step : {0, 1}) {
    dump.set(dump.file(2, step, "Parameter.learning_rate"), 0, 0.1F);
    dump.set(dump.file(2, step, "Parameter.fc3_bias"), 0, 0.3F);
    dump.set(dump.file(2, step, "ApplyMomentum.Default_optimizer-Momentum_ApplyMomentum-op0", ".output.0."), 0, 0.3F);
  }
  const Compared rate = compare(dump.path());
  ASSERT_GE(rate.result.differences.size(), 1u);
  EXPECT_EQ(rate.result.differences[0].cause, ReplicaCause::kSetting);
  EXPECT_EQ(rate.name(rate.result.differences[0].tensor), "learning_rate:output:0");
  EXPECT_EQ(rate.result.differences[0].odd, Ranks{2});
}

TEST(ReplicasDumps, AMissingRankAndAMissingStep) {
  RankDump dump("ranks-2.7.1-flip");
  dump.copy_rank(0, 0).copy_rank(1, 1).copy_rank(3, 3).remove_step(3, 2);
  const Compared three = compare(dump.path());
  EXPECT_EQ(three.result.ranks, (Ranks{0, 1, 3}));
  ASSERT_EQ(three.result.differences.size(), 1u);
  EXPECT_EQ(three.result.differences[0].odd, Ranks{1});
  EXPECT_TRUE(three.result.differences[0].decided);
  ASSERT_EQ(three.result.not_checked.size(), 44u);
  EXPECT_EQ(three.result.not_checked[0].reason, "rank 3 has no step 2");
}

TEST(ReplicasDumps, FilesOfOneRankServeAll) {
  RankDump dump("ranks-2.7.1-ok");
  dump.copy_rank(1, 0, false).copy_rank(2, 1, false).copy_rank(0, 2);
  std::filesystem::remove(std::filesystem::path(dump.path()) / "rank_1/execution_order/ms_execution_order_graph_0.csv");
  const Compared three = compare(dump.path());
  EXPECT_EQ(three.session->info().framework_version, "2.7.1");
  EXPECT_EQ(three.session->info().device_target, "CPU");
  const std::vector<std::string> names = [&] {
    std::vector<std::string> out;
    for (const NodeId id : three.session->graph(0, 0)->execution_order()) out.push_back(three.session->graph(0, 0)->node(id).name);
    return out;
  }();
  for (int rank : {1, 2}) {
    const Graph& graph = *three.session->graph(rank, 0);
    ASSERT_EQ(graph.execution_order().size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(graph.node(graph.execution_order()[i]).name, names[i]);
  }
  for (int rank : {0, 1, 2}) {
    bool missing = true;
    const TensorId weight{rank, 0, 1, 0, three.session->graph(rank, 0)->find("fc1.weight")->id, {}};
    EXPECT_TRUE(three.session->previous(weight, &missing).ok());
    EXPECT_FALSE(missing);
  }
}

/// The file of a weight holds it as the update left it. A view is what the step began with.
TEST(ReplicasDumps, AViewTellsThatItsWeightWasOdd) {
  test::MadeRanks dump(2);
  for (const int rank : {0, 1, 2}) {
    dump.rank(rank, {"fc.weight", "moments.fc.weight", "learning_rate", "momentum"},
              {{"Default/t-op0", "t", {"fc.weight"}},
               {"Gradients/MatMul-op0", "MatMul", {"Default/t-op0"}},
               {"Default/optimizer-Momentum/ApplyMomentum-op0",
                "ApplyMomentum",
                {"fc.weight", "moments.fc.weight", "learning_rate", "Gradients/MatMul-op0", "momentum"}}});
  }
  dump.value(1, 1, "Default/t-op0", {1e30});
  dump.value(1, 1, "fc.weight", {2e30});
  const Compared found = compare(dump.path());
  ASSERT_FALSE(found.result.differences.empty());
  const ReplicaDifference& first = found.result.differences.front();
  EXPECT_EQ(first.cause, ReplicaCause::kValue);
  EXPECT_EQ(found.name(first.tensor), "fc.weight:output:0");
  EXPECT_EQ(found.name(first.seen), "Default/t-op0:output:0");
  EXPECT_EQ(first.odd, Ranks{1});
  for (size_t i = 1; i < found.result.differences.size(); ++i) EXPECT_NE(found.name(found.result.differences[i].tensor), "fc.weight:output:0");
}

TEST(ReplicasDumps, OneRankIsNothingToCompare) {
  const Compared one = of_real("lenet-2.7.1-ok");
  EXPECT_EQ(one.result.nothing, "rank 0 is the only one");
  EXPECT_TRUE(one.result.differences.empty());
}

}  // namespace
}  // namespace msdbg
