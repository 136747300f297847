// Bytes that are no graph, or only a part of one.
#include <random>

#include "wire/wire_support.h"

namespace msdbg {
namespace {

void expect_corrupt(const std::string& bytes, const std::string& what) {
  const Result<GraphBuilder> result = parse(bytes);
  ASSERT_FALSE(result) << what;
  EXPECT_EQ(result.status().code(), Code::kCorrupt) << what;
  EXPECT_FALSE(result.status().message().empty());
}

// Reading everything that a damaged graph still offers must be safe.
void walk(Result<GraphBuilder> builder) {
  if (!builder) return;
  const GraphPtr graph = builder->build();
  for (const Node& node : graph->nodes()) {
    EXPECT_LT(node.order, graph->nodes().size());
    for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
      const Edge edge = graph->effective_producer(node.id, slot);
      EXPECT_TRUE(edge.node == kNoNode || edge.node < graph->nodes().size());
    }
    EXPECT_GE(graph->users(node.id).size() + 1, 1u);
  }
}

TEST(DamagedGraph, EveryCutOfAFileIsCorrupt) {
  const std::string whole = read_bytes(graph_path("control-2.7.1", 1));
  ASSERT_TRUE(parse(whole));
  for (size_t size = 0; size < whole.size(); ++size)
    expect_corrupt(whole.substr(0, size), "cut at " + std::to_string(size));
}

TEST(DamagedGraph, ACutFileNamesThePathTheBytesAndTheNextStep) {
  const std::string whole = read_bytes(graph_path("lenet-2.7.1-ok", 0));
  const std::string path = testing::TempDir() + "/msdbg_cut_graph.pb";
  std::ofstream(path, std::ios::binary) << whole.substr(0, whole.size() / 2);
  const Result<GraphBuilder> result = read_graph_file(path, 0, 0, nullptr);
  std::filesystem::remove(path);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.status().code(), Code::kCorrupt);
  const std::string message = result.status().message();
  EXPECT_NE(message.find(path), std::string::npos) << message;
  EXPECT_NE(message.find("45573 bytes"), std::string::npos) << message;
  EXPECT_NE(message.find("ends early"), std::string::npos) << message;
  EXPECT_NE(message.find("copy it again"), std::string::npos) << message;
}

TEST(DamagedGraph, ABareGraphCutAmongItsNodesIsCorrupt) {
  const std::string whole = read_bytes(data_path("live/graph-real-1.5.0.pb"));
  const size_t name = whole.find("kernel_graph_0");
  ASSERT_NE(name, std::string::npos);
  for (size_t size = 0; size < name; size += 7) expect_corrupt(whole.substr(0, size), "cut at " + std::to_string(size));
}

TEST(DamagedGraph, ABareGraphWithoutItsParametersIsNoted) {
  const std::string whole = read_bytes(data_path("live/graph-real-1.5.0.pb"));
  std::vector<std::string> notes;
  const Result<GraphBuilder> result = parse(whole.substr(0, whole.find("kernel_graph_0") + 14), &notes);
  ASSERT_TRUE(result);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("name no node of the graph"), std::string::npos);
}

TEST(DamagedGraph, RandomBytesAreCorrupt) {
  std::mt19937 random(20240521);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 600, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    expect_corrupt(bytes, "round " + std::to_string(round));
  }
}

TEST(DamagedGraph, FlippedBytesNeverHurt) {
  const std::string whole = read_bytes(graph_path("types-2.7.1", 0));
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string bytes = whole;
    for (int flips = 0; flips < 4; ++flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    std::vector<std::string> notes;
    Result<GraphBuilder> result = parse(bytes, &notes);
    refused += !result;
    walk(std::move(result));
  }
  EXPECT_GT(refused, 0);
}

TEST(DamagedGraph, ValuesNestedWithoutEndAreCorrupt) {
  debugger::GraphProto graph;
  graph.set_name("kernel_graph_0");
  debugger::ValueProto* value = graph.add_const_vals()->mutable_value();
  for (int depth = 0; depth < 300; ++depth) value = value->add_values();
  expect_corrupt(graph.SerializeAsString(), "300 levels");
}

TEST(DamagedGraph, OtherMessagesAreNoGraph) {
  expect_corrupt("", "no bytes");
  expect_corrupt(std::string(64, '\0'), "zeros");
  expect_corrupt("\x08\x01", "a model without a graph");
  expect_corrupt(std::string("\x22\x00", 2), "a model with an empty graph");
  expect_corrupt("PK\x03\x04 not a graph", "a zip archive");
}

TEST(GraphFile, AMissingFileAndAFolderAreInputErrors) {
  const Result<GraphBuilder> missing = read_graph_file("/nowhere/graph.pb", 0, 0, nullptr);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.status().code(), Code::kIoError);
  EXPECT_NE(missing.status().message().find("/nowhere/graph.pb"), std::string::npos);
  const Result<GraphBuilder> folder = read_graph_file(testing::TempDir(), 0, 0, nullptr);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.status().code(), Code::kIoError);
}

}  // namespace
}  // namespace msdbg
