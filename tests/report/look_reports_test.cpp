#include <gtest/gtest.h>

#include <cmath>

#include "msdbg/answers.h"
#include "msdbg/report.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

StatsRow row_of(FakeSession& s, const TensorId& id) {
  StatsRow row{s.describe(id).value(), std::nullopt};
  if (row.info.problem.ok()) row.stats = s.stats(id).value();
  return row;
}

TEST(StatsReport, OneLinePerTensor) {
  FakeSession s(fake_graph({{"D/a", "X"}, {"D/b", "X"}}));
  s.put("D/a", 0, f32({1, 3}));
  s.put("D/b", 0, f32({NAN}));
  const std::vector<StatsRow> rows = {row_of(s, s.id("D/a", 0)), row_of(s, s.id("D/b", 0))};
  EXPECT_EQ(stats_report(s, rows, {}),
            "step  tensor  type        min  max  mean    std  not finite\n"
            "   0  D/a     float32[2]    1    3     2  1.414\n"
            "   0  D/b     float32[1]    -    -     -      -  1 of 1 NaN\n");
}

std::string written_by_rows(Format format, const Answer& head, const Answer& rows, const Answer& rest) {
  constexpr CsvColumn kColumns[] = {{"a", "a"}, {"b", "b.c"}};
  RowWriter writer(format, head, "rows", kColumns);
  std::string out;
  for (const Answer& row : rows) out += writer.add(row);
  return out + writer.finish(rest);
}

TEST(RowWriter, WritesWhatTheWholeAnswerWouldBe) {
  const Answer head = {{"dump", "a]b"}, {"list", Answer::array({1})}}, rest = {{"ranks", Answer::array({1, 2})}};
  for (const size_t count : {0, 1, 3}) {
    Answer rows = Answer::array();
    for (size_t i = 0; i < count; ++i) rows.push_back({{"a", i}, {"b", {{"c", "x]\n  ]"}, {"d", Answer::array({NAN, 2})}}}});
    Answer whole = head;
    whole["rows"] = rows;
    const std::string open_ended = json_text(whole);
    EXPECT_EQ(written_by_rows(Format::kJson, head, rows, Answer::object()), open_ended);
    whole["ranks"] = rest["ranks"];
    EXPECT_EQ(written_by_rows(Format::kJson, head, rows, rest), json_text(whole));
    EXPECT_EQ(written_by_rows(Format::kJsonl, head, rows, rest), json_lines(whole, "rows"));
    constexpr CsvColumn kColumns[] = {{"a", "a"}, {"b", "b.c"}};
    EXPECT_EQ(written_by_rows(Format::kCsv, head, rows, rest), csv_text(kColumns, rows));
    EXPECT_EQ(written_by_rows(Format::kMarkdown, head, rows, rest), markdown_table(kColumns, rows));
  }
}

TEST(StatsReport, UnreadableTensorSaysWhy) {
  FakeSession s(fake_graph({{"a", "X"}}));
  s.set_problem(s.id("a", 0), Status(Code::kUnsupported, "complex64"));
  const std::string text = stats_report(s, {row_of(s, s.id("a", 0))}, {});
  EXPECT_NE(text.find("not computed: complex64"), std::string::npos) << text;
}

TEST(StatsReport, ExecutionsAppearWhenThereAreSeveral) {
  FakeSession s(fake_graph({{"a", "X"}}));
  s.put("a", 0, f32({1}), {}, 0);
  s.put("a", 0, f32({2}), {}, 1);
  const std::string text = stats_report(s, {row_of(s, s.id("a", 0)), row_of(s, s.id("a", 0, {}, 1))}, {});
  EXPECT_NE(text.find("execution"), std::string::npos);
}

TEST(LookReports, CsvAndMarkdownHaveTheRowsOfTheJson) {
  FakeSession s(fake_graph({{"D/a|b", "X", {}, 1, {{"/data/train.py", 71, ""}}}}));
  s.put("D/a|b", 0, f32({1, 0.1234567F}));
  const std::vector<StatsRow> rows = {row_of(s, s.id("D/a|b", 0))};
  const std::vector<NodeRef> nodes = {{s.graphs()[0].get(), 0}};
  ReportStyle style;
  style.format = Format::kCsv;
  const std::string csv = stats_report(s, rows, style);
  EXPECT_TRUE(csv.starts_with("rank,graph,graph_id,step,execution,node,op,slot,gradient_of,dtype,shape,count,min,max,mean,")) << csv;
  EXPECT_NE(csv.find(",0,0,D/a|b,X,output:0,,float32,[2],2,0.1234567"), std::string::npos) << csv;
  EXPECT_NE(nodes_report(s, nodes, style).find(",D/a|b,X,operator,/data/train.py,71,"), std::string::npos);
  style.format = Format::kMarkdown;
  const std::string markdown = stats_report(s, rows, style);
  EXPECT_TRUE(markdown.starts_with(
      "| rank | graph | graph\\_id | step | execution | node | op | slot | gradient\\_of | dtype | shape | count | min | max |"));
  EXPECT_NE(markdown.find(" | 0.1235 | 1 | "), std::string::npos) << markdown;
  EXPECT_NE(nodes_report(s, nodes, style).find("| D/a\\|b | X | operator | /data/train.py | 71 |"), std::string::npos)
      << nodes_report(s, nodes, style);
}

TEST(NodesReport, NumbersNamesOperatorsAndSource) {
  FakeSession s(fake_graph({{"D/fc/MatMul-op0", "MatMul", {}, 1, {{"/data/train.py", 71, ""}}}, {"w", "Parameter"}}));
  const GraphPtr graph = s.graphs()[0];
  const std::vector<NodeRef> nodes = {{graph.get(), 0}, {graph.get(), 1}};
  EXPECT_EQ(nodes_report(s, nodes, {}),
            "   node             op         source\n"
            "1  D/fc/MatMul-op0  MatMul     train.py:71\n"
            "2  w                Parameter\n");
}

TEST(NodesReport, WideShowsInputsAndShapes) {
  FakeSession s(fake_graph({{"w", "Parameter"}, {"l", "Load", {"w"}}, {"D/mm", "MatMul", {"l"}}}));
  const GraphPtr graph = s.graphs()[0];
  ReportStyle style;
  style.wide = true;
  const std::string text = nodes_report(s, {{graph.get(), graph->find("D/mm")->id}}, style);
  EXPECT_NE(text.find("inputs"), std::string::npos);
  EXPECT_NE(text.find("  w"), std::string::npos) << text;  // looks through the Load
}

TEST(DoctorReport, CountsAndProblems) {
  FakeSession s(fake_graph({{"a", "X"}}));
  s.put("a", 0, f32({1}));
  s.put("a", 1, f32({1}));
  s.mutable_info().layout = "R";
  s.mutable_info().epoch = "E";
  SessionReport report;
  report.tensor_files = 2;
  const std::string healthy = doctor_report(s, report, {});
  EXPECT_NE(healthy.find("layout     R, file names of epoch E\nwritten by MindSpore 2.7.1\n"), std::string::npos)
      << healthy;
  EXPECT_NE(healthy.find("graphs     0 kernel_graph0: 1 kernel, steps 0-1\n"), std::string::npos) << healthy;
  EXPECT_NE(healthy.find("problems   none\n"), std::string::npos) << healthy;

  for (int i = 0; i < 3; ++i)
    report.problems.push_back({Severity::kError, "f" + std::to_string(i), "file is cut off: 5 bytes"});
  const std::string damaged = doctor_report(s, report, {});
  EXPECT_NE(
      damaged.find(
          "problems   3\n  error    f0: file is cut off: 5 bytes\n  ... 2 more of the same kinds (all: --wide)\n"),
      std::string::npos)
      << damaged;
  ReportStyle style;
  style.wide = true;
  EXPECT_NE(doctor_report(s, report, style).find("f2: "), std::string::npos);
}

}  // namespace
}  // namespace msdbg
