// JUnit XML for CI servers: well-formed, counts that match the cases, one name per case, one outcome per case, elements in the
// order of the servers' schemas.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "msdbg/report.h"
#include "report/check_everything.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

struct Element {
  std::string name, text;
  std::map<std::string, std::string> attributes;
  std::vector<Element> children;

  const std::string& at(const std::string& key) const {
    static const std::string none;
    const auto found = attributes.find(key);
    EXPECT_TRUE(found != attributes.end()) << name << " has no attribute " << key;
    return found != attributes.end() ? found->second : none;
  }
  size_t count(const std::string& child) const {
    size_t n = 0;
    for (const Element& each : children) n += each.name == child;
    return n;
  }
};

/// Parses the XML that a report may contain; anything else fails the test.
class Reader {
 public:
  explicit Reader(std::string text) : text_(std::move(text)) {}
  Element document() {
    EXPECT_EQ(text_.rfind("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", 0), 0u);
    at_ = text_.find("?>") + 2;
    skip();
    Element root = element();
    skip();
    EXPECT_EQ(at_, text_.size()) << "something follows the root";
    return root;
  }

 private:
  bool fail(const std::string& why) {
    ADD_FAILURE() << why << " at byte " << at_ << ": " << text_.substr(at_, 40);
    at_ = text_.size();
    return false;
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  std::string word() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-' || text_[at_] == '_')) ++at_;
    if (at_ == begin) fail("a name is expected");
    return text_.substr(begin, at_ - begin);
  }
  // Up to `end`; entities become characters, control characters are invalid in XML.
  std::string characters(char end) {
    std::string out;
    while (at_ < text_.size() && text_[at_] != end) {
      const char c = text_[at_];
      if (c == '<' || (static_cast<unsigned char>(c) < 32 && c != '\n')) fail("not allowed here");
      if (c != '&') {
        out += c, ++at_;
        continue;
      }
      static const std::pair<const char*, char> kEntities[] = {
          {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
      bool known = false;
      for (const auto& [entity, meaning] : kEntities) {
        if (text_.compare(at_, std::string(entity).size(), entity) != 0) continue;
        out += meaning, at_ += std::string(entity).size(), known = true;
        break;
      }
      if (!known) fail("an unknown entity");
    }
    return out;
  }
  Element element() {
    Element out;
    if (at_ >= text_.size() || text_[at_] != '<') return fail("an element is expected"), out;
    ++at_;
    out.name = word();
    for (skip(); at_ < text_.size() && text_[at_] != '>' && text_[at_] != '/'; skip()) {
      const std::string key = word();
      if (text_.compare(at_, 2, "=\"") != 0) return fail("=\" is expected"), out;
      at_ += 2;
      EXPECT_TRUE(out.attributes.emplace(key, characters('"')).second) << "twice: " << key;
      ++at_;
    }
    if (text_.compare(at_, 2, "/>") == 0) return at_ += 2, out;
    ++at_;
    while (at_ < text_.size()) {
      out.text += characters('<');
      if (text_.compare(at_, 2, "</") == 0) break;
      out.children.push_back(element());
    }
    at_ += 2;
    EXPECT_EQ(word(), out.name);
    ++at_;
    return out;
  }

  std::string text_;
  size_t at_ = 0;
};

void expect_junit(const Element& root) {
  EXPECT_EQ(root.name, "testsuites");
  uint64_t all[4] = {};
  std::set<std::pair<std::string, std::string>> names;
  for (const Element& suite : root.children) {
    ASSERT_EQ(suite.name, "testsuite");
    EXPECT_FALSE(suite.at("name").empty());
    ASSERT_FALSE(suite.children.empty());
    EXPECT_EQ(suite.children[0].name, "properties");
    for (const Element& property : suite.children[0].children) EXPECT_FALSE(property.at("name").empty() || property.at("value").empty());
    uint64_t found[4] = {};
    for (size_t i = 1; i < suite.children.size(); ++i) {
      const Element& test = suite.children[i];
      ASSERT_EQ(test.name, "testcase");
      EXPECT_TRUE(names.insert({test.at("classname"), test.at("name")}).second) << "two cases are " << test.at("name");
      EXPECT_LE(test.children.size(), 1u) << test.at("name");
      ++found[0];
      found[1] += test.count("failure"), found[2] += test.count("error"), found[3] += test.count("skipped");
      for (const Element& outcome : test.children) EXPECT_FALSE(outcome.at("message").empty());
    }
    const char* counts[] = {"tests", "failures", "errors", "skipped"};
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(suite.at(counts[i]), std::to_string(found[i])) << suite.at("name") << " " << counts[i];
      all[i] += found[i];
    }
  }
  const char* counts[] = {"tests", "failures", "errors"};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(root.at(counts[i]), std::to_string(all[i])) << counts[i];
  // The schema of Jenkins knows no such attribute here, and its xUnit plugin refuses the file.
  EXPECT_EQ(root.attributes.count("skipped"), 0u);
}

uint64_t skipped_of(const Element& root) {
  uint64_t skipped = 0;
  for (const Element& suite : root.children) skipped += std::stoul(suite.at("skipped"));
  return skipped;
}

struct JunitCase {
  FakeSession s{fake_graph({{"w", "Parameter"}, {"Default/f<c>&'x'/Mat\"Mul-op0", "MatMul", {"w"}}})};
  CheckResult result;
  ReportStyle style;

  explicit JunitCase(std::initializer_list<const char*> conditions) {
    for (int64_t step : {0, 1}) s.put("Default/f<c>&'x'/Mat\"Mul-op0", step, f32({NAN, 1}));
    result = check_everything(s, conditions, &style);
    style.format = Format::kJunit;
  }
  Element read() { return Reader(check_report(s, result, style)).document(); }
};

TEST(GateJunit, ServersCanReadIt) {
  JunitCase c({"TO", "TL max_gt=5", "TZ 50"});
  const Element root = c.read();
  expect_junit(root);
  EXPECT_EQ(root.at("failures"), "2");
  EXPECT_EQ(root.children[0].children[1].at("name"), "Default/f<c>&'x'/Mat\"Mul-op0:output:0 step 0 rank 0");
  EXPECT_NE(root.children[0].children[1].children[0].text.find("1 of 2 NaN"), std::string::npos);
}

TEST(GateJunit, TwoWatchpointsOfOneRuleKeepTheirCases) {
  JunitCase c({"TO", "TO"});
  ASSERT_EQ(c.result.hits.size(), 4u);
  const Element root = c.read();
  expect_junit(root);
  EXPECT_EQ(root.at("tests"), "4");
}

TEST(GateJunit, RuleThatFoundNothingIsATestThatPassed) {
  JunitCase c({"TO", "weight_overflow"});
  c.result.hits.clear();
  c.result.total_hits = 0;
  const Element root = c.read();
  expect_junit(root);
  EXPECT_EQ(root.at("failures"), "0");
  EXPECT_EQ(root.children[0].children[1].at("name"), "no new finding");
}

TEST(GateJunit, BrokenRuleIsAnErrorWhereTheRunFailsForIt) {
  JunitCase c({"TO"});
  c.result.hits.clear();
  c.result.total_hits = 0;
  c.result.rule_problems.push_back({"mine", "rule error: mine.lua:1: x", RuleProblemKind::kBroken});
  Element root = c.read();
  expect_junit(root);
  EXPECT_EQ(root.at("errors"), "0");
  EXPECT_EQ(skipped_of(root), 1u);
  c.style.exit_status = 5;
  root = c.read();
  expect_junit(root);
  EXPECT_EQ(root.at("errors"), "1");
  EXPECT_EQ(skipped_of(root), 0u);
}

TEST(GateJunit, RunCutShortIsAnErrorAndNoRulePasses) {
  JunitCase c({"TO", "TZ 50"});
  c.result.interrupted = true;
  c.result.hits.clear();
  const Element root = c.read();
  expect_junit(root);
  EXPECT_EQ(root.at("errors"), "1");
  for (const Element& suite : root.children) {
    for (const Element& test : suite.children) {
      if (test.name == "testcase") {
        EXPECT_NE(test.at("name"), "no new finding");
      }
    }
  }
}

}  // namespace
}  // namespace msdbg
