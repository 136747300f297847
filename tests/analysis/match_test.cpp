// Matching the nodes of two graphs, and tolerances for rounding.
#include <gtest/gtest.h>

#include <algorithm>

#include "msdbg/diff.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::fake_graph;

/// `A = B (how)` lines, in the order of b.
std::vector<std::string> matches(const Graph& a, const Graph& b, const NameMap& map = {}) {
  std::vector<std::string> out;
  for (const NodeMatch& match : match_graphs(a, b, map).nodes) {
    out.push_back(a.node(match.a).name + " = " + b.node(match.b).name + " (" + std::string(match_method_name(match.how)) + ")");
  }
  return out;
}
std::vector<std::string> names(const Graph& graph, const std::vector<NodeId>& ids) {
  std::vector<std::string> out;
  for (NodeId id : ids) out.push_back(graph.node(id).name);
  return out;
}
using List = std::vector<std::string>;

// A pair of nodes for every two nodes would take minutes here.
TEST(MatchGraphs, AHundredThousandNodesOfTheSameKindAreMatched) {
  constexpr int kNodes = 100000;
  const auto chain = [](const std::string& scope) {
    std::vector<testing::FakeNode> nodes = {{"x", "Parameter"}};
    for (int i = 0; i < kNodes; ++i) nodes.push_back({scope + "/Add-op" + std::to_string(i), "Add", {nodes.back().name}});
    return fake_graph(nodes);
  };
  EXPECT_EQ(match_graphs(*chain("net"), *chain("net")).nodes.size(), kNodes + 1u);
  EXPECT_EQ(match_graphs(*chain("net"), *chain("other")).nodes.size(), kNodes + 1u);  // only by their positions
}

TEST(MatchGraphs, SameNamesAreTheSameNodesInWhateverOrder) {
  const auto a = fake_graph({{"w", "Parameter"}, {"net/MatMul-op0", "MatMul", {"w"}}, {"net/MatMul-op1", "MatMul", {"w"}}});
  const auto b = fake_graph({{"w", "Parameter"}, {"net/MatMul-op1", "MatMul", {"w"}}, {"net/MatMul-op0", "MatMul", {"w"}}});
  EXPECT_EQ(matches(*a, *b), (List{"w = w (name)", "net/MatMul-op1 = net/MatMul-op1 (name)", "net/MatMul-op0 = net/MatMul-op0 (name)"}));
}

TEST(MatchGraphs, NumbersOfOperatorsMayDiffer) {
  const auto a = fake_graph({{"x", "Parameter"}, {"net/ReLU-op0", "ReLU", {"x"}}, {"net/ReLU-op1", "ReLU", {"net/ReLU-op0"}}});
  const auto b = fake_graph({{"x", "Parameter"}, {"net/ReLU-op77", "ReLU", {"x"}}, {"net/ReLU-op78", "ReLU", {"net/ReLU-op77"}}});
  EXPECT_EQ(matches(*a, *b), (List{"x = x (name)", "net/ReLU-op0 = net/ReLU-op77 (name)", "net/ReLU-op1 = net/ReLU-op78 (name)"}));
}

TEST(MatchGraphs, OptimizersAreDistinguishedByTheirParameters) {
  const auto a = fake_graph({{"u", "Parameter"},
                             {"v", "Parameter"},
                             {"opt/ApplyMomentum-op0", "ApplyMomentum", {"u"}},
                             {"opt/ApplyMomentum-op1", "ApplyMomentum", {"v"}}});
  const auto b = fake_graph({{"u", "Parameter"},
                             {"v", "Parameter"},
                             {"opt/ApplyMomentum-op8", "ApplyMomentum", {"v"}},
                             {"opt/ApplyMomentum-op9", "ApplyMomentum", {"u"}}});
  EXPECT_EQ(matches(*a, *b), (List{"u = u (name)", "v = v (name)", "opt/ApplyMomentum-op1 = opt/ApplyMomentum-op8 (name)",
                                   "opt/ApplyMomentum-op0 = opt/ApplyMomentum-op9 (name)"}));
}

TEST(MatchGraphs, OtherNamesAreFoundByTheirPlace) {
  const auto a = fake_graph({{"x", "Parameter"},
                             {"old/Conv2D-op0", "Conv2D", {"x"}},
                             {"old/ReLU-op0", "ReLU", {"old/Conv2D-op0"}},
                             {"old/Log-op0", "Log", {"old/ReLU-op0"}}});
  const auto b = fake_graph({{"x", "Parameter"},
                             {"new/Conv2D-op5", "Conv2D", {"x"}},
                             {"new/ReLU-op6", "ReLU", {"new/Conv2D-op5"}},
                             {"new/Exp-op7", "Exp", {"new/ReLU-op6"}}});
  EXPECT_EQ(matches(*a, *b),
            (List{"x = x (name)", "old/Conv2D-op0 = new/Conv2D-op5 (structure)", "old/ReLU-op0 = new/ReLU-op6 (structure)"}));
  const GraphMatch match = match_graphs(*a, *b);
  EXPECT_EQ(names(*a, match.only_a), List{"old/Log-op0"});
  EXPECT_EQ(names(*b, match.only_b), List{"new/Exp-op7"});
}

TEST(MatchGraphs, AFusedKernelIsTheLastOfWhatItReplaced) {
  const auto a = fake_graph({{"x", "Parameter"},
                             {"w", "Parameter"},
                             {"fc/MatMul-op0", "MatMul", {"x", "w"}},
                             {"relu/ReLU-op0", "ReLU", {"fc/MatMul-op0"}},
                             {"net/Sum-op0", "ReduceSum", {"relu/ReLU-op0"}}});
  const auto b = fake_graph({{"x", "Parameter"},
                             {"w", "Parameter"},
                             {"relu/MatMulReluFusion-op4", "MatMulReluFusion", {"x", "w"}},
                             {"net/Sum-op5", "ReduceSum", {"relu/MatMulReluFusion-op4"}}});
  const GraphMatch match = match_graphs(*a, *b);
  EXPECT_EQ(matches(*a, *b)[2], "relu/ReLU-op0 = relu/MatMulReluFusion-op4 (value)");
  EXPECT_EQ(names(*a, match.only_a), List{"fc/MatMul-op0"});
  EXPECT_TRUE(match.only_b.empty());
}

TEST(MatchGraphs, TheMappingFileHasTheLastWord) {
  const auto a = fake_graph({{"x", "Parameter"}, {"net/ReLU-op0", "ReLU", {"x"}}, {"net/Abs-op0", "Abs", {"x"}}});
  const auto b = fake_graph({{"x", "Parameter"}, {"net/ReLU-op0", "ReLU", {"x"}}, {"net/Abs-op0", "Abs", {"x"}}});
  const NameMap map = parse_name_map("# swapped\nnet/ReLU-op0 = net/Abs-op0\n\nnet/Abs-op0 = net/ReLU-op0\n", "m").value();
  EXPECT_EQ(matches(*a, *b, map), (List{"x = x (name)", "net/Abs-op0 = net/ReLU-op0 (map)", "net/ReLU-op0 = net/Abs-op0 (map)"}));
}

TEST(MatchGraphs, AWrongLineOfTheMapIsNamed) {
  const auto a = fake_graph({{"x", "Parameter"}});
  std::vector<std::string> problems;
  match_graphs(*a, *a, parse_name_map("x = y\n", "names.txt").value(), &problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].rfind("names.txt:1: right:", 0), 0u) << problems[0];
  EXPECT_EQ(parse_name_map("x = y\nnonsense\n", "names.txt").status().message(),
            "names.txt:2: 'nonsense' is not of the form NAME_A = NAME_B");
}

TEST(MatchGraphs, EveryNodeIsInExactlyOneList) {
  const auto a = fake_graph({{"x", "Parameter"}, {"p/A-op0", "A", {"x"}}, {"p/B-op0", "B", {"p/A-op0"}}, {"p/B-op1", "B", {"x"}}});
  const auto b = fake_graph({{"y", "Parameter"}, {"q/A-op3", "A", {"y"}}, {"q/C-op0", "C", {"q/A-op3"}}});
  const GraphMatch match = match_graphs(*a, *b);
  EXPECT_EQ(match.nodes.size() + match.only_a.size(), a->nodes().size());
  EXPECT_EQ(match.nodes.size() + match.only_b.size(), b->nodes().size());
}

// ---- without a graph file ----

/// Operators and parameters as known from file names: no edges, no shapes.
GraphPtr blind_graph(const std::vector<std::pair<std::string, std::string>>& nodes) {
  GraphBuilder builder(0, 0);
  builder.set_from_file(false);
  for (const auto& [name, op] : nodes) {
    Node node;
    node.name = name;
    node.op = op;
    node.kind = op == "Parameter" ? NodeKind::kParameter : op == "Const" ? NodeKind::kConstant : NodeKind::kOperator;
    node.outputs = std::vector<OutputType>(1);
    builder.add(std::move(node));
  }
  return builder.build();
}
/// Shapes of output 0, by node; an empty one was not dumped.
DumpedShapes outputs(const std::vector<Shape>& shapes) {
  DumpedShapes out;
  for (NodeId id = 0; id < shapes.size(); ++id) {
    if (!shapes[id].empty()) out[id][Slot{}] = shapes[id];
  }
  return out;
}
List blind_matches(const Graph& a, const DumpedShapes& shapes_a, const Graph& b, const DumpedShapes& shapes_b) {
  List out;
  for (const NodeMatch& match : match_graphs(a, b, {}, nullptr, shapes_a, shapes_b).nodes)
    out.push_back(a.node(match.a).name + " = " + b.node(match.b).name);
  std::sort(out.begin(), out.end());
  return out;
}

TEST(MatchWithoutGraph, NumbersOfFilesProveNothingWithoutTheirShapes) {
  // op0 and op1 are swapped: 2.7 numbers from 0 for each type, in its own order.
  const auto a = blind_graph({{"net/MatMul-op0", "MatMul"}, {"net/MatMul-op1", "MatMul"}, {"net/Log-op0", "Log"}});
  const auto b = blind_graph({{"net/MatMul-op0", "MatMul"}, {"net/MatMul-op1", "MatMul"}, {"net/Exp-op0", "Exp"}});
  EXPECT_EQ(blind_matches(*a, outputs({{4, 48}, {4, 10}, {4}}), *b, outputs({{4, 10}, {4, 48}, {4}})), List{});
  EXPECT_EQ(blind_matches(*a, outputs({{4, 48}, {4, 10}}), *b, outputs({{4, 48}, {4, 10}})),
            (List{"net/MatMul-op0 = net/MatMul-op0", "net/MatMul-op1 = net/MatMul-op1"}));
}

TEST(MatchWithoutGraph, OtherNumbersAreTheSameNodeOnlyWhereOneShapeFits) {
  const auto a = blind_graph({{"net/ReLU-op0", "ReLU"}, {"net/ReLU-op1", "ReLU"}, {"net/ReLU-op2", "ReLU"}});
  const auto b = blind_graph({{"net/ReLU-op7", "ReLU"}, {"net/ReLU-op8", "ReLU"}, {"net/ReLU-op9", "ReLU"}});
  EXPECT_EQ(blind_matches(*a, outputs({{1}, {2}, {2}}), *b, outputs({{2}, {2}, {1}})), List{"net/ReLU-op0 = net/ReLU-op9"});
}

TEST(MatchWithoutGraph, OfOneAnotherTypeIsNoMatch) {
  const auto a = blind_graph({{"net/Fused-op0", "MatMul"}}), b = blind_graph({{"net/Fused-op3", "Conv2D"}});
  EXPECT_EQ(blind_matches(*a, outputs({{2}}), *b, outputs({{2}})), List{});
}

TEST(MatchWithoutGraph, TheSameSetOfNamesMayHaveOtherShapes) {
  const auto a = blind_graph({{"net/ReLU-op0", "ReLU"}, {"w", "Parameter"}});
  EXPECT_EQ(blind_matches(*a, outputs({{2}, {3}}), *a, outputs({{4}, {5}})), (List{"net/ReLU-op0 = net/ReLU-op0", "w = w"}));
}

TEST(MatchWithoutGraph, DotsOfParametersMayBeUnderscores) {
  const auto a = blind_graph({{"conv1.weight", "Parameter"}, {"a.b_c", "Parameter"}, {"data-1", "Const"}, {"net/X-op0", "X"}});
  const auto b = blind_graph({{"conv1_weight", "Parameter"}, {"a_b.c", "Parameter"}, {"data-1", "Const"}});
  // The number of a constant is meaningless in another release.
  EXPECT_EQ(blind_matches(*a, {}, *b, {}), (List{"a.b_c = a_b.c", "conv1.weight = conv1_weight"}));
}

// ---- tolerances ----

Node shaped(std::string name, std::string op, std::vector<Shape> outputs, std::vector<NodeId> inputs = {}) {
  Node node;
  node.name = std::move(name);
  node.op = std::move(op);
  node.kind = node.op == "Parameter" ? NodeKind::kParameter : NodeKind::kOperator;
  std::vector<OutputType> types;
  for (Shape& shape : outputs) types.push_back({DType::kFloat32, std::move(shape)});
  node.outputs = std::move(types);
  for (NodeId input : inputs) node.inputs.push_back({input, 0, ""});
  return node;
}

uint64_t length_of(const std::string& op, const Shape& x, const Shape& y, const Shape& out) {
  GraphBuilder builder(0, 0);
  const NodeId p = builder.add(shaped("x", "Parameter", {x})), q = builder.add(shaped("y", "Parameter", {y}));
  const NodeId node = builder.add(shaped("net/op0", op, {out}, {p, q}));
  const GraphPtr graph = builder.build();
  return reduction_length(*graph, graph->node(node));
}

TEST(ReductionLength, IsWhatOneElementSums) {
  EXPECT_EQ(length_of("MatMul", {4, 150}, {48, 150}, {4, 48}), 150u);  // transpose_b
  EXPECT_EQ(length_of("MatMul", {150, 4}, {150, 48}, {4, 48}), 150u);  // transpose_a
  EXPECT_EQ(length_of("BatchMatMul", {8, 3, 5, 7}, {8, 3, 7, 9}, {8, 3, 5, 9}), 7u);
  EXPECT_EQ(length_of("Conv2D", {4, 3, 14, 14}, {6, 3, 5, 5}, {4, 6, 10, 10}), 75u);
  EXPECT_EQ(length_of("ReduceSum", {4, 10}, {1}, {4}), 10u);
  EXPECT_EQ(length_of("BiasAddGrad", {4, 48}, {1}, {48}), 4u);
  EXPECT_EQ(length_of("ReLU", {4, 48}, {1}, {4, 48}), 1u);
}

TEST(DefaultTolerance, GrowsWithTheRootOfWhatIsAddedAndWithTheType) {
  const double eps = dtype_eps(DType::kFloat32);
  EXPECT_DOUBLE_EQ(default_tolerance(DType::kFloat32, DType::kFloat32, {1, 1}).rtol, 4 * eps);
  EXPECT_DOUBLE_EQ(default_tolerance(DType::kFloat32, DType::kFloat32, {100, 4}).rtol, 24 * eps);
  EXPECT_DOUBLE_EQ(default_tolerance(DType::kFloat16, DType::kFloat32, {100, 4}).rtol, 4 * dtype_eps(DType::kFloat16) + 20 * eps);
  EXPECT_EQ(default_tolerance(DType::kInt32, DType::kInt32, {100, 4}).rtol, 0);
}

}  // namespace
}  // namespace msdbg
