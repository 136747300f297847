#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "msdbg/report.h"
#include "report/check_everything.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using nlohmann::json;
using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

/// One new and one suppressed finding, one tensor without verdict, one unused suppression.
struct Case {
  FakeSession s{fake_graph({{"w", "Parameter"}, {"Default/f<c>|/Mat\"Mul-op0", "MatMul", {"w"}}})};
  CheckResult result;
  Gate gate;
  ReportStyle style;

  Case() {
    for (int64_t step : {0, 1}) s.put("Default/f<c>|/Mat\"Mul-op0", step, f32({NAN, 1}));
    result = check_everything(s, {"TO", "TL max_gt=5", "TZ 50"}, &style);
    const auto suppressions = parse_suppressions("TO ** step=1 # a, \"known\" fault\nGV ** # gone\n", "s").value();
    const Baseline empty;
    gate = judge(s, &result, &empty, &suppressions);
    style.gate = &gate;
    style.exit_status = 1;
  }
  std::string text(Format format) {
    style.format = format;
    return check_report(s, result, style);
  }
};

// The rules of SARIF 2.1.0 that apply to the output of a check.
void expect_sarif(const json& log) {
  EXPECT_EQ(log.at("version"), "2.1.0");
  ASSERT_EQ(log.at("runs").size(), 1u);
  const json& run = log["runs"][0];
  const json& rules = run.at("tool").at("driver").at("rules");
  EXPECT_FALSE(run["tool"]["driver"].at("name").get<std::string>().empty());
  std::set<std::string> ids;
  for (const json& rule : rules) {
    EXPECT_TRUE(ids.insert(rule.at("id")).second) << rule;
    EXPECT_FALSE(rule.at("help").at("text").get<std::string>().empty());
    EXPECT_FALSE(rule.at("shortDescription").at("text").get<std::string>().empty());
  }
  const std::set<std::string> levels = {"none", "note", "warning", "error"};
  for (const json& result : run.at("results")) {
    EXPECT_FALSE(result.at("message").at("text").get<std::string>().empty());
    EXPECT_EQ(levels.count(result.at("level")), 1u);
    EXPECT_EQ(rules.at(result.at("ruleIndex").get<size_t>()).at("id"), result.at("ruleId"));
    for (const json& location : result.at("locations")) {
      EXPECT_TRUE(location.contains("physicalLocation") || location.contains("logicalLocations"));
      if (!location.contains("physicalLocation")) continue;
      const json& physical = location["physicalLocation"];
      EXPECT_EQ(physical.at("artifactLocation").at("uri").get<std::string>().find_first_of(" <>\"\\"), std::string::npos);
      if (physical.contains("region")) {
        EXPECT_GE(physical["region"].at("startLine").get<int>(), 1);
      }
    }
    for (const auto& [key, value] : result.at("partialFingerprints").items()) EXPECT_TRUE(value.is_string()) << key;
    if (!result.contains("suppressions")) continue;
    for (const json& suppression : result["suppressions"]) EXPECT_EQ(suppression.at("kind"), "external");
  }
  for (const json& invocation : run.at("invocations")) {
    EXPECT_TRUE(invocation.at("executionSuccessful").is_boolean());
    EXPECT_TRUE(invocation.at("exitCode").is_number_integer());
    for (const json& note : invocation.at("toolExecutionNotifications")) {
      EXPECT_FALSE(note.at("message").at("text").get<std::string>().empty());
      EXPECT_EQ(levels.count(note.at("level")), 1u);
      if (note.contains("associatedRule")) {
        EXPECT_EQ(ids.count(note["associatedRule"].at("id")), 1u);
      }
    }
  }
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

TEST(GateFormats, SarifHasWhatItsStandardAsksFor) {
  Case c;
  ASSERT_EQ(c.result.hits.size(), 2u);
  const json log = json::parse(c.text(Format::kSarif));
  expect_sarif(log);
  const json& run = log["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["rules"].size(), 3u);
  const json& results = run["results"];
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0]["suppressions"], json::array());
  EXPECT_EQ(results[0]["baselineState"], "new");
  EXPECT_EQ(results[1]["suppressions"][0]["justification"], "a, \"known\" fault");
  // A code scanner sees the same finding in two steps as one.
  EXPECT_EQ(results[0]["partialFingerprints"], results[1]["partialFingerprints"]);
  const json& invocation = run["invocations"][0];
  EXPECT_EQ(invocation["exitCode"], 1);
  EXPECT_EQ(invocation["executionSuccessful"], true);
  EXPECT_EQ(invocation["toolExecutionNotifications"].size(), c.result.not_checked.size() + 1);
}

TEST(GateFormats, JunitCountsAgreeWithItsCases) {
  Case c;
  const std::string xml = c.text(Format::kJunit);
  EXPECT_EQ(count(xml, "<testsuite "), 4u) << xml;
  EXPECT_EQ(count(xml, "<failure "), 1u);
  const size_t cases = count(xml, "<testcase "), skipped = count(xml, "<skipped ");
  EXPECT_EQ(skipped, c.result.not_checked.size() + 2);
  const std::string head =
      "tests=\"" + std::to_string(cases) + "\" failures=\"1\" errors=\"0\">";
  EXPECT_NE(xml.find("<testsuites name=\"msdbg check\" " + head), std::string::npos) << xml;
  EXPECT_NE(xml.find("Default/f&lt;c&gt;|/Mat&quot;Mul-op0:output:0 step 0 rank 0"), std::string::npos) << xml;
  EXPECT_NE(xml.find("suppressed: a, &quot;known&quot; fault"), std::string::npos);
}

TEST(GateFormats, CsvHasTheSameNumberOfFieldsInEveryLine) {
  Case c;
  const std::string csv = c.text(Format::kCsv);
  size_t fields = 1, first = 0, lines = 0;
  bool quoted = false;
  for (char ch : csv) {
    if (ch == '"') quoted = !quoted;
    if (ch == ',' && !quoted) ++fields;
    if (ch != '\n' || quoted) continue;
    if (first == 0) first = fields;
    EXPECT_EQ(fields, first) << lines;
    fields = 1, ++lines;
  }
  EXPECT_EQ(lines, 1 + 2 + c.result.not_checked.size() + 1);
  EXPECT_EQ(count(csv, "\r\n"), lines);
  EXPECT_NE(csv.find("\"Default/f<c>|/Mat\"\"Mul-op0\""), std::string::npos) << csv;
  EXPECT_NE(csv.find("\"a, \"\"known\"\" fault\",\r\n"), std::string::npos) << csv;
}

TEST(GateFormats, MarkdownEscapesNames) {
  Case c;
  const std::string text = c.text(Format::kMarkdown);
  EXPECT_EQ(text.rfind("### msdbg check: 1 new finding\n", 0), 0u) << text;
  EXPECT_NE(text.find("Default/f\\<c\\>\\|/Mat\"Mul-op0:output:0"), std::string::npos) << text;
  EXPECT_NE(text.find("<details><summary>Suppressed</summary>"), std::string::npos);
  EXPECT_NE(text.find("- line 2: GV \\*\\* (gone)"), std::string::npos) << text;
}

TEST(GateFormats, JsonLinesEndWithASummary) {
  Case c;
  const std::string text = c.text(Format::kJsonl);
  EXPECT_EQ(count(text, "\n"), 3u);
  const json last = json::parse(text.substr(text.rfind('\n', text.size() - 2) + 1));
  EXPECT_EQ(last["summary"]["gate"]["new"], 1);
  EXPECT_EQ(last["summary"]["gate"]["suppressed"], 1);
  EXPECT_EQ(last["summary"]["gate"]["unused_suppressions"][0]["line"], 2);
}

TEST(GateFormats, EveryFormatSaysThatItWasInterrupted) {
  Case c;
  c.result.interrupted = true;
  c.style.exit_status = 130;
  EXPECT_NE(c.text(Format::kTable).find("interrupted: "), std::string::npos);
  EXPECT_EQ(json::parse(c.text(Format::kJson)).at("interrupted"), true);
  EXPECT_NE(c.text(Format::kJsonl).find("\"interrupted\":true"), std::string::npos);
  EXPECT_NE(c.text(Format::kCsv).find("\r\ninterrupted,"), std::string::npos);
  EXPECT_NE(c.text(Format::kMarkdown).find("**interrupted: "), std::string::npos);
  const std::string xml = c.text(Format::kJunit);
  EXPECT_NE(xml.find("<error type=\"interrupted\""), std::string::npos);
  EXPECT_EQ(count(xml, "name=\"interrupted\" value=\"true\""), count(xml, "<testsuite "));
  const json log = json::parse(c.text(Format::kSarif));
  expect_sarif(log);
  EXPECT_EQ(log["runs"][0]["invocations"][0]["executionSuccessful"], false);
  EXPECT_EQ(log["runs"][0]["invocations"][0]["exitCode"], 130);
}

}  // namespace
}  // namespace msdbg
