#include "msdbg/graph.h"

#include <gtest/gtest.h>

#include "graph/graph_text.h"

namespace msdbg {
namespace {

std::vector<std::string> user_names(const Graph& graph, std::string_view name) {
  std::vector<std::string> out;
  for (const Use& use : graph.effective_users(graph.find(name)->id)) {
    out.push_back(graph.node(use.node).name + "." + std::to_string(use.slot) + "<-" + std::to_string(use.output_slot));
  }
  return out;
}

std::string producer_text(const Graph& graph, std::string_view name, uint32_t slot) {
  const Edge edge = graph.effective_producer(graph.find(name)->id, slot);
  return edge.node == kNoNode ? "?" : graph.node(edge.node).name + ":" + std::to_string(edge.slot);
}

using Names = std::vector<std::string>;

TEST(Slot, BothDirectionsAndTheShortFormAreRead) {
  EXPECT_EQ(parse_slot("output:3"), (Slot{Io::kOutput, 3}));
  EXPECT_EQ(parse_slot("input:1"), (Slot{Io::kInput, 1}));
  EXPECT_EQ(parse_slot("0"), (Slot{Io::kOutput, 0}));
  EXPECT_EQ(slot_name({Io::kInput, 12}), "input:12");
}

TEST(Slot, AnythingElseIsRefused) {
  for (const char* text : {"", "output:", "output:-1", "output:1x", "in:0", "99999999999", " 0"}) {
    EXPECT_FALSE(parse_slot(text)) << text;
  }
}

TEST(GraphBuilder, ParametersAndConstantsComeBeforeOperators) {
  const GraphPtr graph = graph_from_text("a Relu\nw Parameter\nb Relu\nc Const\n");
  EXPECT_EQ(graph->find("w")->order, 0u);
  EXPECT_EQ(graph->find("c")->order, 1u);
  EXPECT_EQ(graph->find("a")->order, 2u);
  EXPECT_EQ(graph->find("b")->order, 3u);
}

TEST(GraphBuilder, ListedOperatorsRunFirstAndInTheListedOrder) {
  GraphBuilder builder = builder_from_text("a A\nb B\nc C\nw Parameter\n");
  const Names names = {"c", "missing", "a", "w", "c"};
  EXPECT_EQ(builder.set_execution_order(names), (Names{"missing", "w"}));
  const GraphPtr graph = builder.build();
  Names order;
  for (const NodeId id : graph->execution_order()) order.push_back(graph->node(id).name);
  EXPECT_EQ(order, (Names{"c", "a", "b"}));
}

TEST(GraphBuilder, TheSecondLineOfANameMeansTheSecondNodeOfIt) {
  GraphBuilder builder = builder_from_text("x A\ny B\nx C\n");
  EXPECT_TRUE(builder.set_execution_order(Names{"x", "x", "y"}).empty());
  const GraphPtr graph = builder.build();
  EXPECT_EQ(graph->node(graph->execution_order()[0]).op, "A");
  EXPECT_EQ(graph->node(graph->execution_order()[1]).op, "C");
}

TEST(GraphBuilder, ALoadNeverHidesTheParameterItIsNamedAfter) {
  const GraphPtr graph = graph_from_text("conv1.weight Load in=conv1.weight\nconv1.weight Parameter\n");
  EXPECT_EQ(graph->find("conv1.weight")->kind, NodeKind::kParameter);
  EXPECT_EQ(graph->nodes().size(), 2u);
}

TEST(GraphBuilder, TheFirstOfTwoEqualNamesIsFound) {
  const GraphPtr graph = graph_from_text("x A\nx B\n");
  EXPECT_EQ(graph->find("x")->op, "A");
  EXPECT_EQ(graph->node(1).op, "B");
  EXPECT_EQ(graph->find("y"), nullptr);
}

TEST(GraphBuilder, WhatNodesHaveInCommonIsStoredOnce) {
  GraphBuilder builder(0, 0);
  for (const char* name : {"D/a", "D/b"}) {
    Node node;
    node.name = name;
    node.op = std::string("MatMul");
    node.scope = std::string("D");
    node.outputs = {{DType::kFloat32, Shape{2}}};
    node.stack = {{"/data/net.py", 7, "x = self.fc(x)"}};
    node.attributes = {{"transpose", "true"}};
    builder.add(std::move(node));
  }
  builder.set_outputs(1, {{DType::kFloat32, Shape{2}}});
  const GraphPtr graph = builder.build();
  const Node &a = graph->node(0), &b = graph->node(1);
  EXPECT_EQ(&a.op.get(), &b.op.get());
  EXPECT_EQ(&a.scope.get(), &b.scope.get());
  EXPECT_EQ(&a.outputs.get(), &b.outputs.get());
  EXPECT_EQ(&a.stack.get(), &b.stack.get());
  EXPECT_EQ(&a.attributes.get(), &b.attributes.get());
  EXPECT_EQ(b.stack[0].code, "x = self.fc(x)");
}

TEST(GraphBuilder, ANodeKeepsItsListWhenAnotherGetsItsOwn) {
  GraphBuilder builder = builder_from_text("a A\nb A\n");
  builder.set_outputs(0, {{DType::kInt8, std::nullopt}});
  const GraphPtr graph = builder.build();
  EXPECT_EQ(graph->node(0).outputs[0].dtype, DType::kInt8);
  EXPECT_EQ(graph->node(1).outputs[0].dtype, DType::kFloat32);
}

TEST(Graph, UsersNameTheInputAndTheOutputSlot) {
  const GraphPtr graph = graph_from_text("s Split out=2\na A in=s:1\nb B in=a,s:0\n");
  const auto users = graph->users(0);
  ASSERT_EQ(users.size(), 2u);
  EXPECT_EQ(users[0].node, 1u);
  EXPECT_EQ(users[0].output_slot, 1u);
  EXPECT_EQ(users[1].slot, 1u);
  EXPECT_TRUE(graph->users(2).empty());
}

TEST(Graph, LoadAndDependAreLookedThrough) {
  const GraphPtr graph = graph_from_text(
      "w Parameter\nu Const out=0\nl Load in=w,u\nm MatMul in=l\nside Relu\nd Depend in=m,side\nr Relu in=d\n");
  EXPECT_EQ(producer_text(*graph, "m", 0), "w:0");
  EXPECT_EQ(producer_text(*graph, "r", 0), "m:0");
  EXPECT_EQ(user_names(*graph, "w"), Names{"m.0<-0"});
  EXPECT_EQ(user_names(*graph, "m"), Names{"r.0<-0"});
  EXPECT_TRUE(user_names(*graph, "side").empty()) << "the second input of Depend only orders";
}

TEST(Graph, ATupleIsLookedThroughElementByElement) {
  const GraphPtr graph = graph_from_text(
      "a A out=2\nb B\nt MakeTuple in=a:1,b out=2\ng0 TupleGetItem in=t:0\ng1 TupleGetItem in=t:1\nx X in=g0\ny Y "
      "in=t:1\n");
  EXPECT_EQ(producer_text(*graph, "x", 0), "a:1");
  EXPECT_EQ(producer_text(*graph, "y", 0), "b:0");
  EXPECT_EQ(user_names(*graph, "a"), Names{"x.0<-1"});
  EXPECT_EQ(user_names(*graph, "b"), Names{"y.0<-0"});
}

TEST(Graph, ADependOnAWholeTupleKeepsTheSlots) {
  const GraphPtr graph =
      graph_from_text("s Split out=3\nu UpdateState in=s\nd Depend in=s,u out=3\nx X in=d:2\ny Y in=d:0\n");
  EXPECT_EQ(producer_text(*graph, "x", 0), "s:2");
  EXPECT_EQ(user_names(*graph, "s"), (Names{"x.0<-2", "y.0<-0"}));
}

TEST(Graph, OrderingInputsCarryNoValue) {
  const GraphPtr graph = graph_from_text("w Parameter\na A\nu UpdateState in=a\nassign Assign in=w,a,u,nowhere\n");
  const NodeId id = graph->find("assign")->id;
  EXPECT_TRUE(user_names(*graph, "u").size() == 1);
  EXPECT_EQ(user_names(*graph, "a"), Names{"assign.1<-0"}) << "UpdateState takes no value";
  EXPECT_TRUE(carries_value(*graph, graph->effective_producer(id, 0)));
  EXPECT_FALSE(carries_value(*graph, graph->effective_producer(id, 2)));
  EXPECT_TRUE(carries_value(*graph, graph->effective_producer(id, 3))) << "unknown is not absent";
}

TEST(Graph, AnUnknownProducerKeepsItsName) {
  const GraphPtr graph = graph_from_text("a A in=nowhere\n");
  const Edge edge = graph->effective_producer(0, 0);
  EXPECT_EQ(edge.node, kNoNode);
  EXPECT_EQ(edge.name, "nowhere");
  EXPECT_EQ(graph->effective_producer(0, 7).node, kNoNode);
}

TEST(Graph, ACycleOfStructuralNodesEnds) {
  const GraphPtr graph = graph_from_text("a Depend in=b\nb Depend in=a\nx X in=a\n");
  EXPECT_EQ(producer_text(*graph, "x", 0), "?");
  EXPECT_EQ(user_names(*graph, "a"), Names{"x.0<-0"});
}

TEST(Graph, AHundredThousandNodesKeepTheirOrderAndUsers) {
  constexpr NodeId kCount = 100'000;
  GraphBuilder builder(0, 0);
  std::vector<std::string> reversed;
  for (NodeId i = 0; i < kCount; ++i) {
    Node node;
    node.name = "Default/layer" + std::to_string(i / 100) + "/Add-op" + std::to_string(i);
    node.op = "Add";
    node.outputs = std::vector<OutputType>(1);
    if (i >= 2) node.inputs = {{i - 1, 0, ""}, {i - 2, 0, ""}};
    reversed.push_back(node.name);
    builder.add(std::move(node));
  }
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_TRUE(builder.set_execution_order(reversed).empty());
  const GraphPtr graph = builder.build();
  EXPECT_EQ(graph->execution_order().front(), kCount - 1);
  EXPECT_EQ(graph->find("Default/layer500/Add-op50000")->order, kCount - 1 - 50'000);
  for (const NodeId id : {NodeId{5}, NodeId{50'000}, kCount - 3}) {
    ASSERT_EQ(graph->users(id).size(), 2u);
    EXPECT_EQ(graph->users(id)[0].node, id + 1);
    EXPECT_EQ(graph->users(id)[1].node, id + 2);
    EXPECT_EQ(graph->users(id)[1].slot, 1u);
  }
}

}  // namespace
}  // namespace msdbg
