// Behaviour of releases that was not recorded, and processes that connect, disconnect and reconnect.
#include <gtest/gtest.h>

#include <thread>

#include "live/faults.h"

namespace msdbg::test {
namespace {

class LivePeers : public LiveFaults {
 protected:
  static constexpr const char* kNode = "Default/net-Net/Add-op30";

  void hit(Driver& d, const std::string& node, int id) {
    debugger::WatchpointHit hit;
    hit.mutable_tensor()->set_node_name(node);
    hit.mutable_tensor()->set_slot("0");
    hit.set_id(id);
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendWatchpointHits, std::vector<std::string>{hit.SerializeAsString()}).ok());
  }
  /// A parameter with shape [4], as `data_type`, with these statistics.
  std::optional<Stats> statistics(Driver& d, int data_type, int64_t bytes, const debugger::Statistics& sent) {
    std::thread peer([&] {
      (void)d.reply();
      debugger::TensorBase shape;
      shape.set_data_type(data_type);
      shape.add_shape(4);
      shape.set_data_size(bytes);
      EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensorBase, std::vector<std::string>{shape.SerializeAsString()}).ok());
      d.hold(0, "");
      (void)d.reply();
      debugger::TensorSummary summary;
      *summary.mutable_tensor_base() = shape;
      *summary.mutable_statistics() = sent;
      EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensorStats, std::vector<std::string>{summary.SerializeAsString()}).ok());
      d.hold(0, "");
    });
    const Result<TensorId> id = resolve_tensor(*d.session, "fc1.weight:0", 0);
    EXPECT_TRUE(id.ok()) << id.status().message();
    EXPECT_TRUE(d.session->describe(*id).ok());
    std::optional<Stats> stats = d.session->given_statistics(*id);
    peer.join();
    return stats;
  }
};

// 1.3 to 1.5 send the hits of a step when it ends and are held when the next one starts, which never happens after the last step.
TEST_F(LivePeers, HitsOfTheLastStepAreReportedThoughNoSuspensionFollows) {
  Driver d;
  d.connect("1.5.0", Driver::graph_bytes("graph-real-1.5.0.pb"));
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::string node;
  for (const Node& each : d.session->graphs()[0]->nodes()) {
    if (each.op == "MatMul") node = each.name;
  }
  ASSERT_FALSE(node.empty());
  const Watchpoint wanted = watch("=" + node, "TO", 3);
  std::thread training([&] {
    (void)d.reply();
    d.hold(0, "");
    (void)d.reply();
    d.hold(1, node);
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
    hit(d, node, 1);
    d.farewell(2);
  });
  ASSERT_TRUE(d.session->set_watchpoints({&wanted, 1}).ok());
  const Result<RunResult> result = d.session->run({RunKind::kContinue, 1, {}, {}, {}});
  training.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->state, LiveState::kEnded);
  EXPECT_EQ(result->reason, StopReason::kHit);
  ASSERT_EQ(result->check.hits.size(), 1u);
  EXPECT_EQ(result->check.hits[0].watch_id, 3);
  EXPECT_EQ(result->steps_run, 1);  // that could be examined
  EXPECT_EQ(result->completed_steps, 2);
  (void)events_of(*d.session);
  const Result<TensorInfo> value = d.session->describe(result->check.hits[0].tensor);
  EXPECT_NE(value.status().message().find("the training is ended"), std::string::npos) << value.status().message();
  EXPECT_EQ(events_of(*d.session), "");  // no query, no warning
}

TEST_F(LivePeers, HitThatCameWithoutACommandIsReportedBeforeAnythingRuns) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const Watchpoint wanted = watch(std::string("=") + kNode, "TO", 3);
  std::thread training([&] {
    (void)d.reply();  // the watchpoint
    d.hold(0, "");
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
  });
  ASSERT_TRUE(d.session->set_watchpoints({&wanted, 1}).ok());
  RunRequest request;
  request.timeout = 50ms;
  Result<RunResult> result = d.session->run(request);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kPaused);
  training.join();
  hit(d, kNode, 1);
  d.hold(0, kNode);
  ASSERT_TRUE(reaches(*d.session, LiveState::kHeld));
  result = d.session->run({});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kHit);
  ASSERT_EQ(result->check.hits.size(), 1u);
  EXPECT_EQ(result->steps_run, 0);
  EXPECT_FALSE(d.wait->get(50ms).has_value());
  request.timeout = 50ms;
  EXPECT_EQ(d.session->run(request)->reason, StopReason::kPaused);
  EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
}

// Old runtimes on Ascend hold a training after each graph of a step.
TEST_F(LivePeers, StepsAreCountedByTheTrainingWhenItIsHeldSeveralTimesInEach) {
  for (const bool looked_at : {false, true}) {
    Driver d;
    d.backend = "Ascend";
    d.connect("1.9.0");
    ASSERT_TRUE(d.session->wait_until_held(10s).ok());
    std::thread training([&] {
      for (int held = 0; held < 5; ++held) {
        EXPECT_EQ(d.reply().run_cmd().run_level(), "step") << held;
        d.hold(held / 2, "");
      }
    });
    RunRequest request;
    request.count = 3;
    if (looked_at) request.on_step = [](int64_t) { return true; };
    const Result<RunResult> result = d.session->run(request);
    training.join();
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->steps_run, 3);
    EXPECT_EQ(result->completed_steps, 3);
    EXPECT_EQ(result->step, 2);
    EXPECT_FALSE(d.wait->get(50ms).has_value());
  }
}

TEST_F(LivePeers, FarewellReportsHowManyStepsHaveRun) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread training([&] {
    (void)d.reply();
    d.hold(0, kNode);
    EXPECT_TRUE(d.reply().has_exit());  // after an operator of step 0, which still runs to its end
    d.farewell(1);
  });
  ASSERT_TRUE(d.session->run({RunKind::kNextNode, 1, {}, {}, {}}).ok());
  EXPECT_EQ(d.session->completed_steps(), 0);
  const Result<RunResult> result = d.session->terminate(10s);
  training.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->completed_steps, 1);
}

TEST_F(LivePeers, NextTrainingComesThoughTheOneThatSaidGoodbyeKeepsItsConnection) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread training([&] {
    EXPECT_TRUE(d.reply().has_exit());
    d.farewell(1);
  });
  ASSERT_TRUE(d.session->terminate(10s).ok());
  training.join();
  const std::unique_ptr<RawClient> lingering = std::move(d.client);
  d.connect("2.0.0");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_EQ(d.session->peer().version, "2.0.0");
  lingering->drop();  // the end of the old connection does not affect the new training
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(d.session->state(), LiveState::kHeld);
}

TEST_F(LivePeers, ProcessThatGoesOnBehindItsGoodbyeIsTheSameOne) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread training([&] {
    (void)d.reply();
    d.farewell(1);
    d.hold(1, kNode);
  });
  (void)d.session->run({});
  training.join();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_EQ(d.session->peer().version, "1.10.0");
  EXPECT_EQ(d.session->graphs().size(), 1u);
}

TEST_F(LivePeers, ProcessThatWasTurnedAwayIsNotTakenForTheOneThatIsGone) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::unique_ptr<RawClient> other = RawClient::connect(d.port());
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->unary(live::Rpc::kSendMetadata, d.metadata("2.2.0").SerializeAsString()).ok());
  d.client->drop();
  ASSERT_TRUE(reaches(*d.session, LiveState::kLost));
  std::unique_ptr<RawClient::Wait> wait = other->wait_cmd(d.metadata("", 0, "").SerializeAsString());
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_EQ(d.session->peer().version, "unknown");
  EXPECT_TRUE(d.session->graphs().empty());
  wait.reset();
}

TEST_F(LivePeers, ProcessThatHasCountedBackIsAnotherOne) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread training([&] {
    (void)d.reply();
    d.hold(7, kNode);
  });
  ASSERT_TRUE(d.session->run({}).ok());
  training.join();
  d.client->drop();
  ASSERT_TRUE(reaches(*d.session, LiveState::kLost));
  d.client = RawClient::connect(d.port());
  d.hold(0, kNode);
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_EQ(d.session->peer().version, "unknown");
  EXPECT_TRUE(d.session->graphs().empty());
}

TEST_F(LivePeers, CountersThatOverflowedAreReplacedByTheElements) {
  Driver d;
  d.connect("1.5.0", Driver::graph_bytes("graph-real-1.5.0.pb"));
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const float values[] = {1, 2, 3, 6};
  std::thread peer([&] {
    for (bool done = false; !done;) {
      const debugger::ViewCMD view = d.reply().view_cmd();
      debugger::TensorSummary summary;
      debugger::TensorBase& base = *summary.mutable_tensor_base();
      base.set_data_type(11);
      base.add_shape(4);
      base.set_data_size(16);
      summary.mutable_statistics()->set_count(static_cast<uint64_t>(-5));  // an int32 in that release, on the wire
      summary.mutable_statistics()->set_max_value(6);
      debugger::TensorProto slice = view.tensors_size() > 0 ? view.tensors(0) : debugger::TensorProto();
      slice.set_data_type(11);
      slice.add_dims(4);
      slice.set_finished(true);
      slice.set_tensor_content(values, sizeof values);
      using live::Rpc;
      done = view.level() == debugger::ViewCMD::value;
      const Rpc rpc = view.level() == debugger::ViewCMD::base ? Rpc::kSendTensorBase : done ? Rpc::kSendTensors : Rpc::kSendTensorStats;
      const std::string answer = rpc == Rpc::kSendTensorBase ? base.SerializeAsString()
                                 : done                      ? slice.SerializeAsString()
                                                             : summary.SerializeAsString();
      EXPECT_TRUE(d.client->stream(rpc, std::vector<std::string>{answer}).ok());
      d.hold(0, "");
    }
  });
  const Result<TensorId> id = resolve_tensor(*d.session, "fc1.weight:0", 0);
  ASSERT_TRUE(id.ok()) << id.status().message();
  ASSERT_TRUE(d.session->describe(*id).ok());
  const std::optional<Stats> stats = d.session->given_statistics(*id);
  if (!stats) d.client->drop();
  peer.join();
  ASSERT_TRUE(stats.has_value());
  EXPECT_EQ(stats->count, 4u);
  EXPECT_EQ(stats->mean, 3);
  EXPECT_EQ(stats->max, 6);
}

TEST_F(LivePeers, TruthValuesAreCountedWhateverTheExtremesSay) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  debugger::Statistics sent;
  sent.set_is_bool(true);
  sent.set_count(4);
  sent.set_pos_zero_count(3);
  sent.set_zero_count(1);
  const std::optional<Stats> stats = statistics(d, 1, 4, sent);
  ASSERT_TRUE(stats.has_value());
  EXPECT_EQ(stats->max, 1);
  EXPECT_EQ(stats->min, 0);
  EXPECT_EQ(stats->mean, 0.75);
}

// 1.1 and 1.2 send the last slice of a large graph twice, and its first one with the previous graph's mark.
TEST_F(LivePeers, SlicesThatAreMarkedWronglyMakeOneGraph) {
  constexpr size_t kSlice = 3145728;
  debugger::GraphProto large;
  large.set_name("kernel_graph_7");
  for (int i = 0; i < 7000; ++i) {
    debugger::NodeProto& node = *large.add_node();
    node.set_name(std::to_string(i + 1));
    node.set_op_type("Add");
    node.set_full_name("Default/" + std::string(1000, 'x') + "/Add-op" + std::to_string(i));
  }
  const std::string bytes = large.SerializeAsString();
  ASSERT_GT(bytes.size(), 2 * kSlice);
  std::vector<std::string> chunks;
  const auto add = [&chunks](const std::string& buffer, bool finished) {
    debugger::Chunk chunk;
    chunk.set_buffer(buffer);
    chunk.set_finished(finished);
    chunks.push_back(chunk.SerializeAsString());
  };
  add(Driver::graph_bytes("graph-real-1.3.0.pb"), true);
  add(bytes.substr(0, kSlice), true);
  add(bytes.substr(kSlice, kSlice), false);
  add(bytes.substr(2 * kSlice), false);
  add(bytes.substr(2 * kSlice), true);
  Driver d;
  d.client = RawClient::connect(d.port());
  EXPECT_TRUE(d.client->unary(live::Rpc::kSendMetadata, d.metadata("1.1.0").SerializeAsString()).ok());
  EXPECT_TRUE(d.client->stream(live::Rpc::kSendMultiGraphs, chunks).ok());
  d.hold(0, "");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  ASSERT_EQ(d.session->graphs().size(), 2u) << events_of(*d.session);
  EXPECT_EQ(d.session->graphs()[1]->name(), "kernel_graph_7");
  EXPECT_EQ(d.session->graphs()[1]->nodes().size(), 7000u);
}

TEST_F(LivePeers, VersionsAreReadByTheirFirstTwoNumbers) {
  for (const char* version : {"2.3.0.rc1", "2.0.0a0", "2.2.14", "2.3rc1", "1.10", "2.1.0+cu111"}) {
    Driver d;
    d.connect(version);
    ASSERT_TRUE(d.session->wait_until_held(10s).ok()) << version;
    EXPECT_EQ(d.session->peer().version, version);
    EXPECT_EQ(d.session->peer().has_levels, true) << version;
  }
}

TEST_F(LivePeers, HandshakeThatSaysLittleIsEnough) {
  Driver d;
  d.backend = "";
  d.client = RawClient::connect(d.port());
  const RawReply greeting = d.client->unary(live::Rpc::kSendMetadata, "");
  ASSERT_TRUE(greeting.ok()) << greeting.describe();
  EXPECT_TRUE(greeting.parsed().version_matched());
  EXPECT_TRUE(d.client->stream(live::Rpc::kSendGraph, std::vector<std::string>{}).ok());
  d.wait = d.client->wait_cmd("");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const std::string told = events_of(*d.session);
  EXPECT_NE(told.find("connected: MindSpore 1.0.x"), std::string::npos) << told;
  EXPECT_EQ(told.find("  "), std::string::npos) << told;
}

// The prompt asks for the state, too, and what it finds out that way must still be shown.
TEST_F(LivePeers, NewsWaitsUntilItIsTaken) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  (void)events_of(*d.session);
  EXPECT_FALSE(has_news(*d.session));
  d.wait.reset();
  d.client.reset();
  ASSERT_TRUE(reaches(*d.session, LiveState::kLost));
  EXPECT_TRUE(has_news(*d.session));
  EXPECT_NE(events_of(*d.session).find("broke without a goodbye"), std::string::npos);
  EXPECT_FALSE(has_news(*d.session));
}

}  // namespace
}  // namespace msdbg::test
