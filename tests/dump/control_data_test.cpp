// Control flow on tensors: several graphs per call, kernels that run several times within a step.
#include <gtest/gtest.h>

#include <set>

#include "dump/dump_support.h"

namespace msdbg::testing {
namespace {

class ControlData : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { session_ = open_data(GetParam()); }

  NodeId node_of_type(int graph, std::string_view op) {
    for (const Node& node : session_->graph(0, graph)->nodes()) {
      if (node.op == op) return node.id;
    }
    ADD_FAILURE() << "graph " << graph << " has no " << op;
    return 0;
  }

  std::unique_ptr<Session> session_;
};

TEST_P(ControlData, EachCallIsAStepAndBranchesHaveTheirOwn) {
  const std::map<int, std::vector<int64_t>> wanted = {{0, {0, 1, 2, 3}}, {1, {0, 1, 2}}, {2, {}},
                                                      {3, {0, 1, 2, 3}}, {4, {1, 2}},    {5, {0, 3}}};
  for (const auto& [graph, steps] : wanted) EXPECT_EQ(session_->steps(0, graph), steps) << graph;
}

TEST_P(ControlData, TheBodyRunsNTimesAndTheTestOnceMore) {
  const uint32_t calls[] = {1, 3, 2, 0};
  const NodeId less = node_of_type(0, "Less"), add = node_of_type(1, "Add");
  for (int64_t step = 0; step < 4; ++step) {
    EXPECT_EQ(session_->executions(0, 0, step, less), calls[step] + 1);
    EXPECT_EQ(session_->executions(0, 1, step, add), calls[step]);
  }
}

TEST_P(ControlData, EveryTurnHasItsOwnValue) {
  const NodeId add = node_of_type(1, "Add"), less = node_of_type(0, "Less");
  for (uint32_t turn = 0; turn < 3; ++turn) {
    const TensorId counter{0, 1, 1, turn, add, {Io::kOutput, 0}};
    EXPECT_EQ(elements(*session_, counter), (std::vector<double>{turn + 1.0}));
  }
  for (uint32_t turn = 0; turn < 4; ++turn) {
    const TensorId goes_on{0, 0, 1, turn, less, {Io::kOutput, 0}};
    EXPECT_EQ(elements(*session_, goes_on), (std::vector<double>{turn < 3 ? 1.0 : 0.0}));
  }
  const Result<TensorInfo> beyond = session_->describe({0, 1, 1, 3, add, {Io::kOutput, 0}});
  ASSERT_FALSE(beyond.ok());
  EXPECT_NE(beyond.status().message().find("has 3 executions in step 1"), std::string::npos);
}

TEST_P(ControlData, TheTurnsOfALoopAreListedOneAfterTheOther) {
  std::vector<uint32_t> turns;
  for (const TensorId& id : all_tensors(*session_, 1, false)) {
    if (id.graph == 1) turns.push_back(id.execution);
  }
  EXPECT_TRUE(std::is_sorted(turns.begin(), turns.end()));
  EXPECT_EQ(std::set<uint32_t>(turns.begin(), turns.end()), (std::set<uint32_t>{0, 1, 2}));
}

TEST_P(ControlData, ResultsAreThosePrintedByTheRun) {
  const float printed[] = {24.0f, 8.0f, 7.99836159f, 0.0f};
  for (int64_t step = 0; step < 4; ++step) {
    const bool tanh = step == 1 || step == 2;
    const int graph = tanh ? 4 : 5;
    const TensorId id{0, graph, step, 0, node_of_type(graph, tanh ? "Tanh" : "Mul"), {Io::kOutput, 0}};
    float sum = 0;
    for (double element : elements(*session_, id)) sum += static_cast<float>(element);
    EXPECT_NEAR(sum, printed[step], 1e-3) << step;  // the printed run was that of another release
  }
}

TEST_P(ControlData, GraphParametersHaveNonAsciiNamesAndNoFiles) {
  std::set<std::string> parameters;
  for (const GraphPtr& graph : session_->graphs()) {
    for (const Node& node : graph->nodes()) {
      if (node.kind == NodeKind::kParameter) parameters.insert(node.name);
    }
  }
  EXPECT_TRUE(std::any_of(parameters.begin(), parameters.end(), [](const std::string& name) {
    return name.starts_with("\xd1\x84");  // the writer's character for a merged value
  }));
  EXPECT_EQ(session_->inspect().parameter_files, 0u);
}

TEST_P(ControlData, OnlyTheFirstGraphHasAHistory) {
  bool missing = true;
  const TensorId first{0, 0, 2, 0, node_of_type(0, "Less"), {Io::kOutput, 0}};
  EXPECT_EQ(session_->previous(first, &missing)->step, 1);
  EXPECT_FALSE(missing);
  const TensorId other{0, 3, 2, 0, node_of_type(3, "Greater"), {Io::kOutput, 0}};
  EXPECT_FALSE(session_->previous(other, &missing).ok());
  EXPECT_TRUE(missing);
}

TEST_P(ControlData, PreviousIsTheSameTurnOfTheLoop) {
  const NodeId less = node_of_type(0, "Less");
  const TensorId second_turn{0, 0, 2, 1, less, {Io::kOutput, 0}};
  EXPECT_EQ(session_->previous(second_turn, nullptr)->execution, 1u);
  const TensorId third_turn{0, 0, 1, 2, less, {Io::kOutput, 0}};  // step 0 had two runs of the test
  EXPECT_EQ(session_->previous(third_turn, nullptr).status().code(), Code::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(Dumps, ControlData, ::testing::Values("control-2.0.0", "control-2.7.1"),
                         [](const auto& made) { return std::string(made.param) == "control-2.0.0" ? "C" : "E"; });

TEST(OldControlData, OpensWithoutGraphsAndSaysSo) {
  auto session = open_data("control-1.5.0");
  EXPECT_EQ(session->info().epoch, "B");
  ASSERT_EQ(session->graphs().size(), 6u);
  for (const GraphPtr& graph : session->graphs()) EXPECT_FALSE(graph->from_file());
  EXPECT_TRUE(reports(*session, "/graphs", "no graph file of graph 3"));
  // Every run of every subgraph has its own number.
  EXPECT_EQ(session->steps(0, 0), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(session->steps(0, 1), (std::vector<int64_t>{2, 6, 9, 10}));
  EXPECT_EQ(names(*session, 1).front(), "\xce\xa6i:output:0");
  const Node* less = session->graph(0, 0)->find("Less-op2");
  ASSERT_NE(less, nullptr);
  EXPECT_EQ(less->op, "Less");
  EXPECT_EQ(less->inputs.size(), 2u);
}

TEST(OldControlData, ParametersWrittenSeveralTimesAreExecutions) {
  auto session = open_data("control-1.5.0");
  uint32_t most = 0;
  for (const GraphPtr& graph : session->graphs()) {
    for (const Node& node : graph->nodes()) {
      if (!node.name.starts_with("[Parameter]")) continue;
      for (int64_t step : session->steps(0, graph->id())) {
        most = std::max(most, session->executions(0, graph->id(), step, node.id));
      }
    }
  }
  EXPECT_GT(most, 0u);
}

}  // namespace
}  // namespace msdbg::testing
