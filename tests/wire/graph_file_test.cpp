// Every graph file of the test data, written by MindSpore 1.3 to 2.7.
#include <algorithm>
#include <set>

#include "wire/wire_support.h"

namespace msdbg {
namespace {

namespace fs = std::filesystem;

const std::string kBackbone = "Default/network-WithLossCell/_backbone-LeNet5/";

std::vector<fs::path> all_graph_files() {
  std::vector<fs::path> files;
  for (const char* root : {"dumps", "live"}) {
    for (const auto& entry : fs::recursive_directory_iterator(data_path(root))) {
      if (entry.path().extension() == ".pb") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  std::string line;
  std::getline(file, line);  // header
  while (std::getline(file, line)) lines.push_back(line);
  return lines;
}

const Node& node_of(const Graph& graph, const std::string& name) {
  const Node* node = graph.find(name);
  EXPECT_NE(node, nullptr) << name;
  static const Node kNone;
  return node == nullptr ? kNone : *node;
}

std::string producer(const Graph& graph, const std::string& name, uint32_t slot) {
  const Edge edge = graph.effective_producer(node_of(graph, name).id, slot);
  return edge.node == kNoNode ? "?" : graph.node(edge.node).name + ":" + std::to_string(edge.slot);
}

TEST(GraphFiles, EveryFileIsReadWithoutANote) {
  const std::vector<fs::path> files = all_graph_files();
  EXPECT_EQ(files.size(), 53u);
  for (const fs::path& file : files) {
    std::vector<std::string> notes;
    Result<GraphBuilder> builder = read_graph_file(file.string(), 0, -1, &notes);
    ASSERT_TRUE(builder) << builder.status().message();
    EXPECT_TRUE(notes.empty()) << file << ": " << notes[0];
    const GraphPtr graph = builder->build();
    EXPECT_EQ(graph->source_path(), file.string());
    EXPECT_TRUE(graph->from_file());
    const std::string digits = file.stem().string().substr(file.stem().string().rfind('_') + 1);
    const auto number = parse_int(digits);
    EXPECT_EQ(graph->id(), number.value_or(0)) << file;
    EXPECT_EQ(graph->root_id(), graph->id()) << file;
    for (const Node& node : graph->nodes()) {
      for (const Edge& edge : node.inputs) {
        ASSERT_NE(edge.node, kNoNode) << file << " " << node.name << " <- " << edge.name.get();
        EXPECT_EQ(graph->node(edge.node).op == "TupleGetItem", false) << file << " " << node.name;
      }
    }
  }
}

TEST(GraphFiles, TheExecutionOrderListsExactlyTheOperatorsThatCarryData) {
  size_t compared = 0;
  for (const fs::path& file : all_graph_files()) {
    const fs::path rank = file.parent_path().parent_path();
    const std::string id = file.stem().string().substr(file.stem().string().rfind('_') + 1);
    const fs::path csv = rank / "execution_order" / ("ms_execution_order_graph_" + id + ".csv");
    if (!fs::exists(csv)) continue;
    const std::vector<std::string> listed = lines_of(csv);
    Result<GraphBuilder> builder = read_graph_file(file.string(), 0, 0, nullptr);
    ASSERT_TRUE(builder);
    EXPECT_TRUE(builder->set_execution_order(listed).empty()) << file;
    const GraphPtr graph = builder->build();
    std::vector<std::string> in_order;
    for (const NodeId node : graph->execution_order()) {
      if (!is_structural(graph->node(node).op)) in_order.push_back(graph->node(node).name);
    }
    EXPECT_EQ(in_order, listed) << file;
    ++compared;
  }
  EXPECT_EQ(compared, 49u);
}

TEST(GraphFiles, CountsOfNodesAndCategories) {
  struct Expected {
    const char* dump;
    size_t nodes, operators, weights, gradients, activations, optimizer, loss;
  };
  for (const Expected& e :
       {Expected{"lenet-2.7.1-lognan", 110, 80, 8, 21, 4, 20, 1},
        Expected{"lenet-2.7.1-explode", 155, 118, 8, 56, 0, 20, 1}, Expected{"lenet-2.0.0-ok", 93, 68, 8, 19, 4, 18, 1},
        Expected{"lenet-1.5.0-ok", 104, 75, 8, 20, 4, 18, 1}, Expected{"types-2.7.1", 54, 42, 0, 0, 0, 0, 0}}) {
    const GraphPtr graph = open_graph(graph_path(e.dump, 0));
    const auto count = [&](Category category) {
      const auto nodes = graph->nodes();
      return static_cast<size_t>(
          std::count_if(nodes.begin(), nodes.end(), [&](const Node& node) { return in_category(node, category); }));
    };
    EXPECT_EQ(graph->nodes().size(), e.nodes) << e.dump;
    EXPECT_EQ(graph->execution_order().size(), e.operators) << e.dump;
    EXPECT_EQ(count(Category::kWeight), e.weights) << e.dump;
    EXPECT_EQ(count(Category::kGradient), e.gradients) << e.dump;
    EXPECT_EQ(count(Category::kActivation), e.activations) << e.dump;
    EXPECT_EQ(count(Category::kOptimizer), e.optimizer) << e.dump;
    EXPECT_EQ(count(Category::kLoss), e.loss) << e.dump;
  }
}

TEST(GraphFiles, TheLogNodeOfLognanHasItsProducerStackAndAttributes) {
  const GraphPtr graph = open_graph(graph_path("lenet-2.7.1-lognan", 0));
  EXPECT_EQ(graph->name(), "kernel_graph0");
  const Node& log = node_of(*graph, kBackbone + "Log-op0");
  EXPECT_EQ(producer(*graph, log.name, 0), kBackbone + "relu3-ReLU/ReLU-op0:0");
  EXPECT_EQ(log.scope, "Default/network-WithLossCell/_backbone-LeNet5");
  ASSERT_EQ(log.outputs.size(), 1u);
  EXPECT_EQ(log.outputs[0].dtype, DType::kFloat32);
  EXPECT_EQ(log.outputs[0].shape, (Shape{4, 48}));
  const auto frame = std::find_if(log.stack.begin(), log.stack.end(),
                                  [](const StackFrame& f) { return f.file == "/data/lenet/train.py"; });
  ASSERT_NE(frame, log.stack.end());
  EXPECT_EQ(frame->line, 70);
  EXPECT_TRUE(frame->code->starts_with("x = self.log(x)")) << frame->code.get();
  const Node& conv = node_of(*graph, kBackbone + "conv1-Conv2d/Conv2D-op0");
  EXPECT_EQ(producer(*graph, conv.name, 1), "conv1.weight:0") << "through the Load";
  const auto attribute = std::find_if(conv.attributes.begin(), conv.attributes.end(),
                                      [](const Attribute& a) { return a.name == "kernel_size"; });
  ASSERT_NE(attribute, conv.attributes.end());
  EXPECT_EQ(attribute->value, "(5, 5)");
}

TEST(GraphFiles, AScalarTensorHasAnEmptyShape) {
  const GraphPtr graph = open_graph(graph_path("lenet-2.7.1-lognan", 0));
  EXPECT_EQ(node_of(*graph, "learning_rate").outputs.at(0).shape, Shape{});
}

TEST(GraphFiles, MomentsAreOptimizerStateAndWeightsAreTrained) {
  const GraphPtr graph = open_graph(graph_path("lenet-2.7.1-ok", 0));
  EXPECT_TRUE(node_of(*graph, "conv1.weight").trainable);
  EXPECT_TRUE(node_of(*graph, "moments.conv1.weight").optimizer_state);
  EXPECT_FALSE(in_category(node_of(*graph, "moments.conv1.weight"), Category::kWeight));
  EXPECT_TRUE(in_category(node_of(*graph, "moments.conv1.weight"), Category::kOptimizer));
  EXPECT_TRUE(node_of(*graph, "global_step").optimizer_state);
  EXPECT_FALSE(node_of(*graph, "inputs0").optimizer_state);
  EXPECT_FALSE(node_of(*graph, "inputs0").trainable);
}

TEST(GraphFiles, AnOptimizerWithoutItsUsualScopeIsKnownByItsOperator) {
  const GraphPtr graph = open_graph(data_path("live/graph-real-1.3.0.pb"));
  EXPECT_TRUE(node_of(*graph, "fc1.weight").trainable);
  EXPECT_TRUE(in_category(node_of(*graph, "Default/opt-Momentum/ApplyMomentum-op67"), Category::kOptimizer));
}

TEST(GraphFiles, OldLoadsShareTheNameOfTheirParameter) {
  for (const std::string& path : {graph_path("lenet-1.5.0-ok", 0), data_path("live/graph-real-1.3.0.pb")}) {
    const GraphPtr graph = open_graph(path);
    const Node& parameter = node_of(*graph, "fc1.weight");
    EXPECT_EQ(parameter.kind, NodeKind::kParameter);
    const auto nodes = graph->nodes();
    const auto load = std::find_if(nodes.begin(), nodes.end(),
                                   [](const Node& n) { return n.op == "Load" && n.name == "fc1.weight"; });
    ASSERT_NE(load, nodes.end());
    EXPECT_FALSE(load->scope.empty());
    EXPECT_EQ(load->inputs[0].node, parameter.id);
  }
}

TEST(GraphFiles, ConstantsHaveTheirSlashedNameKeyAndValue) {
  for (const char* dump : {"lenet-2.7.1-lognan", "lenet-2.0.0-ok"}) {  // `Default_data-4`, `Default--data-4`
    const GraphPtr graph = open_graph(graph_path(dump, 0));
    const Node& node = node_of(*graph, "Default/data-4");
    EXPECT_EQ(node.kind, NodeKind::kConstant);
    EXPECT_EQ(node.file_key, "data-4");
    EXPECT_EQ(node.scope, "Default");
  }
  const GraphPtr graph = open_graph(graph_path("lenet-2.7.1-lognan", 0));
  EXPECT_EQ(node_of(*graph, "Default/data-1").constant_value, "false");
  EXPECT_EQ(node_of(*graph, "Default/data-3").constant_value, "0");
  EXPECT_EQ(node_of(*graph, "Default/data-4").constant_value, "(4, 6, 5, 5)");
  EXPECT_TRUE(node_of(*graph, "Default/data-5").constant_value.empty()) << "a tensor, only in the dump";
  EXPECT_EQ(node_of(*graph, "Default/data-5").outputs.size(), 1u);
  EXPECT_TRUE(node_of(*graph, "Default/data-0").outputs.empty()) << "a monad";
}

TEST(GraphFiles, OldConstantsAreNumberedAndInline) {
  const GraphPtr graph = open_graph(data_path("live/graph-real-1.3.0.pb"));
  const Node& bias = node_of(*graph, "cst3");
  EXPECT_EQ(bias.file_key, "cst3");
  EXPECT_EQ(bias.constant_value, "[0.5, 0.5, 0.5, 0.5]");
  EXPECT_EQ(bias.outputs.at(0).shape, Shape{4});
  const GraphPtr types = open_graph(graph_path("types-1.5.0", 0));
  const Node& index = node_of(*types, "cst5");
  EXPECT_EQ(index.constant_value, "2");
  EXPECT_EQ(index.outputs.at(0).dtype, DType::kInt64);
}

TEST(GraphFiles, OutputsOfSeveralSlotsGetShapesAndUsersFromTheTupleGetItems) {
  for (const char* dump : {"types-1.5.0", "types-2.0.0", "types-2.7.1"}) {
    const GraphPtr graph = open_graph(graph_path(dump, 0));
    const auto nodes = graph->nodes();
    const auto top = std::find_if(nodes.begin(), nodes.end(), [](const Node& n) { return n.op == "TopK"; });
    ASSERT_NE(top, nodes.end());
    ASSERT_EQ(top->outputs.size(), 2u) << dump;
    EXPECT_EQ(top->outputs[0].dtype, DType::kFloat32);
    EXPECT_EQ(top->outputs[1].dtype, DType::kInt32);
    EXPECT_EQ(top->outputs[1].shape, (Shape{2, 2})) << dump;
    std::set<uint32_t> taken;
    for (const Use& use : graph->users(top->id)) taken.insert(use.output_slot);
    EXPECT_EQ(taken, (std::set<uint32_t>{0, 1})) << dump;
  }
  const GraphPtr graph = open_graph(data_path("live/graph-real-1.3.0.pb"));
  EXPECT_EQ(producer(*graph, "Gradients/Default/net-Net/gradReLU/ReluGradV2-op62", 1), "Default/net-Net/ReLUV2-op56:1");
}

TEST(GraphFiles, ParametersMayHaveAnyLetters) {
  for (const char* dump : {"control-2.0.0", "control-2.7.1"}) {
    const GraphPtr graph = open_graph(graph_path(dump, 1));
    EXPECT_EQ(node_of(*graph, "фx").outputs.at(0).shape, (Shape{2, 4})) << dump;
    EXPECT_EQ(graph->effective_users(node_of(*graph, "фi").id).size(), 1u) << dump;
    EXPECT_TRUE(node_of(*graph, "u").outputs.empty()) << "a monad among the parameters";
  }
  EXPECT_EQ(node_of(*open_graph(graph_path("types-2.7.1", 0)), "a.b/c d").kind, NodeKind::kParameter);
}

TEST(GraphFiles, StacksOfAllReleasesNameTheTrainingScript) {
  for (const std::string& path :
       {data_path("live/graph-real-1.3.0.pb"), graph_path("lenet-1.5.0-ok", 0), data_path("live/graph-real-1.10.0.pb"),
        graph_path("lenet-2.0.0-ok", 0), graph_path("lenet-2.7.1-ok", 0)}) {
    const GraphPtr graph = open_graph(path);
    size_t with_script = 0;
    for (const Node& node : graph->nodes()) {
      with_script += std::any_of(node.stack.begin(), node.stack.end(),
                                 [](const StackFrame& f) { return f.file->ends_with("train.py") && f.line > 0; });
      for (const StackFrame& frame : node.stack)
        EXPECT_FALSE(frame.code->starts_with("def ")) << path << " " << frame.code.get();
    }
    EXPECT_GE(with_script, 6u) << path;
  }
}

}  // namespace
}  // namespace msdbg
