// What goes wrong between two processes: nothing may hang, nothing may be lost without a word.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "live/session_driver.h"

namespace msdbg::test {
namespace {

using namespace std::chrono_literals;

class LiveFaults : public ::testing::Test {
 protected:
  void TearDown() override { clear_interrupt(); }

  static bool reaches(LiveSession& session, LiveState state) {
    for (int i = 0; i < 1000 && session.state() != state; ++i) std::this_thread::sleep_for(10ms);
    return session.state() == state;
  }
  static std::string events_of(LiveSession& session) {
    std::string text;
    for (const LiveEvent& event : session.take_events()) text += event.text + "\n";
    return text;
  }
  static Watchpoint watch(const std::string& selector, const std::string& condition, int id = 1) {
    Watchpoint w;
    w.id = id;
    w.on = *Selector::parse(selector);
    w.condition = *parse_condition(condition);
    w.rule = std::string(w.condition->spec->id);
    return w;
  }
};

/// Sets the interrupt flag while another thread waits.
class InterruptSoon {
 public:
  InterruptSoon() : thread_([] {
    std::this_thread::sleep_for(50ms);
    request_interrupt();
  }) {}
  ~InterruptSoon() { thread_.join(); }

 private:
  std::thread thread_;
};

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
    // What the other debugger may have left behind goes first.
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

/// Passes bytes between a client and the session until it is told to fall silent, as a machine does that vanished.
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
  Driver d(options);
  Proxy proxy(d.port());
  d.client = RawClient::connect(proxy.port());
  ASSERT_TRUE(d.client->unary(live::Rpc::kSendMetadata, d.metadata("1.10.0").SerializeAsString()).ok());
  d.hold(0, "");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  proxy.fall_silent();
  EXPECT_TRUE(reaches(*d.session, LiveState::kLost));
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
  // A name with markup, and one that is no UTF-8, in graph, metadata and hit.
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
  // It comes back late, and everything goes on.
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
  d.hold(1, "a");  // the step ends: it is held although nobody waits
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
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");  // not swallowed
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
  const RawReply hello = d.client->unary(live::Rpc::kSendMetadata, d.metadata("3.0.0").SerializeAsString());
  ASSERT_TRUE(hello.ok());
  EXPECT_EQ(hello.parsed().cmd_case(), debugger::EventReply::kVersionMatched);
  EXPECT_FALSE(hello.parsed().version_matched());
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
