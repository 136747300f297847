// Collectives as edges between ranks: which calls meet, and what propagation, bisect, trend and why make of them.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "analysis/collectives.h"
#include "msdbg/analysis.h"
#include "msdbg/dump.h"
#include "msdbg/follow.h"
#include "support/made_ranks.h"
#include "support/rank_dumps.h"

namespace msdbg {
namespace {

using test::MadeNode;
using test::MadeRanks;
using test::RankDump;
using testing::open;
using Ranks = std::vector<int>;
using Names = std::set<std::string>;
const std::string kReducer = "Default/grad_reducer-DistributedGradReducer/";

std::string real(const std::string& name) { return std::string(MSDBG_TEST_DATA) + "/dumps/" + name; }

struct Spread {
  std::unique_ptr<Session> session;
  Propagation result;

  /// `RANK NAME` of the nodes with this role.
  Names with(PropagationRole role) const {
    Names out;
    for (const PropagationNode& at : result.nodes) {
      if (at.role == role) out.insert(std::to_string(at.rank) + " " + session->graph(at.rank, at.graph)->node(at.node).name);
    }
    return out;
  }
  Ranks reached() const {
    Ranks out;
    for (const RankReached& rank : result.ranks_reached) out.push_back(rank.rank);
    return out;
  }
  std::vector<const PropagationEdge*> between_ranks() const {
    std::vector<const PropagationEdge*> out;
    for (const PropagationEdge& edge : result.edges) {
      if (edge.collective) out.push_back(&edge);
    }
    return out;
  }
};

Spread spread(const std::string& path, const std::string& tensor, int64_t step, int rank, bool up = false) {
  Spread out;
  out.session = open(path);
  const Result<TensorId> id = resolve_tensor(*out.session, tensor, step, rank);
  EXPECT_TRUE(id.ok()) << id.status().message();
  PropagationOptions options;
  options.up = up;
  Result<Propagation> found = propagation(*out.session, id ? *id : TensorId{}, options);
  EXPECT_TRUE(found.ok()) << found.status().message();
  if (found) out.result = std::move(*found);
  return out;
}

// ---- the real dumps

TEST(RankEdges, ABadBatchReachesTheWeightsOfAllRanks) {
  const Spread down = spread(real("ranks-2.7.1-badbatch"), "inputs0", 1, 2);
  EXPECT_EQ(down.reached(), (Ranks{0, 1, 3}));
  for (const RankReached& rank : down.result.ranks_reached) {
    EXPECT_EQ(rank.group, "mccl_world_group");
    EXPECT_FALSE(rank.assumed);
    EXPECT_EQ(rank.collectives, 8u);
    EXPECT_TRUE(rank.sound_loss);
    EXPECT_EQ(rank.tensors, 8u * 5) << "AllReduce, Mul, ApplyMomentum, weight and momentum of eight parameters";
  }
  const Names passed = down.with(PropagationRole::kPassed);
  for (const int rank : {0, 1, 2, 3}) {
    EXPECT_TRUE(passed.contains(std::to_string(rank) + " fc3.weight"));
    EXPECT_TRUE(passed.contains(std::to_string(rank) + " " + kReducer + "AllReduce-op7"));
  }
  // The forward part of the others is good and no part of it.
  for (const PropagationNode& at : down.result.nodes) {
    const Node& node = down.session->graph(at.rank, at.graph)->node(at.node);
    EXPECT_TRUE(at.rank == 2 || node.name.find("LeNet5/conv1-Conv2d/Conv2D-op0") == std::string::npos) << at.rank;
  }
  // One edge for each call that another rank's call reached.
  EXPECT_EQ(down.between_ranks().size(), 3u * 8);
  for (const PropagationEdge* edge : down.between_ranks()) {
    EXPECT_EQ(down.result.nodes[edge->from].rank, 2);
    EXPECT_EQ(edge->group, "mccl_world_group");
    EXPECT_EQ(down.result.nodes[edge->to].distance, down.result.nodes[edge->from].distance + 1);
  }
}

TEST(RankEdges, AWeightLeadsBackToTheBatchOfAnotherRank) {
  const Spread up = spread(real("ranks-2.7.1-badbatch"), "fc3.weight", 1, 0, true);
  EXPECT_EQ(up.with(PropagationRole::kOrigin), Names{"2 inputs0"});
  ASSERT_EQ(up.between_ranks().size(), 1u);
  EXPECT_EQ(up.result.nodes[up.between_ranks()[0]->from].rank, 2);
  EXPECT_EQ(up.result.nodes[up.between_ranks()[0]->to].rank, 0);
}

TEST(RankEdges, BisectSaysWhichRankWasFirst) {
  const auto session = open(real("ranks-2.7.1-badbatch"));
  const auto first = [&](const std::string& text) {
    const Result<FollowTarget> target = follow_target(*session, text);
    const Result<BisectResult> found = bisect(*session, *target, Predicate{}, {});
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found ? found->first_ranks : Ranks{};
  };
  EXPECT_EQ(first("conv1-Conv2d/Conv2D-op0"), Ranks{2});  // step 1; the others in step 2
  EXPECT_EQ(first("@all"), Ranks{2});                     // the same step, an earlier operator
  EXPECT_EQ(first("fc3.weight"), (Ranks{0, 1, 2, 3}));
}

TEST(RankEdges, ATrendNamesTheRankThatDeparts) {
  const auto session = open(real("ranks-2.7.1-flip"));
  const auto lines_of = [&](const std::string& text) {
    const Result<FollowTarget> target = follow_target(*session, text);
    const Result<TrendResult> found = trend(*session, *target, "l2_norm");
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found ? found->lines : std::vector<TrendLine>{};
  };
  const std::vector<TrendLine> weight = lines_of("fc1.weight");
  ASSERT_EQ(weight.size(), 2u);
  EXPECT_EQ(weight[0].ranks, (Ranks{0, 2, 3}));
  EXPECT_FALSE(weight[0].departs);
  EXPECT_EQ(weight[1].ranks, Ranks{1});
  EXPECT_EQ(weight[1].departs, 1);
  EXPECT_EQ(weight[1].departs_from, (Ranks{0, 2, 3}));
  const std::vector<TrendLine> equal = lines_of("fc3.weight");
  ASSERT_EQ(equal.size(), 1u);
  EXPECT_EQ(equal[0].ranks, (Ranks{0, 1, 2, 3}));
  // Data differs from the first step on: nobody departs.
  const std::vector<TrendLine> data = lines_of("inputs0");
  ASSERT_EQ(data.size(), 4u);
  for (const TrendLine& line : data) EXPECT_FALSE(line.departs);
}

TEST(RankEdges, OfTwoRanksThatDifferNobodyDeparts) {
  RankDump dump("ranks-2.7.1-flip");
  dump.copy_rank(0, 0).copy_rank(1, 1);
  const auto session = open(dump.path());
  const Result<TrendResult> found = trend(*session, *follow_target(*session, "fc1.weight"), "l2_norm");
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->lines.size(), 2u);
  for (const TrendLine& line : found->lines) {
    EXPECT_EQ(line.departs, 1);
    EXPECT_TRUE(line.departs_from.empty());
  }
}

TEST(RankEdges, WhyNamesTheRankThatBroughtIt) {
  const auto session = open(real("ranks-2.7.1-badbatch"));
  WhyOptions options;
  options.step = 1;
  options.rank = 0;
  const Result<WhyAnswer> found = why(*session, kReducer + "AllReduce-op2", options);
  ASSERT_TRUE(found.ok()) << found.status().message();
  std::string all;
  for (const WhyEvidence& each : found->evidence) all += each.text + "\n";
  EXPECT_NE(all.find("AllReduce joins ranks 0-3 (mccl_world_group)"), std::string::npos) << all;
  EXPECT_NE(all.find("on rank 2 it took "), std::string::npos) << all;
  EXPECT_NE(all.find("160 of 160 elements are NaN or Inf"), std::string::npos) << all;
  EXPECT_NE(all.find("what went in on ranks 0-1, 3 is finite"), std::string::npos) << all;
}

TEST(RankEdges, WhySaysThatOtherRanksHaveIt) {
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_ranks(3).remove_step(1, 2);
  const auto session = open(dump.path());
  WhyOptions options;
  options.step = 2;
  options.rank = 1;
  const Result<WhyAnswer> found = why(*session, "fc3.weight", options);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_NE(found->kind, WhyKind::kHasValue);
  EXPECT_EQ(found->evidence.back().text, "ranks 0, 2 have it in step 2");
}

// ---- ranks that are not there

TEST(RankEdges, AMissingRankLeavesTheOriginOpen) {
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_rank(0, 0).copy_rank(1, 1).copy_rank(3, 3);
  const Spread up = spread(dump.path(), "fc3.weight", 1, 0, true);
  EXPECT_TRUE(up.with(PropagationRole::kOrigin).empty());
  ASSERT_TRUE(up.result.trail);
  EXPECT_EQ(up.result.trail->end, TrailEnd::kUnknown);
  EXPECT_EQ(up.result.trail->reason, "rank 2 takes part in it and has no such call in this session");
}

TEST(RankEdges, ASumOfFiniteNumbersIsNotNan) {
  // Ranks 0 and 1 of four: the numbers have no gap, but NaN came from somewhere.
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_rank(0, 0).copy_rank(1, 1);
  const auto session = open(dump.path());
  OriginOptions options;
  options.steps = IntSet::of(1);
  const Result<OriginResult> found = find_origins(*session, options);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->steps.size(), 1u);
  EXPECT_FALSE(found->steps[0].origins[0].certain);
}

TEST(RankEdges, NumbersWithGapsAreFollowed) {
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_rank(0, 1).copy_rank(2, 4).copy_rank(3, 6);
  const Spread down = spread(dump.path(), "inputs0", 1, 4);
  EXPECT_EQ(down.reached(), (Ranks{1, 6}));
}

TEST(RankEdges, EightRanksShareOneFault) {
  RankDump dump("ranks-2.7.1-badbatch");
  for (int rank = 0; rank < 8; ++rank) dump.copy_rank(rank == 5 ? 2 : rank % 2, rank);
  const Spread down = spread(dump.path(), "inputs0", 1, 5);
  EXPECT_EQ(down.reached(), (Ranks{0, 1, 2, 3, 4, 6, 7}));
}

// ---- other collectives

std::vector<std::pair<std::string, std::variant<std::string, int>>> group(const std::string& name) { return {{"group", name}}; }

MadeRanks exchange(const std::string& op, int ranks, std::vector<std::pair<std::string, std::variant<std::string, int>>> attributes) {
  MadeRanks dump;
  for (int rank = 0; rank < ranks; ++rank) {
    dump.rank(rank, {"x"}, {{"Default/Log-op0", "Log", {"x"}},
                            {"Default/Call-op0", op, {"Default/Log-op0"}, attributes},
                            {"Default/Mul-op0", "Mul", {"Default/Call-op0"}}});
  }
  return dump;
}

TEST(RankEdges, AllToAllReachesTheRankThatGotTheSlice) {
  for (const std::string op : {"AlltoAll", "AllToAll", "ReduceScatter"}) {
    MadeRanks dump = exchange(op, 3, group("hccl_world_group"));
    dump.value(0, 0, "Default/Log-op0", {-INFINITY});
    for (const char* name : {"Default/Call-op0", "Default/Mul-op0"}) dump.value(2, 0, name, {-INFINITY});
    const Spread down = spread(dump.path(), "Default/Log-op0", 0, 0);
    EXPECT_EQ(down.reached(), Ranks{2}) << op;
    EXPECT_TRUE(down.with(PropagationRole::kPassed).contains("2 Default/Mul-op0")) << op;
    EXPECT_TRUE(down.with(PropagationRole::kClean).contains("1 Default/Call-op0")) << op;
    EXPECT_FALSE(down.with(PropagationRole::kPassed).contains("1 Default/Mul-op0")) << op;
  }
}

TEST(RankEdges, PyTorchsCollectivesMeet) {
  for (const std::string op : {"allreduce_", "_allgather_base_", "_reduce_scatter_base_", "alltoall_base_", "all_reduce"}) {
    MadeRanks dump = exchange(op, 3, group("WORLD"));
    dump.value(0, 0, "Default/Log-op0", {-INFINITY});
    for (const int rank : {0, 1, 2}) dump.value(rank, 0, "Default/Call-op0", {-INFINITY});
    EXPECT_EQ(spread(dump.path(), "Default/Log-op0", 0, 0).reached(), (Ranks{1, 2})) << op;
  }
  MadeRanks some = exchange("allreduce_", 3, {{"group", std::string("1")}, {"group_ranks", std::string("(0, 2)")}});
  some.value(0, 0, "Default/Log-op0", {-INFINITY});
  for (const int rank : {0, 2}) some.value(rank, 0, "Default/Call-op0", {-INFINITY});
  EXPECT_EQ(spread(some.path(), "Default/Log-op0", 0, 0).reached(), Ranks{2});
}

TEST(RankEdges, OperatorsOfPyTorchThatOnlySoundLikeCollectivesAreNone) {
  for (const std::string op : {"scatter_", "gather", "broadcast_"}) {
    MadeRanks dump = exchange(op, 2, {});
    dump.value(0, 0, "Default/Log-op0", {-INFINITY});
    for (const int rank : {0, 1}) dump.value(rank, 0, "Default/Call-op0", {-INFINITY});
    EXPECT_TRUE(spread(dump.path(), "Default/Log-op0", 0, 0).reached().empty()) << op;
  }
}

TEST(RankEdges, BroadcastComesFromItsRootAlone) {
  MadeRanks dump = exchange("Broadcast", 3, {{"group", std::string("hccl_world_group")}, {"root_rank", 1}});
  dump.value(0, 0, "Default/Log-op0", {-INFINITY});
  for (int rank = 0; rank < 3; ++rank) dump.value(rank, 0, "Default/Call-op0", {-INFINITY});
  // What the root took is good: Log of rank 0 is not where it came from.
  EXPECT_TRUE(spread(dump.path(), "Default/Log-op0", 0, 0).reached().empty());
  dump.value(1, 0, "Default/Log-op0", {-INFINITY});
  EXPECT_EQ(spread(dump.path(), "Default/Log-op0", 0, 1).reached(), (Ranks{0, 2}));
  EXPECT_EQ(spread(dump.path(), "Default/Call-op0", 0, 2, true).with(PropagationRole::kOrigin), Names{"1 Default/Log-op0"});
}

TEST(RankEdges, AGroupOfSomeRanksStaysAmongThem) {
  MadeRanks dump;
  for (int rank = 0; rank < 4; ++rank) {
    dump.rank(
        rank, {"x"},
        {{"Default/Log-op0", "Log", {"x"}},
         {"Default/Call-op0", "AllReduce", {"Default/Log-op0"}, group(rank < 2 ? "2-5004544844489628105" : "2-5004544844489628107")}});
    dump.value(rank, 0, "Default/Call-op0", {rank < 2 ? -INFINITY : 1});
  }
  dump.value(1, 0, "Default/Log-op0", {-INFINITY});
  EXPECT_EQ(spread(dump.path(), "Default/Log-op0", 0, 1).reached(), Ranks{0});
}

TEST(RankEdges, GroupsWithoutANameAreAssumed) {
  MadeRanks dump = exchange("AllReduce", 2, {});
  dump.value(0, 0, "Default/Log-op0", {-INFINITY});
  for (int rank : {0, 1}) dump.value(rank, 0, "Default/Call-op0", {-INFINITY});
  const Spread down = spread(dump.path(), "Default/Log-op0", 0, 0);
  ASSERT_EQ(down.result.ranks_reached.size(), 1u);
  EXPECT_TRUE(down.result.ranks_reached[0].assumed);
  EXPECT_EQ(group_text(down.result.ranks_reached[0].group, true), "all ranks, assumed");
}

/// Three stages; each sends on under the same tag.
MadeRanks pipeline() {
  const auto to = [](int rank) -> decltype(MadeNode::attributes) {
    return {{"dest_rank", rank}, {"sr_tag", 0}, {"group", std::string("hccl_world_group")}};
  };
  const auto from = [](int rank) -> decltype(MadeNode::attributes) {
    return {{"src_rank", rank}, {"sr_tag", 0}, {"group", std::string("hccl_world_group")}};
  };
  MadeRanks dump;
  dump.rank(0, {"x"}, {{"Default/Log-op0", "Log", {"x"}}, {"Default/Send-op0", "Send", {"Default/Log-op0"}, to(1)}});
  dump.rank(1, {}, {{"Default/Receive-op0", "Receive", {}, from(0)},
                    {"Default/Mul-op0", "Mul", {"Default/Receive-op0"}},
                    {"Default/Send-op0", "Send", {"Default/Mul-op0"}, to(2)}});
  dump.rank(2, {}, {{"Default/Receive-op0", "Receive", {}, from(1)}, {"Default/Loss-op0", "Mul", {"Default/Receive-op0"}}});
  return dump;
}

TEST(RankEdges, APipelineIsFollowedFromStageToStage) {
  MadeRanks dump = pipeline();
  dump.value(0, 0, "Default/Log-op0", {-INFINITY});
  dump.value(1, 0, "Default/Receive-op0", {-INFINITY}).value(1, 0, "Default/Mul-op0", {NAN});
  dump.value(2, 0, "Default/Receive-op0", {NAN}).value(2, 0, "Default/Loss-op0", {NAN});
  const Spread down = spread(dump.path(), "Default/Log-op0", 0, 0);
  EXPECT_EQ(down.reached(), (Ranks{1, 2}));
  EXPECT_TRUE(down.with(PropagationRole::kPassed).contains("0 Default/Send-op0"));
  EXPECT_TRUE(down.with(PropagationRole::kPassed).contains("2 Default/Loss-op0"));
  const Spread up = spread(dump.path(), "Default/Loss-op0", 0, 2, true);
  EXPECT_EQ(up.with(PropagationRole::kOrigin), Names{"0 Default/Log-op0"});
  ASSERT_TRUE(up.result.trail);
  EXPECT_EQ(up.result.trail->links.back().tensor.rank, 0);
  OriginOptions options;
  const auto session = open(dump.path());
  const Result<OriginResult> origins = find_origins(*session, options);
  ASSERT_TRUE(origins.ok());
  ASSERT_EQ(origins->steps.size(), 1u);
  EXPECT_EQ(origins->steps[0].rank, 0);
  EXPECT_EQ(origins->steps[0].origins[0].ranks_reached.size(), 2u);
}

TEST(RankEdges, AFaultOfAMiddleStageDoesNotReachTheOneBefore) {
  MadeRanks dump = pipeline();
  dump.value(1, 0, "Default/Mul-op0", {INFINITY}).value(2, 0, "Default/Receive-op0", {INFINITY});
  EXPECT_EQ(spread(dump.path(), "Default/Mul-op0", 0, 1).reached(), Ranks{2});
}

/// PyTorch counts all ranks, also in a group of some: rank 2 sends to 1 and receives from 1, and is itself the second of three.
TEST(RankEdges, RecordedCallsOfAGroupNameRanksOfTheWholeTraining) {
  std::vector<GraphPtr> graphs;
  for (int rank = 1; rank <= 3; ++rank) {
    GraphBuilder builder(rank, 0);
    std::vector<NodeId> order;
    const auto add = [&](const char* op, int other, const char* tag) {
      Node node;
      node.name = "Distributed." + std::string(op) + "." + std::to_string(order.size()) + ".forward";
      node.op = op;
      node.role = CallRole::kForward;
      node.attributes = std::vector<Attribute>{
          {op == std::string("isend") ? "dst" : "src", SharedText(std::to_string(other))}, {"tag", SharedText(tag)}, {"group", "a1"}};
      order.push_back(builder.add(std::move(node)));
    };
    if (rank > 1) add("irecv", rank - 1, "0");
    if (rank < 3) add("isend", rank + 1, "0");
    if (rank < 3) add("irecv", rank + 1, "1");
    if (rank > 1) add("isend", rank - 1, "1");
    builder.set_execution_order(order);
    graphs.push_back(builder.build());
  }
  const Collectives collectives(graphs);
  EXPECT_EQ(collectives.all().size(), 4u);
  for (const Exchange& exchange : collectives.all()) {
    ASSERT_EQ(exchange.members.size(), 2u);
    EXPECT_FALSE(exchange.assumed);
    const Node &from = exchange.sources.at(0).graph->node(exchange.sources[0].node);
    const bool first = exchange.members[0] == exchange.sources[0];
    const NodeRef& other = exchange.members[first ? 1 : 0];
    EXPECT_EQ(from.op, "isend");
    EXPECT_EQ(other.graph->node(other.node).op, "irecv");
    EXPECT_EQ(*collective_attribute(from, "dst"), std::to_string(other.graph->rank()));
    EXPECT_EQ(*collective_attribute(from, "tag"), *collective_attribute(other.graph->node(other.node), "tag"));
  }
}

TEST(RankEdges, AReceiveWithoutItsSenderIsNoOrigin) {
  MadeRanks dump;
  dump.rank(2, {}, {{"Default/Receive-op0", "Receive", {}, {{"src_rank", 1}, {"sr_tag", 0}, {"group", std::string("hccl_world_group")}}}});
  dump.value(2, 0, "Default/Receive-op0", {NAN});
  const auto session = open(dump.path());
  const Result<OriginResult> found = find_origins(*session, {});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->steps.size(), 1u);
  EXPECT_FALSE(found->steps[0].origins[0].certain);
}

}  // namespace
}  // namespace msdbg
