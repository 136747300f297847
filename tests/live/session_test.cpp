// A live session with clients that send exactly what the test specifies.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "live/session_driver.h"

namespace msdbg::test {
namespace {

using namespace std::chrono_literals;

TEST(LiveSession, WaitsConnectsAndIsHeld) {
  Driver d;
  EXPECT_EQ(d.session->state(), LiveState::kWaiting);
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_EQ(d.session->state(), LiveState::kHeld);
  EXPECT_EQ(d.session->peer().version, "1.10.0");
  EXPECT_EQ(d.session->peer().backend, "GPU");
  ASSERT_EQ(d.session->graphs().size(), 1u);
  EXPECT_GT(d.session->graphs()[0]->nodes().size(), 20u);
  EXPECT_EQ(d.session->completed_steps(), 0);
}

TEST(LiveSession, StepsUntilTheEnd) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread peer([&] {
    for (int step = 0; step < 3; ++step) {
      EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
      d.hold(step, "Default/net-Net/Add-op30");
    }
    EXPECT_TRUE(d.reply().has_exit());
    d.farewell(3);
  });
  Result<RunResult> result = d.session->run({RunKind::kStep, 2, {}, {}, {}});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kDone);
  EXPECT_EQ(result->steps_run, 2);
  EXPECT_EQ(result->completed_steps, 2);
  EXPECT_EQ(result->step, 1);
  result = d.session->run({});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->completed_steps, 3);
  result = d.session->terminate(10s);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->reason, StopReason::kEnded);
  peer.join();
}

TEST(LiveSession, DeadClientIsKnownAtOnce) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  d.client->drop();
  for (int i = 0; i < 500 && d.session->state() != LiveState::kLost; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(d.session->state(), LiveState::kLost);
  Result<RunResult> result = d.session->run({});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kPeerLost);
  EXPECT_NE(result.status().message().find("not delivered"), std::string::npos) << result.status().message();
}

TEST(LiveSession, DeathWhileRunningIsKnownAtOnce) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread peer([&] {
    (void)d.reply();
    d.client->drop();
  });
  Result<RunResult> result = d.session->run({});
  peer.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kLost);
}

TEST(LiveSession, SecondClientIsRefusedWithAMessage) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  auto second = RawClient::connect(d.port());
  ASSERT_TRUE(second);
  const RawReply reply = second->unary(live::Rpc::kSendMetadata, d.metadata("2.0.0").SerializeAsString());
  EXPECT_NE(reply.code, 0);
  EXPECT_NE(reply.text.find("msdbg debugs the training at"), std::string::npos) << reply.text;
  EXPECT_NE(reply.text.find("needs --ranks N"), std::string::npos) << reply.text;
  EXPECT_EQ(d.session->state(), LiveState::kHeld);
  bool told = false;
  for (const LiveEvent& event : d.session->take_events()) told = told || event.text.find("refused a second training") == 0;
  EXPECT_TRUE(told);
}

TEST(LiveSession, HitStopsAndNamesTheTensor) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  Watchpoint watch;
  watch.id = 7;
  watch.rule = "tensor_too_large";
  watch.on = *Selector::parse("=Default/net-Net/Add-op30");
  watch.condition = *parse_condition("TL max_gt=1");
  std::thread setter([&] {
    const debugger::EventReply set = d.reply();
    ASSERT_EQ(set.set_cmd().watch_nodes_size(), 1);
    EXPECT_EQ(set.set_cmd().watch_nodes(0).node_name(), "Default/net-Net/Add-op30");
    EXPECT_EQ(set.set_cmd().watch_condition().condition(), debugger::WatchCondition::tensor_too_large);
    ASSERT_EQ(set.set_cmd().watch_condition().params_size(), 4);
    EXPECT_TRUE(set.set_cmd().watch_condition().params(0).disabled());
    EXPECT_EQ(set.set_cmd().watch_condition().params(1).value(), 1.0);
    d.hold(0, "");
  });
  ASSERT_TRUE(d.session->set_watchpoints({&watch, 1}).ok());
  setter.join();
  std::thread peer([&] {
    (void)d.reply();
    debugger::WatchpointHit hit;
    hit.mutable_tensor()->set_node_name("Default/net-Net/Add-op30");
    hit.mutable_tensor()->set_slot("0");
    hit.set_id(1);
    auto* param = hit.mutable_watch_condition()->add_params();
    param->set_name("max_gt");
    param->set_value(1);
    param->set_hit(true);
    param->set_actual_value(3);
    const std::vector<std::string> messages{hit.SerializeAsString()};
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendWatchpointHits, messages).ok());
    d.hold(0, "Default/net-Net/Add-op30");
  });
  Result<RunResult> result = d.session->run({RunKind::kContinue, 1, {}, {}, {}});
  peer.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kHit);
  ASSERT_EQ(result->check.hits.size(), 1u);
  const Hit& hit = result->check.hits[0];
  EXPECT_EQ(hit.watch_id, 7);
  EXPECT_EQ(d.session->tensor_name(hit.tensor), "Default/net-Net/Add-op30:output:0");
  ASSERT_EQ(hit.params.size(), 1u);
  EXPECT_EQ(hit.params[0].actual, 3.0);
  EXPECT_TRUE(hit.params[0].hit);
}

TEST(LiveSession, ViewsAValueInSlices) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread peer([&] {
    const debugger::EventReply base = d.reply();
    EXPECT_EQ(base.view_cmd().level(), debugger::ViewCMD::base);
    ASSERT_EQ(base.view_cmd().tensors_size(), 1);
    EXPECT_EQ(base.view_cmd().tensors(0).node_name(), "fc1.weight");
    debugger::TensorBase shape;
    shape.set_data_type(11);
    shape.add_shape(4);
    shape.set_data_size(16);
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensorBase, std::vector<std::string>{shape.SerializeAsString()}).ok());
    d.hold(0, "");
    const debugger::EventReply view = d.reply();
    EXPECT_EQ(view.view_cmd().level(), debugger::ViewCMD::value);
    const float values[] = {1, 2, 3, 4};
    std::vector<std::string> slices;
    for (int part = 0; part < 2; ++part) {
      debugger::TensorProto slice = view.view_cmd().tensors(0);
      slice.set_data_type(11);
      slice.add_dims(4);
      slice.set_finished(part == 1);
      slice.set_tensor_content(values + 2 * part, 8);
      slices.push_back(slice.SerializeAsString());
    }
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensors, slices).ok());
    d.hold(0, "");
  });
  Result<TensorId> id = resolve_tensor(*d.session, "fc1.weight:0", 0);
  ASSERT_TRUE(id.ok()) << id.status().message();
  Result<TensorPtr> tensor = d.session->load(*id);
  peer.join();
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ((*tensor)->view().at(3), 4);
  EXPECT_EQ(d.session->stats(*id)->mean, 2.5);
}

TEST(LiveSession, WhatIsWatchedInertlyCanBeReadInTheNextSteps) {
  constexpr const char* kNode = "Default/net-Net/Add-op30";
  Driver d;
  d.connect("2.0.0");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const auto found = find_node(d.session->graphs(), kNode);
  ASSERT_TRUE(found.ok());
  const TensorId id{0, found->graph->id(), 0, 0, found->node, {Io::kOutput, 0}};
  std::thread setter([&] {
    const debugger::EventReply set = d.reply();
    ASSERT_EQ(set.set_cmd().watch_nodes_size(), 1);
    EXPECT_EQ(set.set_cmd().watch_nodes(0).node_name(), kNode);
    EXPECT_EQ(set.set_cmd().watch_condition().condition(), debugger::WatchCondition::tensor_initialization);
    d.hold(0, "");
  });
  const Result<bool> kept = d.session->keep_readable(id);
  setter.join();
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_TRUE(*kept);
  EXPECT_FALSE(*d.session->keep_readable(id));
  EXPECT_FALSE(d.wait->get(50ms).has_value()) << "it was told the same again";
}

TEST(LiveSession, AnotherProcessTakesThePortOver) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  ASSERT_TRUE(d.session->detach().ok());
  EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
  ASSERT_TRUE(d.session->wait_until_detached(10s).ok());
  ListenOptions options;
  Result<std::vector<int>> sockets = d.session->copy_sockets();
  ASSERT_TRUE(sockets.ok()) << sockets.status().message();
  options.sockets = *sockets;
  options.port = 1;
  Result<std::unique_ptr<LiveSession>> next = msdbg::listen(options);
  ASSERT_TRUE(next.ok()) << next.status().message();
  const std::string address = d.session->address();
  EXPECT_EQ((*next)->address(), address);
  d.session.reset();
  d.session = std::move(*next);
  d.client = RawClient::connect(d.port());
  d.hold(0, "");
  EXPECT_TRUE(d.session->wait_until_held(10s).ok());
}

TEST(LiveSession, WhatIsNoListeningSocketIsRefused) {
  ListenOptions options;
  options.sockets = {0};
  const auto made = msdbg::listen(options);
  EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace msdbg::test
