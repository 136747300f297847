#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "msdbg/html_report.h"
#include "report/html_support.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::attributes;
using testing::contents;
using testing::f32;
using testing::fake_graph;
using testing::FakeNode;
using testing::FakeSession;
using testing::loads;
using testing::lost_places;
using testing::malformed;

GraphPtr net(const std::string& log = "Default/net/Log-op0", const std::string& code = "x = self.log(x)") {
  return fake_graph({{"x", "Parameter"},
                     {"fc.weight", "Parameter"},
                     {log, "Log", {"x"}, 1, {{"/data/train.py", 70, code}}},
                     {"Default/net/MatMul-op0", "MatMul", {log, "fc.weight"}},
                     {"Default/net/ReLU-op0", "ReLU", {"Default/net/MatMul-op0"}},
                     {"Default/_loss_fn-X/Loss-op0", "CrossEntropyLoss", {"Default/net/ReLU-op0"}}});
}

void put_broken(FakeSession& s, int64_t step, const std::string& log = "Default/net/Log-op0") {
  s.put("x", step, f32({2, 2}, std::vector<double>{0, 1, 0, 0.5}));
  s.put("fc.weight", step, f32({1}));
  s.put(log, step, f32({2, 2}, std::vector<double>{-INFINITY, 0, -INFINITY, -0.69}));
  s.put("Default/net/MatMul-op0", step, f32({NAN, NAN}));
  s.put("Default/net/ReLU-op0", step, f32({0, 0}));
  s.put("Default/_loss_fn-X/Loss-op0", step, f32({2.3046174}));
}

void put_sound(FakeSession& s, int64_t step) {
  for (const Node& node : s.graphs()[0]->nodes()) s.put(node.name, step, f32({0.5, 1}));
}

std::string page(Session& s, PageForm form = PageForm::kHtml, const PageOptions& options = {}) {
  const PageFindings findings = look_for_page(s, default_watchpoints(), {}).value();
  return page_text(s, {&findings.check, &findings.origin}, options, form).value();
}

TEST(HtmlPage, EndingOfTheFileChoosesTheForm) {
  EXPECT_EQ(page_form("a/b.HTML").value(), PageForm::kHtml);
  EXPECT_EQ(page_form("report.md").value(), PageForm::kMarkdown);
  EXPECT_FALSE(page_form("report.pdf").ok());
  EXPECT_NE(page_form("report").status().message().find(".html or .md"), std::string::npos);
}

TEST(HtmlPage, VerdictNamesOperatorElementsStepRankAndLine) {
  FakeSession s(net());
  put_broken(s, 0);
  const std::string text = page(s);
  const std::vector<std::string> h1 = contents(text, "h1");
  ASSERT_EQ(h1.size(), 1u);
  for (const char* part : {"Log-op0", "broke first", "2 of 4 elements are", "step 0 on rank 0", "train.py:70"}) {
    EXPECT_NE(h1[0].find(part), std::string::npos) << part << " in " << h1[0];
  }
  EXPECT_NE(text.find("2.3046, finite: it does not show the fault"), std::string::npos);
}

TEST(HtmlPage, ChaptersStandInTheirOrderInBothForms) {
  FakeSession s(net());
  put_sound(s, 0);
  put_broken(s, 1);
  const std::vector<std::string> wanted = {
      "Where it began", "In the graph", "The tensors involved", "Over the steps", "Findings", "Source lines",
      "Coverage",       "Environment",           "To see it again"};
  EXPECT_EQ(contents(page(s), "h2"), wanted);
  const std::string text = page(s, PageForm::kMarkdown);
  std::vector<std::string> titles;
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with("## ")) titles.emplace_back(line.substr(3));
  }
  EXPECT_EQ(titles, wanted);
}

TEST(HtmlPage, HeadingsGoDownOneLevelAtATime) {
  FakeSession s(net());
  put_sound(s, 0);
  put_broken(s, 1);
  const std::string text = page(s);
  int level = 0;
  for (size_t at = text.find("<h"); at != std::string::npos; at = text.find("<h", at + 1)) {
    const char digit = text[at + 2];
    if (digit < '1' || digit > '6' || (text[at + 3] != '>' && text[at + 3] != ' ')) continue;
    EXPECT_LE(digit - '0', level + 1) << text.substr(at, 60);
    level = digit - '0';
  }
  EXPECT_GE(level, 2);
}

TEST(HtmlPage, IsWellFormedAndLoadsNothing) {
  FakeSession s(net());
  put_sound(s, 0);
  put_broken(s, 1);
  const std::string text = page(s);
  EXPECT_EQ(malformed(text), "");
  EXPECT_EQ(loads(text), std::vector<std::string>{});
  EXPECT_NE(text.find("default-src 'none'"), std::string::npos);
}

TEST(HtmlPage, EveryIdIsThereOnceAndEveryLinkLeadsSomewhere) {
  FakeSession s(net());
  put_sound(s, 0);
  put_broken(s, 1);
  const std::string text = page(s);
  EXPECT_EQ(lost_places(text), std::vector<std::string>{});
  EXPECT_GT(attributes(text, "href").size(), 10u);
}

TEST(HtmlPage, HeadSaysWhatWhenAndHow) {
  FakeSession s(net());
  put_broken(s, 0);
  PageOptions options;
  options.dump = "dumps/../dumps/run 1";
  options.command = "msdbg report 'dumps/../dumps/run 1' -o a.html";
  options.time = 1700000000;
  const std::string path = (std::filesystem::current_path() / "dumps/run 1").string();
  const std::string made = "2023-11-14 22:13 UTC by msdbg " + std::string(kVersion);
  const std::string html = page(s, PageForm::kHtml, options);
  const std::string head = contents(html, "header").at(0);
  EXPECT_NE(head.find("<dd>" + made + "</dd>"), std::string::npos) << head;
  EXPECT_NE(head.find("msdbg report &#39;dumps/<wbr/>"), std::string::npos) << head;
  const std::string markdown = page(s, PageForm::kMarkdown, options);
  for (const std::string& fact : {"- Dump: `" + path + "`\n", "- Command: `" + options.command + "`\n", "- Made: " + made + "\n"}) {
    EXPECT_NE(markdown.find(fact), std::string::npos) << fact << markdown.substr(0, 800);
  }
}

TEST(HtmlPage, TheTimeMayBeFixedByTheEnvironment) {
  FakeSession s(net());
  put_broken(s, 0);
  ::setenv("SOURCE_DATE_EPOCH", "86399", 1);
  EXPECT_NE(page(s).find("1970-01-01 23:59 UTC"), std::string::npos);
  for (const char* wrong : {"yesterday", "-1", "99999999999999"}) {
    ::setenv("SOURCE_DATE_EPOCH", wrong, 1);
    const CheckResult empty;
    const Status status = page_text(s, {&empty, nullptr}, {}, PageForm::kHtml).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << wrong;
    EXPECT_NE(status.message().find(wrong), std::string::npos) << status.message();
  }
  ::unsetenv("SOURCE_DATE_EPOCH");
}

TEST(HtmlPage, FindingsNameTheOriginThatTheyFollowFrom) {
  FakeSession s(net());
  put_sound(s, 0);
  put_broken(s, 1);
  // Step 1 leaves the weight broken, and with it the product of step 2.
  s.put("fc.weight", 1, f32({NAN}));
  put_sound(s, 2);
  s.put("fc.weight", 2, f32({NAN}));
  s.put("Default/net/MatMul-op0", 2, f32({NAN, NAN}));
  const std::string text = page(s, PageForm::kMarkdown);
  EXPECT_NE(text.find("| follow from | why | findings | by rule | in steps |"), std::string::npos) << text;
  size_t from_log = 0, from_weight = 0;
  for (std::string_view line : split(text, '\n')) {
    from_log += line.starts_with("| 1 | **TO**") && line.ends_with("| `Log-op0` |");
    from_weight += line.starts_with("| 2 | **TO**") && line.ends_with("| `fc.weight` |");
  }
  EXPECT_EQ(from_log, 2u) << text;
  EXPECT_GE(from_weight, 1u) << text;
}

TEST(HtmlPage, WhatWasMadeOfABrokenInputFollowsFromTheOriginToo) {
  FakeSession s(net());
  put_broken(s, 0);
  s.put("Default/net/ReLU-op0", 0, f32({NAN, NAN}), {Io::kInput, 0});
  const PageFindings findings = look_for_page(s, default_watchpoints(), {}).value();
  CheckResult check = findings.check;
  Hit swallowed = check.hits.front();
  swallowed.tensor = s.id("Default/net/ReLU-op0", 0);
  swallowed.rule = "swallowed";
  swallowed.abbr = "";
  check.hits.push_back(swallowed);
  ASSERT_TRUE(find_causes(s, {}, &check, &findings.origin).ok());
  const std::string text = page_text(s, {&check, &findings.origin}, {}, PageForm::kMarkdown).value();
  EXPECT_NE(text.find("| `Log-op0` | logarithm of 0 (2 zeros in input:0, at the same places) | 3 | TO 2, swallowed 1 | 0 |"),
            std::string::npos)
      << text;
}

TEST(HtmlPage, FindingsBeforeTheFaultAreShownWithTheVerdict) {
  FakeSession s(net());
  put_sound(s, 0);
  put_broken(s, 1);
  s.put("Default/net/ReLU-op0", 0, f32({0, 0}));
  const PageFindings findings = look_for_page(s, default_watchpoints(), {}).value();
  CheckResult check = findings.check;
  Hit early = check.hits.front();
  early.tensor = s.id("Default/net/ReLU-op0", 0);
  early.rule = "dead";
  check.hits.insert(check.hits.begin(), early);
  const std::string text = page_text(s, {&check, &findings.origin}, {}, PageForm::kMarkdown).value();
  EXPECT_NE(text.find("Before that, 1 finding: the first in step 0 on `ReLU-op0:output:0`, dead"), std::string::npos) << text;
}

TEST(HtmlPage, TablesOfFindingsCanBeSortedGroupedAndReadByStep) {
  FakeSession s(net());
  put_sound(s, 0);
  put_broken(s, 1);
  put_broken(s, 2);
  const std::string html = page(s);
  const std::string findings = html.substr(html.find("<caption>Findings</caption>"));
  const std::string head = contents(findings, "thead").at(0);
  EXPECT_NE(head.find("class=\"n\" data-sort=\"number\" data-group=\"\">step<"), std::string::npos) << head;
  EXPECT_NE(head.find("data-sort=\"text\" data-group=\"\">follows from<"), std::string::npos) << head;
  EXPECT_NE(contents(findings, "tbody").at(0).find("<tr data-step=\"2\">"), std::string::npos);
  // Stories and pictures belong to a step, too.
  EXPECT_NE(html.find("<div class=\"part\" data-step=\"1\">"), std::string::npos);
  EXPECT_NE(html.find("\" data-step=\"1\">\n<p class=\"role\">"), std::string::npos);
}

TEST(HtmlPage, ChartsHaveAxesAndAnswerToThePointer) {
  FakeSession s(net());
  for (int64_t step = 0; step < 5; ++step) put_sound(s, 10 * step);
  put_broken(s, 50);
  const std::string html = page(s);
  const std::string trends = html.substr(html.find("<section id=\"trends\""));
  const std::string chart = contents(trends, "svg").at(0);
  for (const char* part : {">loss</text>", ">step</text>", ">0</text>", ">50</text>", "<title>step 10: 0.75</title>"}) {
    EXPECT_NE(chart.find(part), std::string::npos) << part << " in " << chart;
  }
  const std::string tensors = html.substr(html.find("<section id=\"tensors\""));
  EXPECT_NE(tensors.find("data-cells=\"-Inf 0 -Inf -0.69\""), std::string::npos);
  EXPECT_NE(tensors.find(">elements</text>"), std::string::npos);
  EXPECT_NE(tensors.find(": 1 element</title>"), std::string::npos);
}

TEST(HtmlPage, HasAFormForPaper) {
  FakeSession s(net());
  put_broken(s, 0);
  const std::string style = contents(page(s), "style").at(0);
  ASSERT_NE(style.find("@media print"), std::string::npos);
  const std::string print = style.substr(style.find("@media print"));
  EXPECT_NE(print.find("size: A4"), std::string::npos);
  EXPECT_NE(print.find(".tools, .choice, .tip, footer { display: none; }"), std::string::npos);
}

TEST(HtmlPage, CheckOfTheTestItselfFindsWhatIsWrong) {
  EXPECT_NE(malformed("<p>a<b></p>"), "");
  EXPECT_NE(malformed("<p>a & b</p>"), "");
  EXPECT_NE(malformed("<p title=x>a</p>"), "");
  EXPECT_EQ(loads("<img src=\"a.png\"/><a href=\"https:x\">").size(), 3u);
  EXPECT_EQ(lost_places("<p id=\"a\" aria-labelledby=\"c\"><p id=\"a\"><a href=\"#b\">").size(), 3u);
}

TEST(HtmlPage, NamesFromTheDataStayTextEverywhere) {
  const std::string log = "Default/<script>alert(1)</script>/\"onload=\"x' & Log-op0";
  FakeSession s(net(log, "x = a</style><script>alert(2)</script>"));
  s.mutable_info().source = "dump\"><img src=x onerror=alert(3)>";
  put_broken(s, 0, log);
  put_broken(s, 1, log);
  const std::string text = page(s);
  EXPECT_EQ(malformed(text), "");
  EXPECT_EQ(contents(text, "script").size(), 1u);
  EXPECT_EQ(contents(text, "style").size(), 1u);
  EXPECT_EQ(contents(text, "img").size(), 0u);
  EXPECT_EQ(text.find("<img"), std::string::npos);
  EXPECT_EQ(text.find("onload=\"x"), std::string::npos);
  EXPECT_NE(text.find("&lt;script&gt;alert(1)&lt;/<wbr/>script&gt;"), std::string::npos);
  // In the picture, too.
  const std::vector<std::string> pictures = contents(text, "svg");
  EXPECT_TRUE(std::any_of(pictures.begin(), pictures.end(),
                          [](const std::string& svg) { return svg.find("onload=&quot;x&#39;") != std::string::npos; }));
}

TEST(HtmlPage, ControlCharactersBrokenUtf8AndTurnedWritingAreReplaced) {
  const std::string log = "Default/a\x1b[31m\x01 b\xff\xfe c\xe2\x80\xae gol/Log-op0";
  FakeSession s(net(log));
  put_broken(s, 0, log);
  for (PageForm form : {PageForm::kHtml, PageForm::kMarkdown}) {
    const std::string text = page(s, form);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\x01'), std::string::npos);
    EXPECT_EQ(text.find('\xff'), std::string::npos);
    EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);
  }
}

TEST(HtmlPage, MarkdownTablesKeepTheirCells) {
  const std::string log = "Default/a|b`c/Log-op0";
  FakeSession s(net(log));
  put_broken(s, 0, log);
  const std::string text = page(s, PageForm::kMarkdown);
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with("| 0 |") || line.find("TO") == std::string_view::npos) continue;
    size_t bars = 0;
    for (size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    EXPECT_EQ(bars, 7u) << line;
  }
}

TEST(HtmlPage, CodeInMarkdownShowsABarAsItIsOutsideOfTables) {
  const std::string log = "Default/a|b/Log-op0";
  FakeSession s(net(log));
  put_broken(s, 0, log);
  const std::string text = page(s, PageForm::kMarkdown);
  bool seen = false;
  for (std::string_view line : split(text, '\n')) {
    if (line.find("`Default/a") == std::string_view::npos) continue;
    const bool escaped = line.find("a\\|b") != std::string_view::npos;
    EXPECT_EQ(escaped, line.starts_with("|")) << line;
    seen = seen || !escaped;
  }
  EXPECT_TRUE(seen) << text;
}

TEST(HtmlPage, ALabelThatBeginsAnotherIsNamedAsWell) {
  FakeSession s(fake_graph({{"x", "Parameter"},
                            {"Default/MatMul-op10", "MatMul", {"x"}},
                            {"Default/MatMul-op1", "MatMul", {"Default/MatMul-op10"}},
                            {"Default/Add-op0", "Add", {"Default/MatMul-op10", "Default/MatMul-op1", "Default/MatMul-op1"}}}));
  s.put("x", 0, f32({1, 2}));
  for (const char* name : {"Default/MatMul-op10", "Default/MatMul-op1", "Default/Add-op0"}) s.put(name, 0, f32({NAN, 1}));
  const std::string text = page(s, PageForm::kMarkdown);
  EXPECT_NE(text.find("<- MatMul-op10, MatMul-op1\n"), std::string::npos) << text;
}

TEST(HtmlPage, AParameterThatWasBrokenBeforeIsAStoryOfTheStepThatBegan) {
  FakeSession s(net());
  put_broken(s, 0);
  for (const Node& node : s.graphs()[0]->nodes()) s.put(node.name, 1, f32({1, 1}));
  // Step 0 leaves fc.weight broken; in step 1 only this explains the product.
  s.put("fc.weight", 0, f32({NAN}));
  s.put("Default/net/MatMul-op0", 1, f32({NAN, NAN}));
  s.put("fc.weight", 1, f32({NAN}));
  const std::string text = page(s, PageForm::kMarkdown);
  EXPECT_NE(text.find("### Step 0: `Log-op0`"), std::string::npos) << text;
  EXPECT_NE(text.find("### Step 1: `fc.weight`"), std::string::npos) << text;
  EXPECT_EQ(text.find("### Step 0: `fc.weight`"), std::string::npos) << text;
}

TEST(HtmlPage, CleanResultShowsHowMuchWasChecked) {
  FakeSession s(net());
  put_sound(s, 0);
  put_sound(s, 1);
  s.set_problem(s.id("fc.weight", 1), Status(Code::kCorrupt, "file is cut off"));
  const std::string text = page(s);
  EXPECT_NE(contents(text, "h1").at(0).find("Nothing found among 11 tensors of 2 steps, 1 not checked."), std::string::npos)
      << contents(text, "h1").at(0);
  EXPECT_NE(text.find("file is cut off"), std::string::npos);
  EXPECT_EQ(text.find("Where it began"), std::string::npos);
}

TEST(HtmlPage, AnEmptyDumpIsNotReportedAsClean) {
  FakeSession s(net());
  const CheckResult empty;
  const std::string text = page_text(s, {&empty, nullptr}, {}, PageForm::kHtml).value();
  EXPECT_NE(contents(text, "h1").at(0).find("Nothing was checked"), std::string::npos);
  EXPECT_EQ(malformed(text), "");
}

TEST(HtmlPage, UnreadableTensorIsNamedInsteadOfItsPicture) {
  FakeSession s(net());
  put_broken(s, 0);
  const PageFindings findings = look_for_page(s, default_watchpoints(), {}).value();
  s.set_read_error(s.id("Default/net/Log-op0", 0), Status(Code::kIoError, "the file shrank"));
  const std::string text = page_text(s, {&findings.check, &findings.origin}, {}, PageForm::kHtml).value();
  EXPECT_NE(text.find("no picture: the file shrank"), std::string::npos);
}

TEST(HtmlPage, SameFindingsAtTheSameTimeGiveTheSameBytes) {
  FakeSession s(net());
  put_sound(s, 0);
  put_broken(s, 1);
  PageOptions options;
  options.time = 0;
  for (PageForm form : {PageForm::kHtml, PageForm::kMarkdown}) {
    EXPECT_TRUE(page(s, form, options) == page(s, form, options));
  }
}

TEST(HtmlPage, InterruptGivesNoPage) {
  FakeSession s(net());
  put_broken(s, 0);
  const PageFindings findings = look_for_page(s, default_watchpoints(), {}).value();
  request_interrupt();
  const auto text = page_text(s, {&findings.check, &findings.origin}, {}, PageForm::kHtml);
  clear_interrupt();
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().code(), Code::kInterrupted);
}

TEST(HtmlPage, WithoutResultsThereIsNothingToTell) {
  FakeSession s(net());
  EXPECT_EQ(page_text(s, {}, {}, PageForm::kHtml).status().code(), Code::kInvalidArgument);
}

TEST(HtmlPage, TenThousandBrokenNodesStaySmall) {
  std::vector<FakeNode> nodes = {{"x", "Parameter"}};
  std::string before = "x";
  for (int i = 0; i < 10000; ++i) {
    const std::string name =
        "Default/network-WithLossCell/_backbone-Net/layer" + std::to_string(i % 100) + "-Cell/block-Dense/MatMul-op" + std::to_string(i);
    nodes.push_back({name, "MatMul", {before}, 1, {{"/data/train.py", 1 + i % 500, "x = self.layer(x)"}}});
    before = name;
  }
  FakeSession s(fake_graph(nodes));
  s.put("x", 0, f32({1, 2}));
  for (size_t i = 1; i < nodes.size(); ++i) s.put(nodes[i].name, 0, f32({NAN, 1}));
  const std::string text = page(s);
  EXPECT_LT(text.size(), 5u << 20);
  EXPECT_EQ(malformed(text), "");
  EXPECT_NE(text.find("9700 more are not listed here"), std::string::npos);
}

}  // namespace
}  // namespace msdbg
