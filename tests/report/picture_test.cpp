#include "msdbg/picture.h"

#include <gtest/gtest.h>

#include <regex>

namespace msdbg {
namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

PictureGraph three_boxes() {
  PictureGraph graph;
  graph.title = "how it spread";
  graph.nodes = {{"Log-op0", "Log-op0", "Log  104 -Inf", PictureState::kOrigin, false, {"TO", "TL"}, "S/Log-op0", "#t1"},
                 {"MatMul-op0", "MatMul-op0", "", PictureState::kBad, false, {}, "", ""},
                 {"w", "fc2.weight", "", PictureState::kClean, true, {}, "", ""}};
  graph.edges = {{0, 1, "output:0", "input:0", true}, {2, 1, "", "input:1", false}};
  return graph;
}

/// Left, top, right and bottom of each box.
std::vector<std::array<double, 4>> boxes_of(const std::string& svg) {
  static const std::regex kBox(
      "<g class=\"node[^>]*>(?:<title>[^<]*</title>)?(?:<a [^>]*>)?<rect x=\"([-0-9.]+)\" y=\"([-0-9.]+)\" "
      "width=\"([0-9.]+)\" height=\"([0-9.]+)\"");
  std::vector<std::array<double, 4>> boxes;
  for (std::sregex_iterator at(svg.begin(), svg.end(), kBox), end; at != end; ++at) {
    const double x = std::stod((*at)[1]), y = std::stod((*at)[2]);
    boxes.push_back({x, y, x + std::stod((*at)[3]), y + std::stod((*at)[4])});
  }
  return boxes;
}

TEST(Picture, EveryBoxAndLineIsDrawnWithItsState) {
  const Result<std::string> svg = graph_svg(three_boxes());
  ASSERT_TRUE(svg.ok()) << svg.status().message();
  EXPECT_EQ(count_of(*svg, "<g class=\"node "), 3u);
  EXPECT_EQ(count_of(*svg, "<g class=\"edge"), 2u);
  EXPECT_EQ(count_of(*svg, "<g class=\"edge bad\">"), 1u);
  EXPECT_EQ(count_of(*svg, "class=\"node origin\""), 1u);
  EXPECT_EQ(count_of(*svg, "class=\"node clean parameter\""), 1u);
  EXPECT_EQ(count_of(*svg, "<g class=\"hit\">"), 2u);
  EXPECT_NE(svg->find("output:0 \u2192 input:0"), std::string::npos);
  EXPECT_NE(svg->find("href=\"#t1\""), std::string::npos);
}

TEST(Picture, BoxesDoNotOverlapAndConsumersLieBelowProducers) {
  PictureGraph graph;
  for (int i = 0; i < 40; ++i)
    graph.nodes.push_back({std::to_string(i), "a node with a name of some length " + std::to_string(i), "op", {}, false, {}, "", ""});
  for (size_t i = 1; i < 40; ++i) graph.edges.push_back({i / 2, i, "", "", false});
  const Result<std::string> svg = graph_svg(graph);
  ASSERT_TRUE(svg.ok()) << svg.status().message();
  const auto boxes = boxes_of(*svg);
  ASSERT_EQ(boxes.size(), 40u);
  for (size_t a = 0; a < boxes.size(); ++a) {
    for (size_t b = a + 1; b < boxes.size(); ++b) {
      const bool apart =
          boxes[a][2] <= boxes[b][0] || boxes[b][2] <= boxes[a][0] || boxes[a][3] <= boxes[b][1] || boxes[b][3] <= boxes[a][1];
      EXPECT_TRUE(apart) << a << " and " << b;
    }
  }
  for (const PictureEdge& edge : graph.edges) EXPECT_LT(boxes[edge.from][3], boxes[edge.to][1]);
}

TEST(Picture, TextFromDataIsEscapedInSvgAndDot) {
  PictureGraph graph;
  graph.title = "<script>alert(1)</script>";
  graph.nodes = {{"\"><script>", "<script>\x1b[31m", "a & b", PictureState::kBad, false, {"<i>"}, "'\"<", "\" onclick=\"x"}};
  const Result<std::string> svg = graph_svg_file(graph);
  ASSERT_TRUE(svg.ok());
  EXPECT_EQ(svg->find("<script"), std::string::npos);
  EXPECT_EQ(svg->find("<i>"), std::string::npos);
  EXPECT_EQ(svg->find('\x1b'), std::string::npos);
  EXPECT_EQ(svg->find("\" onclick"), std::string::npos);
  EXPECT_NE(svg->find("a &amp; b"), std::string::npos);
  const std::string dot = graph_dot(graph);
  EXPECT_NE(dot.find("tooltip=\"'\\\"<\""), std::string::npos) << dot;
}

TEST(Picture, CyclesSelfLoopsAndParallelEdgesAreDrawn) {
  PictureGraph graph;
  for (const char* name : {"a", "b"}) graph.nodes.push_back({name, name, "", {}, false, {}, "", ""});
  graph.edges = {{0, 1, "", "", false}, {1, 0, "", "", false}, {0, 1, "output:1", "", false}, {1, 1, "", "", false}};
  const Result<std::string> svg = graph_svg(graph);
  ASSERT_TRUE(svg.ok());
  EXPECT_EQ(count_of(*svg, "<path d=\"M"), 4u);
}

TEST(Picture, TooManyBoxesAndStrayEdgesAreRefused) {
  PictureGraph graph;
  graph.nodes.resize(kMostPictureNodes + 1);
  EXPECT_EQ(graph_svg(graph).status().code(), Code::kInvalidArgument);
  graph.nodes.resize(1);
  graph.edges = {{0, 1, "", "", false}};
  EXPECT_EQ(graph_svg(graph).status().code(), Code::kInvalidArgument);
}

TEST(Picture, NoBoxesGiveAnEmptyPicture) {
  const Result<std::string> svg = graph_svg({});
  ASSERT_TRUE(svg.ok());
  EXPECT_EQ(boxes_of(*svg).size(), 0u);
}

}  // namespace
}  // namespace msdbg
