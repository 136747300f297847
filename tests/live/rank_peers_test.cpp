// Ranks that claim a wrong number, come late, or are lost.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "live/session_driver.h"

namespace msdbg::test {
namespace {

using namespace std::chrono_literals;

ListenOptions options_for(int ranks) {
  ListenOptions options;
  options.ranks = ranks;
  return options;
}

/// A training process by hand.
struct Peer {
  Peer(int port, std::optional<int> rank, const std::string& device) : client(RawClient::connect(port)) {
    metadata.set_device_name(device + ":0");
    metadata.set_backend("GPU");
    if (rank) metadata.set_rank(*rank);
    debugger::Metadata hello = metadata;
    hello.set_ms_version("1.10.0");
    hello.set_graph_num(1);
    greeting = client->unary(live::Rpc::kSendMetadata, hello.SerializeAsString());
  }
  void hold(int step) {
    metadata.set_cur_step(step);
    wait = client->wait_cmd(metadata.SerializeAsString());
  }

  std::unique_ptr<RawClient> client;
  std::unique_ptr<RawClient::Wait> wait;
  debugger::Metadata metadata;
  RawReply greeting;
};

/// Two ranks, held before their first step.
struct Pair {
  Driver d{options_for(2)};
  Peer zero{d.port(), 0, "0"}, one{d.port(), 1, "1"};
  Pair() {
    zero.hold(0);
    one.hold(0);
    EXPECT_TRUE(d.session->wait_until_held(30s).ok());
  }
};

TEST(LiveRanks, AClaimThatIsTakenOrOutOfRangeIsRefusedWithTheReason) {
  Driver d(options_for(2));
  Peer first(d.port(), 1, "0");
  ASSERT_TRUE(first.greeting.ok()) << first.greeting.describe();
  Peer again(d.port(), 1, "1");
  EXPECT_FALSE(again.greeting.ok());
  EXPECT_NE(again.greeting.text.find("rank 1, which the training at 127.0.0.1:"), std::string::npos) << again.greeting.text;
  Peer beyond(d.port(), 2, "1");
  EXPECT_FALSE(beyond.greeting.ok());
  EXPECT_NE(beyond.greeting.text.find("--ranks 2 is for ranks 0 to 1"), std::string::npos) << beyond.greeting.text;
  Peer negative(d.port(), -1, "1");
  EXPECT_FALSE(negative.greeting.ok());
  Peer zero(d.port(), 0, "7");
  EXPECT_TRUE(zero.greeting.ok()) << zero.greeting.describe();
  Peer third(d.port(), 0, "2");
  EXPECT_FALSE(third.greeting.ok());
  EXPECT_NE(third.greeting.text.find("all 2 ranks are connected"), std::string::npos) << third.greeting.text;
  EXPECT_EQ(d.session->live_ranks()[1].peer.device, "0");
}

TEST(LiveRanks, ALateRankIsNamed) {
  Driver d(options_for(3));
  Peer zero(d.port(), 0, "0"), two(d.port(), 2, "2");
  zero.hold(0);
  two.hold(0);
  const Status late = d.session->wait_until_held(200ms);
  EXPECT_EQ(late.code(), Code::kNotFound);
  EXPECT_NE(late.message().find("2 of 3 ranks came"), std::string::npos) << late.message();
  EXPECT_NE(late.message().find("rank 1 did not"), std::string::npos) << late.message();
  EXPECT_EQ(d.session->state(), LiveState::kConnected);
  const Result<RunResult> refused = d.session->run({});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("rank 1 has not connected yet"), std::string::npos) << refused.status().message();
  Peer one(d.port(), 1, "1");
  one.hold(0);
  EXPECT_TRUE(d.session->wait_until_held(30s).ok());
}

TEST(LiveRanks, ALostRankIsNamedAndTheOthersGoOn) {
  Pair pair;
  auto& [d, zero, one] = pair;
  std::thread trainings([&] {
    EXPECT_TRUE(zero.wait->get()->parsed().has_run_cmd());
    EXPECT_TRUE(one.wait->get()->parsed().has_run_cmd());
    one.client->drop();
    zero.hold(0);
  });
  const Result<RunResult> result = d.session->run({});
  trainings.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kLost);
  EXPECT_TRUE(result->held);
  EXPECT_EQ(d.session->state(), LiveState::kHeld);
  std::string told;
  for (const LiveEvent& event : d.session->take_events()) told += event.text + "\n";
  EXPECT_NE(told.find("rank 1: the connection to the training at"), std::string::npos) << told;
  EXPECT_NE(told.find("rank 1 is lost after 0 completed steps; rank 0 is left"), std::string::npos) << told;
  std::thread rest([&] {
    EXPECT_TRUE(zero.wait->get()->parsed().has_run_cmd());
    zero.hold(1);
  });
  const Result<RunResult> next = d.session->run({});
  rest.join();
  ASSERT_TRUE(next.ok()) << next.status().message();
  EXPECT_EQ(next->reason, StopReason::kDone);
}

TEST(LiveRanks, OneThatWaitsForTheLostRankLeavesTheUserInControl) {
  Pair pair;
  auto& [d, zero, one] = pair;
  std::thread trainings([&] {
    EXPECT_TRUE(zero.wait->get()->parsed().has_run_cmd());  // and it waits in a collective
    EXPECT_TRUE(one.wait->get()->parsed().has_run_cmd());
    one.client->drop();
  });
  const Result<RunResult> result = d.session->run({});
  trainings.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kLost);
  EXPECT_FALSE(result->held);
  const Result<RunResult> ended = d.session->terminate(200ms);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.status().code(), Code::kPeerLost);
  std::string told;
  for (const LiveEvent& event : d.session->take_events()) told += event.text + "\n";
  EXPECT_NE(told.find("terminate: rank 0 is not held"), std::string::npos) << told;
}

}  // namespace
}  // namespace msdbg::test
