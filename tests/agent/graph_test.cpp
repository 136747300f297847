// The graph as read by the debugger.
#include <gtest/gtest.h>

#include "agent/chain_net.h"
#include "agent/graph_message.h"
#include "agent/messages.h"
#include "debug_graph.pb.h"
#include "msdbg/wire.h"

namespace msdbg::test {
namespace {

using agent::GraphDescription;

std::string bytes_of(const GraphDescription& graph, const std::string& release = "2.2.0") {
  agent::Options options;
  options.version = release;
  auto bytes = agent::graph_bytes(graph, traits_of_release(options));
  return bytes.ok() ? *bytes : std::string();
}

GraphPtr read_back(const std::string& bytes) {
  std::vector<std::string> notes;
  auto builder = parse_graph(std::as_bytes(std::span(bytes)), 0, -1, &notes);
  EXPECT_TRUE(builder.ok());
  EXPECT_TRUE(notes.empty());
  return builder.ok() ? builder->build() : nullptr;
}

TEST(GraphMessage, ReaderFindsNodesTypesAndEdgesAgain) {
  const ChainNet net;
  const GraphPtr graph = read_back(bytes_of(net.describe()));
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->name(), "kernel_graph_1");
  EXPECT_EQ(graph->root_id(), 1);
  const Node* split = graph->find(kSplit);
  ASSERT_NE(split, nullptr);
  EXPECT_EQ(split->scope, "Default/net-Net");
  ASSERT_EQ(split->outputs.size(), 2u);
  EXPECT_EQ(split->outputs[1].shape, Shape{4});
  EXPECT_EQ(graph->node(split->inputs[0].node).name, kMul);
  EXPECT_EQ(graph->node(split->inputs[1].node).name, "Default/data-0");
  const Node* assign = graph->find(kAssign);
  ASSERT_NE(assign, nullptr);
  EXPECT_EQ(graph->node(assign->inputs[0].node).name, "w");
  EXPECT_EQ(graph->node(assign->inputs[2].node).name, kSplit);
  EXPECT_EQ(assign->inputs[2].slot, 1u);  // through a TupleGetItem
}

TEST(GraphMessage, OneOutputIsPickedByOneNode) {
  ChainNet net;
  GraphDescription description = net.describe();
  description.nodes[2].inputs.push_back({kSplit, 1});
  description.nodes[2].inputs.push_back({kSplit, 0});
  debugger::GraphProto proto;
  ASSERT_TRUE(proto.ParseFromString(bytes_of(description)));
  std::vector<std::string> ops;
  for (const auto& node : proto.node()) ops.push_back(node.op_type());
  EXPECT_EQ(ops, (std::vector<std::string>{"Mul", "Split", "TupleGetItem", "TupleGetItem", "Assign"}));
  EXPECT_EQ(proto.node(2).full_name(), "Default/TupleGetItem-op4");
  EXPECT_EQ(proto.outputs(0).name(), "5");
}

TEST(GraphMessage, AttributesAndSourceLinesSurvive) {
  ChainNet net;
  GraphDescription description = net.describe();
  description.nodes[0].attributes = {{"transpose", "true"}};
  description.nodes[0].stack = {{"/src/net.py", 12, "return self.mul(x, self.w)"}, {"/src/train.py", 3, "net(x)"}};
  for (const char* release : {"1.5.0", "2.2.0"}) {
    const GraphPtr graph = read_back(bytes_of(description, release));
    ASSERT_NE(graph, nullptr);
    const Node* node = graph->find(kMul);
    ASSERT_NE(node, nullptr);
    ASSERT_EQ(node->attributes.size(), 1u);
    EXPECT_EQ(node->attributes[0].name, "transpose");
    ASSERT_EQ(node->stack.size(), 2u);
    EXPECT_EQ(node->stack[0].file, "/src/net.py");
    EXPECT_EQ(node->stack[0].line, 12);
    EXPECT_EQ(node->stack[0].code, "return self.mul(x, self.w)");
  }
}

TEST(GraphMessage, SourceLinesAreSpeltAsTheReleaseSpellsThem) {
  ChainNet net;
  GraphDescription description = net.describe();
  description.nodes[0].stack = {{"/src/net.py", 12, "x"}};
  debugger::GraphProto proto;
  ASSERT_TRUE(proto.ParseFromString(bytes_of(description)));
  EXPECT_EQ(proto.node(0).source_address(), "      # In file /src/net.py:12/        x/\n");
  ASSERT_TRUE(proto.ParseFromString(bytes_of(description, "1.5.0")));
  EXPECT_EQ(proto.node(0).source_address(), "      # In file /src/net.py(12)/        x/\n");
}

TEST(GraphMessage, OldReleasesCarryConstantsInTheGraph) {
  const ChainNet net;
  debugger::GraphProto proto;
  ASSERT_TRUE(proto.ParseFromString(bytes_of(net.describe(), "1.5.0")));
  ASSERT_EQ(proto.const_vals_size(), 2);  // and the index of the TupleGetItem
  EXPECT_FALSE(proto.const_vals(0).has_full_name());
  EXPECT_EQ(proto.const_vals(0).value().tensor_val().tensor_content().size(), 16u);
  ASSERT_TRUE(proto.ParseFromString(bytes_of(net.describe())));
  EXPECT_EQ(proto.const_vals(0).full_name(), "Default--data-0");
  EXPECT_FALSE(proto.const_vals(0).has_value());
}

GraphDescription large_graph(int id) {
  GraphDescription graph;
  graph.id = id;
  graph.parameters = {{"x", DType::kFloat32, {1}, nullptr, false}};
  for (int i = 0; i < 60'000; ++i) {
    agent::NodeDescription node;
    node.full_name = "Default/network-Wrapper/block" + std::to_string(i) + "/Identity-op" + std::to_string(i);
    node.op = "Identity";
    node.inputs = {{"x", 0}};
    node.outputs = {{DType::kFloat32, Shape{1}}};
    graph.nodes.push_back(node);
  }
  return graph;
}

struct LargeGraph : testing::Test {
  ScriptedServer server;
  std::vector<debugger::Chunk> chunks(const char* rpc, int graphs) {
    server.then_always(Answer::run());
    agent::Agent agent(options_for(server));
    for (int id = 1; id <= graphs; ++id) EXPECT_TRUE(agent.add_graph(large_graph(id)).ok());
    agent.begin_step();
    const Call call = server.calls(rpc).at(0);
    std::vector<debugger::Chunk> found;
    for (size_t i = 0; i < call.messages.size(); ++i) found.push_back(call.as<debugger::Chunk>(i));
    return found;
  }
};

TEST_F(LargeGraph, SingleGraphIsCutAndNeverMarkedFinished) {
  const std::string whole = bytes_of(large_graph(1));
  ASSERT_GT(whole.size(), 2 * agent::kSliceBytes);
  const auto got = chunks("SendGraph", 1);
  std::string joined;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_FALSE(got[i].finished());
    if (i + 1 < got.size()) {
      EXPECT_EQ(got[i].buffer().size(), agent::kSliceBytes);
    }
    joined += got[i].buffer();
  }
  EXPECT_TRUE(joined == whole);
}

TEST_F(LargeGraph, LastSliceOfEachOfSeveralGraphsIsMarked) {
  const auto got = chunks("SendMultiGraphs", 2);
  std::vector<std::string> graphs(1);
  for (const debugger::Chunk& chunk : got) {
    graphs.back() += chunk.buffer();
    if (chunk.finished()) graphs.emplace_back();
  }
  ASSERT_EQ(graphs.size(), 3u);
  EXPECT_TRUE(graphs[0] == bytes_of(large_graph(1)));
  EXPECT_TRUE(graphs[1] == bytes_of(large_graph(2)));
  EXPECT_EQ(graphs[2], "");
}

}  // namespace
}  // namespace msdbg::test
