// JUnit XML for CI servers: one suite per rule, one case per finding; reasons for "not checked" become skipped cases.
#include <fmt/format.h>

#include <map>

#include "msdbg/picture.h"
#include "report/check_formats.h"
#include "report/table.h"

namespace msdbg {
namespace {

struct Suite {
  std::string name, cases;
  uint64_t tests = 0, failures = 0, skipped = 0, errors = 0;
  std::map<std::string, int, std::less<>> seen;

  void add(std::string_view test, std::string_view inner) {
    ++tests;
    // Servers keep one case per name, and two watchpoints of one rule may hit the same tensor.
    const int turn = ++seen[std::string(test)];
    const std::string unique = turn == 1 ? std::string(test) : fmt::format("{} ({})", test, turn);
    const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml_text("msdbg." + name), xml_text(unique));
    cases += inner.empty() ? head + "/>\n" : fmt::format("{}>{}</testcase>\n", head, inner);
  }
  void skip(std::string_view test, std::string_view why) {
    ++skipped;
    add(test, fmt::format("<skipped message=\"{}\"/>", xml_text(why)));
  }
};

std::string place_text(const Session& session, const TensorId& id) {
  std::string out = fmt::format("{}:{} step {} rank {}", session.node(id).name, slot_name(id.slot), id.step, id.rank);
  if (session.graphs().size() > 1) out += fmt::format(" graph {}", id.graph);
  if (id.execution > 0) out += fmt::format(" execution {}", id.execution);
  return out;
}

std::string failure_text(const Session& session, const CheckResult& result, const Hit& hit) {
  const Node& node = session.node(hit.tensor);
  std::string out =
      fmt::format("{}\n{}\n{}{} of {}\n", what_text(hit), stats_line(hit.stats), dtype_name(hit.dtype), shape_text(hit.shape), node.op);
  if (const std::string source = source_place(node, true); !source.empty()) {
    out += source;
    if (const std::string& code = user_frame(node)->code; !code.empty()) out += "   " + code;
    out += '\n';
  }
  if (const std::string advice = advice_of(result, hit.rule); !advice.empty()) out += advice + "\n";
  std::string escaped;
  for (std::string_view line : split(out, '\n')) escaped += xml_text(line) + "\n";
  while (escaped.ends_with("\n\n")) escaped.pop_back();
  return escaped;
}

}  // namespace

std::string check_junit(const Session& session, const CheckResult& result, const ReportStyle& style) {
  std::vector<Suite> suites;
  for (const std::string& rule : rules_of(result, style.rules_run)) {
    Suite suite;
    suite.name = rule;
    for (size_t i = 0; i < result.hits.size(); ++i) {
      const Hit& hit = result.hits[i];
      if (hit.rule != rule) continue;
      const std::string place = place_text(session, hit.tensor);
      switch (gate_status_of(style, i)) {
        case GateStatus::kNew:
          ++suite.failures;
          suite.add(place, fmt::format("<failure type=\"{}\" message=\"{}\">{}</failure>", severity_name(hit.severity),
                                       xml_text(what_text(hit)), failure_text(session, result, hit)));
          break;
        case GateStatus::kKnown: suite.skip(place, "known from the baseline: " + what_text(hit)); break;
        case GateStatus::kSuppressed: suite.skip(place, "suppressed: " + reason_of(style, i)); break;
      }
    }
    for (const Explained& each : result.explained) {
      if (each.hit.rule == rule) suite.skip(place_text(session, each.hit.tensor), "no fault: " + explained_text(session, each));
    }
    for (const NotChecked& entry : result.not_checked) {
      if (entry.rule == rule) suite.skip(place_text(session, entry.tensor), "not checked: " + entry.reason);
    }
    bool broken = false;
    for (const RuleProblem& problem : result.rule_problems) {
      if (problem.rule != rule) continue;
      broken = true;
      const std::string why = "not checked: " + problem.reason;
      // If the job fails because no rule reached a verdict, a case reports that.
      if (problem.kind == RuleProblemKind::kBroken && style.exit_status > 1)
        ++suite.errors, suite.add("the rule runs", fmt::format("<error type=\"rule error\" message=\"{}\"/>", xml_text(why)));
      else
        suite.skip("the rule runs", why);
    }
    // A rule without findings is a passed test, not a missing one.
    if (suite.failures == 0 && !broken && !result.interrupted && result.coverage.checked > 0) suite.add("no new finding", "");
    suites.push_back(std::move(suite));
  }
  Suite run;
  run.name = "msdbg check";
  if (result.interrupted) {
    ++run.errors;
    run.add("the run is complete", fmt::format("<error type=\"interrupted\" message=\"{}\"/>", xml_text(interrupted_text(result))));
  }
  for (const RuleProblem& problem : result.rule_problems) {
    if (problem.kind == RuleProblemKind::kNoSuchData) run.skip("everything requested is present", "not checked: " + problem.reason);
    if (problem.kind == RuleProblemKind::kUnfinished) run.skip("every step is finished", "not checked: " + problem.reason);
  }
  if (result.total_hits > result.hits.size()) run.skip("findings beyond --max-hits", counts_text(result, style));
  if (style.gate) {
    for (const Suppression& s : style.gate->unused) run.skip(fmt::format("suppression of line {}", s.line), unused_text(s));
  }
  if (run.tests > 0) suites.push_back(std::move(run));

  uint64_t tests = 0, failures = 0, errors = 0;
  for (const Suite& suite : suites) tests += suite.tests, failures += suite.failures, errors += suite.errors;
  std::string properties = "    <properties>\n";
  const auto property = [&](std::string_view name, std::string_view value) {
    properties += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, xml_text(value));
  };
  property("dump", session.info().source);
  property("semantics", semantics_name(result.semantics));
  property("coverage.tensors", std::to_string(result.coverage.tensors));
  property("coverage.checked", std::to_string(result.coverage.checked));
  property("coverage.not_checked", std::to_string(result.coverage.not_checked));
  property("total_hits", std::to_string(result.total_hits));
  property("interrupted", result.interrupted ? "true" : "false");
  properties += "    </properties>\n";

  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += fmt::format("<testsuites name=\"msdbg check\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n", tests, failures, errors);
  for (const Suite& suite : suites) {
    out += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{}{}  </testsuite>\n",
                       xml_text(suite.name), suite.tests, suite.failures, suite.errors, suite.skipped, properties, suite.cases);
  }
  return out + "</testsuites>\n";
}

}  // namespace msdbg
