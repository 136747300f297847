// Origins across ranks: on the real dump with one bad batch, on dumps made from healthy ones, and on sessions in memory.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "msdbg/analysis.h"
#include "msdbg/dump.h"
#include "msdbg/follow.h"
#include "support/fake_session.h"
#include "support/rank_dumps.h"

namespace msdbg {
namespace {

using test::RankDump;
using testing::f32;
using testing::fake_graph;
using testing::FakeNode;
using testing::FakeSession;
using Ranks = std::vector<int>;
const std::string kReducer = "Default/grad_reducer-DistributedGradReducer/";

struct Searched {
  std::unique_ptr<Session> session;
  OriginResult result;
  std::string name(const TensorId& id) const { return session->tensor_name(id); }
  std::vector<const StepOrigins*> stories(int64_t step) const {
    std::vector<const StepOrigins*> out;
    for (const StepOrigins& each : result.steps) {
      if (each.step == step) out.push_back(&each);
    }
    return out;
  }
};

Searched search(const std::string& path, const IntSet& ranks = IntSet::all()) {
  Searched out;
  Result<std::unique_ptr<Session>> opened = open_dump(path);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  if (!opened) return out;
  out.session = std::move(*opened);
  OriginOptions options;
  options.ranks = ranks;
  Result<OriginResult> found = find_origins(*out.session, options);
  EXPECT_TRUE(found.ok()) << found.status().message();
  if (found) out.result = std::move(*found);
  return out;
}
std::string real(const std::string& name) { return std::string(MSDBG_TEST_DATA) + "/dumps/" + name; }

TEST(RankOrigins, HealthyRanksHaveNone) {
  for (const std::string name : {"ranks-2.7.1-ok", "ranks-2.7.1-flip"}) EXPECT_TRUE(search(real(name)).result.steps.empty()) << name;
}

TEST(RankOrigins, OneBadBatchIsOneStory) {
  const Searched bad = search(real("ranks-2.7.1-badbatch"));
  const auto stories = bad.stories(1);
  ASSERT_EQ(stories.size(), 1u);
  const StepOrigins& story = *stories[0];
  EXPECT_EQ(story.rank, 2);
  EXPECT_EQ(story.ranks, Ranks{2});
  EXPECT_TRUE(story.arrivals.empty());
  ASSERT_EQ(story.origins.size(), 1u);
  const Origin& origin = story.origins[0];
  EXPECT_EQ(origin.kind, OriginKind::kInput);
  EXPECT_EQ(bad.name(origin.tensor), "inputs0:output:0");
  EXPECT_EQ(origin.bad_count, 1u);
  EXPECT_EQ(origin.first, (std::vector<std::vector<int64_t>>{{1, 0, 11, 7}}));
  ASSERT_EQ(origin.ranks_reached.size(), 3u);
  Ranks reached;
  for (const RankReached& rank : origin.ranks_reached) {
    reached.push_back(rank.rank);
    EXPECT_EQ(bad.name(rank.through), kReducer + "AllReduce-op2:output:0");
    EXPECT_EQ(rank.through.rank, rank.rank);
    EXPECT_EQ(rank.group, "mccl_world_group");
    EXPECT_FALSE(rank.assumed);
    EXPECT_EQ(rank.collectives, 8u);
    EXPECT_TRUE(rank.sound_loss);
  }
  EXPECT_EQ(reached, (Ranks{0, 1, 3}));
}

TEST(RankOrigins, VictimsAreNoStoriesOfTheirOwn) {
  const Searched bad = search(real("ranks-2.7.1-badbatch"));
  std::set<int> victims;
  for (const StepOrigins& other : bad.result.others) {
    if (other.step != 1) continue;
    victims.insert(other.rank);
    EXPECT_TRUE(other.origins.empty());
    ASSERT_EQ(other.arrivals.size(), 8u);
    for (const Arrival& arrival : other.arrivals) {
      EXPECT_EQ(arrival.from.rank, 2);
      ASSERT_TRUE(arrival.origin);
      EXPECT_EQ(arrival.origin->rank, 2);
    }
  }
  EXPECT_EQ(victims, (std::set<int>{0, 1, 3}));
}

TEST(RankOrigins, WhatAllRanksTellIsToldOnce) {
  const Searched bad = search(real("ranks-2.7.1-badbatch"));
  const auto stories = bad.stories(2);
  ASSERT_EQ(stories.size(), 1u);
  EXPECT_EQ(stories[0]->ranks, (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(stories[0]->origins[0].kind, OriginKind::kParameter);
  EXPECT_TRUE(bad.stories(0).empty());
}

TEST(RankOrigins, EveryFindingFollowsFromTheBadBatch) {
  Result<std::unique_ptr<Session>> opened = open_dump(real("ranks-2.7.1-badbatch"));
  ASSERT_TRUE(opened.ok());
  Watchpoint point;
  point.id = 1;
  point.rule = "tensor_overflow";
  point.on = Selector::parse("@all").value();
  point.condition = make_condition("tensor_overflow", {}).value();
  Result<CheckResult> checked = check(**opened, std::span(&point, 1), {});
  ASSERT_TRUE(checked.ok());
  ASSERT_TRUE(find_causes(**opened, {}, &*checked).ok());
  ASSERT_TRUE(checked->causes);
  ASSERT_EQ(checked->causes->size(), 1u);
  const Cause& cause = checked->causes->front();
  EXPECT_EQ(cause.kind, CauseKind::kBadInput);
  EXPECT_EQ((*opened)->tensor_name(cause.tensor), "inputs0:output:0");
  EXPECT_EQ(cause.tensor.rank, 2);
  EXPECT_EQ(cause.tensor.step, 1);
  EXPECT_EQ(cause.findings, checked->hits.size());
}

TEST(RankOrigins, ARankAloneSaysThatTheOthersAreUnknown) {
  const Searched alone = search(real("ranks-2.7.1-badbatch"), IntSet::of(0));
  const auto stories = alone.stories(1);
  ASSERT_EQ(stories.size(), 1u);
  EXPECT_FALSE(stories[0]->origins[0].certain);
  EXPECT_EQ(alone.name(stories[0]->origins[0].tensor), kReducer + "AllReduce-op2:output:0");
}

TEST(RankOrigins, TheOriginsRankIsNotInTheDump) {
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_rank(0, 0).copy_rank(1, 1);
  const Searched two = search(dump.path());
  const auto stories = two.stories(1);
  // Both ranks know only that the sum broke.
  ASSERT_EQ(stories.size(), 1u);
  EXPECT_EQ(stories[0]->ranks, (Ranks{0, 1}));
}

TEST(RankOrigins, TwoFaultsOnTwoRanksOfOneStepAreTwoStories) {
  RankDump dump("ranks-2.7.1-badbatch");
  dump.copy_ranks(4);
  dump.set(dump.file(0, 1, "Parameter.inputs0"), 5, NAN);
  const Searched both = search(dump.path());
  std::set<std::pair<int, std::string>> found;
  for (const StepOrigins* story : both.stories(1)) found.insert({story->rank, both.name(story->origins[0].tensor)});
  EXPECT_TRUE(found.contains({0, "inputs0:output:0"}));
  EXPECT_TRUE(found.contains({2, "inputs0:output:0"}));
}

TEST(RankOrigins, TheWayBackLeadsToTheOtherRank) {
  Result<std::unique_ptr<Session>> opened = open_dump(real("ranks-2.7.1-badbatch"));
  ASSERT_TRUE(opened.ok());
  const Result<TensorId> weight = resolve_tensor(**opened, "fc3.weight", 1, 0);
  ASSERT_TRUE(weight.ok());
  PropagationOptions options;
  options.up = true;
  const Result<Propagation> found = propagation(**opened, *weight, options);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_TRUE(found->trail);
  std::vector<int> ranks;
  for (const TrailLink& link : found->trail->links) {
    if (ranks.empty() || ranks.back() != link.tensor.rank) ranks.push_back(link.tensor.rank);
  }
  EXPECT_EQ(ranks, (Ranks{0, 2}));
  EXPECT_EQ((*opened)->tensor_name(found->trail->links.back().tensor), "inputs0:output:0");
  EXPECT_EQ(found->trail->links.back().tensor.step, 1);
}

// ---- in memory

/// x -> Log -> ReLU forward; the gradient -> AllReduce -> Mul.
std::vector<GraphPtr> ranks_of(int count, const std::string& op = "AllReduce",
                               const std::vector<Attribute>& attributes = {{"group", "hccl_world_group"}}) {
  std::vector<GraphPtr> out;
  for (int rank = 0; rank < count; ++rank) {
    FakeNode collective{"Default/Collective-op0", op, {"Gradients/LogGrad-op0"}};
    collective.attributes = attributes;
    out.push_back(fake_graph({{"x", "Parameter"},
                              {"Default/Log-op0", "Log", {"x"}},
                              {"Default/ReLU-op0", "ReLU", {"Default/Log-op0"}},
                              {"Gradients/LogGrad-op0", "LogGrad", {"Default/Log-op0"}},
                              collective,
                              {"Default/Mul-op0", "Mul", {"Default/Collective-op0"}}},
                             rank));
  }
  return out;
}

void put_all(FakeSession& s, int ranks, int64_t step) {
  for (int rank = 0; rank < ranks; ++rank) {
    for (const char* name : {"x", "Default/Log-op0", "Default/ReLU-op0", "Gradients/LogGrad-op0", "Default/Collective-op0",
                             "Default/Mul-op0"}) {
      s.put(s.id(name, step, {}, 0, rank), f32({1, 2}));
    }
  }
}

OriginResult origins_of(FakeSession& s) {
  Result<OriginResult> found = find_origins(s, {});
  EXPECT_TRUE(found.ok()) << found.status().message();
  return found ? *found : OriginResult{};
}

TEST(RankOrigins, WhatTheForwardAbsorbsTravelsAsAGradient) {
  FakeSession s(ranks_of(3));
  put_all(s, 3, 0);
  s.put(s.id("Default/Log-op0", 0, {}, 0, 1), f32({-INFINITY, 1}));
  s.put(s.id("Gradients/LogGrad-op0", 0, {}, 0, 1), f32({INFINITY, 1}));
  for (int rank = 0; rank < 3; ++rank) {
    for (const char* name : {"Default/Collective-op0", "Default/Mul-op0"}) s.put(s.id(name, 0, {}, 0, rank), f32({INFINITY, 1}));
  }
  const OriginResult found = origins_of(s);
  ASSERT_EQ(found.steps.size(), 1u);
  EXPECT_EQ(found.steps[0].rank, 1);
  EXPECT_EQ(s.tensor_name(found.steps[0].origins[0].tensor), "Default/Log-op0:output:0");
  ASSERT_EQ(found.steps[0].origins[0].ranks_reached.size(), 2u);
  EXPECT_EQ(found.steps[0].origins[0].ranks_reached[0].tensors, 2u);
}

TEST(RankOrigins, ASumThatOverflowsIsItsOwnOrigin) {
  FakeSession s(ranks_of(3));
  put_all(s, 3, 0);
  for (int rank = 0; rank < 3; ++rank) {
    for (const char* name : {"Default/Collective-op0", "Default/Mul-op0"}) s.put(s.id(name, 0, {}, 0, rank), f32({INFINITY, 1}));
  }
  const OriginResult found = origins_of(s);
  ASSERT_EQ(found.steps.size(), 1u);
  EXPECT_EQ(found.steps[0].ranks, (Ranks{0, 1, 2}));
  EXPECT_TRUE(found.steps[0].origins[0].certain);
  EXPECT_EQ(s.tensor_name(found.steps[0].origins[0].tensor), "Default/Collective-op0:output:0");
}

TEST(RankOrigins, WhatOverflowsBehindASumFollowsFromTheRankThatBrokeFirst) {
  FakeSession s(ranks_of(3));
  put_all(s, 3, 0);
  s.put(s.id("Default/Log-op0", 0, {}, 0, 1), f32({-INFINITY, 1}));
  for (int rank = 0; rank < 3; ++rank) s.put(s.id("Default/Mul-op0", 0, {}, 0, rank), f32({INFINITY, 1}));
  const OriginResult found = origins_of(s);
  ASSERT_EQ(found.steps.size(), 1u);
  EXPECT_EQ(found.steps[0].ranks, Ranks{1});
  ASSERT_EQ(found.steps[0].origins.size(), 2u);
  ASSERT_EQ(found.steps[0].origins[0].ranks_reached.size(), 2u);
  const RankReached& reached = found.steps[0].origins[0].ranks_reached[0];
  EXPECT_EQ(reached.rank, 0);
  EXPECT_EQ(s.tensor_name(reached.through), "Default/Collective-op0:output:0");
  EXPECT_EQ(reached.tensors, 1u);
  EXPECT_EQ(found.others.size(), 2u);

  // Other values are another fault.
  s.put(s.id("Default/Mul-op0", 0, {}, 0, 2), f32({1, INFINITY}));
  const OriginResult other = origins_of(s);
  ASSERT_EQ(other.steps.size(), 2u);
  EXPECT_EQ(other.steps[1].ranks, Ranks{2});
}

TEST(RankOrigins, AnUnnamedGroupIsAssumed) {
  FakeSession s(ranks_of(2, "AllGather", {}));
  put_all(s, 2, 0);
  s.put(s.id("Gradients/LogGrad-op0", 0, {}, 0, 0), f32({NAN, 1}));
  for (int rank = 0; rank < 2; ++rank) s.put(s.id("Default/Collective-op0", 0, {}, 0, rank), f32({NAN, 1}));
  const OriginResult found = origins_of(s);
  ASSERT_EQ(found.steps.size(), 1u);
  ASSERT_EQ(found.steps[0].origins[0].ranks_reached.size(), 1u);
  EXPECT_TRUE(found.steps[0].origins[0].ranks_reached[0].assumed);
  EXPECT_EQ(found.steps[0].origins[0].ranks_reached[0].group, "");
}

TEST(RankOrigins, SendReachesTheReceiverAlone) {
  const std::vector<Attribute> tag = {{"sr_tag", "3"}, {"group", "hccl_world_group"}};
  FakeNode send{"Default/Send-op0", "Send", {"Default/Log-op0"}}, receive{"Default/Receive-op0", "Receive", {}};
  send.attributes = receive.attributes = tag;
  FakeSession s({fake_graph({{"x", "Parameter"}, {"Default/Log-op0", "Log", {"x"}}, send}, 0),
                 fake_graph({receive, {"Default/Mul-op0", "Mul", {"Default/Receive-op0"}}}, 1)});
  s.put(s.id("x", 0), f32({0}));
  s.put(s.id("Default/Log-op0", 0), f32({-INFINITY}));
  s.put(s.id("Default/Receive-op0", 0, {}, 0, 1), f32({-INFINITY}));
  s.put(s.id("Default/Mul-op0", 0, {}, 0, 1), f32({-INFINITY}));
  s.put(s.id("Default/Send-op0", 0), f32({0}));
  const OriginResult found = origins_of(s);
  ASSERT_EQ(found.steps.size(), 1u);
  EXPECT_EQ(found.steps[0].rank, 0);
  EXPECT_EQ(s.tensor_name(found.steps[0].origins[0].tensor), "Default/Log-op0:output:0");
  ASSERT_EQ(found.steps[0].origins[0].ranks_reached.size(), 1u);
  EXPECT_EQ(found.steps[0].origins[0].ranks_reached[0].rank, 1);
}

}  // namespace
}  // namespace msdbg
