// Failures between two processes: nothing may hang, and nothing may be lost silently.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "live/faults.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace msdbg::test {
namespace {

TEST_F(LiveFaults, ClientDiesWhileItSendsAGraph) {
  Driver d;
  d.client = RawClient::connect(d.port());
  ASSERT_TRUE(d.client->unary(live::Rpc::kSendMetadata, d.metadata("1.10.0").SerializeAsString()).ok());
  debugger::Chunk chunk;
  chunk.set_buffer(Driver::graph_bytes().substr(0, 4000));
  ASSERT_TRUE(d.client->begin_stream(live::Rpc::kSendGraph, std::vector<std::string>{chunk.SerializeAsString()}));
  ASSERT_TRUE(reaches(*d.session, LiveState::kConnected));
  d.client->drop();
  EXPECT_TRUE(reaches(*d.session, LiveState::kLost));
  EXPECT_TRUE(d.session->graphs().empty());
  // The next process is served.
  d.connect();
  EXPECT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_EQ(d.session->graphs().size(), 1u);
}

TEST_F(LiveFaults, ClientDiesInTheMiddleOfATensor) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread peer([&] {
    (void)d.reply();
    debugger::TensorBase shape;
    shape.set_data_type(11);
    shape.add_shape(1000);
    shape.set_data_size(4000);
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensorBase, std::vector<std::string>{shape.SerializeAsString()}).ok());
    d.hold(0, "");
    debugger::TensorProto slice = d.reply().view_cmd().tensors(0);
    slice.set_data_type(11);
    slice.add_dims(1000);
    slice.set_tensor_content(std::string(2000, '\0'));
    EXPECT_TRUE(d.client->begin_stream(live::Rpc::kSendTensors, std::vector<std::string>{slice.SerializeAsString()}));
    d.client->drop();
  });
  const TensorId id = *resolve_tensor(*d.session, "fc1.weight:0", 0);
  Result<TensorPtr> tensor = d.session->load(id);
  peer.join();
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.status().code(), Code::kPeerLost) << tensor.status().message();
  EXPECT_TRUE(reaches(*d.session, LiveState::kLost));
}

TEST_F(LiveFaults, RestartedDebuggerPicksUpAHeldClient) {
  // The client was held by another debugger; it retries its WaitCMD without a handshake.
  Driver d;
  d.client = RawClient::connect(d.port());
  d.hold(5, "Default/net-Net/Add-op30");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_EQ(d.session->peer().version, "unknown");
  EXPECT_TRUE(d.session->graphs().empty());
  EXPECT_EQ(d.session->current_step(), 5);
  std::thread peer([&] {
    // Whatever the other debugger may have left is removed first.
    int deletes = 0;
    debugger::EventReply reply = d.reply();
    while (reply.has_set_cmd()) {
      EXPECT_TRUE(reply.set_cmd().delete_());
      ++deletes;
      d.hold(5, "Default/net-Net/Add-op30");
      reply = d.reply();
    }
    EXPECT_GT(deletes, 10);
    EXPECT_EQ(reply.run_cmd().run_level(), "step");
    d.hold(6, "Default/net-Net/Add-op30");
    EXPECT_TRUE(d.reply().has_exit());
    d.farewell(7);
  });
  Result<RunResult> result = d.session->run({});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->step, 6);
  ASSERT_TRUE(d.session->terminate(10s).ok());
  peer.join();
  EXPECT_EQ(d.session->state(), LiveState::kEnded);
}

TEST_F(LiveFaults, GraphOfATrainingThatCameBackIsThatOfARecording) {
  const TempDir directory;
  ListenOptions options;
  options.record = directory.file("before.msdbg");
  {
    Driver before(options);
    before.connect();
    ASSERT_TRUE(before.session->wait_until_held(10s).ok());
    ASSERT_TRUE(before.session->detach().ok());
    (void)before.reply();
  }
  ListenOptions given;
  given.graph_from = options.record;
  for (const ListenOptions& again : {given, options}) {  // the second one overwrites the file
    Driver d(again);
    d.client = RawClient::connect(d.port());
    d.hold(5, "Default/net-Net/Add-op30");
    ASSERT_TRUE(d.session->wait_until_held(10s).ok());
    EXPECT_EQ(d.session->peer().version, "1.10.0");
    ASSERT_EQ(d.session->graphs().size(), 1u);
    EXPECT_NE(d.session->graphs()[0]->find("Default/net-Net/Add-op30"), nullptr);
    const std::string events = events_of(*d.session);
    EXPECT_NE(events.find("those of a recording are used"), std::string::npos) << events;
    ASSERT_TRUE(d.session->detach().ok());
    EXPECT_TRUE(d.reply().set_cmd().delete_());
  }
}

TEST_F(LiveFaults, GraphOfAnotherTrainingIsNotUsed) {
  const TempDir directory;
  ListenOptions options;
  options.record = directory.file("before.msdbg");
  {
    Driver before(options);
    before.connect();
    ASSERT_TRUE(before.session->wait_until_held(10s).ok());
    ASSERT_TRUE(before.session->detach().ok());
    (void)before.reply();
  }
  ListenOptions again;
  again.graph_from = options.record;
  Driver d(again);
  d.client = RawClient::connect(d.port());
  d.hold(5, "Default/net-Other/Conv2D-op1");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_EQ(d.session->peer().version, "unknown");
  EXPECT_TRUE(d.session->graphs().empty());
  ASSERT_TRUE(d.session->detach().ok());
  (void)d.reply();
}

TEST_F(LiveFaults, RecordingWithoutGraphIsRefused) {
  const TempDir directory;
  ListenOptions options;
  options.port = 0;
  options.graph_from = directory.file("absent.msdbg");
  EXPECT_FALSE(msdbg::listen(options).ok());
}

TEST_F(LiveFaults, ConnectionThatBreaksAndIsMadeAgainGoesOn) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  d.client->drop();
  ASSERT_TRUE(reaches(*d.session, LiveState::kLost));
  d.wait.reset();
  d.client = RawClient::connect(d.port());
  d.hold(0, "");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_EQ(d.session->peer().version, "1.10.0");
  EXPECT_EQ(d.session->graphs().size(), 1u);
}

TEST_F(LiveFaults, SilentConnectionDisturbsNobody) {
  Driver d;
  const int raw = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(d.port()));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(raw, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  d.connect();
  EXPECT_TRUE(d.session->wait_until_held(10s).ok());
  ::close(raw);
  EXPECT_EQ(d.session->state(), LiveState::kHeld);
}

/// Passes bytes between a client and the session until it is told to fall silent, like a machine that vanished.
class Proxy {
 public:
  explicit Proxy(int port) : target_(port) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&at), length), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &length);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~Proxy() {
    stop_ = true;
    thread_.join();
    for (const int fd : {listener_, near_, far_}) ::close(fd);
  }
  int port() const { return port_; }
  void fall_silent() { silent_ = true; }

 private:
  void run() {
    near_ = ::accept(listener_, nullptr, nullptr);
    far_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(target_));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(far_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return;
    char block[65536];
    while (!stop_) {
      pollfd polled[] = {{near_, POLLIN, 0}, {far_, POLLIN, 0}};
      if (silent_ || ::poll(polled, 2, 20) <= 0) {
        std::this_thread::sleep_for(5ms);
        continue;
      }
      for (int side = 0; side < 2; ++side) {
        if (polled[side].revents == 0) continue;
        const ssize_t n = ::read(polled[side].fd, block, sizeof block);
        if (n <= 0) return;
        if (::write(polled[1 - side].fd, block, static_cast<size_t>(n)) != n) return;
      }
    }
  }

  int target_, listener_ = -1, near_ = -1, far_ = -1, port_ = 0;
  std::atomic<bool> stop_{false}, silent_{false};
  std::thread thread_;
};

TEST_F(LiveFaults, HalfOpenConnectionIsNoticed) {
  ListenOptions options;
  options.keepalive = 400ms;
  options.keepalive_timeout = 200ms;
  Driver d(options);
  Proxy proxy(d.port());
  d.client = RawClient::connect(proxy.port());
  ASSERT_TRUE(d.client->unary(live::Rpc::kSendMetadata, d.metadata("1.10.0").SerializeAsString()).ok());
  d.hold(0, "");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  proxy.fall_silent();
  EXPECT_TRUE(reaches(*d.session, LiveState::kLost));
}

/// A process without a call answers pings only when its gRPC looks at the connection, every 5 s.
TEST_F(LiveFaults, ATrainingInALongStepIsNotLost) {
  ListenOptions options;
  options.keepalive = 400ms;
  Driver d(options);
  Process training({MSDBG_TRAINER, "--host", "127.0.0.1", "--port", std::to_string(d.port()), "--steps", "2", "--step-sleep-ms", "4000"});
  ASSERT_TRUE(d.session->wait_until_held(60s).ok());
  RunRequest request;
  request.kind = RunKind::kStep;
  const auto result = d.session->run(request);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kDone) << events_of(*d.session);
}

TEST_F(LiveFaults, GarbageIsSurvivedAndReported) {
  Driver d;
  d.client = RawClient::connect(d.port());
  const std::string garbage = "\xff\xff\xff\xff\xff\xff";
  EXPECT_NE(d.client->unary(live::Rpc::kSendMetadata, garbage).code, 0);
  ASSERT_TRUE(d.client->unary(live::Rpc::kSendMetadata, d.metadata("1.10.0").SerializeAsString()).ok());
  debugger::Chunk chunk;
  chunk.set_buffer(garbage);
  EXPECT_TRUE(d.client->stream(live::Rpc::kSendGraph, std::vector<std::string>{chunk.SerializeAsString()}).ok());
  EXPECT_TRUE(d.client->stream(live::Rpc::kSendGraph, {}).ok());
  for (const live::Rpc rpc : {live::Rpc::kSendWatchpointHits, live::Rpc::kSendTensors, live::Rpc::kSendTensorBase,
                              live::Rpc::kSendTensorStats, live::Rpc::kSendMultiGraphs})
    EXPECT_NE(d.client->stream(rpc, std::vector<std::string>{garbage}).code, 0) << live::rpc_name(rpc);
  d.hold(0, "");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const std::string events = events_of(*d.session);
  EXPECT_NE(events.find("a graph of 6 bytes cannot be read"), std::string::npos) << events;
  EXPECT_NE(events.find("SendMetadata: message 1 cannot be decoded"), std::string::npos) << events;
  std::thread peer([&] {
    (void)d.reply();
    d.hold(0, "some");
  });
  EXPECT_TRUE(d.session->run({}).ok());
  peer.join();
}

TEST_F(LiveFaults, OddHitsAndNamesAreSurvived) {
  Driver d;
  testing::internal::CaptureStderr();
  // A name with markup, and one that is not UTF-8, in graph, metadata and hit.
  debugger::GraphProto graph;
  const std::string markup = "Default/<b>\"x\"</b>-op1", raw = "Default/\xff\xfe-op2";
  int number = 0;
  for (const std::string& name : {markup, raw}) {
    debugger::NodeProto* node = graph.add_node();
    node->set_name(std::to_string(++number));
    node->set_op_type("Add");
    node->set_full_name(name);
    node->mutable_output_type()->set_data_type(14);
    node->mutable_output_type()->mutable_tensor_type()->set_elem_type(11);
  }
  graph.set_name("kernel_graph_0");
  d.connect("2.2.0", graph.SerializeAsString());
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const Watchpoint w = watch("**", "TO");
  std::thread peer([&] {
    const debugger::EventReply set = d.reply();
    EXPECT_EQ(set.set_cmd().watch_nodes_size(), 2);
    EXPECT_EQ(set.set_cmd().watch_nodes(0).node_name(), markup);
    EXPECT_EQ(set.set_cmd().watch_nodes(1).node_name(), raw);
    d.hold(0, "");
    (void)d.reply();
    std::vector<std::string> hits;
    for (const auto& [name, id] : std::vector<std::pair<std::string, int>>{
             {markup, 1}, {raw, 1}, {"*", 1}, {"no/such-op9", 1}, {markup, 99}, {"", -5}}) {
      debugger::WatchpointHit hit;
      hit.mutable_tensor()->set_node_name(name);
      hit.mutable_tensor()->set_slot(name == "*" ? "x" : "0");
      hit.set_id(id);
      hits.push_back(hit.SerializeAsString());
    }
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendWatchpointHits, hits).ok());
    d.hold(0, raw);
  });
  ASSERT_TRUE(d.session->set_watchpoints({&w, 1}).ok());
  Result<RunResult> result = d.session->run({RunKind::kContinue, 1, {}, {}, {}});
  peer.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->check.hits.size(), 2u);
  const std::string events = events_of(*d.session);
  EXPECT_NE(events.find("which is in no graph"), std::string::npos) << events;
  EXPECT_NE(events.find("watchpoint 99"), std::string::npos) << events;
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "nothing may be printed between the lines of the prompt";
}

TEST_F(LiveFaults, RepeatedWaitAndUnaskedUploadsAreSurvived) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  debugger::TensorProto unasked;
  unasked.set_node_name("x");
  unasked.set_slot("0");
  unasked.set_tensor_content("abcd");
  EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensors, std::vector<std::string>{unasked.SerializeAsString()}).ok());
  EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensorBase, {}).ok());
  auto first = std::move(d.wait);
  d.hold(0, "");  // while the first one is open
  const auto dropped = first->get();
  ASSERT_TRUE(dropped.has_value());
  EXPECT_NE(dropped->code, 0);
  std::thread peer([&] {
    EXPECT_TRUE(d.reply().has_run_cmd());
    d.hold(0, "a");
  });
  EXPECT_TRUE(d.session->run({}).ok());
  peer.join();
}

}  // namespace
}  // namespace msdbg::test
