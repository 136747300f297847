#include <gtest/gtest.h>

#include <cmath>

#include "msdbg/report.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

Watchpoint watch(const std::string& condition, const std::string& on = "@all") {
  Watchpoint w;
  w.id = 1;
  w.on = Selector::parse(on).value();
  w.condition = parse_condition(condition).value();
  w.rule = w.condition->spec->id;
  w.severity = w.condition->spec->severity;
  return w;
}

CheckResult run(FakeSession& s, const std::vector<Watchpoint>& watches, size_t max_hits = SIZE_MAX) {
  CheckOptions options;
  options.threads = 1;
  options.max_hits = max_hits;
  return check(s, watches, options).value();
}

GraphPtr net() {
  return fake_graph({{"w", "Parameter"},
                     {"Default/fc/MatMul-op0", "MatMul", {"w"}},
                     {"Default/fc/Add-op0", "Add", {"Default/fc/MatMul-op0"}}});
}

TEST(CheckReport, CleanLineShowsItsCoverage) {
  FakeSession s(net());
  for (int64_t step : {0, 1}) {
    s.put("w", step, f32({1}));
    s.put("Default/fc/MatMul-op0", step, f32({1}));
  }
  ReportStyle style;
  style.rules = "the default rules";
  EXPECT_EQ(check_report(s, run(s, {watch("TO")}), style),
            "clean: 4 output and parameter tensors of 2 steps, every one checked against the default rules\n");
}

TEST(CheckReport, FirstOverflowOfAStepShowsItsInputs) {
  FakeSession s(net());
  s.put("Default/fc/MatMul-op0", 2, f32({NAN, NAN}));
  s.put("Default/fc/MatMul-op0", 2, f32({-3.4e36, 5}), {Io::kInput, 0});
  s.put("Default/fc/Add-op0", 2, f32({NAN, 1}));
  EXPECT_EQ(
      check_report(s, run(s, {watch("TO")}), {}),
      "step  severity  rule  tensor                 what\n"
      "   2  error     TO    Default/fc/MatMul-op0  2 of 2 NaN   input finite, up to 3.4e+36\n"
      "   2  error     TO    Default/fc/Add-op0     1 of 2 NaN\n"
      "2 hits in 1 of 1 step, on 2 tensors; 0 not checked. First: step 2, Default/fc/MatMul-op0:output:0. Grouped by scope: --group; all "
      "columns: --wide; "
      "machine readable: --format json\n");
}

TEST(CheckReport, ThresholdsAreShownWithTheirValues) {
  FakeSession s(net());
  s.put("Default/fc/MatMul-op0", 0, f32({0, 12.5}));
  const std::string text = check_report(s, run(s, {watch("TL max_gt=10"), watch("TZ 50")}), {});
  EXPECT_NE(text.find("  TL    Default/fc/MatMul-op0  max 12.5 > 10\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  TZ    Default/fc/MatMul-op0  zero_percentage 50 >= 50\n"), std::string::npos) << text;
}

TEST(CheckReport, ConditionsOfOldReleasesNameTheirStatistic) {
  FakeSession s(net());
  s.put("Default/fc/MatMul-op0", 0, f32({12.5}));
  const std::string text = check_report(s, run(s, {watch("max_gt 10")}), {});
  EXPECT_NE(text.find("  max_gt  Default/fc/MatMul-op0  max 12.5 > 10\n"), std::string::npos) << text;
}

TEST(CheckReport, UnreadableTensorsAreListedBeforeTheVerdict) {
  FakeSession s(net());
  s.put("w", 0, f32({1}));
  s.set_problem(s.id("Default/fc/MatMul-op0", 0), Status(Code::kCorrupt, "file is cut off"));
  ReportStyle style;
  style.rules = "the default rules";
  EXPECT_EQ(check_report(s, run(s, {watch("TO")}), style),
            "not checked: 1 of 2 tensors\n"
            "  step 0  Default/fc/MatMul-op0:output:0  TO  file is cut off\n"
            "clean otherwise: the default rules on 1 tensor\n");
}

TEST(CheckReport, NothingLookedAtIsNotClean) {
  FakeSession s(net());
  s.put("w", 0, f32({1}));
  const std::string text = check_report(s, run(s, {watch("TO", "op:Add")}), {});
  EXPECT_EQ(text.find("clean"), std::string::npos);
  EXPECT_NE(text.find("nothing was checked"), std::string::npos);
}

TEST(CheckReport, RulesWithoutAVerdictAreNamedOnceForEachReason) {
  FakeSession s(net());
  s.put("w", 0, f32({1}));
  CheckResult result = run(s, {watch("TO")});
  result.rule_problems = {
      {"a", "selector matched nothing", RuleProblemKind::kIdle},
      {"b", "rule error: b.lua:1: bad\n  max(x\n       ^"},
      {"c", "selector matched nothing", RuleProblemKind::kIdle}};
  ReportStyle style;
  style.rules = "the default rules";
  EXPECT_EQ(check_report(s, result, style),
            "not checked: rules a, c: selector matched nothing\n"
            "not checked: rule b: rule error: b.lua:1: bad\n      max(x\n           ^\n"
            "clean otherwise: the default rules on 1 tensor\n");
  // Nodes that this network does not have do not change the verdict.
  result.rule_problems = {{"a", "selector matched nothing", RuleProblemKind::kIdle}};
  EXPECT_EQ(check_report(s, result, style),
            "not checked: rule a: selector matched nothing\n"
            "clean: 1 output and parameter tensor of 1 step, every one checked against the default rules\n");
  result.rule_problems = {{"*", "no step 9 (have 0)", RuleProblemKind::kNoSuchData}};
  EXPECT_EQ(check_report(s, result, style), "not checked: no step 9 (have 0)\nclean otherwise: the default rules on 1 tensor\n");
}

TEST(CheckReport, GroupsJoinTheHitsOfAScope) {
  FakeSession s(net());
  for (int64_t step : {0, 1, 2}) {
    s.put("Default/fc/MatMul-op0", step, f32({NAN}));
    s.put("Default/fc/Add-op0", step, f32({NAN}));
  }
  s.put("w", 2, f32({INFINITY}));
  ReportStyle style;
  style.group = true;
  const std::string text = check_report(s, run(s, {watch("TO")}), style);
  EXPECT_NE(text.find("Default/fc       6  0-2    TO     MatMul-op0  1 of 1 NaN\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("(parameters)     1  2      TO     w           1 of 1 +Inf\n"), std::string::npos) << text;
  EXPECT_NE(
      text.find("7 hits in 3 of 3 steps, on 7 tensors; 0 not checked. First: step 0, Default/fc/MatMul-op0:output:0. All columns: --wide"),
      std::string::npos)
      << text;
}

TEST(CheckReport, HitsBeyondTheLimitAreCounted) {
  FakeSession s(net());
  for (int64_t step = 0; step < 5; ++step) s.put("w", step, f32({NAN}));
  const std::string text = check_report(s, run(s, {watch("TO")}, 2), {});
  EXPECT_NE(text.find("5 hits, on 5 tensors"), std::string::npos) << text;  // the number of steps is unknown
  EXPECT_NE(text.find("2 listed (--max-hits)"), std::string::npos) << text;
}

TEST(CheckReport, EscapeSequencesInNamesDoNotReachTheTerminal) {
  FakeSession s(fake_graph({{"Default/\x1b[31mred\x07-op0", "MatMul"}}));
  s.put("Default/\x1b[31mred\x07-op0", 0, f32({NAN}));
  const std::string text = check_report(s, run(s, {watch("TO")}), {});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_NE(text.find("Default/?[31mred?-op0"), std::string::npos) << text;
}

TEST(CheckReport, LongListsAreCutUnlessWide) {
  FakeSession s(net());
  for (int64_t step = 0; step < 100; ++step) s.put("w", step, f32({NAN}));
  const CheckResult result = run(s, {watch("TO")});
  ReportStyle style;
  EXPECT_NE(check_report(s, result, style).find("... 40 more (all: --all)"), std::string::npos);
  style.wide = true;
  const std::string wide = check_report(s, result, style);
  EXPECT_EQ(std::count(wide.begin(), wide.end(), '\n'), 102);
}

// Add takes what MatMul broke; w is a finding of its own.
CheckResult with_causes(FakeSession& s) {
  s.put("w", 0, f32({1e30f}));
  s.put("Default/fc/MatMul-op0", 0, f32({NAN, NAN}));
  s.put("Default/fc/Add-op0", 0, f32({NAN, 1}));
  CheckResult result = run(s, {watch("TO"), watch("TL max_gt=10", "w")});
  EXPECT_TRUE(find_causes(s, {}, &result).ok());
  return result;
}

TEST(CheckReport, WhatFollowsIsFoldedAway) {
  FakeSession s(net());
  const CheckResult result = with_causes(s);
  ReportStyle style;
  style.place = Place::kScript;
  EXPECT_EQ(check_report(s, result, style),
            "2 of 3 findings follow from MatMul-op0, step 0: 2 NaN from sound inputs\n"
            "step  severity  rule  tensor                 what\n"
            "   0  error     TO    Default/fc/MatMul-op0  2 of 2 NaN\n"
            "   0  warning   TL    w                      max 1e+30 > 10\n"
            "  ... 1 that follows from others\n"
            "3 hits in 1 of 1 step, on 3 tensors; 0 not checked. First: step 0, Default/fc/MatMul-op0:output:0.\n");
  style.all = true;
  const std::string all = check_report(s, result, style);
  EXPECT_NE(all.find("   0  error     TO    Default/fc/Add-op0     1 of 2 NaN\n"), std::string::npos) << all;
  EXPECT_EQ(all.find("..."), std::string::npos) << all;
}

TEST(CheckReport, ANewFindingIsNotFoldedBehindAKnownCause) {
  FakeSession s(net());
  CheckResult result = with_causes(s);
  const Baseline known = Baseline::of(s, {result.hits[0]}, false);
  const Gate gate = judge(s, &result, &known, nullptr);
  ReportStyle style;
  style.gate = &gate;
  EXPECT_NE(check_report(s, result, style).find("Default/fc/Add-op0"), std::string::npos);
}

TEST(CheckReport, ScriptDetailsAreShown) {
  FakeSession s(net());
  s.put("w", 0, f32({3}));
  Watchpoint w;
  w.id = 1;
  w.rule = "odd";
  w.on = Selector::parse("@all").value();
  w.script = [](const CheckedTensor&) { return ScriptVerdict{Verdict::kHit, "", 3.0, {{"why", "odd"}}}; };
  const std::string text = check_report(s, run(s, {w}), {});
  EXPECT_NE(text.find("odd   w       actual 3; why odd\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace msdbg
