#include <gtest/gtest.h>

#include <random>
#include <set>

#include "msdbg/short_names.h"
#include "msdbg/terminal.h"

namespace msdbg {
namespace {

GraphPtr graph_of(const std::vector<std::string>& names, int rank = 0) {
  GraphBuilder builder(rank, 0);
  for (const std::string& name : names) {
    Node node;
    node.name = name;
    builder.add(std::move(node));
  }
  return builder.build();
}

/// The definition: the smallest number of trailing components that no other name shares.
std::string by_search(const std::vector<std::string>& names, const std::string& full) {
  for (size_t slash = full.rfind('/'); slash != std::string::npos && slash > 0; slash = full.rfind('/', slash - 1)) {
    const std::string ending = full.substr(slash + 1);
    bool unique = !ending.empty();
    for (const std::string& name : names) {
      if (name != full && (name == ending || name.ends_with("/" + ending))) unique = false;
    }
    if (unique) return ending;
  }
  return full;
}

TEST(ShortNames, AreTheFewestComponentsThatNameNoOtherNode) {
  const std::vector<GraphPtr> graphs = {graph_of({"D/fc1/MatMul-op1", "D/fc1/MatMul-op10", "D/fc2/MatMul-op1", "D/Log-op1", "x", "y/x"}),
                                        graph_of({"D/fc1/MatMul-op1"}, 1)};
  ShortNames names(graphs);
  EXPECT_EQ(names.of("D/fc1/MatMul-op1"), "fc1/MatMul-op1");  // the same node on another rank does not count as another name
  EXPECT_EQ(names.of("D/fc1/MatMul-op10"), "MatMul-op10");
  EXPECT_EQ(names.of("D/Log-op1"), "Log-op1");
  EXPECT_EQ(names.of("x"), "x");
  EXPECT_EQ(names.of("y/x"), "y/x");
}

TEST(ShortNames, AgreeWithTheSearchThroughAllNames) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> all;
    for (int i = 0; i < 30; ++i) {
      std::string name;
      for (size_t length = 1 + random() % 9; length > 0; --length) name += "ab-./"[random() % 5];
      all.push_back(name);
    }
    const std::vector<GraphPtr> graphs = {graph_of(all)};
    ShortNames names(graphs);
    for (const std::string& name : all) EXPECT_EQ(names.of(name), by_search(all, name)) << name;
  }
}

TEST(ShortNames, LongOnesKeepTheirBeginningAndTheirEnd) {
  const std::string last = "/SparseSoftmaxCrossEntropyWithLogits-op0";
  const std::vector<std::string> all = {"D/_loss_fn-SoftmaxCrossEntropyWithLogits" + last,
                                        "D/_loss_fn-SoftmaxCrossEntropyWithLogits/Grad_SparseSoftmaxCrossEntropyWithLogits" + last,
                                        "D/fc1/MatMul-op0"};
  const std::vector<GraphPtr> graphs = {graph_of(all)};
  ShortNames names(graphs);
  EXPECT_EQ(names.elided(all[0]), "_loss_\u2026Logits/Sparse\u2026ts-op0");
  EXPECT_EQ(names.elided(all[2]), "MatMul-op0");
  for (const std::string& name : all) {
    const Result<NodeRef> found = find_node(graphs, names.elided(name));
    ASSERT_TRUE(found) << found.status().message();
    EXPECT_EQ(found->graph->node(found->node).name, name);
  }
  EXPECT_FALSE(is_elided_form("oss_fn\u2026Logits/Sparse\u2026op0", all[0])) << "only whole components begin a form";
  EXPECT_FALSE(is_elided_form("Default/D/_loss\u2026/Sparse\u2026op0", all[0])) << "more components than the name has";
  EXPECT_FALSE(is_elided_form("Sparse\u2026SparseSoftmaxCrossEntropyWithLogits-op0", all[0])) << "the ends overlap";
  EXPECT_FALSE(is_elided_form("MatMul-op0", all[2]));
}

TEST(ShortNames, ElidedOnesNameNoOtherNode) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> all;
    for (int i = 0; i < 60; ++i) {
      std::string name;
      for (size_t components = 1 + random() % 4; components > 0; --components) {
        name += name.empty() ? "" : "/";
        // Many begin and end alike, around the widths at which components are cut.
        name += "begin" + std::string(random() % 30, 'x') + std::to_string(random() % 3) + "end";
      }
      all.push_back(name);
    }
    const std::vector<GraphPtr> graphs = {graph_of(all)};
    ShortNames few(graphs), many(graphs);
    for (const std::string& name : all) (void)many.of(name);  // from here on it asks its tables
    for (size_t i = 0; i < all.size(); ++i) {
      for (ShortNames* names : {&few, &many}) {
        if (names == &few && i > 2) continue;
        const std::string form = names->elided(all[i]);
        EXPECT_LE(display_width(form), std::max<size_t>(display_width(names->of(all[i])), 32));
        if (form == names->of(all[i])) continue;
        for (const std::string& other : all) EXPECT_EQ(is_elided_form(form, other), other == all[i]) << form << " " << other;
      }
    }
  }
}

TEST(ShortNames, TenThousandNodesThatDifferInTheMiddleAreElided) {
  std::vector<std::string> all;
  for (int i = 0; i < 10000; ++i)
    all.push_back("Default/network-WithLossCell_" + std::to_string(i) + "/_backbone-LeNet5/fc1-Dense/Grad_MatMul/MatMul-op0");
  const std::vector<GraphPtr> graphs = {graph_of(all)};
  ShortNames names(graphs);
  std::set<std::string> forms;
  for (const std::string& name : all) {
    const std::string form = names.elided(name);
    EXPECT_LT(display_width(form), 60u) << form;
    EXPECT_TRUE(forms.insert(form).second) << form;
  }
}

TEST(ShortNames, KnowTheGraphsThatTheyAreMadeOf) {
  std::vector<GraphPtr> graphs = {graph_of({"a"})};
  ShortNames names(graphs);
  EXPECT_TRUE(names.is_of(graphs));
  graphs.push_back(graph_of({"b"}));
  EXPECT_FALSE(names.is_of(graphs));
}

// Searching all names for each would take minutes here.
TEST(ShortNames, AHundredThousandNodesWithTheSameLastComponentAreNamed) {
  std::vector<std::string> all;
  for (int i = 0; i < 100000; ++i) all.push_back("Default/cell_" + std::to_string(i) + "/block/weight");
  const std::vector<GraphPtr> graphs = {graph_of(all)};
  ShortNames names(graphs);
  for (const std::string& name : all) ASSERT_EQ(names.of(name), name.substr(8));
}

}  // namespace
}  // namespace msdbg
