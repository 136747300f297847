// One session that listens on a free port, and one client that the test controls.
#pragma once

#include <gtest/gtest.h>

#include <poll.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "msdbg/live.h"
#include "support/raw_client.h"

namespace msdbg::test {

/// Whether a program that polls the session would ask it for news.
inline bool has_news(const LiveSession& session) {
  pollfd polled = {session.event_descriptor(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

struct Driver {
  explicit Driver(ListenOptions options = {}) {
    options.port = 0;
    Result<std::unique_ptr<LiveSession>> made = msdbg::listen(options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    session = std::move(*made);
  }
  ~Driver() {
    wait.reset();
    client.reset();
    session.reset();
  }

  int port() const {
    const std::string address = session->address();
    return std::stoi(address.substr(address.rfind(':') + 1));
  }

  static std::string graph_bytes(const std::string& file = "graph-real-1.10.0.pb") {
    std::ifstream in(std::string(MSDBG_TEST_DATA) + "/live/" + file, std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    return bytes.str();
  }

  debugger::Metadata metadata(const std::string& version = "", int step = 0, const std::string& node = "") const {
    debugger::Metadata m;
    m.set_device_name("0:0");
    m.set_backend(backend);
    m.set_cur_step(step);
    m.set_cur_node(node);
    if (!version.empty()) {
      m.set_reports(reports);
      m.set_ms_version(version);
      m.set_graph_num(1);
    }
    return m;
  }

  /// Handshake, graph, first WaitCMD.
  void connect(const std::string& version = "1.10.0", const std::string& graph = graph_bytes()) {
    client = RawClient::connect(port());
    ASSERT_TRUE(client);
    const RawReply greeting = client->unary(live::Rpc::kSendMetadata, metadata(version).SerializeAsString());
    ASSERT_TRUE(greeting.ok()) << greeting.describe();
    ASSERT_TRUE(greeting.parsed().version_matched());
    debugger::Chunk chunk;
    chunk.set_buffer(graph);
    ASSERT_TRUE(client->stream(live::Rpc::kSendGraph, std::vector<std::string>{chunk.SerializeAsString()}).ok());
    hold(0, "");
  }

  /// Sends WaitCMD; the reply is fetched with reply().
  void hold(int step, const std::string& node) { wait = client->wait_cmd(metadata("", step, node).SerializeAsString()); }

  debugger::EventReply reply() {
    const auto answer = wait->get();
    EXPECT_TRUE(answer.has_value()) << "WaitCMD was not answered";
    if (!answer) return {};
    EXPECT_TRUE(answer->ok()) << answer->describe();
    return answer->parsed();
  }

  void farewell(int step) {
    debugger::Metadata m = metadata("1.10.0", step);
    m.set_training_done(true);
    EXPECT_TRUE(client->unary(live::Rpc::kSendMetadata, m.SerializeAsString()).ok());
  }

  std::string backend = "GPU";
  bool reports = false;  ///< the handshake says that it tells of the ends of steps
  std::unique_ptr<LiveSession> session;
  std::unique_ptr<RawClient> client;
  std::unique_ptr<RawClient::Wait> wait;
};

}  // namespace msdbg::test
