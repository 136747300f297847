// Limits of a live session: sizes, deadlines, interrupts, and refused connections.
#include <gtest/gtest.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <thread>

#include "live/faults.h"

namespace msdbg::test {
namespace {

TEST_F(LiveFaults, MessageAboveTheLimitIsRefusedAndTheSessionGoesOn) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  debugger::Chunk huge;
  huge.set_buffer(std::string((64u << 20) + 1000, 'x'));
  EXPECT_NE(d.client->stream(live::Rpc::kSendGraph, std::vector<std::string>{huge.SerializeAsString()}).code, 0);
  EXPECT_EQ(d.session->state(), LiveState::kHeld);
}

TEST_F(LiveFaults, ViewThatIsNeverAnsweredEndsAtItsDeadline) {
  ListenOptions options;
  options.view_deadline = 200ms;
  Driver d(options);
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const TensorId id = *resolve_tensor(*d.session, "fc1.weight:0", 0);
  Result<TensorInfo> info = d.session->describe(id);
  EXPECT_FALSE(info.ok());
  EXPECT_NE(events_of(*d.session).find("did not answer within"), std::string::npos);
  Result<RunResult> run = d.session->run({});
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.status().message().find("not held"), std::string::npos) << run.status().message();
  // It asks again late, and everything continues.
  (void)d.reply();
  debugger::TensorBase shape;
  shape.set_data_type(11);
  shape.add_shape(2);
  shape.set_data_size(8);
  EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensorBase, std::vector<std::string>{shape.SerializeAsString()}).ok());
  d.hold(0, "");
  EXPECT_TRUE(reaches(*d.session, LiveState::kHeld));
}

TEST_F(LiveFaults, InterruptEndsEveryWait) {
  Driver d;
  {
    InterruptSoon soon;
    EXPECT_EQ(d.session->wait_until_held({}).code(), Code::kInterrupted);
  }
  clear_interrupt();
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  {
    InterruptSoon soon;  // nobody answers the view
    const TensorId id = *resolve_tensor(*d.session, "fc1.weight:0", 0);
    EXPECT_FALSE(d.session->describe(id).ok());
  }
  clear_interrupt();
  (void)d.reply();
  EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensorBase, {}).ok());
  d.hold(0, "");
  ASSERT_TRUE(reaches(*d.session, LiveState::kHeld));
  {
    InterruptSoon soon;
    std::thread peer([&] { (void)d.reply(); });
    Result<RunResult> result = d.session->run({RunKind::kContinue, 1, {}, {}, {}});
    peer.join();
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->reason, StopReason::kInterrupted);
    EXPECT_FALSE(result->held);
    EXPECT_EQ(result->state, LiveState::kRunning);
  }
  clear_interrupt();
  {
    InterruptSoon soon;
    Result<RunResult> result = d.session->pause(10s);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->reason, StopReason::kInterrupted);
  }
  clear_interrupt();
  d.hold(1, "a");  // the step ends: it is held although no call waits
  Result<RunResult> result = d.session->pause(10s);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->held);
}

TEST_F(LiveFaults, ManyWatchedNodesAreSpreadOverSmallMessages) {
  debugger::GraphProto graph;
  const std::string scope = "Default/network-WithLossCell/" + std::string(400, 's') + "/";
  for (int i = 0; i < 9000; ++i) {
    debugger::NodeProto* node = graph.add_node();
    node->set_name(std::to_string(i + 1));
    node->set_op_type("Add");
    node->set_full_name(scope + "Add-op" + std::to_string(i));
    node->mutable_output_type()->set_data_type(14);
  }
  graph.set_name("kernel_graph_3");
  Driver d;
  const std::string bytes = graph.SerializeAsString();
  d.client = RawClient::connect(d.port());
  ASSERT_TRUE(d.client->unary(live::Rpc::kSendMetadata, d.metadata("2.2.0").SerializeAsString()).ok());
  std::vector<std::string> chunks;
  for (size_t at = 0; at < bytes.size(); at += 3145728) {
    debugger::Chunk chunk;
    chunk.set_buffer(bytes.substr(at, 3145728));
    chunks.push_back(chunk.SerializeAsString());
  }
  ASSERT_GT(chunks.size(), 1u);
  ASSERT_TRUE(d.client->stream(live::Rpc::kSendGraph, chunks).ok());
  d.hold(0, "");
  ASSERT_TRUE(d.session->wait_until_held(30s).ok());
  ASSERT_EQ(d.session->graphs().size(), 1u);
  EXPECT_EQ(d.session->graphs()[0]->nodes().size(), 9000u);
  EXPECT_EQ(d.session->graphs()[0]->id(), 3);
  std::set<std::string> names;
  std::set<int> ids;
  std::thread peer([&] {
    while (names.size() < 9000) {
      const debugger::EventReply reply = d.reply();
      if (!reply.has_set_cmd()) break;
      EXPECT_LT(reply.ByteSizeLong(), 4u << 20);
      ids.insert(reply.set_cmd().id());
      for (const auto& node : reply.set_cmd().watch_nodes()) names.insert(node.node_name());
      d.hold(0, "");
    }
  });
  const Watchpoint w = watch("**", "TO");
  EXPECT_TRUE(d.session->set_watchpoints({&w, 1}).ok());
  peer.join();
  EXPECT_EQ(names.size(), 9000u);
  EXPECT_GT(ids.size(), 1u);
}

TEST_F(LiveFaults, TensorAboveTheMemoryLimitIsReducedFromDisk) {
  ListenOptions options;
  options.mem_limit_bytes = 8u << 20;
  Driver d(options);
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  constexpr int64_t kCount = 4 << 20;  // 16 MiB
  std::thread peer([&] {
    for (;;) {
      const debugger::EventReply reply = d.reply();
      if (!reply.has_view_cmd()) return;
      if (reply.view_cmd().level() == debugger::ViewCMD::base) {
        debugger::TensorBase shape;
        shape.set_data_type(11);
        shape.add_shape(kCount);
        shape.set_data_size(4 * kCount);
        EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensorBase, std::vector<std::string>{shape.SerializeAsString()}).ok());
      } else {
        const std::vector<float> part(1 << 19, 0.5f);
        std::vector<std::string> slices;
        for (int i = 0; i < 8; ++i) {
          debugger::TensorProto slice = reply.view_cmd().tensors(0);
          slice.set_data_type(11);
          slice.add_dims(kCount);
          slice.set_finished(i == 7);
          slice.set_tensor_content(part.data(), part.size() * 4);
          slices.push_back(slice.SerializeAsString());
        }
        EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensors, slices).ok());
      }
      d.hold(0, "");
    }
  });
  const TensorId id = *resolve_tensor(*d.session, "fc1.weight:0", 0);
  Result<Stats> stats = d.session->stats(id);
  EXPECT_TRUE(stats.ok()) << stats.status().message();
  if (stats.ok()) {
    EXPECT_EQ(stats->count, static_cast<uint64_t>(kCount));
    EXPECT_EQ(stats->mean, 0.5);
  }
  Result<TensorPtr> whole = d.session->load(id, options.mem_limit_bytes);
  EXPECT_EQ(whole.status().code(), Code::kOutOfMemory);
  d.session.reset();  // tells it to exit
  peer.join();
}

TEST_F(LiveFaults, DetachedTrainingIsServedToItsEnd) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const Watchpoint w = watch("=Default/net-Net/Add-op30", "TO");
  std::thread peer([&] {
    EXPECT_TRUE(d.reply().has_set_cmd());
    d.hold(0, "");
    EXPECT_TRUE(d.reply().set_cmd().delete_());
    for (int step = 0; step < 5; ++step) {
      d.hold(step, "a");
      EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
    }
    d.farewell(5);
  });
  ASSERT_TRUE(d.session->set_watchpoints({&w, 1}).ok());
  ASSERT_TRUE(d.session->detach().ok());
  EXPECT_TRUE(d.session->wait_until_ended(20s).ok());
  peer.join();
  EXPECT_FALSE(d.session->run({}).ok());
}

TEST_F(LiveFaults, ContinueBeforeTheFirstStepIsNotSwallowedByInitialHits) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const Watchpoint w = watch("@weight", "WI zero_percentage_ge=1");
  std::thread peer([&] {
    EXPECT_TRUE(d.reply().has_set_cmd());
    d.hold(0, "");
    EXPECT_EQ(d.reply().run_cmd().run_level(), "recheck");
    debugger::WatchpointHit hit;
    hit.mutable_tensor()->set_node_name("Default/net-Net/fc1.weight");
    hit.mutable_tensor()->set_slot("0");
    hit.set_id(1);
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendWatchpointHits, std::vector<std::string>{hit.SerializeAsString()}).ok());
    d.hold(0, "");
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");  // not lost
    d.hold(0, "a");
  });
  ASSERT_TRUE(d.session->set_watchpoints({&w, 1}).ok());
  Result<RunResult> result = d.session->run({});
  peer.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->steps_run, 1);
  EXPECT_EQ(result->check.hits.size(), 1u);
}

TEST_F(LiveFaults, UnservableVersionIsRefusedAtBothEnds) {
  Driver d;
  d.client = RawClient::connect(d.port());
  const RawReply greeting = d.client->unary(live::Rpc::kSendMetadata, d.metadata("3.0.0").SerializeAsString());
  ASSERT_TRUE(greeting.ok());
  EXPECT_EQ(greeting.parsed().cmd_case(), debugger::EventReply::kVersionMatched);
  EXPECT_FALSE(greeting.parsed().version_matched());
  d.hold(0, "");
  EXPECT_EQ(d.session->wait_until_held(2s).code(), Code::kUnsupported);
  EXPECT_TRUE(d.reply().has_exit());
  EXPECT_NE(events_of(*d.session).find("version '3.0.0'"), std::string::npos);
}

TEST_F(LiveFaults, PortInUseIsNamed) {
  Driver d;
  ListenOptions options;
  options.port = d.port();
  Result<std::unique_ptr<LiveSession>> second = msdbg::listen(options);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("choose another --port"), std::string::npos) << second.status().message();
  options.bind = "no.such.host.invalid";
  EXPECT_EQ(msdbg::listen(options).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace msdbg::test
