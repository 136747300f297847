// Damaged graph, order and history files.
#include <gtest/gtest.h>

#include <random>

#include "dump/dump_support.h"

namespace msdbg::testing {
namespace {

const std::string kGraphs = "rank_0/graphs/ms_output_trace_code_graph_";
const std::string kOrders = "rank_0/execution_order/";

std::string add_of(int graph) {
  return "rank_0/Net/" + std::to_string(graph) + "/0/Add.Default_Add-op0.0.0.5.output.0.DefaultFormat.Float32.npy";
}

class WrongGraph : public ::testing::Test {
 protected:
  void SetUp() override {
    good_ = graph_pb("kernel_graph_1", "1", {"x"}, {{"Default/Add-op0", "Add", {"x"}}});
    dir_.text(kGraphs + "1.pb", good_);
    dir_.npy(add_of(0), {1});
    dir_.npy(add_of(1), {2});
  }
  void expect_rest_readable(Session& session) {
    EXPECT_EQ(elements(session, id_of(session, "Default/Add-op0", 0, 0, 1)), (std::vector<double>{2}));
    EXPECT_EQ(elements(session, id_of(session, "Default_Add-op0", 0, 0, 0)), (std::vector<double>{1}));
    EXPECT_FALSE(session.graph(0, 0)->from_file());
    EXPECT_TRUE(session.graph(0, 1)->from_file());
  }

  TempDir dir_;
  std::string good_;
};

TEST_F(WrongGraph, CutInHalf) {
  dir_.text(kGraphs + "0.pb", good_.substr(0, good_.size() / 2));
  auto session = open(dir_.path());
  expect_rest_readable(*session);
  EXPECT_TRUE(reports(*session, "graph_0.pb", "the graph cannot be read"));
  EXPECT_TRUE(reports(*session, "graphs", "no graph file of graph 0"));
}

TEST_F(WrongGraph, RandomBytes) {
  std::mt19937 random(7);
  std::string bytes(5000, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  dir_.text(kGraphs + "0.pb", bytes);
  auto session = open(dir_.path());
  expect_rest_readable(*session);
  EXPECT_TRUE(reports(*session, "graph_0.pb", "the graph cannot be read"));
}

TEST_F(WrongGraph, EmptyAndDirectory) {
  dir_.text(kGraphs + "0.pb", "");
  dir_.directory(kGraphs + "2.pb");
  dir_.text("rank_0/graphs/ms_output_trace_code_graph_x.pb", "not numbered");
  auto session = open(dir_.path());
  expect_rest_readable(*session);
  EXPECT_TRUE(reports(*session, "graph_0.pb", "the graph cannot be read"));
  EXPECT_TRUE(reports(*session, "graph_2.pb", "the graph cannot be read"));
}

TEST_F(WrongGraph, NodesOfTheOrderThatAreNotInTheGraphAreReported) {
  dir_.text(kOrders + "ms_execution_order_graph_1.csv",
            "NodeExecutionOrder-FullNameWithScope\nDefault/Add-op0\nDefault/Gone-op1\n");
  dir_.directory(kOrders + "ms_execution_order_graph_0.csv");
  auto session = open(dir_.path());
  expect_rest_readable(*session);
  EXPECT_TRUE(reports(*session, "order_graph_1.csv", "the first is Default/Gone-op1"));
  EXPECT_TRUE(reports(*session, "order_graph_0.csv", "cannot be read"));
}

TEST_F(WrongGraph, OddLinesOfTheHistoryAreIgnoredAndReported) {
  dir_.npy("rank_0/Net/1/10/Add.Default_Add-op0.0.0.9.output.0.DefaultFormat.Float32.npy", {3});
  dir_.text(kOrders + "ms_global_execution_order_graph_1.csv", "0\n\nabc\n10,5\n10\n");
  auto session = open(dir_.path());
  EXPECT_TRUE(reports(*session, "global_execution_order_graph_1.csv", "2 lines hold no step number"));
  EXPECT_EQ(session->previous(id_of(*session, "Default/Add-op0", 10, 0, 1), nullptr)->step, 0);
}

TEST_F(WrongGraph, AFileInPlaceOfTheGraphsDirectoryIsNoObstacle) {
  std::filesystem::remove_all(dir_.at("rank_0/graphs"));
  dir_.text("rank_0/graphs", "x");
  auto session = open(dir_.path());
  EXPECT_EQ(all_tensors(*session, 0).size(), 2u);
}

}  // namespace
}  // namespace msdbg::testing
