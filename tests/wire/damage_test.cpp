// Bytes that are not a graph, or only a part of one.
#include <random>

#include "msdbg/wire_fields.h"
#include "wire/wire_support.h"

namespace msdbg {
namespace {

void expect_corrupt(const std::string& bytes, const std::string& what) {
  const Result<GraphBuilder> result = parse(bytes);
  ASSERT_FALSE(result) << what;
  EXPECT_EQ(result.status().code(), Code::kCorrupt) << what;
  EXPECT_FALSE(result.status().message().empty());
}

// Reading everything that remains of a damaged graph must be safe.
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

/// Outputs of all nodes, and the reader's notes.
std::pair<uint64_t, std::string> outputs_of(const debugger::GraphProto& proto) {
  std::vector<std::string> notes;
  const GraphPtr graph = graph_of(proto, &notes);
  uint64_t outputs = 0;
  for (const Node& node : graph->nodes()) outputs += node.outputs.size();
  return {outputs, notes.empty() ? "" : notes.back()};
}

TEST(DamagedGraph, TupleIndicesCannotAskForMoreOutputsThanTheMessageIsWorth) {
  debugger::GraphProto proto;
  proto.set_name("kernel_graph_0");
  debugger::NamedValueProto* index = proto.add_const_vals();
  index->set_key("cst1");
  index->mutable_value()->set_int_val(65535);
  for (int i = 0; i < 1000; ++i) {
    add_node(proto, std::to_string(2 * i), "Split", {});
    add_node(proto, std::to_string(2 * i + 1), "TupleGetItem", {std::to_string(2 * i), "cst1"});
  }
  const auto [outputs, note] = outputs_of(proto);
  EXPECT_LT(outputs, 4096 + proto.ByteSizeLong());
  EXPECT_NE(note.find("graph damaged: "), std::string::npos) << note;
  EXPECT_NE(note.find("the rest is still served"), std::string::npos) << note;
}

TEST(DamagedGraph, AFewHighTupleIndicesAreBelieved) {
  debugger::GraphProto proto;
  proto.set_name("kernel_graph_0");
  debugger::NamedValueProto* index = proto.add_const_vals();
  index->set_key("cst1");
  index->mutable_value()->set_int_val(999);
  add_node(proto, "1", "Split", {});
  set_tensor(*add_node(proto, "2", "TupleGetItem", {"1", "cst1"})->mutable_output_type(), 43, {8});
  const GraphPtr graph = graph_of(proto);
  ASSERT_EQ(graph->find("Default/Split-op1")->outputs.size(), 1000u);
  EXPECT_EQ(graph->find("Default/Split-op1")->outputs[999].shape, Shape{8});
}

TEST(DamagedGraph, EmptyPartsAreNotMultiplied) {
  debugger::GraphProto proto;
  proto.set_name("kernel_graph_0");
  debugger::NodeProto* node = add_node(proto, "1", "Add", {});
  for (int i = 0; i < 20'000; ++i) node->add_attribute();
  add_node(proto, "2", "Mul", {"1"});
  std::vector<std::string> notes;
  const GraphPtr graph = graph_of(proto, &notes);
  EXPECT_TRUE(graph->find("Default/Add-op1")->attributes.empty());
  EXPECT_EQ(graph->find("Default/Mul-op2")->inputs.size(), 1u) << "the rest is served";
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].substr(0, 21), "graph damaged: 1 node");
}

TEST(DamagedGraph, AMillionFieldsInOneNodeAreCorrupt) {
  debugger::GraphProto proto;
  proto.set_name("kernel_graph_0");
  debugger::TypeProto::Sequence* types = add_node(proto, "1", "Split", {})->mutable_output_type()->mutable_sequence_type();
  for (int i = 0; i < 1'000'001; ++i) types->add_elem_types();
  expect_corrupt(proto.SerializeAsString(), "a million types");
}

TEST(DamagedGraph, MessagesNestedWithoutEndAreCorrupt) {
  std::string inner;
  for (int depth = 0; depth < 20'000; ++depth) {
    std::string outer;
    WireWriter(outer).begin_bytes(18, inner.size());  // a value inside a value; the lengths grow, so build from the inside
    inner = outer + inner;
  }
  std::string constant, graph;
  WireWriter(constant).field(2, inner);
  WireWriter(graph).field(6, "0");
  WireWriter(graph).field(5, constant);
  WireWriter(graph).field(2, "kernel_graph_0");
  expect_corrupt(graph, "20,000 levels");
}

TEST(DamagedGraph, NodesOfTwoBytesAreCorrupt) {
  std::string graph;
  for (int i = 0; i < 5000; ++i) WireWriter(graph).field(3, "");
  WireWriter(graph).field(2, "kernel_graph_0");
  expect_corrupt(graph, "5,000 parameters without content");
}

TEST(DamagedGraph, TuplesThatTakeFromEachOtherStayAsTheyAre) {
  debugger::GraphProto proto;
  proto.set_name("kernel_graph_0");
  debugger::NamedValueProto* index = proto.add_const_vals();
  index->set_key("cst1");
  index->mutable_value()->set_int_val(1);
  for (int i = 0; i < 200; ++i) add_node(proto, std::to_string(i), "TupleGetItem", {std::to_string((i + 1) % 200), "cst1"});
  add_node(proto, "200", "Add", {"7"});
  const GraphPtr graph = graph_of(proto);
  EXPECT_EQ(graph->node(graph->find("Default/Add-op200")->inputs[0].node).op, "TupleGetItem");
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
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_NE(missing.status().message().find("/nowhere/graph.pb"), std::string::npos);
  const Result<GraphBuilder> folder = read_graph_file(testing::TempDir(), 0, 0, nullptr);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.status().code(), Code::kIoError);
}

}  // namespace
}  // namespace msdbg
