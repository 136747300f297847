#include "support/recorded_conversation.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "debug_grpc.pb.h"
#include "support/recorded_graphs.h"

namespace msdbg::test {
namespace {

using live::Rpc;

const std::string kFolder = std::string(MSDBG_TEST_DATA) + "/live";

std::vector<RecordedConversation> all() {
  std::vector<RecordedConversation> conversations;
  for (const std::string& name : conversation_names(kFolder)) {
    auto loaded = load_conversation(kFolder, name);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    if (loaded.ok()) conversations.push_back(std::move(*loaded));
  }
  return conversations;
}

template <typename T>
T parsed(const RecordedMessage& message) {
  T proto;
  EXPECT_TRUE(proto.ParsePartialFromString(message.bytes));
  return proto;
}

TEST(RecordedConversations, AllFortySevenParse) {
  const auto conversations = all();
  EXPECT_EQ(conversations.size(), 47u);
  size_t messages = 0;
  std::set<Rpc> met;
  for (const auto& conversation : conversations) {
    for (const auto& message : conversation.messages) {
      ++messages;
      if (message.direction != RecordedMessage::Direction::kNote) met.insert(message.rpc);
    }
  }
  EXPECT_EQ(messages, 1344u);
  EXPECT_EQ(met.size(), size_t{live::kRpcCount}) << "every rpc occurs";
}

TEST(RecordedConversations, EveryStreamCountsFromZeroAndIsAnswered) {
  for (const auto& conversation : all()) {
    std::map<Rpc, int> open;
    for (const auto& message : conversation.messages) {
      if (message.is_client() && message.index >= 0) {
        EXPECT_EQ(message.index, open[message.rpc]++) << conversation.name << ':' << message.line;
      }
      if (message.is_server()) open.erase(message.rpc);
    }
    EXPECT_TRUE(open.empty()) << conversation.name;
  }
}

TEST(RecordedConversations, EveryMessageIsReadBackByItsOwnType) {
  size_t metadata = 0, hits = 0, replies = 0;
  for (const auto& conversation : all()) {
    for (const auto& message : conversation.messages) {
      if (message.is_server() && message.grpc_status.empty()) {
        parsed<debugger::EventReply>(message);
        ++replies;
      }
      if (!message.is_client()) continue;
      if (message.rpc == Rpc::kWaitCmd) {
        EXPECT_FALSE(parsed<debugger::Metadata>(message).backend().empty()) << conversation.name << ':' << message.line;
        ++metadata;
      }
      if (message.rpc == Rpc::kSendWatchpointHits) {
        EXPECT_FALSE(parsed<debugger::WatchpointHit>(message).tensor().node_name().empty());
        ++hits;
      }
    }
  }
  EXPECT_GT(metadata, 250u);
  EXPECT_GT(hits, 100u);
  EXPECT_GT(replies, 400u);
}

TEST(RecordedConversations, GraphsHaveTheRecordedSizesAndParse) {
  const std::map<std::string, size_t> sizes = {
      {"8f714d1d", 50442},   {"1329e58e", 8638},   {"50c3ffed", 8224},    {"9d8593e8", 9206},   {"7b5cdb4b", 50518},
      {"ec78b844", 3145728}, {"a34b81e1", 904738}, {"5570a776", 3145728}, {"944036a1", 904806}, {"57bf660e", 1092}};
  const auto& chunks = recorded_chunks(kFolder);
  ASSERT_EQ(chunks.size(), sizes.size());
  for (const auto& [hash, bytes] : chunks) EXPECT_EQ(bytes.size(), sizes.at(hash)) << hash;
  for (const auto& conversation : all()) {
    std::string collected;
    for (const auto& message : conversation.messages) {
      if (!message.is_client() || (message.rpc != Rpc::kSendGraph && message.rpc != Rpc::kSendMultiGraphs)) continue;
      const auto chunk = parsed<debugger::Chunk>(message);
      collected += chunk.buffer();
      if (message.rpc == Rpc::kSendMultiGraphs && !chunk.finished()) continue;
      debugger::GraphProto graph;
      EXPECT_TRUE(graph.ParseFromString(collected)) << conversation.name << ':' << message.line;
      EXPECT_GT(graph.node_size(), 0);
      collected.clear();
    }
    EXPECT_TRUE(collected.empty());
  }
}

TEST(RecordedConversations, DetailsSurvive) {
  auto chunked = load_conversation(kFolder, "mi2.3.1-ref-view-tensor-chunked");
  ASSERT_TRUE(chunked.ok());
  std::vector<debugger::TensorProto> slices;
  for (const auto& message : chunked->messages) {
    if (message.is_client() && message.rpc == Rpc::kSendTensors)
      slices.push_back(parsed<debugger::TensorProto>(message));
  }
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0].tensor_content().size(), 3145728u);
  EXPECT_EQ(slices[0].tensor_content().substr(4, 4), std::string("\x00\x00\x80\x3f", 4));
  EXPECT_EQ(slices[2].tensor_content().size(), 1048576u);
  EXPECT_TRUE(slices[0].has_finished());
  EXPECT_FALSE(slices[0].finished());
  EXPECT_TRUE(slices[2].finished());
  EXPECT_EQ(slices[1].dims(0), 1835008);

  auto exits = load_conversation(kFolder, "scripted-real-1.10.0-exit-false");
  ASSERT_TRUE(exits.ok());
  bool met = false;
  for (const auto& message : exits->messages)
    met = met || (message.is_server() && message.bytes == std::string("\x10\x00", 2));
  EXPECT_TRUE(met) << "exit=false keeps its place in the oneof";

  auto odd = load_conversation(kFolder, "mi2.3.1-ref-odd-hits");
  ASSERT_TRUE(odd.ok());
  std::vector<int> conditions;
  std::vector<std::string> refused;
  for (const auto& message : odd->messages) {
    if (message.is_server() && !message.grpc_status.empty()) refused.push_back(message.grpc_status);
    if (message.is_client() && message.rpc == Rpc::kSendWatchpointHits) {
      conditions.push_back(parsed<debugger::WatchpointHit>(message).watch_condition().condition());
    }
  }
  EXPECT_EQ(conditions.back(), 99);
  EXPECT_EQ(refused, std::vector<std::string>(refused.size(), "UNKNOWN"));
  EXPECT_FALSE(refused.empty());
}

TEST(RecordedConversations, AMissingFileIsAnError) {
  EXPECT_EQ(load_conversation(kFolder, "no-such").status().code(), Code::kIoError);
}

}  // namespace
}  // namespace msdbg::test
