#include <gtest/gtest.h>

#include "graph/graph_text.h"

namespace msdbg {
namespace {

class FindNode : public testing::Test {
 protected:
  FindNode() {
    const std::string text =
        "conv1.weight Parameter\n"
        "conv1.weight Load in=conv1.weight\n"
        "Default/net/conv1-Conv2d/Conv2D-op0 Conv2D in=conv1.weight\n"
        "Default/net/relu1-ReLU/ReLU-op0 ReLU\n"
        "Default/net/relu2-ReLU/ReLU-op0 ReLU\n"
        "Default/net/Log-op0 Log\n"
        "Default/net/Depend-op0 Depend\n";
    graphs_ = {graph_from_text(text, 0, 0), graph_from_text(text, 1, 0),
               graph_from_text("Default/Log-op0 Log\n", 0, 3)};
  }

  std::string message(std::string_view name) {
    const Result<NodeRef> found = find_node(graphs_, name);
    return found ? "found" : found.status().message();
  }

  std::string explain(std::string_view selector) {
    const auto found = resolve_or_explain(*Selector::parse(selector), graphs_);
    if (found) return "found";
    EXPECT_EQ(found.status().code(), Code::kNotFound);
    return found.status().message();
  }

  std::vector<GraphPtr> graphs_;
};

TEST_F(FindNode, TheFullNameWinsAndTheFirstGraphHasIt) {
  const Result<NodeRef> found = find_node(graphs_, "Default/net/Log-op0");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->graph, graphs_[0].get());
}

TEST_F(FindNode, ANameLikeNoOtherGetsExamples) {
  EXPECT_EQ(
      message("zzz"),
      "no node 'zzz', and none with a name like it; the graphs together have 11 nodes, e.g. conv1.weight, Conv2D-op0, relu1-ReLU/ReLU-op0");
  EXPECT_NE(message("Lok-op0").find("nearest: "), std::string::npos) << message("Lok-op0");
}

TEST_F(FindNode, RankAndGraphPickAnother) {
  EXPECT_EQ(find_node(graphs_, "Default/net/Log-op0", 1)->graph, graphs_[1].get());
  EXPECT_EQ(find_node(graphs_, "Log-op0", 0, 3)->graph, graphs_[2].get());
}

TEST_F(FindNode, AUniqueEndIsEnough) {
  const Result<NodeRef> found = find_node(graphs_, "conv1-Conv2d/Conv2D-op0");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->graph->node(found->node).op, "Conv2D");
  EXPECT_TRUE(find_node(graphs_, "Conv2D-op0"));
  EXPECT_FALSE(find_node(graphs_, "nv2D-op0")) << "only whole components";
}

TEST_F(FindNode, AMarkBeforeAndASlotBehindTheNameArePassedOver) {
  const std::string full = find_node(graphs_, "Depend-op0")->graph->node(find_node(graphs_, "Depend-op0")->node).name;
  for (const char* text : {"Depend-op0:output:0", "Depend-op0:0", "Depend-op0:input:1", ".../Depend-op0", "\u2026/Depend-op0:output:0"}) {
    const Result<NodeRef> found = find_node(graphs_, text);
    ASSERT_TRUE(found) << text << ": " << found.status().message();
    EXPECT_EQ(found->graph->node(found->node).name, full);
  }
  EXPECT_FALSE(find_node(graphs_, "Depend-op0:nothing"));
}

TEST_F(FindNode, AParameterIsMeantBeforeTheLoadOfTheSameName) {
  const Result<NodeRef> found = find_node(graphs_, "conv1.weight");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->graph->node(found->node).kind, NodeKind::kParameter);
}

TEST_F(FindNode, AStructuralNodeIsFoundWhenNothingElseIsMeant) { EXPECT_TRUE(find_node(graphs_, "Depend-op0")); }

TEST_F(FindNode, AnAmbiguousEndListsTheCandidates) {
  const Result<NodeRef> found = find_node(graphs_, "ReLU-op0");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(found.status().message(), "'ReLU-op0' could be any of 2 nodes: relu1-ReLU/ReLU-op0, relu2-ReLU/ReLU-op0");
}

TEST_F(FindNode, AnUnknownNameGetsTheNearest) {
  EXPECT_EQ(message("relu9"), "no node 'relu9'; nearest: relu1-ReLU/ReLU-op0, relu2-ReLU/ReLU-op0");
  EXPECT_EQ(message("conv9-Conv2d/Conv2D-op0"), "no node 'conv9-Conv2d/Conv2D-op0'; nearest: Conv2D-op0");
}

TEST_F(FindNode, NoGraphOfTheRankIsSaid) {
  const Result<NodeRef> found = find_node(graphs_, "Log-op0", 5);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.status().code(), Code::kNotFound);
  EXPECT_EQ(found.status().message(),
            "no graph of rank 5 to look for node 'Log-op0'; have rank 0 graph 0, rank 1 graph 0, rank 0 graph 3");
}

TEST_F(FindNode, ASelectorWithoutNodesIsExplained) {
  EXPECT_EQ(explain("relu9"), "selector 'relu9' matches no node; nearest: relu1-ReLU/ReLU-op0, relu2-ReLU/ReLU-op0");
  EXPECT_EQ(explain("@activation and op:Lgo"), "selector '@activation and op:Lgo' matches no node; nearest: op:Log");
  EXPECT_EQ(explain("Conv2D*"), "selector 'Conv2D*' matches no node; a glob means the full name, try '**/Conv2D*'");
  EXPECT_EQ(explain("scope:Default/net/relu3-ReLU"),
            "selector 'scope:Default/net/relu3-ReLU' matches no node; nearest: scope:Default/net/relu1-ReLU, "
            "scope:Default/net/relu2-ReLU");
  EXPECT_EQ(
      explain("op:Log and op:ReLU"),
      "selector 'op:Log and op:ReLU' matches no node; each of its terms matches some, but no node fits them together");
  EXPECT_EQ(explain("rank:4"),
            "selector 'rank:4' matches no node; have rank 0 graph 0, rank 1 graph 0, rank 0 graph 3");
  EXPECT_EQ(explain("stack:train.py"), "selector 'stack:train.py' matches no node; the graphs hold no source lines");
  EXPECT_EQ(explain("@loss"), "selector '@loss' matches no node; @all lists every node");
}

TEST_F(FindNode, AKnownFileWithAnotherLineIsExplained) {
  GraphBuilder builder = builder_from_text("x A\n");
  builder.node(0).stack = {{"/data/train.py", 42, ""}};
  graphs_ = {builder.build()};
  EXPECT_EQ(explain("stack:train.py:43"),
            "selector 'stack:train.py:43' matches no node; no node comes from line 43; try stack:train.py");
  EXPECT_EQ(explain("stack:tarin.py"), "selector 'stack:tarin.py' matches no node; nearest: stack:train.py");
}

TEST_F(FindNode, ControlCharactersOfANameNeverReachTheMessage) {
  graphs_ = {graph_from_text("Default/\x1b[31mred-op0 A\nDefault/blue-op0 B\n")};
  EXPECT_EQ(message("red-op0").find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace msdbg
