// Calls of several steps as one graph: which call is the same, who called it, who made its inputs.
#include "msprobe/msprobe_support.h"

namespace msdbg::testing {
namespace {

const std::string kSmall = tensor_entry("[2]", "1.0", "0.0"), kLarge = tensor_entry("[2]", "7.0", "0.5");
const std::string kThird = tensor_entry("[2]", "9.0", "-3.0"), kNan = tensor_entry("[2]", "NaN", "NaN");

std::string stack_of(const std::string& entry, const std::string& file, int line) {
  return R"({"0": [[")" + entry + R"("], ["File )" + file + ", line " + std::to_string(line) + R"(, in f, \n code"]]})";
}

TEST(Model, TheSameNameFromAnotherLineIsAnotherNode) {
  WrittenDump dump;
  for (const int step : {0, 1, 2}) {
    const std::string folder = "step" + std::to_string(step) + "/rank0";
    dump.table(folder, call_entry("Tensor.add_.0.forward", kSmall, kLarge));
    dump.put(folder + "/stack.json", stack_of("Tensor.add_.0.forward", "/usr/site-packages/torch/optim/sgd.py", step == 0 ? 10 : 20));
  }
  const auto session = dump.open();
  const Graph& graph = *session->graphs()[0];
  ASSERT_EQ(graph.nodes().size(), 2u);
  EXPECT_EQ(graph.nodes()[1].name, "Tensor.add_.0.forward#2");
  EXPECT_EQ(graph.nodes()[0].role, CallRole::kOptimizer);
  EXPECT_TRUE(in_category(graph.nodes()[0], Category::kOptimizer));
  const TensorId late{0, 0, 2, 0, 1, {}};
  EXPECT_EQ(session->previous(late, nullptr)->step, 1);
  EXPECT_EQ(session->executions(0, 0, 0, 1), 0u);
  EXPECT_EQ(session->open({0, 0, 0, 0, 1, {}}).status().code(), Code::kNotFound);
}

TEST(Model, AnOptimizerCallOnAnotherParameterIsAnotherNode) {
  WrittenDump dump;
  const std::string module = R"("Module.fc.Linear.forward.0": {"input_args": [], "output": [], "parameters": {"weight": )" + kSmall +
                             R"(, "bias": )" + kLarge + "}}, ";
  for (const int step : {0, 1}) {
    const std::string folder = "step" + std::to_string(step) + "/rank0";
    dump.table(folder, module + call_entry("Tensor.add_.0.forward", step == 0 ? kSmall : kLarge, kThird));
    dump.put(folder + "/construct.json", R"({"Tensor.add_.0.forward": "optimizer", "Module.fc.Linear.forward.0": null})");
  }
  const auto session = dump.open();
  const Graph& graph = *session->graphs()[0];
  const Node* first = graph.find("Tensor.add_.0.forward");
  const Node* second = graph.find("Tensor.add_.0.forward#2");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(graph.node(first->inputs[0].node).name, "fc.weight");
  EXPECT_EQ(graph.node(second->inputs[0].node).name, "fc.bias");
  EXPECT_EQ(first->scope, "optimizer");
}

TEST(Model, ANewCallComesBehindTheOneBeforeIt) {
  WrittenDump dump;
  const auto call = [](const std::string& name) { return call_entry("Torch." + name + ".0.forward", kSmall, kLarge); };
  dump.table("step0/rank0", call("a") + ", " + call("c"));
  dump.table("step1/rank0", call("a") + ", " + call("b") + ", " + call("c"));
  const auto session = dump.open();
  const Graph& graph = *session->graphs()[0];
  std::string order;
  for (const NodeId node : graph.execution_order()) order += graph.node(node).op;
  EXPECT_EQ(order, "abc");
}

TEST(Model, EdgesJoinEqualValues) {
  WrittenDump dump;
  dump.table("step0/rank0", call_entry("Torch.a.0.forward", kSmall, kLarge) + ", " +
                                call_entry("Torch.b.0.forward", kLarge, kThird) + ", " +
                                call_entry("Torch.c.0.forward", kThird + ", " + kLarge + ", " + kNan, kNan));
  const auto session = dump.open();
  const Graph& graph = *session->graphs()[0];
  const Node& c = *graph.find("Torch.c.0.forward");
  EXPECT_EQ(graph.node(c.inputs[0].node).op, "b");
  EXPECT_EQ(graph.node(c.inputs[1].node).op, "a");
  EXPECT_EQ(c.inputs[2].node, kNoNode);
}

TEST(Model, NoEdgeForConstantsScalarsAndOtherSums) {
  WrittenDump dump;
  const std::string constant = tensor_entry("[2]", "1.0", "1.0"), scalar = tensor_entry("[]", "2.5", "2.5");
  const std::string other =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 7.0, "Min": 0.5, "Mean": 3.0, "Norm": 7.0})";
  dump.table("step0/rank0", call_entry("Torch.a.0.forward", "", constant + ", " + scalar + ", " + kLarge) + ", " +
                                call_entry("Torch.b.0.forward", constant + ", " + scalar + ", " + other, kThird));
  const auto session = dump.open();
  for (const Edge& edge : session->graphs()[0]->find("Torch.b.0.forward")->inputs) EXPECT_EQ(edge.node, kNoNode);
}

TEST(Model, NoEdgeWhereStepsDisagree) {
  WrittenDump dump;
  const std::string makers = call_entry("Torch.a.0.forward", "", kSmall) + ", " + call_entry("Torch.b.0.forward", "", kLarge) + ", ";
  dump.table("step0/rank0", makers + call_entry("Torch.c.0.forward", kSmall, kThird));
  dump.table("step1/rank0", makers + call_entry("Torch.c.0.forward", kLarge, kThird));
  const auto session = dump.open();
  EXPECT_EQ(session->graphs()[0]->find("Torch.c.0.forward")->inputs[0].node, kNoNode);
}

TEST(Model, ChecksumsTellWhatStatisticsDoNot) {
  WrittenDump dump;
  const auto with_sum = [](const std::string& sum) { return tensor_entry("[2]", "NaN", "NaN", R"(, "md5": ")" + sum + "\""); };
  const std::string a = with_sum("0000000a"), b = with_sum("0000000b");
  dump.table("step0/rank0", call_entry("Torch.a.0.forward", "", a) + ", " + call_entry("Torch.b.0.forward", "", b) + ", " +
                                call_entry("Torch.c.0.forward", a, ""));
  const auto session = dump.open();
  const Graph& graph = *session->graphs()[0];
  EXPECT_EQ(graph.node(graph.find("Torch.c.0.forward")->inputs[0].node).op, "a");
}

// On a CPU, what a call in place took has the checksum of what it left there.
TEST(Model, ChecksumsOfLaterValuesAreNoticed) {
  const auto entry = [](const std::string& max, const std::string& sum) { return tensor_entry("[2]", max, "1", R"(, "md5": ")" + sum + "\""); };
  const auto late = [](const std::string& taken, const std::string& given) {
    WrittenDump dump;
    dump.table("step0/rank0", call_entry("Tensor.add_.0.forward", taken, given));
    return dump.open()->late_checksums();
  };
  EXPECT_TRUE(late(entry("2", "0000000a"), entry("3", "0000000a")));
  EXPECT_FALSE(late(entry("2", "0000000a"), entry("3", "0000000b")));
  EXPECT_FALSE(late(entry("2", "0000000a"), entry("2", "0000000a")));
  EXPECT_FALSE(late(entry("NaN", "0000000a"), entry("2", "0000000a")));
}

TEST(Model, BackwardCallsKnowTheirForwardCall) {
  WrittenDump dump;
  dump.table("step0/rank0", call_entry("Torch.a.0.forward", kSmall, kLarge) + R"(, "Torch.a.0.backward": {"input": [)" + kThird +
                                R"(], "output": [)" + kSmall + "]}");
  dump.put("step0/rank0/stack.json", stack_of("Torch.a.0.forward", "train.py", 12));
  dump.put("step0/rank0/construct.json", R"({"Torch.a.0.forward": "Module.net.a.A.forward.0", "Torch.a.0.backward": null})");
  const auto session = dump.open();
  const Graph& graph = *session->graphs()[0];
  const Node& backward = *graph.find("Torch.a.0.backward");
  EXPECT_EQ(graph.call_links(backward.id).forward, graph.find("Torch.a.0.forward")->id);
  EXPECT_EQ(backward.scope, "net/a");
  ASSERT_EQ(backward.stack.size(), 1u);
  EXPECT_EQ(backward.stack[0].line, 12);
  EXPECT_TRUE(in_category(backward, Category::kGradient));
}

TEST(Model, ParametersAreOfTheModuleAndTheStep) {
  WrittenDump dump;
  const auto module = [](const std::string& number, const std::string& weight) {
    return R"("Module.net.fc.Linear.forward.)" + number + R"(": {"input_args": [], "output": [], "parameters": {"weight": )" + weight +
           "}}";
  };
  dump.table("step0/rank0", module("0", kSmall) + ", " + module("1", kSmall));
  dump.table("step1/rank0", module("0", kLarge));
  const auto session = dump.open();
  const Graph& graph = *session->graphs()[0];
  const Node& weight = *graph.find("net.fc.weight");
  EXPECT_EQ(weight.kind, NodeKind::kParameter);
  EXPECT_EQ(weight.scope, "net/fc");
  TensorQuery query;
  query.steps = IntSet::of(0);
  EXPECT_EQ(session->tensors(query).size(), 1u);
  EXPECT_EQ(session->given_statistics({0, 0, 1, 0, weight.id, {}})->max, 7);
}

TEST(Model, ScalarsAreAttributes) {
  WrittenDump dump;
  dump.table("step0/rank0",
             R"("Tensor.masked_fill.0.forward": {"input_args": [)" + kSmall + R"(, {"type": "float", "value": -Infinity}],)" +
                 R"("input_kwargs": {"dim": {"type": "int", "value": 1}}, "output": []})");
  const auto session = dump.open();
  const Node& node = session->graphs()[0]->nodes()[0];
  ASSERT_EQ(node.attributes.size(), 2u);
  EXPECT_EQ(node.attributes[0], (Attribute{"input_args.1", "-Infinity"}));
  EXPECT_EQ(node.attributes[1], (Attribute{"dim", "1"}));
}

}  // namespace
}  // namespace msdbg::testing
