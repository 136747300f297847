// Ranks that come, come again, and are recorded.
#include <gtest/gtest.h>

#include "live/ranks_fixture.h"
#include "support/temp_dir.h"

namespace msdbg::test {
namespace {

TEST(LiveRanks, AnotherTrainingIsHeldWithAllItsRanksAgain) {
  Ranks t({.steps = 2});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  t.watch("op:Mul", "TL max_gt=1000");
  EXPECT_EQ(t.run(RunKind::kContinue)->reason, StopReason::kEnded);
  t.training.emplace(t.driver.port(), RankTrainingOptions{});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  EXPECT_EQ(t.completed(), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(t.session().graphs().size(), 3U);
  ASSERT_TRUE(t.run(RunKind::kStep).ok());
  EXPECT_EQ(t.completed(), (std::vector<int64_t>{1, 1, 1}));
}

/// msdbg was ended while it held the training; each rank comes back without its handshake and graph.
TEST(LiveRanks, RanksThatReconnectGetTheirGraphsFromARecording) {
  TempDir dir;
  ListenOptions listen;
  listen.record = dir.file("training.rec");
  listen.ranks = 2;
  Driver first(listen);
  const int port = first.port();
  const auto sockets = first.session->copy_sockets();
  ASSERT_TRUE(sockets.ok());
  std::optional<RankTraining> training;
  training.emplace(port, RankTrainingOptions{.ranks = 2, .steps = 100000, .patient = true});
  ASSERT_TRUE(first.session->wait_until_held(30s).ok());
  ASSERT_TRUE(first.session->run({}).ok());
  ASSERT_TRUE(first.session->detach().ok());  // its end must not end the training
  first.session.reset();
  ListenOptions again;
  again.ranks = 2;
  again.graph_from = listen.record;
  again.sockets = *sockets;
  auto second = msdbg::listen(again);
  ASSERT_TRUE(second.ok()) << second.status().message();
  ASSERT_TRUE((*second)->wait_until_held(30s).ok());
  EXPECT_EQ((*second)->graphs().size(), 2U);
  second->reset();
  training.reset();
}

TEST(LiveRanks, DevicesThatAreNoRanksCountByArrival) {
  Ranks t({.ranks = 2, .says_rank = false, .first_device = 4});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  EXPECT_TRUE(t.told("by the order of arrival")) << t.all_told();
  EXPECT_EQ(t.session().graphs().size(), 2U);
}

TEST(LiveRanks, DevicesAreRanksWhereTheyCanBe) {
  Ranks t({.ranks = 2, .says_rank = false});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  for (const LiveRank& rank : t.session().live_ranks()) EXPECT_EQ(rank.peer.device, std::to_string(rank.rank));
  EXPECT_FALSE(t.told("by the order of arrival")) << t.all_told();
}

TEST(LiveRanks, ARecordingHasAllRanks) {
  TempDir dir;
  const std::string path = dir.file("training.rec");
  {
    ListenOptions listen;
    listen.record = path;
    Ranks t({.ranks = 2, .steps = 3, .backend = "Ascend"}, listen);
    ASSERT_TRUE(t.session().wait_until_held(30s).ok());
    ASSERT_TRUE(t.run(RunKind::kStep).ok());
    for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(t.session().load(t.id(rank, kRankMul)).ok());
    EXPECT_EQ(t.run(RunKind::kContinue)->reason, StopReason::kEnded);
  }
  auto replay = open_recording(path);
  ASSERT_TRUE(replay.ok()) << replay.status().message();
  LiveSession& session = **replay;
  ASSERT_TRUE(session.wait_until_held(1s).ok());
  EXPECT_EQ(session.info().kind, SessionKind::kRecording);
  EXPECT_EQ(session.ranks().size(), 2U);
  ASSERT_EQ(session.graphs().size(), 2U);
  ASSERT_TRUE(session.run({}).ok());
  for (int rank = 0; rank < 2; ++rank) {
    const auto found = find_node(session.graphs(), kRankMul, rank);
    ASSERT_TRUE(found.ok());
    const Result<TensorPtr> value = session.load({rank, found->graph->id(), session.current_step(), 0, found->node, {Io::kOutput, 0}});
    ASSERT_TRUE(value.ok()) << value.status().message();
    EXPECT_EQ((*value)->view().at(3), rank + 3.0);
  }
  RunRequest on;
  on.kind = RunKind::kContinue;
  EXPECT_EQ(session.run(on)->reason, StopReason::kEnded);
}

TEST(LiveRanks, NewsWaitsUntilItIsTaken) {
  Ranks t({.ranks = 2});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  EXPECT_TRUE(has_news(t.session()));
  EXPECT_TRUE(t.told("connected:")) << t.all_told();
  EXPECT_FALSE(has_news(t.session()));
}

}  // namespace
}  // namespace msdbg::test
