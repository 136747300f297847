// From file names to nodes: hand-made graphs and names that the real dumps do not have.
#include <gtest/gtest.h>

#include "dump/dump_support.h"

namespace msdbg::testing {
namespace {

std::string newer(const std::string& type, const std::string& op, int time, const std::string& slot = "output.0",
                  const std::string& dtype = "Float32") {
  return "rank_0/Net/0/0/" + type + "." + op + ".0.0." + std::to_string(1000 + time) + "." + slot + ".DefaultFormat." +
         dtype + ".npy";
}
std::string older(const std::string& type, const std::string& op, int time) {
  return "rank_0/Net/0/0/" + type + "." + op + ".0.0." + std::to_string(1000 + time) + ".output.0.DefaultFormat.npy";
}

class Join : public ::testing::Test {
 protected:
  void graph(const std::vector<std::string>& parameters, const std::vector<PbNode>& nodes) {
    dir_.text("rank_0/graphs/ms_output_trace_code_graph_0.pb", graph_pb("kernel_graph_0", "0", parameters, nodes));
  }
  /// Value and note of an output.
  std::pair<double, std::string> output(Session& session, const std::string& node, uint32_t execution = 0) {
    const TensorId id = id_of(session, node, 0, execution);
    const Result<TensorInfo> info = session.describe(id);
    EXPECT_TRUE(info.ok()) << info.status().message();
    const std::vector<double> values = elements(session, id);
    return {values.empty() ? NAN : values[0], info ? info->note : ""};
  }

  TempDir dir_;
};

TEST_F(Join, NumbersAreThoseOfTheFilesInTheOrderOfTheGraphsList) {
  graph({}, {{"Default/a/Cast-op24", "Cast"}, {"Default/a/Cast-op23", "Cast"}, {"Default/b/Cast-op25", "Cast"}});
  dir_.npy(newer("Cast", "Default_a_Cast-op0", 1), {1});
  dir_.npy(newer("Cast", "Default_a_Cast-op23", 2), {2});  // exists on both sides and means different nodes
  dir_.npy(newer("Cast", "Default_b_Cast-op0", 3), {3});
  auto session = open(dir_.path());
  EXPECT_EQ(output(*session, "Default/a/Cast-op24"), (std::pair<double, std::string>{1, ""}));
  EXPECT_EQ(output(*session, "Default/a/Cast-op23"), (std::pair<double, std::string>{2, ""}));
  EXPECT_EQ(output(*session, "Default/b/Cast-op25"), (std::pair<double, std::string>{3, ""}));
}

TEST_F(Join, AFilteredDumpPairsEqualNumbersAndSaysThatItGuesses) {
  graph({}, {{"Default/Cast-op0", "Cast"}, {"Default/Cast-op1", "Cast"}, {"Default/Cast-op2", "Cast"}});
  dir_.npy(newer("Cast", "Default_Cast-op1", 1), {1});
  auto session = open(dir_.path());
  const auto [value, note] = output(*session, "Default/Cast-op1");
  EXPECT_EQ(value, 1);
  EXPECT_NE(note.find("uncertain pairing"), std::string::npos);
  EXPECT_TRUE(reports(*session, "graph_0.pb", "1 files of graph 0 may belong to another node"));
}

TEST_F(Join, AGuessThatContradictsTheElementTypeIsNotMade) {
  graph({}, {{"Default/Cast-op0", "Cast", {}, 4}, {"Default/Cast-op1", "Cast", {}, 4}});  // int32
  dir_.npy(newer("Cast", "Default_Cast-op1", 1), {1});
  auto session = open(dir_.path());
  EXPECT_FALSE(session->describe(id_of(*session, "Default/Cast-op1", 0)).ok());
  EXPECT_EQ(output(*session, "Default_Cast-op1").first, 1);
}

TEST_F(Join, NumbersThatTheGraphLacksGetNodesOfTheirOwn) {
  graph({}, {{"Default/Cast-op0", "Cast"}, {"Default/Cast-op1", "Cast"}, {"Default/Cast-op2", "Cast"}});
  dir_.npy(newer("Cast", "Default_Cast-op7", 1), {1});
  auto session = open(dir_.path());
  EXPECT_EQ(output(*session, "Default_Cast-op7").first, 1);
  EXPECT_TRUE(reports(*session, "rank_0", "match no node of its graph file"));
}

TEST_F(Join, NumbersOfAllStepsAreJoinedBeforeTheyAreCounted) {
  graph({}, {{"Default/Cast-op5", "Cast"}, {"Default/Cast-op6", "Cast"}});
  dir_.npy("rank_0/Net/0/0/Cast.Default_Cast-op0.0.0.1.output.0.DefaultFormat.Float32.npy", {1});
  dir_.npy("rank_0/Net/0/1/Cast.Default_Cast-op1.0.0.2.output.0.DefaultFormat.Float32.npy", {2});
  auto session = open(dir_.path());
  EXPECT_EQ(elements(*session, "Default/Cast-op5", 0), (std::vector<double>{1}));
  EXPECT_EQ(elements(*session, "Default/Cast-op6", 1), (std::vector<double>{2}));
}

TEST_F(Join, UnderscoredNamesWithoutTypeAreThoseOf23) {
  graph({"conv1.weight"}, {{"Default/net-Net/Conv2D-op3", "Conv2D"}});
  dir_.npy(older("Conv2D", "Default_net-Net_Conv2D-op0", 1), {1});
  dir_.npy(older("Parameter", "conv1_weight", 2), {2});
  auto session = open(dir_.path());
  EXPECT_EQ(session->info().epoch, "D");
  EXPECT_EQ(output(*session, "Default/net-Net/Conv2D-op3").first, 1);
  EXPECT_EQ(output(*session, "conv1.weight").first, 2);
}

TEST_F(Join, ParametersWithTheSameFoldedNameAreOrderedByTime) {
  graph({"a.b", "a_b"}, {{"Default/Add-op0", "Add", {"a.b", "a_b"}}});
  dir_.npy(newer("Add", "Default_Add-op0", 0), {0});
  dir_.npy(newer("Parameter", "a_b", 1), {1});
  dir_.npy(newer("Parameter", "a_b", 2), {2});
  auto session = open(dir_.path());
  EXPECT_EQ(output(*session, "a.b").first, 1);
  const auto [value, note] = output(*session, "a_b");
  EXPECT_EQ(value, 2);
  EXPECT_NE(note.find("several nodes"), std::string::npos);
}

TEST_F(Join, EqualLastComponentsAreDistinguishedByTypeOrTime) {
  graph({}, {{"Default/a/Cast-op1", "Cast"}, {"Default/b/Cast-op1", "Cast"}, {"Default/b/X-op2", "Relu"}});
  dir_.npy(older("Cast", "Cast-op1", 1), {1});
  dir_.npy(older("Cast", "Cast-op1", 2), {2});
  dir_.npy(older("Relu", "X-op2", 3), {3});
  auto session = open(dir_.path());
  EXPECT_EQ(output(*session, "Default/a/Cast-op1").first, 1);
  EXPECT_EQ(output(*session, "Default/b/Cast-op1").first, 2);
  EXPECT_NE(output(*session, "Default/b/Cast-op1").second.find("several nodes"), std::string::npos);
  EXPECT_EQ(output(*session, "Default/b/X-op2").second, "");
}

TEST_F(Join, OperatorWithoutScopeIsFoundByItsType) {
  graph({}, {{"Cast-op1", "Cast"}, {"Default/Add-op2", "Add"}});
  dir_.npy(older("Cast", "", 1), {1});
  dir_.npy(older("Add", "Add-op2", 2), {2});
  auto session = open(dir_.path());
  EXPECT_EQ(output(*session, "Cast-op1").first, 1);
}

TEST_F(Join, ASlashInAParameterIsADoubleDashOrADirectory) {
  graph({"a.b/c d", "e/f"}, {});
  dir_.npy(older("Parameter", "a.b--c d", 1), {1});
  dir_.npy(older("Parameter", "e/f", 2), {2});
  auto session = open(dir_.path());
  EXPECT_EQ(output(*session, "a.b/c d").first, 1);
  EXPECT_EQ(output(*session, "e/f").first, 2);
}

TEST_F(Join, ASecondRunIntoTheSameDirectoryIsASecondExecution) {
  graph({}, {{"Default/Add-op0", "Add"}});
  dir_.npy(newer("Add", "Default_Add-op0", 9), {2});
  dir_.npy(newer("Add", "Default_Add-op0", 1), {1});
  auto session = open(dir_.path());
  EXPECT_EQ(session->executions(0, 0, 0, session->graphs()[0]->find("Default/Add-op0")->id), 2u);
  EXPECT_EQ(output(*session, "Default/Add-op0", 0).first, 1);
  EXPECT_EQ(output(*session, "Default/Add-op0", 1).first, 2);
}

TEST_F(Join, TimeStampsAreNumbersNotText) {
  graph({}, {{"Default/Add-op0", "Add"}});
  dir_.npy("rank_0/Net/0/0/Add.Default_Add-op0.0.0.9.output.0.DefaultFormat.Float32.npy", {1});
  dir_.npy("rank_0/Net/0/0/Add.Default_Add-op0.0.0.10.output.0.DefaultFormat.Float32.npy", {2});
  auto session = open(dir_.path());
  EXPECT_EQ(output(*session, "Default/Add-op0", 0).first, 1);
  EXPECT_EQ(output(*session, "Default/Add-op0", 1).first, 2);
}

TEST_F(Join, TheGraphKnowsTheShapeWhereTheHeaderHasTheInputs) {
  graph({}, {{"Default/Flatten-op0", "Flatten", {}, 11, {2, 6}}});
  dir_.npy(newer("Flatten", "Default_Flatten-op0", 1), f32({2, 3, 2}, std::vector<double>(12, 1)));
  auto session = open(dir_.path());
  const Result<TensorInfo> info = session->describe(id_of(*session, "Default/Flatten-op0", 0));
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->shape, (Shape{2, 6}));
  EXPECT_NE(info->note.find("[2,3,2]"), std::string::npos);
  EXPECT_EQ(session->load(info->id).value()->shape(), (Shape{2, 6}));
}

TEST_F(Join, SlotsBeyondTheGraphAreShown) {
  graph({}, {{"Default/MatMul-op0", "MatMul"}});
  dir_.npy(newer("MatMul", "Default_MatMul-op0", 1), {1});
  dir_.npy(newer("MatMul", "Default_MatMul-op0", 2, "input.2", "Bool"),
           make_tensor(DType::kBool, {}, std::vector{1.0}));
  dir_.npy(newer("MatMul", "Default_MatMul-op0", 3, "output.1"), {5});
  auto session = open(dir_.path());
  EXPECT_EQ(names(*session, 0), (std::vector<std::string>{"Default/MatMul-op0:input:2", "Default/MatMul-op0:output:0",
                                                          "Default/MatMul-op0:output:1"}));
}

TEST_F(Join, ParametersOfOtherGraphsMayLieWithTheFirstGraph) {
  graph({"x"}, {{"Default/Add-op0", "Add", {"x"}}});
  dir_.text("rank_0/graphs/ms_output_trace_code_graph_1.pb",
            graph_pb("kernel_graph_1", "1", {"fc.weight"}, {{"Default/MatMul-op1", "MatMul", {"fc.weight"}}}));
  dir_.npy(older("Add", "Add-op0", 1), {1});
  dir_.npy(older("Parameter", "fc.weight", 2), {2});
  auto session = open(dir_.path());
  const TensorId weight = id_of(*session, "fc.weight", 0);
  EXPECT_EQ(weight.graph, 1);
  EXPECT_EQ(elements(*session, weight), (std::vector<double>{2}));
}

TEST_F(Join, WithoutAGraphTheOrderFileGivesNamesAndOrder) {
  dir_.text("rank_0/execution_order/ms_execution_order_graph_0.csv",
            "NodeExecutionOrder-FullNameWithScope\nDefault/b/Mul-op0\nDefault/a, the first/Add-op0\n");
  dir_.npy(newer("Add", "Default_a,_the_first_Add-op0", 1), {1});
  dir_.npy(newer("Mul", "Default_b_Mul-op0", 2), {2});
  auto session = open(dir_.path());
  EXPECT_EQ(names(*session, 0),
            (std::vector<std::string>{"Default/b/Mul-op0:output:0", "Default/a, the first/Add-op0:output:0"}));
  EXPECT_FALSE(session->graphs()[0]->from_file());
}

}  // namespace
}  // namespace msdbg::testing
