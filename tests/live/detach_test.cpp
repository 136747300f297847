// What follows a command that did not go well, a training that was let go, and one that has ended.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "live/faults.h"
#include "support/temp_dir.h"

namespace msdbg::test {
namespace {

class LiveDetach : public LiveFaults {
 protected:
  static constexpr const char* kNode = "Default/net-Net/Add-op30";

  static void detach_now(Driver& d) {
    d.connect();
    ASSERT_TRUE(d.session->wait_until_held(10s).ok());
    ASSERT_TRUE(d.session->detach().ok());
    EXPECT_TRUE(d.session->detached());
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
    d.hold(0, kNode);
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
  }
};

TEST_F(LiveDetach, NextTrainingIsHeldAgain) {
  Driver d;
  detach_now(d);
  d.farewell(1);
  ASSERT_TRUE(d.session->wait_until_ended(10s).ok());
  d.connect("2.0.0");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_FALSE(d.session->detached());
  EXPECT_EQ(d.session->peer().version, "2.0.0");
  EXPECT_FALSE(d.wait->get(50ms).has_value());
  std::thread training([&] {
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
    d.hold(0, kNode);
  });
  const Result<RunResult> result = d.session->run({});
  training.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->completed_steps, 1);
}

TEST_F(LiveDetach, NextTrainingIsHeldThoughTheFirstBrokeOff) {
  Driver d;
  detach_now(d);
  d.client->drop();
  ASSERT_TRUE(reaches(*d.session, LiveState::kLost));
  d.connect("2.0.0");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_FALSE(d.session->detached());
}

TEST_F(LiveDetach, NextTrainingIsHeldThoughItsSocketHasTheNumberOfTheLastOne) {
  for (int attempt = 0; attempt < 3; ++attempt) {  // the number is not always the same
    Driver d;
    // For the next client, which is in this process: msdbg is then likely to get the number that it had for the last one.
    const int low[] = {::open("/dev/null", O_RDONLY | O_CLOEXEC), ::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    detach_now(d);
    d.client->drop();
    ASSERT_TRUE(reaches(*d.session, LiveState::kLost));
    std::this_thread::sleep_for(200ms);  // gRPC closes the socket
    for (const int each : low) ::close(each);
    d.connect("2.0.0");
    ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  }
}

TEST_F(LiveDetach, TrainingThatComesBackOnAnotherConnectionRunsOn) {
  Driver d;
  detach_now(d);
  d.client->drop();
  ASSERT_TRUE(reaches(*d.session, LiveState::kLost));
  d.client = RawClient::connect(d.port());
  d.hold(1, kNode);
  EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
}

TEST_F(LiveDetach, CommandBehindTheEndIsNotALoss) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread training([&] {
    (void)d.reply();
    d.farewell(1);
  });
  ASSERT_TRUE(d.session->run({RunKind::kContinue, 1, {}, {}, {}}).ok());
  training.join();
  const Result<RunResult> result = d.session->run({RunKind::kContinue, 1, {}, {}, {}});
  EXPECT_EQ(result.status().code(), Code::kUnsupported);
  EXPECT_EQ(result.status().message(), "continue: the training has ended; the command was not delivered");
}

TEST_F(LiveDetach, HitsAreReportedThoughTheTrainingHasEnded) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const Watchpoint wanted = watch(std::string("=") + kNode, "TO", 3);
  std::thread training([&] {
    (void)d.reply();
    d.hold(0, "");
    (void)d.reply();
  });
  ASSERT_TRUE(d.session->set_watchpoints({&wanted, 1}).ok());
  RunRequest request;
  request.timeout = 50ms;
  ASSERT_TRUE(d.session->run(request).ok());
  training.join();
  debugger::WatchpointHit hit;
  hit.mutable_tensor()->set_node_name(kNode);
  hit.mutable_tensor()->set_slot("0");
  hit.mutable_watch_condition()->set_condition(debugger::WatchCondition::tensor_general_overflow);
  hit.set_id(1);
  EXPECT_TRUE(d.client->stream(live::Rpc::kSendWatchpointHits, std::vector<std::string>{hit.SerializeAsString()}).ok());
  d.hold(0, kNode);
  ASSERT_TRUE(reaches(*d.session, LiveState::kHeld));
  d.client->drop();
  ASSERT_TRUE(reaches(*d.session, LiveState::kLost));
  const Result<RunResult> result = d.session->run({});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kHit);
  EXPECT_EQ(result->state, LiveState::kLost);
  EXPECT_EQ(result->check.hits.size(), 1u);
}

// A graph that arrives later clears the watchpoints; sending them again fails if the training dies meanwhile.
TEST_F(LiveDetach, InitialHitsAreReportedThoughTheNextMessageFails) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const Watchpoint wanted = watch("=fc1.weight", "WI", 3);
  std::thread setter([&] {
    (void)d.reply();
    d.hold(0, "");
  });
  ASSERT_TRUE(d.session->set_watchpoints({&wanted, 1}).ok());
  setter.join();
  std::thread training([&] {
    EXPECT_EQ(d.reply().run_cmd().run_level(), "recheck");
    debugger::WatchpointHit hit;
    hit.mutable_tensor()->set_node_name("fc1.weight");
    hit.mutable_tensor()->set_slot("0");
    hit.mutable_watch_condition()->set_condition(debugger::WatchCondition::tensor_initialization);
    hit.set_id(1);
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendWatchpointHits, std::vector<std::string>{hit.SerializeAsString()}).ok());
    d.hold(0, "");
    (void)d.reply();
    debugger::Chunk chunk;
    chunk.set_buffer(Driver::graph_bytes("graph-lenet.pb"));
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendGraph, std::vector<std::string>{chunk.SerializeAsString()}).ok());
    d.hold(0, kNode);
    EXPECT_TRUE(d.reply().has_set_cmd());
    d.client->drop();
  });
  const Result<RunResult> result = d.session->run({RunKind::kContinue, 1, {}, {}, {}});
  training.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kHit);
  EXPECT_EQ(result->check.hits.size(), 1u);
  EXPECT_NE(events_of(*d.session).find("went away"), std::string::npos);
}

TEST_F(LiveDetach, RestartBeforeTheFirstStepHasCompletedNone) {
  Driver d;
  d.client = RawClient::connect(d.port());
  d.hold(0, "");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_EQ(d.session->completed_steps(), 0);
}

TEST_F(LiveDetach, EqualComplaintsAreOneLine) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread training([&] {
    (void)d.reply();
    debugger::WatchpointHit hit;
    hit.mutable_tensor()->set_node_name(kNode);
    hit.mutable_tensor()->set_slot("0");
    hit.set_id(99);
    const std::vector<std::string> flood(1000, hit.SerializeAsString());
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendWatchpointHits, flood).ok());
    d.hold(0, "Default/opt-Momentum/ApplyMomentum-op40");
  });
  (void)events_of(*d.session);
  ASSERT_TRUE(d.session->run({}).ok());
  training.join();
  const std::vector<LiveEvent> events = d.session->take_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_NE(events[0].text.find("hit of watchpoint 99"), std::string::npos) << events[0].text;
  EXPECT_NE(events[0].text.find("(1000 times)"), std::string::npos) << events[0].text;
}

// A client of 1.0 knows conditions 0 to 12.
TEST_F(LiveDetach, OldestReleaseGetsOnlyConditionsThatItKnows) {
  Driver d;
  d.connect("");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const Watchpoint wanted = watch(std::string("=") + kNode, "TO", 3);
  std::thread training([&] {
    const debugger::SetCMD set = d.reply().set_cmd();
    EXPECT_EQ(set.watch_condition().condition(), debugger::WatchCondition::max_gt);
    EXPECT_EQ(set.watch_condition().params_size(), 0);
    d.hold(0, "");
  });
  ASSERT_TRUE(d.session->set_watchpoints({&wanted, 1}).ok());
  training.join();
}

// On the wire, weight_too_large is tensor_too_large.
TEST_F(LiveDetach, RecordingIdentifiesConditionsByTheirTargets) {
  const TempDir dir;
  ListenOptions options;
  options.record = dir.file("conversation");
  const auto run = [](Driver& d, const std::vector<std::string>& nodes) {
    std::thread training([&] {
      (void)d.reply();
      std::vector<std::string> hits;
      for (const std::string& node : nodes) {
        debugger::WatchpointHit hit;
        hit.mutable_tensor()->set_node_name(node);
        hit.mutable_tensor()->set_slot("0");
        hit.mutable_watch_condition()->set_condition(debugger::WatchCondition::tensor_too_large);
        hit.set_id(node == "fc1.weight" ? 1 : 2);
        hits.push_back(hit.SerializeAsString());
      }
      EXPECT_TRUE(d.client->stream(live::Rpc::kSendWatchpointHits, hits).ok());
      d.hold(0, "Default/opt-Momentum/ApplyMomentum-op40");
    });
    (void)d.session->run({});
    training.join();
  };
  {
    Driver d(options);
    d.connect();
    ASSERT_TRUE(d.session->wait_until_held(10s).ok());
    run(d, {"fc1.weight", kNode});
  }
  const auto played = open_recording(options.record);
  ASSERT_TRUE(played.ok());
  ASSERT_TRUE((*played)->wait_until_held(10s).ok());
  const Result<RunResult> result = (*played)->run({});
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->check.hits.size(), 2u);
  for (const Hit& hit : result->check.hits) {
    const bool weight = (*played)->tensor_name(hit.tensor).starts_with("fc1.weight");
    EXPECT_EQ(hit.rule, weight ? "weight_too_large" : "tensor_too_large");
    EXPECT_EQ(hit.abbr, weight ? "WL" : "TL");
  }
}

TEST_F(LiveDetach, ParameterThatIsNotLoadedIsNotSaidToBeReadable) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread training([&] {
    (void)d.reply();
    debugger::TensorBase none;
    none.add_shape(0);
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensorBase, std::vector<std::string>{none.SerializeAsString()}).ok());
    d.hold(0, "");
  });
  const Result<TensorId> id = resolve_tensor(*d.session, "fc1.weight:0", 0);
  ASSERT_TRUE(id.ok()) << id.status().message();
  const Result<TensorInfo> info = d.session->describe(*id);
  training.join();
  EXPECT_EQ(info.status().message().find("parameters and constants can be read"), std::string::npos) << info.status().message();
  EXPECT_NE(info.status().message().find("this parameter is not loaded"), std::string::npos) << info.status().message();
}

TEST_F(LiveDetach, AttachHoldsItAgain) {
  Driver d;
  detach_now(d);
  EXPECT_EQ(d.session->run({}).status().code(), Code::kUnsupported);
  Result<RunResult> result = d.session->attach(0ms);  // it runs
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->held);
  d.hold(1, kNode);
  result = d.session->pause(10s);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->held);
  EXPECT_EQ(result->reason, StopReason::kPaused);
  EXPECT_EQ(result->completed_steps, 2);
  EXPECT_FALSE(d.session->detached());
  EXPECT_FALSE(d.wait->get(50ms).has_value());
}

TEST_F(LiveDetach, AttachRemovesWatchpointsThatDetachCouldNotRemove) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const Watchpoint wanted = watch(std::string("=") + kNode, "TO", 3);
  int id = 0;
  std::thread setter([&] {
    id = d.reply().set_cmd().id();
    d.hold(0, "");
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
  });
  ASSERT_TRUE(d.session->set_watchpoints({&wanted, 1}).ok());
  RunRequest request;
  request.timeout = 50ms;
  ASSERT_TRUE(d.session->run(request).ok());
  setter.join();
  ASSERT_TRUE(d.session->detach().ok());  // while it runs: there is no call whose answer could carry the deletion
  ASSERT_TRUE(d.session->attach(0ms).ok());
  d.hold(0, kNode);
  ASSERT_TRUE(d.session->pause(10s).ok());
  std::thread training([&] {
    const debugger::EventReply removed = d.reply();
    EXPECT_TRUE(removed.set_cmd().delete_());
    EXPECT_EQ(removed.set_cmd().id(), id);
    d.hold(0, kNode);
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
    d.hold(1, kNode);
  });
  const Result<RunResult> result = d.session->run({});
  training.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->completed_steps, 2);
}

TEST_F(LiveDetach, AttachNeedsATrainingThatWasLetGo) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_EQ(d.session->attach(10s).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace msdbg::test
