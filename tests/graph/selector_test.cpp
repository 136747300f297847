#include <gtest/gtest.h>

#include "graph/graph_text.h"

namespace msdbg {
namespace {

using Names = std::vector<std::string>;

class SelectorTest : public testing::Test {
 protected:
  SelectorTest() {
    GraphBuilder builder = builder_from_text(
        "fc1.weight Parameter\n"
        "Default/data-3 Const\n"
        "Default/net/fc1-Dense/MatMul-op0 MatMul in=fc1.weight\n"
        "Default/net/relu1-ReLU/ReLU-op0 ReLU in=Default/net/fc1-Dense/MatMul-op0\n"
        "Gradients/Default/net/relu1-ReLU/ReluGrad-op0 ReluGrad\n"
        "Default/optimizer-Momentum/ApplyMomentum-op0 ApplyMomentum in=fc1.weight\n");
    builder.node(2).stack = {{"/opt/lib/basic.py", 595, ""}, {"/data/lenet/train.py", 42, "x = self.fc1(x)"}};
    builder.node(3).stack = {{"train.py", 43, ""}};
    builder.set_outputs(2, {{DType::kFloat16, {}}});
    builder.set_outputs(3, {{DType::kFloat16, {}}, {DType::kInt32, {}}});
    graphs_ = {builder.build(), graph_from_text("Default/and/Tanh-op1 Tanh\nDefault/with(paren)/Add-op1 Add\n", 1, 7)};
  }

  Names select(std::string_view text) {
    const Result<Selector> selector = Selector::parse(text);
    if (!selector) return {"ERROR " + selector.status().message()};
    return names_of(selector->resolve(graphs_));
  }

  std::string parse_error(std::string_view text) {
    const Result<Selector> selector = Selector::parse(text);
    if (selector) return "parsed";
    EXPECT_EQ(selector.status().code(), Code::kInvalidArgument);
    return selector.status().message();
  }

  const Names kMatMul = {"Default/net/fc1-Dense/MatMul-op0"};
  const Names kRelu = {"Default/net/relu1-ReLU/ReLU-op0"};
  const Names kReluGrad = {"Gradients/Default/net/relu1-ReLU/ReluGrad-op0"};
  const Names kApply = {"Default/optimizer-Momentum/ApplyMomentum-op0"};
  std::vector<GraphPtr> graphs_;
};

TEST_F(SelectorTest, ABareWordIsASubstringInAnyCase) {
  EXPECT_EQ(select("FC1"), (Names{"fc1.weight", kMatMul[0]}));
  EXPECT_EQ(select("relugrad"), kReluGrad);
}

// resolve() combines sets of nodes; matches() judges each.
TEST_F(SelectorTest, SetsOfNodesGiveWhatTheWholeSelectorDoes) {
  for (const char* text : {"not @gradient and not @parameter", "relu and @gradient or =fc1.weight", "not (rank:1 or graph:0)",
                           "rank:0,1 and not **/ReLU*",
                           "fc1 and (@weight or op:MatMul or dtype:float16) and not /ReLU/", "@all and not @constant",
                           "op:MatMul", "not op:MatMul", "op:re*", "op:ReLU or fc1", "op:ReLU and fc1",
                           "not (op:MatMul or relu1)",
                           "not (op:MatMul and fc1) and not op:Const", "op:relu and not @gradient", "(op:Tanh or op:Add) and rank:1"}) {
    const Selector selector = Selector::parse(text).value();
    Names expected;
    for (const GraphPtr& graph : graphs_) {
      for (const Node& node : graph->nodes()) {
        if (selector.in(graphs_).matches(*graph, node)) expected.push_back(node.name);
      }
    }
    EXPECT_EQ(select(text), expected) << text;
  }
  EXPECT_EQ(select("op:re*"), (Names{kRelu[0], kReluGrad[0]}));
}

TEST_F(SelectorTest, ANameOrItsUniqueEndingMeansExactlyThatNode) {
  EXPECT_EQ(select("ReLU-op0"), kRelu);
  EXPECT_EQ(select("relu1-ReLU/ReLU-op0"), kRelu);
  EXPECT_EQ(select("fc1.weight"), Names{"fc1.weight"});
  EXPECT_EQ(select("MatMul-op0:output:0"), kMatMul);
  EXPECT_EQ(select("MatMul-op0:0 or ReLU-op0"), (Names{kMatMul[0], kRelu[0]}));
  EXPECT_EQ(select(".../relu1-ReLU/ReLU-op0"), kRelu);
  EXPECT_EQ(select("not op:X and Tanh-op1"), Names{"Default/and/Tanh-op1"});
  const Selector bound = Selector::parse("ReLU-op0")->in(graphs_);
  EXPECT_TRUE(bound.matches(*graphs_[0], *graphs_[0]->find(kRelu[0])));
  EXPECT_EQ(bound.text(), "ReLU-op0");
}

TEST_F(SelectorTest, AnEndingOfSeveralNamesIsASubstring) {
  graphs_.push_back(graph_from_text("D/a/MatMul-op1 MatMul\nD/b/MatMul-op1 MatMul\nD/b/MatMul-op12 MatMul\n", 2));
  EXPECT_EQ(select("MatMul-op1"), (Names{"D/a/MatMul-op1", "D/b/MatMul-op1", "D/b/MatMul-op12"}));
  EXPECT_EQ(select("b/MatMul-op1"), Names{"D/b/MatMul-op1"});
  EXPECT_EQ(select("MatMul-op12"), Names{"D/b/MatMul-op12"});
}

TEST_F(SelectorTest, AGlobMeansTheFullName) {
  EXPECT_EQ(select("Default/**/MatMul*"), kMatMul);
  EXPECT_EQ(select("MatMul*"), Names{});
  EXPECT_EQ(select("**/Relu*"), kReluGrad);
}

TEST_F(SelectorTest, AnEqualsSignMeansExactlyThisNode) {
  EXPECT_EQ(select("=fc1.weight"), Names{"fc1.weight"});
  EXPECT_EQ(select("=fc1"), Names{});
  EXPECT_EQ(select("=Default/data-3 or =fc1.weight"), (Names{"fc1.weight", "Default/data-3"}));
  EXPECT_EQ(select("=Default/with(paren)/Add-op1 and rank:1"), Names{"Default/with(paren)/Add-op1"});
}

TEST_F(SelectorTest, ANameWithBlanksMayStandBehindTheEqualsSignOrInQuotes) {
  Node node;
  node.name = "a.b/c d";
  node.op = "Parameter";
  node.kind = NodeKind::kParameter;
  GraphBuilder builder(0, 0);
  builder.add(std::move(node));
  graphs_ = {builder.build()};
  EXPECT_EQ(select("=a.b/c d"), Names{"a.b/c d"});
  EXPECT_EQ(select("(=a.b/c d or op:Add) and not op:Add"), Names{"a.b/c d"});
  EXPECT_EQ(select("\"c d\""), Names{"a.b/c d"});
  EXPECT_EQ(select("=\"a.b/c d\""), Names{"a.b/c d"});
}

TEST_F(SelectorTest, ARegularExpressionSearchesTheName) {
  EXPECT_EQ(select("/relu[0-9].*ReLU-op/"), kRelu);
  EXPECT_EQ(select("/RELU1/i and not @gradient"), kRelu);
  EXPECT_EQ(select("(/(MatMul|Tanh)-op/ and rank:0)"), kMatMul);
  EXPECT_EQ(select("/^Default/net/.*0$/ and not op:ReLU"), kMatMul);
}

TEST_F(SelectorTest, CollectionsAreCategories) {
  EXPECT_EQ(select("@weight"), Names{"fc1.weight"});
  EXPECT_EQ(select("@gradient"), kReluGrad);
  EXPECT_EQ(select("@activation"), (Names{kRelu[0], "Default/and/Tanh-op1"}));
  EXPECT_EQ(select("@constant"), Names{"Default/data-3"});
  EXPECT_EQ(select("@optimizer"), kApply);
  EXPECT_EQ(select("@all").size(), 8u);
}

TEST_F(SelectorTest, PrefixesAskForTypeScopeLineRankAndGraph) {
  EXPECT_EQ(select("op:matmul"), kMatMul);
  EXPECT_EQ(select("op:ReLU"), kRelu) << "the whole type, not a part";
  EXPECT_EQ(select("op:relu*"), (Names{kRelu[0], kReluGrad[0]}));
  EXPECT_EQ(select("dtype:float16"), (Names{kMatMul[0], kRelu[0]}));
  EXPECT_EQ(select("dtype:Float16 and op:ReLU"), kRelu);
  EXPECT_EQ(select("dtype:int*"), kRelu);
  EXPECT_EQ(select("dtype:float64"), Names{});
  EXPECT_EQ(select("scope:Default/net"), (Names{kMatMul[0], kRelu[0]}));
  EXPECT_EQ(select("scope:Default/ne"), Names{});
  EXPECT_EQ(select("scope:**/relu1-*/"), (Names{kRelu[0], kReluGrad[0]}));
  EXPECT_EQ(select("stack:train.py:42"), kMatMul);
  EXPECT_EQ(select("stack:train.py"), (Names{kMatMul[0], kRelu[0]}));
  EXPECT_EQ(select("stack:lenet/train.py"), kMatMul);
  EXPECT_EQ(select("stack:rain.py"), Names{});
  EXPECT_EQ(select("rank:1").size(), 2u);
  EXPECT_EQ(select("rank:0:1").size(), 8u);
  EXPECT_EQ(select("graph:7").size(), 2u);
  EXPECT_EQ(select("graph:kernel_graph0").size(), 6u);
}

TEST_F(SelectorTest, NotBindsTighterThanAndAndThatTighterThanOr) {
  EXPECT_EQ(select("op:MatMul or op:ReLU and op:Tanh"), kMatMul);
  EXPECT_EQ(select("(op:MatMul or op:ReLU) and op:Tanh"), Names{});
  EXPECT_EQ(select("not @parameter and not not op:MatMul"), kMatMul);
  EXPECT_EQ(select("not(op:MatMul or op:ReLU)and @activation"), Names{"Default/and/Tanh-op1"});
}

TEST_F(SelectorTest, QuotedKeywordsAreNames) { EXPECT_EQ(select("\"and\" and rank:1"), Names{"Default/and/Tanh-op1"}); }

TEST_F(SelectorTest, ResultsComeInExecutionOrder) {
  GraphBuilder builder = builder_from_text("a A\nb B\nw Parameter\n");
  builder.set_execution_order(Names{"b", "a"});
  graphs_ = {builder.build()};
  EXPECT_EQ(select("@all"), (Names{"w", "b", "a"}));
}

TEST_F(SelectorTest, AnyOfIsAnOrThatParsesAgain) {
  const std::vector<Selector> parts = {*Selector::parse("op:MatMul"), *Selector::parse("op:ReLU or op:Tanh")};
  const Selector joined = Selector::any_of(parts);
  EXPECT_EQ(joined.resolve(graphs_).size(), 3u);
  EXPECT_EQ(select(joined.text()), names_of(joined.resolve(graphs_)));
  EXPECT_TRUE(Selector::any_of({}).resolve(graphs_).empty());
}

TEST_F(SelectorTest, NodesKeepTheirRankAndGraph) {
  const char* text = "Default/a-op0 Add\nDefault/b-op0 Mul\n";
  const std::vector<GraphPtr> graphs = {graph_from_text(text, 0, 0), graph_from_text(text, 1, 0), graph_from_text(text, 1, 2)};
  const auto one = [&](size_t graph, NodeId node) { return NodeRef{graphs[graph].get(), node}; };
  const NodeRef both[] = {one(1, 0), one(2, 1)};
  const Selector selector = Selector::of_nodes(both, graphs);
  EXPECT_EQ(selector.resolve(graphs), std::vector<NodeRef>(std::begin(both), std::end(both)));
  EXPECT_EQ(selector.text(), "(=Default/a-op0 and rank:1 and graph:0) or (=Default/b-op0 and rank:1 and graph:2)");
  EXPECT_EQ(Selector::parse(selector.text())->resolve(graphs), selector.resolve(graphs));

  const NodeRef everywhere[] = {one(0, 0), one(1, 0), one(2, 0)};
  EXPECT_EQ(Selector::of_nodes(everywhere, graphs).text(), "=Default/a-op0");
  const Selector parts[] = {Selector::of_nodes(std::span(both, 1), graphs), Selector::parse("op:Mul and rank:0").value()};
  EXPECT_EQ(Selector::any_of(parts).resolve(graphs), (std::vector<NodeRef>{one(0, 1), one(1, 0)}));
}

TEST_F(SelectorTest, NodesOfOneNameAreDistinguishedUntilTheGraphChanges) {
  GraphBuilder builder(0, 0);
  for (const char* op : {"Add", "Mul", "Sub"}) {
    Node node;
    node.name = *op == 'S' ? "Default/other" : "Default/same";
    node.op = op;
    node.kind = NodeKind::kOperator;
    builder.add(std::move(node));
  }
  const std::vector<GraphPtr> graphs = {builder.build()};
  const NodeRef second{graphs[0].get(), 1};
  const Selector selector = Selector::of_nodes(std::span(&second, 1), graphs);
  EXPECT_EQ(selector.resolve(graphs), std::vector<NodeRef>{second});
  const std::vector<GraphPtr> anew = {graph_from_text("Default/first Relu\nDefault/between Add\nDefault/same Mul\n", 0, 0)};
  EXPECT_EQ(names_of(selector.resolve(anew)), Names{"Default/same"});
}

TEST_F(SelectorTest, NamesOfNodesAreQuotedWhereTheyNeedIt) {
  GraphBuilder builder(0, 1);
  for (const char* name : {"a or b", "say \"no\" \\ (", "plain"}) {
    Node node;
    node.name = name;
    node.kind = NodeKind::kParameter;
    builder.add(std::move(node));
  }
  const std::vector<GraphPtr> odd = {builder.build()};
  for (NodeId id = 0; id < 3; ++id) {
    const NodeRef ref{odd[0].get(), id};
    const Selector selector = Selector::of_nodes(std::span(&ref, 1), odd);
    ASSERT_TRUE(Selector::parse(selector.text()).ok()) << selector.text();
    EXPECT_EQ(Selector::parse(selector.text())->resolve(odd), std::vector<NodeRef>{ref}) << selector.text();
  }
}

TEST_F(SelectorTest, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(parse_error("fc1 and @weigth"),
            "selector 'fc1 and @weigth': unknown collection '@weigth'; did you mean @weight? (at character 9)");
  EXPECT_NE(parse_error("scop:x").find("did you mean scope:?"), std::string::npos);
  EXPECT_NE(parse_error("").find("empty"), std::string::npos);
  EXPECT_NE(parse_error("(a").find("never closed (at character 1)"), std::string::npos);
  EXPECT_NE(parse_error("a)").find("')' without '('"), std::string::npos);
  EXPECT_NE(parse_error("a b").find("expected 'and' or 'or'"), std::string::npos);
  EXPECT_NE(parse_error("a and").find("a term is missing"), std::string::npos);
  EXPECT_NE(parse_error("or a").find("before 'or'"), std::string::npos);
  EXPECT_NE(parse_error("()").find("a term is missing before ')'"), std::string::npos);
  EXPECT_NE(parse_error("\"a").find("quote is never closed"), std::string::npos);
  EXPECT_NE(parse_error("/a").find("no closing '/'"), std::string::npos);
  EXPECT_NE(parse_error("/a[/").find("no closing '/'"), std::string::npos);
  EXPECT_NE(parse_error("/*/").find("not a valid regular expression"), std::string::npos);
  for (const char* text : {"/x{92044444444444}/", "/x{1,99999}/", "/x{123456,2}/", "/(a)\\12345678901/"})
    EXPECT_NE(parse_error(text).find("more than 4 digits"), std::string::npos) << text;
  for (const char* text : {"/step123456789/", "/x{2,12}/", "/a,123456/", "/\\{,123456/"}) EXPECT_TRUE(Selector::parse(text).ok()) << text;
  EXPECT_NE(parse_error("rank:x").find("(at character 6)"), std::string::npos);
  EXPECT_NE(parse_error("stack:train.py:0").find("lines count from 1"), std::string::npos);
  EXPECT_NE(parse_error("op:").find("needs a value"), std::string::npos);
  EXPECT_NE(parse_error("dtype:float17").find("no element type 'float17'"), std::string::npos);
}

TEST_F(SelectorTest, TextOfASelectorIsTheSameSelector) {
  for (const char* text : {" op:ReLU \n", "\vt", "\ft:x,ReLU", "t\v"}) {
    const Result<Selector> selector = Selector::parse(text);
    ASSERT_TRUE(selector.ok()) << text;
    EXPECT_EQ(Selector::parse(selector->text())->text(), selector->text());
    EXPECT_EQ(selector->text().find_first_of("\v\f") == std::string::npos,
              std::string_view(text).find_first_of("\v\f") == std::string_view::npos);
  }
}

TEST_F(SelectorTest, TheNameOfAnInputIsNoSelector) {
  EXPECT_NE(parse_error("Default/Log-op0:input:0").find("names nodes, not inputs: write 'Default/Log-op0'"), std::string::npos);
  EXPECT_NE(parse_error("fc:input:0").find("names nodes, not inputs: write 'fc'"), std::string::npos);
}

TEST_F(SelectorTest, DeepNestingAndRunawayExpressionsEnd) {
  EXPECT_NE(parse_error(std::string(100'000, '(')).find("longer than"), std::string::npos);
  EXPECT_NE(parse_error(std::string(5'000, '(')).find("nested too deeply"), std::string::npos);
  std::string negations;
  for (int i = 0; i < 1000; ++i) negations += "not ";
  EXPECT_NE(parse_error(negations + "a").find("nested too deeply"), std::string::npos);
  graphs_ = {graph_from_text(std::string(300, 'a') + " A\n" + std::string(60'000, 'a') + "b B\n")};
  EXPECT_EQ(select("/(a*)*b$/"), Names{}) << "names beyond the limit of the engine are passed over";
}

}  // namespace
}  // namespace msdbg
