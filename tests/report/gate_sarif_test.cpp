// The requirements of the SARIF 2.1.0 schema for every object that a check writes: required properties, no unknown ones (its
// objects are closed), valid enumerators.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "msdbg/report.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using nlohmann::json;
using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

struct Kind {
  std::set<std::string> required, optional;
};

// Only what we may write; if the schema has a property that is missing here, extend the list.
const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> all = {
      {"log", {{"version", "runs"}, {"$schema", "properties"}}},
      {"run", {{"tool"}, {"invocations", "results", "properties", "artifacts", "columnKind"}}},
      {"tool", {{"driver"}, {"extensions", "properties"}}},
      {"toolComponent", {{"name"}, {"version", "semanticVersion", "rules", "informationUri", "organization", "properties"}}},
      {"reportingDescriptor",
       {{"id"}, {"name", "shortDescription", "fullDescription", "help", "helpUri", "defaultConfiguration", "properties"}}},
      {"reportingConfiguration", {{}, {"enabled", "level", "rank", "parameters", "properties"}}},
      {"multiformatMessageString", {{"text"}, {"markdown", "properties"}}},
      {"message", {{"text"}, {"markdown", "id", "arguments", "properties"}}},
      {"result",
       {{"message"},
        {"ruleId", "ruleIndex", "level", "kind", "locations", "fingerprints", "partialFingerprints", "baselineState", "suppressions",
         "rank", "guid", "properties"}}},
      {"location", {{}, {"id", "physicalLocation", "logicalLocations", "message", "annotations", "properties"}}},
      {"physicalLocation", {{"artifactLocation"}, {"region", "contextRegion", "address", "properties"}}},
      {"artifactLocation", {{"uri"}, {"uriBaseId", "index", "description", "properties"}}},
      {"region", {{"startLine"}, {"startColumn", "endLine", "endColumn", "snippet", "message", "properties"}}},
      {"artifactContent", {{"text"}, {"binary", "rendered", "properties"}}},
      {"logicalLocation", {{"fullyQualifiedName"}, {"name", "index", "decoratedName", "parentIndex", "kind", "properties"}}},
      {"suppression", {{"kind"}, {"guid", "status", "justification", "location", "properties"}}},
      {"invocation",
       {{"executionSuccessful"},
        {"exitCode", "commandLine", "arguments", "toolExecutionNotifications", "exitCodeDescription", "properties"}}},
      {"notification",
       {{"message"}, {"level", "associatedRule", "descriptor", "locations", "timeUtc", "exception", "threadId", "properties"}}},
      {"reportingDescriptorReference", {{}, {"id", "index", "guid", "toolComponent", "properties"}}},
  };
  return all;
}

class Checker {
 public:
  void log(const json& j) {
    if (!object(j, "log", "")) return;
    EXPECT_EQ(j.at("version"), "2.1.0");
    each(j, "runs", "", [&](const json& run, const std::string& at) { this->run(run, at); });
  }

 private:
  bool object(const json& j, const std::string& kind, const std::string& at) {
    EXPECT_TRUE(j.is_object()) << at;
    if (!j.is_object()) return false;
    const Kind& known = kinds().at(kind);
    for (const std::string& name : known.required) EXPECT_TRUE(j.contains(name)) << kind << " at " << at << " lacks " << name;
    for (const auto& [name, value] : j.items()) {
      EXPECT_TRUE(known.required.count(name) || known.optional.count(name)) << kind << " at " << at << " may not have " << name;
      EXPECT_FALSE(value.is_null()) << at << "." << name << ": the schema has no null";
      if (name == "properties") {
        EXPECT_TRUE(value.is_object()) << at;
      }
    }
    return true;
  }
  template <typename Visit>
  void each(const json& j, const std::string& name, const std::string& at, Visit visit) {
    if (!j.contains(name)) return;
    ASSERT_TRUE(j[name].is_array()) << at << "." << name;
    for (size_t i = 0; i < j[name].size(); ++i) visit(j[name][i], at + "." + name + "[" + std::to_string(i) + "]");
  }
  template <typename Visit>
  void one(const json& j, const std::string& name, const std::string& at, Visit visit) {
    if (j.contains(name)) visit(j[name], at + "." + name);
  }
  void word(const json& j, const std::string& name, const std::set<std::string>& words, const std::string& at) {
    if (j.contains(name)) {
      EXPECT_EQ(words.count(j[name].get<std::string>()), 1u) << at << "." << name << " is " << j[name];
    }
  }
  void text(const json& j, const std::string& kind, const std::string& at) {
    if (!object(j, kind, at)) return;
    EXPECT_TRUE(j.at("text").is_string() && !j["text"].get<std::string>().empty()) << at;
  }
  void level(const json& j, const std::string& at) { word(j, "level", {"none", "note", "warning", "error"}, at); }

  void run(const json& j, const std::string& at) {
    object(j, "run", at);
    object(j.at("tool"), "tool", at);
    const json& driver = j["tool"].at("driver");
    object(driver, "toolComponent", at);
    std::set<json> rules;
    each(driver, "rules", at, [&](const json& rule, const std::string& place) {
      object(rule, "reportingDescriptor", place);
      EXPECT_TRUE(rules.insert(rule).second) << place << ": rules are unique";
      for (const char* name : {"shortDescription", "fullDescription", "help"}) {
        one(rule, name, place, [&](const json& t, const std::string& p) { text(t, "multiformatMessageString", p); });
      }
      one(rule, "defaultConfiguration", place, [&](const json& c, const std::string& p) {
        object(c, "reportingConfiguration", p);
        level(c, p);
      });
    });
    rules_ = driver.value("rules", json::array());
    each(j, "results", at, [&](const json& r, const std::string& p) { result(r, p); });
    each(j, "invocations", at, [&](const json& i, const std::string& p) { invocation(i, p); });
  }

  void result(const json& j, const std::string& at) {
    object(j, "result", at);
    text(j.at("message"), "message", at);
    level(j, at);
    word(j, "baselineState", {"new", "unchanged", "updated", "absent"}, at);
    word(j, "kind", {"notApplicable", "pass", "fail", "review", "open", "informational"}, at);
    EXPECT_EQ(rules_.at(j.at("ruleIndex").get<size_t>()).at("id"), j.at("ruleId")) << at;
    one(j, "partialFingerprints", at, [&](const json& prints, const std::string& p) {
      for (const auto& [name, value] : prints.items()) EXPECT_TRUE(value.is_string()) << p << "." << name;
    });
    each(j, "locations", at, [&](const json& l, const std::string& p) { location(l, p); });
    std::set<json> suppressions;
    each(j, "suppressions", at, [&](const json& s, const std::string& p) {
      object(s, "suppression", p);
      word(s, "kind", {"inSource", "external"}, p);
      word(s, "status", {"accepted", "underReview", "rejected"}, p);
      EXPECT_TRUE(suppressions.insert(s).second) << p;
    });
  }

  void location(const json& j, const std::string& at) {
    object(j, "location", at);
    one(j, "physicalLocation", at, [&](const json& physical, const std::string& p) {
      object(physical, "physicalLocation", p);
      object(physical.at("artifactLocation"), "artifactLocation", p);
      uri(physical["artifactLocation"].at("uri").get<std::string>(), p);
      one(physical, "region", p, [&](const json& region, const std::string& q) {
        object(region, "region", q);
        EXPECT_GE(region.at("startLine").get<int>(), 1) << q;
        one(region, "snippet", q, [&](const json& snippet, const std::string& r) { text(snippet, "artifactContent", r); });
      });
    });
    each(j, "logicalLocations", at, [&](const json& logical, const std::string& p) { object(logical, "logicalLocation", p); });
  }

  // RFC 3986: only these characters, and a percent sign only before two digits.
  void uri(const std::string& text, const std::string& at) {
    for (size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      EXPECT_TRUE(std::isalnum(c) || std::string_view("-._~:/?#[]@!$&'()*+,;=%").find(text[i]) != std::string_view::npos)
          << at << ": " << text;
      if (text[i] == '%') {
        EXPECT_TRUE(i + 2 < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                    std::isxdigit(static_cast<unsigned char>(text[i + 2])))
            << at << ": " << text;
      }
    }
  }

  void invocation(const json& j, const std::string& at) {
    object(j, "invocation", at);
    EXPECT_TRUE(j.at("executionSuccessful").is_boolean());
    EXPECT_TRUE(!j.contains("exitCode") || j["exitCode"].is_number_integer()) << at;
    each(j, "toolExecutionNotifications", at, [&](const json& note, const std::string& p) {
      object(note, "notification", p);
      text(note.at("message"), "message", p);
      level(note, p);
      one(note, "associatedRule", p, [&](const json& rule, const std::string& q) {
        object(rule, "reportingDescriptorReference", q);
        EXPECT_TRUE(rule.contains("id") || rule.contains("index") || rule.contains("guid")) << q;
        EXPECT_EQ(rules_.at(rule.at("index").get<size_t>()).at("id"), rule.at("id")) << q;
      });
    });
  }

  json rules_;
};

/// A network with unusual names and an unusual source path, checked by catalogue conditions and an expression.
struct SarifCase {
  FakeSession s;
  CheckResult result;
  ReportStyle style;

  SarifCase() : s(graph()) {
    for (int64_t step : {0, 1}) s.put("Default/a b<c>/Mat\"Mul-op0", step, f32({NAN, 1}));
    std::vector<Watchpoint> watches;
    for (const char* text : {"TO", "TL max_gt=5", "mean(abs(x)) > 0.5"}) {
      Watchpoint w;
      w.id = static_cast<int>(watches.size()) + 1;
      w.on = Selector::parse("@all").value();
      auto when = parse_when(text).value();
      if (auto* condition = std::get_if<Condition>(&when)) {
        w.rule = condition->spec->id;
        w.severity = condition->spec->severity;
        w.condition = *condition;
      } else {
        w.rule = text;
        w.expression = std::get<Expression>(when);
      }
      style.rules_run.push_back(w.rule);
      watches.push_back(std::move(w));
    }
    CheckOptions options;
    options.threads = 1;
    result = check(s, watches, options).value();
    style.format = Format::kSarif;
  }
  static GraphPtr graph() {
    testing::FakeNode node{"Default/a b<c>/Mat\"Mul-op0", "MatMul", {"w"}};
    node.stack = {{"/data/my net/tr\xc3\xa4in.py", 7, "x = self.fc(x)"}};
    return fake_graph({{"w", "Parameter"}, node});
  }
  json log() { return json::parse(check_report(s, result, style)); }
};

TEST(DiffSarif, CulpritsAreErrorsAtTheSourceOfB) {
  FakeSession a(SarifCase::graph()), b(SarifCase::graph());
  for (FakeSession* s : {&a, &b}) s->put("w", 0, f32({1, 1}));
  a.put("Default/a b<c>/Mat\"Mul-op0", 0, f32({1, 1}));
  b.put("Default/a b<c>/Mat\"Mul-op0", 0, f32({1, 2}));
  const DiffResult result = diff_sessions(a, b, {}).value();
  ReportStyle style;
  style.format = Format::kSarif;
  const json log = json::parse(diff_report(a, b, result, style));
  Checker().log(log);
  const json& run = log["runs"][0];
  ASSERT_EQ(run["results"].size(), 1u);
  EXPECT_EQ(run["results"][0]["ruleId"], "diff-culprit");
  EXPECT_EQ(run["results"][0]["level"], "error");
  EXPECT_EQ(run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"], 7);
  EXPECT_EQ(run["invocations"][0]["exitCode"], 1);
  EXPECT_EQ(run["properties"]["verdict"], "different");
}

TEST(GateSarif, EveryObjectFollowsTheSchema) {
  SarifCase c;
  ASSERT_FALSE(c.result.hits.empty());
  ASSERT_FALSE(c.result.not_checked.empty());
  const json log = c.log();
  Checker().log(log);
  const json& physical = log["runs"][0]["results"][0]["locations"][0].at("physicalLocation");
  EXPECT_EQ(physical["artifactLocation"]["uri"], "file:///data/my%20net/tr%C3%A4in.py");
  EXPECT_EQ(physical["region"]["startLine"], 7);
}

TEST(GateSarif, GatesFollowTheSchema) {
  SarifCase c;
  const auto suppressions = parse_suppressions("TO ** step=1 # wanted\nGV ** # gone\n", "s").value();
  const Baseline known = Baseline::of(c.s, {c.result.hits[0]}, true);
  Gate gate = judge(c.s, &c.result, &known, &suppressions, 1);
  c.style.gate = &gate;
  c.style.exit_status = 1;
  const json log = c.log();
  Checker().log(log);
  EXPECT_EQ(log["runs"][0]["results"].size(), c.result.hits.size());
}

TEST(GateSarif, PartialAndEmptyRunsFollowTheSchema) {
  SarifCase c;
  c.result.interrupted = true;
  c.style.exit_status = 130;
  Checker().log(c.log());
  c.result.hits.clear();
  c.result.not_checked.clear();
  const json log = c.log();
  Checker().log(log);
  EXPECT_TRUE(log["runs"][0].at("results").is_array());  // without the property, a scanner reads the run as "no results looked for"
}

TEST(GateSarif, RunThatCouldNotDoItsWorkIsNoSuccess) {
  SarifCase c;
  const auto successful = [&](int status) {
    c.style.exit_status = status;
    return c.log()["runs"][0]["invocations"][0]["executionSuccessful"];
  };
  EXPECT_EQ(successful(0), true);
  EXPECT_EQ(successful(1), true);
  EXPECT_EQ(successful(4), false);
  EXPECT_EQ(successful(5), false);
}

}  // namespace
}  // namespace msdbg
