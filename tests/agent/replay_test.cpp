// Sends the commands of the recorded debuggers to our agent: it must answer like the recorded client. Compares the calls and their
// order, step numbers, operators, hits with their parameters and error codes, what was found and how it was split. Does not compare
// numbers computed from tensor elements, because the recorded operators computed nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "agent/recorded_network.h"
#include "support/old_releases.h"
#include "support/scripted_server.h"

namespace msdbg::test {
namespace {

const OldReleases kOldReleases;


const std::string kFolder = std::string(MSDBG_TEST_DATA) + "/live";

struct Recording {
  const char* name;
  const char* version;
};

std::ostream& operator<<(std::ostream& out, const Recording& recording) { return out << recording.name; }

const std::vector<Recording> kRecordings = {
    {"mi1.5.0-real-1.5.0-session", "1.5.0"},
    {"scripted-real-1.3.0-exit", "1.3.0"},
    {"scripted-real-1.3.0-node-stepping", "1.3.0"},
    {"scripted-real-1.3.0-three-steps", "1.3.0"},
    {"scripted-real-1.3.0-views-prev-and-change", "1.3.0"},
    {"scripted-real-1.5.0-exit", "1.5.0"},
    {"scripted-real-1.5.0-node-stepping", "1.5.0"},
    {"scripted-real-1.5.0-three-steps", "1.5.0"},
    {"scripted-real-1.5.0-views-prev-and-change", "1.5.0"},
    {"scripted-real-1.10.0-constants", "1.10.0"},
    {"scripted-real-1.10.0-exit", "1.10.0"},
    {"scripted-real-1.10.0-exit-false", "1.10.0"},
    {"scripted-real-1.10.0-held-33s-heartbeats", "1.10.0"},
    {"scripted-real-1.10.0-hits-and-names", "1.10.0"},
    {"scripted-real-1.10.0-metadata-failed", "1.10.0"},
    {"scripted-real-1.10.0-mismatch-exit", "1.10.0"},
    {"scripted-real-1.10.0-mismatch-run", "1.10.0"},
    {"scripted-real-1.10.0-no-version-answer", "1.10.0"},
    {"scripted-real-1.10.0-node-stepping", "1.10.0"},
    {"scripted-real-1.10.0-run-to-node", "1.10.0"},
    {"scripted-real-1.10.0-six-failures", "1.10.0"},
    {"scripted-real-1.10.0-version-in-waitcmd", "1.10.0"},
    {"scripted-real-1.10.0-view-7MB", "1.10.0"},
    {"scripted-real-1.10.0-views-prev-and-change", "1.10.0"},
    {"mi2.3.1-real-1.10.0-mismatch", "1.10.0"},
    // scripted-real-1.10.0-server-restart-while-held needs a server that disconnects: see handshake_test.cpp.
};

std::string metadata_text(const debugger::Metadata& metadata) {
  return fmt::format("{} step {} {} '{}'{} graphs {} version {}", metadata.device_name(), metadata.cur_step(),
                     metadata.backend(), metadata.cur_node(), metadata.training_done() ? " done" : "",
                     metadata.graph_num(), metadata.ms_version());
}

std::string hit_text(const debugger::WatchpointHit& hit) {
  std::string text = fmt::format("{}:{}{} id {} error {} condition {}", hit.tensor().node_name(), hit.tensor().slot(),
                                 hit.tensor().finished() ? "" : " unfinished", hit.id(), hit.error_code(),
                                 static_cast<int>(hit.watch_condition().condition()));
  for (const auto& param : hit.watch_condition().params()) {
    text += fmt::format(" {}{}={}{}", param.disabled() ? "-" : "", param.name(), param.value(), param.hit() ? "!" : "");
  }
  return text;
}

std::string base_text(const debugger::TensorBase& base) {
  std::string text = fmt::format("type {} shape", base.data_type());
  for (const int64_t size : base.shape()) text += fmt::format(" {}", size);
  return text + fmt::format(" bytes {}", base.data_size());
}

template <typename Message>
Message parsed(const std::string& bytes) {
  Message message;
  message.ParsePartialFromString(bytes);
  return message;
}

/// One message of a client, in the form that is compared.
std::string text_of(const std::string& rpc, const std::string& bytes) {
  if (rpc == "WaitCMD" || rpc == "SendMetadata") return rpc + " " + metadata_text(parsed<debugger::Metadata>(bytes));
  if (rpc == "SendWatchpointHits") return rpc + " " + hit_text(parsed<debugger::WatchpointHit>(bytes));
  if (rpc == "SendTensorBase") return rpc + " " + base_text(parsed<debugger::TensorBase>(bytes));
  if (rpc == "SendTensorStats") {
    const auto summary = parsed<debugger::TensorSummary>(bytes);
    return fmt::format("{} {} count {} sums {}", rpc, base_text(summary.tensor_base()), summary.statistics().count(),
                       summary.statistics().neg_zero_count() + summary.statistics().pos_zero_count() +
                           summary.statistics().zero_count());
  }
  if (rpc == "SendTensors") {
    const auto tensor = parsed<debugger::TensorProto>(bytes);
    std::string text = fmt::format("{} {}:{}:{} truncate {} type {} dims", rpc, tensor.node_name(), tensor.slot(),
                                   tensor.iter(), tensor.truncate(), tensor.data_type());
    for (const int64_t dim : tensor.dims()) text += fmt::format(" {}", dim);
    return text + fmt::format(" bytes {} finished {}", tensor.tensor_content().size(), tensor.finished());
  }
  return rpc + " one chunk";
}

Answer answer_of(const RecordedMessage& message) {
  if (!message.grpc_status.empty()) return Answer::broken();
  return {message.bytes, grpc::Status::OK};
}

class Replay : public testing::TestWithParam<Recording> {};

TEST_P(Replay, OurAgentSaysWhatTheClientSaid) {
  const Recording& recording = GetParam();
  const auto conversation = load_conversation(kFolder, recording.name);
  ASSERT_TRUE(conversation.ok()) << conversation.status().message();

  ScriptedServer server;
  std::vector<std::string> expected;
  std::vector<Answer> commands;
  debugger::Metadata last;
  bool greeted = false, ends_early = false;
  for (const RecordedMessage& message : conversation->messages) {
    const std::string rpc(live::rpc_name(message.rpc));
    if (rpc == "SendHeartbeat" || (!message.is_client() && !message.is_server())) continue;
    if (message.is_client()) {
      expected.push_back(text_of(rpc, message.bytes));
      if (rpc == "SendMetadata") last = parsed<debugger::Metadata>(message.bytes);
    } else if (rpc == "WaitCMD") {
      commands.push_back(answer_of(message));
      const auto reply = parsed<debugger::EventReply>(message.bytes);
      ends_early |= reply.has_exit() || reply.has_version_matched() || reply.status() != debugger::EventReply::OK;
    } else if (rpc == "SendMetadata" && !greeted) {
      greeted = true;
      server.always("SendMetadata", answer_of(message));
      ends_early |= message.bytes.empty();
    }
  }
  ASSERT_GE(expected.size(), 2u);

  RecordedNetwork network(kFolder, recording.version, std::string(recording.name).ends_with("7MB"));
  ASSERT_EQ(network.problem(), "");
  agent::Options options;
  options.enabled = true;
  options.port = server.port();
  options.version = recording.version;
  options.retry_unit = std::chrono::milliseconds(5);
  server.script(std::move(commands));
  server.then_always(Answer::exit());  // a client that asks more often than the recorded one must not wait forever
  {
    agent::Agent agent(options);
    const Status added = agent.add_graph(network.describe());
    ASSERT_TRUE(added.ok()) << added.message();
    // A recorded training that was ended would have continued.
    network.train(agent, ends_early ? last.cur_step() + 5 : last.cur_step());
  }
  std::vector<std::string> said;
  for (const Call& call : server.calls()) {
    for (const std::string& message : call.messages) said.push_back(text_of(call.rpc, message));
  }
  for (size_t i = 0; i < std::max(said.size(), expected.size()); ++i) {
    const std::string ours = i < said.size() ? said[i] : "(nothing)";
    const std::string theirs = i < expected.size() ? expected[i] : "(nothing)";
    ASSERT_EQ(ours, theirs) << "message " << i << " of the client";
  }
}

INSTANTIATE_TEST_SUITE_P(RealClients, Replay, testing::ValuesIn(kRecordings), [](const auto& parameter) {
  std::string name = parameter.param.name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
});

}  // namespace
}  // namespace msdbg::test
