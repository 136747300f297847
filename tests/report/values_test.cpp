#include <gtest/gtest.h>

#include <cmath>

#include "msdbg/report.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;
using testing::make_tensor;

Stats stats_of(const TensorPtr& tensor) { return compute_stats(tensor->view()); }

TEST(StatsLine, FiniteTensor) {
  EXPECT_EQ(stats_line(stats_of(f32({1, 2, 3, 6}))), "4 elements: min 1  max 6  mean 3  std 2.16");
}

TEST(StatsLine, CountsWhatIsNotFinite) {
  EXPECT_EQ(stats_line(stats_of(f32({1, -INFINITY, 3, NAN}))),
            "4 elements, 2 finite: min 1  max 3  mean 2  std 1.414   1 NaN, 1 -Inf");
}

TEST(StatsLine, TensorWithoutFiniteElementHasNoMinimum) {
  EXPECT_EQ(stats_line(stats_of(f32({NAN}))), "1 element, 0 finite   1 NaN");
}

TEST(StatsLine, UnknownFieldsAreLeftOut) {
  Stats stats;
  stats.known = kStatMax | kStatNan;
  stats.max = 5;
  stats.nan_count = 2;
  EXPECT_EQ(stats_line(stats), "number of elements unknown: max 5   2 NaN");
}

TEST(NonfiniteText, NamesTheMostFrequentFirst) {
  EXPECT_EQ(nonfinite_text(stats_of(f32({NAN, -INFINITY, -INFINITY, 0}))), "2 of 4 -Inf, 1 NaN");
  EXPECT_EQ(nonfinite_text(stats_of(f32({1, 0}))), "");
}

TEST(NonfiniteText, PresenceWithoutACountIsSome) {
  Stats stats;
  stats.known = kStatCount | kStatMax;
  stats.count = 192;
  stats.max = 2;
  stats.neg_inf_count = 1;  // as in a statistic.csv without counts
  EXPECT_EQ(nonfinite_text(stats), "some of 192 -Inf");
  EXPECT_EQ(stats_line(stats), "192 elements: max 2   some -Inf");
}

TEST(ElementsTable, RowsCarryTheirCoordinates) {
  const std::vector<double> values = {1, 2, 3, 4, 5.5, NAN};
  EXPECT_EQ(elements_table(f32({2, 3}, values)->view()), "  [0]   1   2   3\n  [1]   4 5.5 NaN\n");
}

TEST(ElementsTable, LongAxesShowHeadAndTail) {
  std::vector<double> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 10);
  const std::string text = elements_table(f32({100, 10}, values)->view(), 5);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_NE(text.find("[99]"), std::string::npos);
  EXPECT_NE(text.find("... 96 rows more"), std::string::npos);
}

TEST(ElementsTable, WideRowsStayWithinTheWidth) {
  std::vector<double> values(500, 1.25);
  const std::string text = elements_table(f32({1, 500}, values)->view(), 20, 80);
  EXPECT_LE(text.size(), 81u);
  EXPECT_NE(text.find(" ..."), std::string::npos);
}

TEST(ElementsTable, ScalarsEmptyTensorsAndOddTypes) {
  const std::vector<double> one = {7};
  EXPECT_EQ(elements_table(make_tensor(DType::kInt64, {}, one)->view()), "   7\n");
  EXPECT_EQ(elements_table(make_tensor(DType::kBool, {}, one)->view()), "   True\n");
  EXPECT_EQ(elements_table(make_tensor(DType::kFloat32, {3, 0}, {})->view()), "  no elements\n");
  TensorView text;
  text.dtype = DType::kString;
  EXPECT_EQ(elements_table(text), "  elements of type string cannot be shown\n");
}

TEST(ShortName, IsTheShortestUniqueSuffix) {
  FakeSession s(fake_graph(
      {{"D/fc1/MatMul-op0", "MatMul"}, {"D/fc2/MatMul-op0", "MatMul"}, {"D/Log-op0", "Log"}, {"x", "Parameter"}}));
  EXPECT_EQ(short_name(s, s.id("D/fc1/MatMul-op0", 0)), "fc1/MatMul-op0");
  EXPECT_EQ(short_name(s, s.id("D/Log-op0", 0)), "Log-op0");
  EXPECT_EQ(short_name(s, s.id("x", 0)), "x");
}

TEST(ShortName, EveryNameFindsItsNodeAgain) {
  FakeSession s(fake_graph({{"A/B/C", "X"}, {"B/C", "X"}, {"C", "X"}, {"Z/A/B/C", "X"}, {"Z/Y", "X"}}));
  for (const Node& node : s.graphs()[0]->nodes()) {
    const std::string name = short_name(s, s.id(node.name, 0));
    const Result<NodeRef> found = find_node(s.graphs(), name);
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_EQ(found->node, node.id) << name;
  }
}

TEST(ParseFormat, KnowsThreeWords) {
  EXPECT_EQ(*parse_format("JSONL"), Format::kJsonl);
  const Result<Format> wrong = parse_format("xml");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("'xml'"), std::string::npos);
}

}  // namespace
}  // namespace msdbg
