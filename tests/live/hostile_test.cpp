// Peers that lie about sizes, send endlessly, or are not trainings at all: their resources are bounded, and a training goes on.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "live/faults.h"
#include "session/live/limits.h"
#include "support/memory.h"

namespace msdbg::test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class LiveHostile : public LiveFaults {
 protected:
  static debugger::TensorBase base_of(int64_t floats) {
    debugger::TensorBase base;
    base.set_data_type(11);
    base.add_shape(floats);
    base.set_data_size(4 * floats);
    return base;
  }
  static debugger::TensorProto slice_of(const debugger::TensorProto& asked, int64_t floats, size_t bytes) {
    debugger::TensorProto slice = asked;
    slice.set_data_type(11);
    slice.add_dims(floats);
    slice.set_tensor_content(std::string(bytes, 'x'));
    return slice;
  }
  static int connect_socket(int port, const char* address = "127.0.0.1") {
    const int raw = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    ::inet_pton(AF_INET, address, &to.sin_addr);
    if (::connect(raw, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return raw;
    ::close(raw);
    return -1;
  }
};

TEST_F(LiveHostile, UnrequestedUploadIsNotKept) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  debugger::TensorProto slice;
  slice.set_tensor_content(std::string(3 * kMiB, 'x'));  // without a name it does not contradict the question
  const std::string message = slice.SerializeAsString();
  const uint64_t before = memory_of_this("RssAnon");
  uint64_t most = before;
  std::atomic<bool> over{false};
  std::thread watcher([&] {
    while (!over) {
      most = std::max(most, memory_of_this("RssAnon"));
      std::this_thread::sleep_for(1ms);
    }
  });
  const RawReply reply = d.client->repeat(live::Rpc::kSendTensors, message, 300);  // 900 MiB
  over = true;
  watcher.join();
  EXPECT_EQ(reply.code, static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED)) << reply.describe();
  EXPECT_LT(most - before, allowed(128 * kMiB));
  EXPECT_NE(events_of(*d.session).find("a tensor that was not requested; refused"), std::string::npos);
  EXPECT_EQ(d.session->state(), LiveState::kHeld);
}

TEST_F(LiveHostile, UploadThatIsLargerThanPromisedIsRefused) {
  const std::vector<std::pair<std::string, size_t>> endless = {{"one message too many", 2}, {"messages without end", 100000}};
  for (const auto& [name, times] : endless) {
    SCOPED_TRACE(name);
    Driver d;
    d.connect();
    ASSERT_TRUE(d.session->wait_until_held(10s).ok());
    RawReply upload;
    std::thread peer([&] {
      (void)d.reply();
      EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensorBase, std::vector<std::string>{base_of(1000).SerializeAsString()}).ok());
      d.hold(0, "");
      const debugger::TensorProto asked = d.reply().view_cmd().tensors(0);
      upload = d.client->repeat(live::Rpc::kSendTensors, slice_of(asked, 1000, 4000).SerializeAsString(), times);
      d.hold(0, "");
    });
    const uint64_t before = memory_of_this("RssAnon");
    Result<TensorPtr> tensor = d.session->load(*resolve_tensor(*d.session, "fc1.weight:0", 0));
    peer.join();
    EXPECT_EQ(upload.code, static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED)) << upload.describe();
    ASSERT_FALSE(tensor.ok());
    EXPECT_NE(tensor.status().message().find("more than the 3.9 KiB that the tensor has"), std::string::npos) << tensor.status().message();
    EXPECT_LT(memory_of_this("RssAnon"), before + allowed(32 * kMiB));
    EXPECT_TRUE(reaches(*d.session, LiveState::kHeld));
  }
}

TEST_F(LiveHostile, EveryNumberOfATypeIsAValueOrAnError) {
  Driver d;
  d.connect("2.2.0");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::atomic<int> announced{0}, sent{0};
  const auto width = [](int type) { return std::max<int64_t>(1, static_cast<int64_t>(item_size(dtype_from_mindspore(type)))); };
  std::thread peer([&] {
    for (int step = 0;;) {
      const debugger::EventReply reply = d.reply();
      if (reply.has_run_cmd()) {
        d.hold(step++, "Default/net-Net/Add-op30");
        continue;
      }
      if (!reply.has_view_cmd()) return;
      std::vector<std::string> answers;
      for (const debugger::TensorProto& asked : reply.view_cmd().tensors()) {
        debugger::TensorBase base = base_of(2);
        base.set_data_type(announced);
        base.set_data_size(2 * width(announced));
        debugger::TensorSummary summary;
        *summary.mutable_tensor_base() = base;
        summary.mutable_statistics()->set_count(2);
        debugger::TensorProto slice = slice_of(asked, 2, static_cast<size_t>(2 * width(sent)));
        slice.set_data_type(sent);
        slice.set_finished(true);
        const auto level = reply.view_cmd().level();
        answers.push_back(level == debugger::ViewCMD::base         ? base.SerializeAsString()
                          : level == debugger::ViewCMD::statistics ? summary.SerializeAsString()
                                                                   : slice.SerializeAsString());
      }
      const live::Rpc rpcs[] = {live::Rpc::kSendTensors, live::Rpc::kSendTensorStats, live::Rpc::kSendTensorBase};
      (void)d.client->stream(rpcs[static_cast<size_t>(reply.view_cmd().level())], answers);  // refused if it exceeds the announcement
      d.hold(step, "");
    }
  });
  Watchpoint w = watch("=Default/net-Net/fc1.weight", "TO");
  for (int type = 0; type <= 60; ++type) {
    for (const bool honest : {true, false}) {
      SCOPED_TRACE("type " + std::to_string(type) + (honest ? "" : ", announced as float32"));
      announced = honest ? type : 11;
      sent = type;
      ASSERT_TRUE(d.session->run({}).ok());
      const TensorId id = *resolve_tensor(*d.session, "fc1.weight:0", d.session->current_step());
      const bool fits = dtype_from_mindspore(type) == DType::kFloat32 || (honest && is_evaluable(dtype_from_mindspore(type)));
      Result<OpenTensor> opened = d.session->open_elements(id);
      EXPECT_EQ(opened.ok(), fits) << opened.status().message();
      if (opened.ok()) {
        EXPECT_EQ(opened->reader->dtype(), dtype_from_mindspore(type));
      }
      (void)d.session->stats(id);
      (void)d.session->load(id);
      (void)d.session->given_statistics(id);
      (void)check(*d.session, {&w, 1}, {});
    }
  }
  d.session.reset();  // tells it to exit
  peer.join();
}

TEST_F(LiveHostile, UnknownPeersMayOnlyIntroduceThemselves) {
  Driver d;
  d.client = RawClient::connect(d.port());
  debugger::TensorProto slice;
  slice.set_tensor_content("abcd");
  for (const live::Rpc rpc : {live::Rpc::kSendTensors, live::Rpc::kSendGraph, live::Rpc::kSendMultiGraphs, live::Rpc::kSendTensorBase,
                              live::Rpc::kSendTensorStats, live::Rpc::kSendWatchpointHits}) {
    const RawReply reply = d.client->repeat(rpc, slice.SerializeAsString(), 1);
    EXPECT_EQ(reply.code, static_cast<int>(grpc::StatusCode::FAILED_PRECONDITION)) << live::rpc_name(rpc) << reply.describe();
  }
  // An unreadable message does not take the place of the training either.
  EXPECT_NE(d.client->unary(live::Rpc::kSendMetadata, "\xff\xff").code, 0);
  const std::unique_ptr<RawClient> stranger = std::move(d.client);
  d.connect();
  EXPECT_TRUE(d.session->wait_until_held(10s).ok());
}

TEST_F(LiveHostile, StreamThatWasBrokenOffDoesNotCount) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const Watchpoint w = watch("**", "TO");
  debugger::WatchpointHit hit;
  hit.mutable_tensor()->set_node_name("Default/net-Net/Add-op30");
  hit.mutable_tensor()->set_slot("0");
  hit.set_id(1);
  std::thread peer([&] {
    while (d.reply().has_set_cmd()) d.hold(0, "");
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(d.client->begin_stream(live::Rpc::kSendWatchpointHits, std::vector<std::string>{hit.SerializeAsString()}));
      d.client->cancel_streams();
    }
    d.hold(0, "a");
  });
  ASSERT_TRUE(d.session->set_watchpoints({&w, 1}).ok());
  Result<RunResult> result = d.session->run({});
  peer.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->check.hits.size(), 0u);
  EXPECT_EQ(result->reason, StopReason::kDone);
}

TEST_F(LiveHostile, MessageOfAHundredMegabytesIsRefusedAndTold) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  (void)events_of(*d.session);
  for (const live::Rpc rpc : {live::Rpc::kSendGraph, live::Rpc::kSendTensors, live::Rpc::kSendWatchpointHits}) {
    debugger::Chunk huge;
    huge.set_buffer(std::string(100 * kMiB, 'x'));
    EXPECT_EQ(d.client->repeat(rpc, huge.SerializeAsString(), 1).code, static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  }
  std::string events;
  for (int i = 0; i < 500 && std::count(events.begin(), events.end(), '\n') < 3; ++i) {
    events += events_of(*d.session);
    std::this_thread::sleep_for(10ms);
  }
  const std::string told = "SendGraph was broken off after 0 messages; the next one may have been above 16.0 MiB";
  EXPECT_NE(events.find(told), std::string::npos) << events;
  EXPECT_EQ(events.find("empty graph"), std::string::npos) << events;
  EXPECT_EQ(d.session->state(), LiveState::kHeld);
}

TEST_F(LiveHostile, LongNamesAndManyAnswersAreRefused) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  debugger::WatchpointHit hit;
  hit.mutable_tensor()->set_node_name(std::string(2 * kMiB, 'n'));
  EXPECT_EQ(d.client->repeat(live::Rpc::kSendWatchpointHits, hit.SerializeAsString(), 1).code,
            static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_EQ(d.client->repeat(live::Rpc::kSendTensorBase, "", 100000).code, static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_EQ(d.client->repeat(live::Rpc::kSendTensorStats, "", 100000).code, static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  debugger::TensorProto axes;
  for (int i = 0; i < 100; ++i) axes.add_dims(1);
  EXPECT_EQ(d.client->repeat(live::Rpc::kSendTensors, axes.SerializeAsString(), 1).code,
            static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  const std::string events = events_of(*d.session);
  EXPECT_NE(events.find("SendWatchpointHits: a message of 2.0 MiB, more than 1.0 MiB; refused"), std::string::npos) << events;
  EXPECT_NE(events.find("SendTensorBase: more than 4096 answers in one call; refused"), std::string::npos) << events;
  EXPECT_EQ(d.session->state(), LiveState::kHeld);
}

TEST_F(LiveHostile, HitsBeyondWhatIsKeptAreCounted) {
  ListenOptions options;
  options.mem_limit_bytes = 8 * kMiB;  // waiting messages get at least 48 MiB
  Driver d(options);
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  (void)events_of(*d.session);
  debugger::WatchpointHit hit;
  hit.mutable_tensor()->set_node_name("Default/net-Net/" + std::string(100000, 'n'));
  hit.set_id(1);
  const uint64_t before = memory_of_this("RssAnon");
  EXPECT_TRUE(d.client->repeat(live::Rpc::kSendWatchpointHits, hit.SerializeAsString(), 2000).ok());  // 200 MB
  const std::string events = events_of(*d.session);
  EXPECT_NE(events.find("are left out"), std::string::npos) << events;
  EXPECT_LT(memory_of_this("RssAnon"), before + allowed(128 * kMiB));
}

TEST_F(LiveHostile, UnreadGraphsAreBounded) {
  ListenOptions options;
  options.mem_limit_bytes = 8 * kMiB;
  Driver d(options);
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  debugger::Chunk chunk;
  chunk.set_buffer(std::string(3 * kMiB, 'x'));
  const uint64_t before = memory_of_this("RssAnon");
  EXPECT_EQ(d.client->repeat(live::Rpc::kSendGraph, chunk.SerializeAsString(), 1000).code,
            static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  int refused = 0;
  chunk.set_finished(true);
  for (int i = 0; i < 50; ++i) refused += d.client->repeat(live::Rpc::kSendGraph, chunk.SerializeAsString(), 1).ok() ? 0 : 1;
  EXPECT_GE(refused, 25);
  EXPECT_LT(memory_of_this("RssAnon"), before + allowed(160 * kMiB));
  // After they were processed, there is room again.
  EXPECT_EQ(d.session->state(), LiveState::kHeld);
  EXPECT_TRUE(d.client->repeat(live::Rpc::kSendGraph, chunk.SerializeAsString(), 1).ok());
}

TEST_F(LiveHostile, FiveHundredConnectionsDoNotLockOutATraining) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::vector<int> idle;
  for (int i = 0; i < 500; ++i) idle.push_back(connect_socket(d.port()));
  EXPECT_EQ(std::count(idle.begin(), idle.end(), -1), 0);
  // Garbage and another protocol on some of them.
  for (size_t i = 0; i < idle.size(); i += 3) {
    const std::string words = i % 2 == 0 ? "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" : std::string(1000, '\xa5');
    (void)::send(idle[i], words.data(), words.size(), MSG_NOSIGNAL);
  }
  std::thread peer([&] {
    EXPECT_TRUE(d.reply().has_run_cmd());
    d.hold(0, "a");
  });
  EXPECT_TRUE(d.session->run({}).ok());
  peer.join();
  EXPECT_LT(open_descriptors(), static_cast<int>(500 + 4 * live::limits::kConnections)) << "connections that were closed keep their descriptors";
  // Nor a later training.
  d.farewell(1);
  d.connect();
  EXPECT_TRUE(d.session->wait_until_held(10s).ok());
  for (const int descriptor : idle) ::close(descriptor);
}

TEST_F(LiveHostile, EveryAddressOfANameIsListenedAt) {
  ListenOptions options;
  options.bind = "localhost";
  Driver d(options);
  EXPECT_EQ(d.session->address().rfind("127.0.0.1:", 0), 0u) << d.session->address();
  d.connect();
  EXPECT_TRUE(d.session->wait_until_held(10s).ok());
}

TEST_F(LiveHostile, GraphOfAMillionNodesIsLeftOutWhereItDoesNotFit) {
  ListenOptions options;
  options.mem_limit_bytes = 64 * kMiB;
  Driver d(options);
  d.client = RawClient::connect(d.port());
  ASSERT_TRUE(d.client->unary(live::Rpc::kSendMetadata, d.metadata("2.2.0").SerializeAsString()).ok());
  debugger::GraphProto few;
  for (int i = 0; i < 100000; ++i) {
    debugger::NodeProto* node = few.add_node();
    node->set_name("1");
    node->set_op_type("Add");
    node->set_full_name("Default/Add-op1");
  }
  debugger::Chunk part, last;
  part.set_buffer(few.SerializeAsString());
  debugger::GraphProto end;
  end.set_name("kernel_graph_0");
  last.set_buffer(end.SerializeAsString());
  std::vector<std::string> messages(10, part.SerializeAsString());
  messages.push_back(last.SerializeAsString());
  const uint64_t before = memory_of_this("RssAnon");
  EXPECT_TRUE(d.client->stream(live::Rpc::kSendGraph, messages).ok());
  d.hold(0, "");
  ASSERT_TRUE(d.session->wait_until_held(30s).ok());
  EXPECT_TRUE(d.session->graphs().empty());
  EXPECT_NE(events_of(*d.session).find("a graph of about 1000001 nodes and"), std::string::npos);
  EXPECT_LT(memory_of_this("RssAnon"), before + allowed(160 * kMiB));
  // The same small graph repeatedly.
  const std::string small = Driver::graph_bytes();
  for (int i = 0; i < 3000; ++i) {
    last.set_buffer(small);
    EXPECT_TRUE(d.client->repeat(live::Rpc::kSendGraph, last.SerializeAsString(), 1).ok());
    (void)d.session->state();
  }
  EXPECT_EQ(d.session->graphs().size(), 1u);
  EXPECT_LT(memory_of_this("RssAnon"), before + allowed(256 * kMiB));
}

TEST_F(LiveHostile, GraphsOfAStrangerAreNotThoseOfTheTraining) {
  Driver d;
  d.client = RawClient::connect(d.port());
  ASSERT_TRUE(d.client->unary(live::Rpc::kSendMetadata, d.metadata("2.2.0").SerializeAsString()).ok());
  debugger::GraphProto odd;
  odd.set_name("kernel_graph_7");
  odd.add_node()->set_name("1");
  debugger::Chunk chunk;
  chunk.set_buffer(odd.SerializeAsString());
  EXPECT_TRUE(d.client->repeat(live::Rpc::kSendGraph, chunk.SerializeAsString(), 1).ok());
  d.farewell(0);
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  ASSERT_EQ(d.session->graphs().size(), 1u);
  EXPECT_NE(d.session->graphs()[0]->name(), "kernel_graph_7");
}

TEST_F(LiveHostile, WhatAFormerTrainingLeftTakesNoRoomFromTheNext) {
  ListenOptions options;
  options.mem_limit_bytes = 8 * kMiB;
  Driver d(options);
  d.client = RawClient::connect(d.port());
  ASSERT_TRUE(d.client->unary(live::Rpc::kSendMetadata, d.metadata("2.2.0").SerializeAsString()).ok());
  debugger::Chunk chunk;
  for (const uint64_t size : {3 * kMiB, kMiB / 16, kMiB / 1024}) {  // until there is no room left
    chunk.set_buffer(std::string(size, 'x'));
    while (d.client->repeat(live::Rpc::kSendGraph, chunk.SerializeAsString(), 1).ok()) {
    }
  }
  d.farewell(0);
  const std::unique_ptr<RawClient> former = std::move(d.client);
  d.connect();  // nothing has been processed yet
  ASSERT_TRUE(d.session->wait_until_held(10s).ok()) << events_of(*d.session);
  EXPECT_EQ(d.session->graphs().size(), 1u) << events_of(*d.session);
}

TEST_F(LiveHostile, OneCallAfterTheOtherIsNotTooManyAtOnce) {
  Driver d;
  const std::unique_ptr<RawClient> stranger = RawClient::connect(d.port());
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < live::limits::kUnknownCalls; ++caller)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const RawReply reply = stranger->unary(live::Rpc::kSendHeartbeat, "");
        ASSERT_TRUE(reply.ok()) << i << ": " << reply.describe();
      }
    });
  for (std::thread& caller : callers) caller.join();
}

TEST_F(LiveHostile, NamesOfAViewAreSpreadOverSmallMessages) {
  debugger::GraphProto graph;
  for (int i = 0; i < 1500; ++i) {
    debugger::NodeProto* node = graph.add_node();
    node->set_name(std::to_string(i + 1));
    node->set_op_type("Add");
    node->set_full_name(std::string(4000, 's') + "/Add-op" + std::to_string(i));
    node->mutable_output_type()->set_data_type(14);
  }
  graph.set_name("kernel_graph_0");
  Driver d;
  d.connect("2.2.0", graph.SerializeAsString());
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  int asked = 0, views = 0;
  std::thread peer([&] {
    while (asked < 1500) {
      const debugger::EventReply reply = d.reply();
      if (!reply.has_view_cmd()) break;
      EXPECT_LT(reply.ByteSizeLong(), 4 * kMiB);
      asked += reply.view_cmd().tensors_size();
      ++views;
      EXPECT_TRUE(d.client->repeat(live::Rpc::kSendTensorBase, base_of(2).SerializeAsString(),
                                   static_cast<size_t>(reply.view_cmd().tensors_size())).ok());
      d.hold(0, "");
    }
  });
  EXPECT_EQ(d.session->tensors({}).size(), 1500u);
  peer.join();
  EXPECT_GT(views, 1);
}

}  // namespace
}  // namespace msdbg::test
