// Sparklines, trends as text, and the program with its findings.
#include "msdbg/follow_report.h"
#include "msdbg/terminal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

using Series = std::vector<std::optional<double>>;

TEST(Sparkline, HeightsGoFromTheSmallestToTheLargestValue) {
  EXPECT_EQ(sparkline(Series{0, 1, 2, 3, 4, 5, 6, 7}, 32), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(Series{7, std::nullopt, 0}, 32), "█·▁");
  EXPECT_EQ(sparkline(Series{7, std::nullopt, 0}, 32, true), "# _");
  EXPECT_EQ(sparkline(Series{3, 3}, 32, true), "__");
  EXPECT_EQ(sparkline(Series{}, 32), "");
  EXPECT_EQ(sparkline(Series{1, 1.00001, 1}, 32, true), "___");
  EXPECT_EQ(sparkline(Series{1, 1.01, 1}, 32, true), "_#_");
}

TEST(Sparkline, LongSeriesAreAveragedAndLargeOnesDrawnInLogarithms) {
  Series ramp;
  for (int i = 0; i < 1000; ++i) ramp.emplace_back(i);
  EXPECT_EQ(sparkline(ramp, 8), "▁▂▃▄▅▆▇█");
  const Series growth = {1, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7};
  EXPECT_TRUE(shows_logarithms(growth));
  EXPECT_EQ(sparkline(growth, 8, false, true), "▁▂▃▄▅▆▇█");
  EXPECT_FALSE(shows_logarithms(Series{-1, 1e9}));
  EXPECT_EQ(sparkline(Series{1.7e308, 1.7e308, -1.7e308, -1.7e308}, 2, true), "#_");
}

/// `Log` at line 2 of `path`, and an operator that only the framework knows.
GraphPtr with_lines(const std::string& path) {
  return fake_graph({{"w", "Parameter"},
                     {"Default/Log-op0", "Log", {"w"}, 1, {{"/x/mindspore/nn.py", 9, "inner"}, {path, 2, "x = log(x)  # <b>"}}},
                     {"Default/Neg-op0", "Neg", {"w"}, 1, {{"/x/mindspore/nn.py", 7, "neg"}}}});
}

TEST(TrendReport, TellsHowFewElementsTheNumbersAreOf) {
  FakeSession session(fake_graph({{"w", "Parameter"}}));
  session.put("w", 0, f32({1, 2, 3, 4}));
  session.put("w", 1, f32({1, NAN, NAN, NAN}));
  const auto target = follow_target(session, "w");
  const auto result = trend(session, *target, "max");
  ASSERT_TRUE(result.ok()) << result.status().message();
  const std::string text = trend_report(session, *result, {}, true);
  EXPECT_NE(text.find("3 of 4 not finite in step 1"), std::string::npos) << text;
}

Result<CheckResult> checked(Session& session) {
  Watchpoint watch;
  watch.id = 1;
  watch.rule = "tensor_overflow";
  watch.on = Selector::parse("@all").value();
  watch.condition = make_condition("tensor_overflow", {}).value();
  return check(session, std::span(&watch, 1), {});
}

TEST(Source, AFindingStandsBesideTheLineOfItsOperator) {
  FakeSession session(with_lines("/nowhere/train.py"));
  session.put("Default/Log-op0", 0, f32({1, 2}));
  session.put("Default/Log-op0", 3, f32({-INFINITY, 2}));
  const CheckResult result = checked(session).value();
  const Result<std::vector<SourceFile>> files = annotate_source(session, result);
  ASSERT_TRUE(files.ok()) << files.status().message();
  ASSERT_EQ(files->size(), 1u);  // the framework's own file is skipped
  const SourceFile& file = files->front();
  EXPECT_TRUE(file.read_from.empty());
  EXPECT_EQ(file.findings, 1u);
  ASSERT_EQ(file.rows.size(), 1u);
  const SourceRow& row = file.rows[0];
  EXPECT_EQ(row.line, 2);
  EXPECT_EQ(row.code, "x = log(x)  # <b>");
  ASSERT_EQ(row.hits.size(), 1u);
  EXPECT_EQ(row.hits[0].first_step, 3);
  ASSERT_TRUE(row.worst_tensor.has_value());
  EXPECT_EQ(row.worst_tensor->step, 3);
  ReportStyle style;
  style.format = Format::kMarkdown;
  EXPECT_EQ(source_report(session, *files, result, style).find("<b>"), std::string::npos);
  style.format = Format::kJson;
  const auto json = nlohmann::json::parse(source_report(session, *files, result, style));
  EXPECT_EQ(json["files"][0]["lines"][0]["hits"][0]["count"], 1);
  SourceOptions other;
  other.file = "rain.py";  // only whole components identify a file
  EXPECT_EQ(annotate_source(session, result, other).status().code(), Code::kNotFound);
}

TEST(Source, ALongLineIsCutBetweenCharacters) {
  std::string code;
  for (int i = 0; i < 120; ++i) code += "\xe4\xb8\xad";  // a comment in Chinese
  for (int shift = 0; shift < 3; ++shift) {
    SourceRow row;
    row.line = 1;
    row.code = std::string(static_cast<size_t>(shift), 'x') + code;
    row.recorded = true;
    const GraphPtr graph = with_lines("/nowhere/train.py");
    row.nodes = {NodeRef{graph.get(), 1}};
    SourceFile file;
    file.path = "train.py";
    file.rows = {row};
    FakeSession session(graph);
    session.put("Default/Log-op0", 0, f32({1, 2}));
    const CheckResult result = checked(session).value();
    ReportStyle style;
    EXPECT_NE(source_report(session, {file}, result, style).find(code), std::string::npos);
    style.width = 80;
    const std::string text = source_report(session, {file}, result, style);
    EXPECT_NE(text.find("\u2026"), std::string::npos);
    EXPECT_EQ(text.find('?'), std::string::npos);
    for (const std::string_view line : split(text, '\n')) {
      EXPECT_EQ(printable(line), line);
      EXPECT_LE(display_width(line), 80u);
    }
  }
}

TEST(Source, TheFileIsReadOnlyIfItMatchesWhatRan) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "msdbg_source_test";
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "train.py").string();
  FakeSession session(with_lines("/elsewhere/train.py"));
  session.put("Default/Log-op0", 0, f32({1, 2}));
  const CheckResult result = checked(session).value();
  SourceOptions options;
  options.root = folder.string();
  std::ofstream(path) << "def f(x):\n    x = log(x)  # <b>\n    return x\n";
  const auto same = annotate_source(session, result, options).value();
  EXPECT_EQ(same[0].read_from, path);
  ASSERT_EQ(same[0].rows.size(), 3u);
  EXPECT_EQ(same[0].rows[1].code, "    x = log(x)  # <b>");
  EXPECT_FALSE(same[0].rows[1].differs);
  std::ofstream(path) << "def f(x):\n    return 0\n";
  const auto changed = annotate_source(session, result, options).value();
  EXPECT_TRUE(changed[0].read_from.empty());
  EXPECT_NE(changed[0].note.find("says something else"), std::string::npos);
  ASSERT_EQ(changed[0].rows.size(), 1u);
  std::filesystem::remove_all(folder);
}

TEST(Propagation, ItsPictureMarksOriginAndHits) {
  FakeSession session(fake_graph({{"Default/Log-op0", "Log"}, {"Default/Mul-op0", "Mul", {"Default/Log-op0"}}}));
  const TensorId log = session.put("Default/Log-op0", 0, f32({-INFINITY}));
  session.put("Default/Mul-op0", 0, f32({-INFINITY}));
  const Propagation cone = propagation(session, log, {}).value();
  const CheckResult hits = checked(session).value();
  const PictureGraph picture = propagation_picture(session, cone, &hits);
  ASSERT_EQ(picture.nodes.size(), 2u);
  EXPECT_EQ(picture.nodes[0].state, PictureState::kOrigin);
  EXPECT_EQ(picture.nodes[0].hits.size(), 1u);
  EXPECT_EQ(picture.nodes[1].state, PictureState::kBad);
  ASSERT_EQ(picture.edges.size(), 1u);
  EXPECT_TRUE(picture.edges[0].bad);
  EXPECT_EQ(propagation_picture(session, cone, nullptr, 1).nodes.size(), 1u);
}

}  // namespace
}  // namespace msdbg
