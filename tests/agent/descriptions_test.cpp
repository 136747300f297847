// A graph that is described again, between steps and inside one.
#include <gtest/gtest.h>

#include <thread>

#include "agent/requests.h"

namespace msdbg::test {
namespace {

using Level = debugger::ViewCMD;

const std::string kLate = "Default/net-Net/Late-op9";

using Descriptions = Requests;

/// The chain with another operator in front of the last one, so that numbers shift.
agent::GraphDescription longer(const ChainNet& net) {
  agent::GraphDescription graph = net.describe();
  agent::NodeDescription late;
  late.full_name = kLate, late.op = "Late", late.inputs = {{kSplit, 0}}, late.outputs = {{DType::kFloat32, Shape{2}}};
  graph.nodes.insert(graph.nodes.begin() + 2, late);
  graph.id = 77;  // has no say
  return graph;
}

TEST_F(Descriptions, DescriptionAgainIsSentWhereTheStepEnds) {
  begin({});
  const std::array<float, 2> late{1, kNotANumber};
  // As msdbg: it passes over the suspension that follows the graph, with a watchpoint for the new name.
  server.script({overflow(5).leaf(kLate).answer(), Answer::run(), View(Level::value).tensor(kLate).answer()});
  agent->publish(0, 0, net.mul.data(), sizeof net.mul);
  agent->node_done(0);
  ASSERT_TRUE(agent->replace_graph(0, longer(net)).ok());
  agent->publish(2, 0, late.data(), sizeof late);
  agent->node_done(2);
  agent->end_step();
  EXPECT_EQ(server.order(), "SendMetadata SendGraph WaitCMD SendGraph WaitCMD WaitCMD SendWatchpointHits WaitCMD SendTensors WaitCMD");
  EXPECT_EQ(hits(), "5:Late-op9:0");
  EXPECT_EQ(content(), "0000803f0000c07f");
  EXPECT_EQ(holds(), "0, 0 Late-op9, 0 Late-op9, 0 Late-op9, 0 Late-op9");
  debugger::GraphProto graph;
  ASSERT_TRUE(graph.ParseFromString(server.calls("SendGraph").at(1).as<debugger::Chunk>().buffer()));
  EXPECT_EQ(graph.name(), "kernel_graph_1");
  EXPECT_EQ(graph.node_size(), 4 + 2);  // with a TupleGetItem for each output of Split
  agent->begin_step();
  agent->end_step();
  EXPECT_EQ(server.calls("SendGraph").size(), 2u);  // once
}

TEST_F(Descriptions, OperatorsThatTheDebuggerDoesNotKnowAreWanted) {
  begin({});
  EXPECT_EQ(wanted(), "nnn nothing");
  ASSERT_TRUE(agent->replace_graph(0, longer(net)).ok());
  EXPECT_EQ(wanted(4), "nnyn some");
  ASSERT_TRUE(agent->replace_graph(0, longer(net)).ok());  // it is still unknown
  EXPECT_EQ(wanted(4), "nnyn some");
  agent->end_step();
  agent->begin_step();
  EXPECT_EQ(wanted(4), "nnnn nothing");
}

TEST_F(Descriptions, ValuesOfTheStepStayWhenItIsDescribedAgain) {
  begin({above(1, 3).leaf(kMul).leaf(kAssign).answer()});
  net.compute(0);
  agent->publish(0, 0, net.mul.data(), sizeof net.mul);
  agent->node_done(0);  // a hit
  EXPECT_EQ(hits(), "1:Mul-op1:0");
  std::vector<float> gone{9, 9, 9, 9};
  ASSERT_TRUE(agent->publish_copy(2, 0, std::nullopt, gone.data(), {4}));
  gone.assign(4, 0);
  ASSERT_TRUE(agent->replace_graph(0, longer(net)).ok());
  server.script({Answer::run(), View(Level::value).tensor(kMul).tensor(kAssign).tensor("w").answer()});
  agent->node_done(3);  // Assign has moved; its value was published under its old number
  agent->end_step();
  EXPECT_EQ(hits(), "1:Mul-op1:0 | 1:Assign-op3:0");  // Mul is not judged twice
  EXPECT_EQ(floats(0, 0), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(floats(0, 1), (std::vector<float>{9, 9, 9, 9}));
}

TEST_F(Descriptions, DescriptionBetweenStepsChangesShapes) {
  begin({above(1, 1e9).leaf(kMul).answer()});
  agent->end_step();
  agent::GraphDescription graph = net.describe();
  graph.nodes[0].outputs[0].shape = Shape{2, 2};
  graph.parameters.pop_back();
  graph.nodes[2].inputs = {{"w", 0}, {kSplit, 1}};
  ASSERT_TRUE(agent->replace_graph(0, std::move(graph)).ok());
  agent->begin_step();
  net.compute(0);
  agent->publish(0, 0, net.mul.data(), sizeof net.mul);
  agent->node_done(0);
  server.script({Answer::run(), View(Level::base).tensor(kMul).tensor("moments.w").answer()});
  agent->end_step();
  const Call bases = server.calls("SendTensorBase").at(0);
  EXPECT_EQ(bases.as<debugger::TensorBase>(0).shape_size(), 2);
  EXPECT_EQ(bases.as<debugger::TensorBase>(1).data_type(), 0);  // it is gone
}

TEST_F(Descriptions, GraphThatDoesNotRunMayBeReplacedWhileItsWatchpointsAreKnown) {
  server.script({above(1, 3).leaf(kMul).leaf(kAssign).answer()});
  server.then_always(Answer::run());
  agent::Agent two(options_for(server));
  agent::GraphDescription other = net.describe();
  other.id = 2;
  ASSERT_TRUE(two.add_graph(net.describe()).ok());
  ASSERT_TRUE(two.add_graph(other).ok());
  net.compute(0);
  for (int step = 0; step < 6; ++step) {
    two.begin_step(step % 2);
    two.publish(0, 0, net.mul.data(), sizeof net.mul);
    two.node_done(0);
    two.end_step();
    ASSERT_TRUE(two.replace_graph(step % 2, longer(net)).ok());
    ASSERT_TRUE(two.replace_graph(1 - step % 2, net.describe()).ok());
  }
  const std::vector<Call> found = server.calls("SendWatchpointHits");
  EXPECT_EQ(found.size(), 6u);
  for (const Call& hits : found) EXPECT_EQ(hits.as<debugger::WatchpointHit>().tensor().node_name(), kMul);
}

TEST_F(Descriptions, WrongDescriptionLeavesTheOldOne) {
  begin({Answer::run_node()});
  agent::GraphDescription graph = net.describe();
  graph.nodes[1].inputs = {{"nowhere", 0}};
  EXPECT_FALSE(agent->replace_graph(0, graph).ok());
  EXPECT_EQ(agent->replace_graph(3, net.describe()).message(), "graph 3: there are 1, numbered from 0");
  agent->node_done(0);
  agent->end_step();
  EXPECT_EQ(server.calls("SendGraph").size(), 1u);
}

TEST_F(Descriptions, OperatorThatLeavesWhileItIsTheLastOne) {
  begin({Answer::run_node()});
  run_all();
  agent::GraphDescription graph = net.describe();
  graph.nodes.pop_back();
  ASSERT_TRUE(agent->replace_graph(0, graph).ok());
  ASSERT_TRUE(agent->replace_graph(0, graph).ok());
  agent->end_step();
  agent->begin_step();
  agent->end_step();
  agent->finish();
  EXPECT_EQ(server.calls().back().metadata().cur_node(), kAssign);
}

TEST_F(Descriptions, ThreadsInTurn) {
  begin({Answer::run_node()});
  const auto on_thread = [](auto what) { std::thread(what).join(); };
  on_thread([&] { EXPECT_EQ(wanted(), "yyy all"); });
  on_thread([&] {
    net.compute(0);
    EXPECT_TRUE(agent->publish_copy(0, 0, std::nullopt, net.mul.data(), {4}));
    agent->node_done(0);
  });
  on_thread([&] { ASSERT_TRUE(agent->replace_graph(0, longer(net)).ok()); });
  on_thread([&] {
    agent->publish(1, 0, net.first.data(), sizeof net.first);
    agent->node_done(1);
  });
  on_thread([&] { agent->end_step(); });
  on_thread([&] { agent->begin_step(); });
  on_thread([&] { agent->finish(); });
  EXPECT_EQ(server.calls().back().metadata().training_done(), true);
}

}  // namespace
}  // namespace msdbg::test
