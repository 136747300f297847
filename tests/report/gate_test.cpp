#include "msdbg/gate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "msdbg/report.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

CheckResult two_findings(FakeSession& s) {
  for (int64_t step : {0, 1}) s.put("Default/fc/MatMul-op0", step, f32({NAN, 1}));
  Watchpoint w;
  w.id = 1;
  w.on = Selector::parse("@all").value();
  w.condition = parse_condition("TO").value();
  w.rule = w.condition->spec->id;
  CheckOptions options;
  options.threads = 1;
  return check(s, std::vector<Watchpoint>{w}, options).value();
}

GraphPtr gate_net() { return fake_graph({{"w", "Parameter"}, {"Default/fc/MatMul-op0", "MatMul", {"w"}}}); }

TEST(RuleProblems, TellWhatTheyMeanForTheVerdict) {
  CheckResult result;
  result.coverage.tensors = result.coverage.checked = 2;
  EXPECT_FALSE(is_incomplete(result));
  result.rule_problems = {{"idle", "selector matched nothing", RuleProblemKind::kIdle}};
  EXPECT_FALSE(is_incomplete(result));
  EXPECT_FALSE(none_judged(result, {"idle"}));
  for (const RuleProblem& gap :
       {RuleProblem{"late", "rule error: late.lua:1: x"}, RuleProblem{"*", "no step 9 (have 0)", RuleProblemKind::kNoSuchData},
        RuleProblem{"tensor_too_large", "needs --param tensor_too_large.NAME=VALUE with one of max_gt", RuleProblemKind::kUnset}}) {
    result.rule_problems = {gap};
    EXPECT_TRUE(is_incomplete(result)) << gap.reason;
  }
  result.rule_problems = {{"idle", "selector matched nothing", RuleProblemKind::kIdle}, {"late", "rule error: late.lua:1: x"}};
  EXPECT_TRUE(none_judged(result, {"late", "idle"}));
  EXPECT_FALSE(none_judged(result, {"late", "idle", "other"}));
  result.rule_problems.clear();
  result.coverage.checked = 0;
  EXPECT_TRUE(is_incomplete(result));  // nothing was checked
}

std::string refused(std::string_view text) {
  const auto parsed = parse_suppressions(text, "s.txt");
  return parsed ? "" : parsed.status().message();
}

TEST(Baseline, ReadsBackWhatItWrote) {
  FakeSession s(gate_net());
  const CheckResult result = two_findings(s);
  ASSERT_EQ(result.hits.size(), 2u);
  const Baseline all = Baseline::of(s, result.hits, false), each = Baseline::of(s, result.hits, true);
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(each.size(), 2u);
  for (const Baseline* b : {&all, &each}) {
    const auto read = Baseline::parse(b->text(), "b");
    ASSERT_TRUE(read) << read.status().message();
    EXPECT_EQ(read->text(), b->text());
    for (const Hit& hit : result.hits) EXPECT_TRUE(read->contains(s, hit));
  }
  const Baseline first = Baseline::of(s, {result.hits[0]}, true);
  EXPECT_FALSE(first.contains(s, result.hits[1]));
}

TEST(Baseline, MistakesNameFileLineAndForm) {
  for (const char* bad :
       {"\n{", "\n[]", "\n{\"graph\":\"g\"}", "\n{\"graph\":\"g\",\"node\":\"n\",\"rule\":\"r\",\"slot\":\"s\",\"rank\":\"x\"}"}) {
    const auto parsed = Baseline::parse(bad, "known.jsonl");
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.status().code(), Code::kCorrupt);
    EXPECT_EQ(parsed.status().message().rfind("known.jsonl:2: ", 0), 0u) << parsed.status().message();
    EXPECT_NE(parsed.status().message().find("a line is {"), std::string::npos);
  }
}

TEST(Suppressions, EveryPartIsRead) {
  const auto parsed =
      parse_suppressions("# head\n\nTO Default/**:output:0 step=0:3 # log of # zero\n\"any(x > 1)\" a:input:1 # r\n* n:2 # r\n", "s");
  ASSERT_TRUE(parsed) << parsed.status().message();
  ASSERT_EQ(parsed->size(), 3u);
  const Suppression& first = parsed->front();
  EXPECT_EQ(first.rule, "TO");
  EXPECT_EQ(first.node, "Default/**");
  EXPECT_EQ(first.slot, (Slot{Io::kOutput, 0}));
  EXPECT_EQ(first.steps.text(), "0:3");
  EXPECT_EQ(first.reason, "log of # zero");
  EXPECT_EQ(first.line, 3u);
  EXPECT_EQ(parsed->at(1).rule, "any(x > 1)");
  EXPECT_EQ(parsed->at(1).slot, (Slot{Io::kInput, 1}));
  EXPECT_EQ(parsed->at(2).slot, (Slot{Io::kOutput, 2}));
}

TEST(Suppressions, MistakesNameFileLineAndForm) {
  for (const char* bad : {"TO a", "TO a #", "TO # r", "TO step=1 # r", "TO a step=x # r", "TO a b # r"}) {
    EXPECT_EQ(refused(bad).rfind("s.txt:1: ", 0), 0u) << bad << ": " << refused(bad);
    EXPECT_NE(refused(bad).find("NODE-GLOB[:slot]"), std::string::npos);
  }
}

TEST(Suppressions, StarStaysInItsScope) {
  FakeSession s(gate_net());
  const CheckResult result = two_findings(s);
  const auto matches = [&](const std::string& pattern) {
    return parse_suppressions(pattern + " # r", "s").value().front().matches(s, result.hits[0]);
  };
  EXPECT_TRUE(matches("TO Default/fc/MatMul-op0"));
  EXPECT_TRUE(matches("tensor_overflow **/MatMul-op?:0 step=0"));
  EXPECT_TRUE(matches("* *"));
  EXPECT_TRUE(matches("to Default/*/Mat*"));
  EXPECT_TRUE(matches("TO **f*/*op0"));
  EXPECT_FALSE(matches("TO Default/*"));
  EXPECT_FALSE(matches("TO */MatMul-op0"));
  EXPECT_FALSE(matches("TO MatMul-op0"));
  EXPECT_FALSE(matches("TZ *"));
  EXPECT_FALSE(matches("TO *:input:0"));
  EXPECT_FALSE(matches("TO * step=1"));
}

TEST(Gate, CountsEveryFindingOnce) {
  FakeSession s(gate_net());
  CheckResult result = two_findings(s);
  const Baseline known = Baseline::of(s, result.hits, false);
  const auto suppressions = parse_suppressions("TO ** step=1 # seen\nTZ ** # never\n", "s").value();
  const Gate gate = judge(s, &result, &known, &suppressions);
  EXPECT_EQ(gate.statuses, (std::vector<GateStatus>{GateStatus::kKnown, GateStatus::kSuppressed}));
  EXPECT_EQ(gate.reasons[1], "seen");
  EXPECT_EQ(gate.fresh, 0u);
  ASSERT_EQ(gate.unused.size(), 1u);
  EXPECT_EQ(gate.unused[0].line, 2u);
}

TEST(Gate, MaxHitsCutsTheListNotTheCounts) {
  FakeSession s(gate_net());
  CheckResult result = two_findings(s);
  const Gate gate = judge(s, &result, nullptr, nullptr, 1);
  EXPECT_EQ(gate.fresh, 2u);
  EXPECT_EQ(result.hits.size(), 1u);
  EXPECT_EQ(gate.statuses.size(), 1u);
}

TEST(Gate, RunCutShortProvesNoSuppressionUnused) {
  FakeSession s(gate_net());
  CheckResult result = two_findings(s);
  result.interrupted = true;
  const auto suppressions = parse_suppressions("TZ ** # never\n", "s").value();
  EXPECT_TRUE(judge(s, &result, nullptr, &suppressions).unused.empty());
}

TEST(Gate, RunOverAPartProvesNoSuppressionUnused) {
  FakeSession s(gate_net());
  const auto suppressions = parse_suppressions("TO ** step=9 # later\n", "s").value();
  CheckResult whole = two_findings(s), part = whole;
  EXPECT_EQ(judge(s, &whole, nullptr, &suppressions).unused.size(), 1u);
  EXPECT_TRUE(judge(s, &part, nullptr, &suppressions, SIZE_MAX, true).unused.empty());
}

TEST(Gate, GroupsCountEachStanding) {
  FakeSession s(gate_net());
  CheckResult result = two_findings(s);
  const auto suppressions = parse_suppressions("TO ** step=1 # wanted\n", "s").value();
  Gate gate = judge(s, &result, nullptr, &suppressions);
  ReportStyle style;
  style.group = true;
  style.gate = &gate;
  const std::string text = check_report(s, result, style);
  EXPECT_EQ(text.rfind("scope       hits  new  known  suppressed  steps  rules  first       what\n"
                       "Default/fc     2    1      0           1  0-1    TO     MatMul-op0  1 of 2 NaN",
                       0),
            0u)
      << text;
}

}  // namespace
}  // namespace msdbg
