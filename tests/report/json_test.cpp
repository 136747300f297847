#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "msdbg/answers.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using Json = nlohmann::ordered_json;
using testing::f32;
using testing::fake_graph;
using testing::FakeSession;
using Keys = std::vector<std::string>;

ReportStyle json_style(Format format = Format::kJson) {
  ReportStyle style;
  style.format = format;
  return style;
}

Keys keys(const Json& object) {
  Keys out;
  for (const auto& [key, value] : object.items()) out.push_back(key);
  return out;
}

const Keys kStatsKeys = {"count",         "min",
                         "max",           "mean",
                         "abs_mean",      "std",
                         "l2_norm",       "nan_count",
                         "pos_inf_count", "neg_inf_count",
                         "zero_count",    "pos_count",
                         "neg_count",     "zero_percentage",
                         "first_bad",     "dtype_max_count"};

GraphPtr json_net() {
  return fake_graph(
      {{"p", "Parameter"}, {"D/a", "Log", {"p"}, 1, {{"t.py", 38, "x = log(x)"}}}, {"D/b", "Exp", {"D/a"}}});
}

void put_broken(FakeSession& s) {
  s.put("p", 0, f32({0, 1}));
  s.put("D/a", 0, f32({-INFINITY, 1}));
  s.put("D/b", 0, f32({0, NAN}));
}

CheckResult checked(FakeSession& s, const std::string& condition) {
  Watchpoint w;
  w.id = 1;
  w.on = Selector::parse("@all").value();
  w.condition = parse_condition(condition).value();
  w.rule = w.condition->spec->id;
  w.severity = w.condition->spec->severity;
  return check(s, {&w, 1}, {}).value();
}

TEST(Json, CheckHasTheAgreedKeysInOrder) {
  FakeSession s(json_net());
  put_broken(s);
  const Json out = Json::parse(check_report(s, checked(s, "TO"), json_style()));
  EXPECT_EQ(keys(out), (Keys{"msdbg", "dump", "semantics", "steps", "interrupted", "coverage", "by_rank", "total_hits", "causes",
                             "explained", "overflows", "from_rules", "rules", "rule_problems", "gate", "hits", "not_checked"}));
  EXPECT_EQ(keys(out["coverage"]), (Keys{"tensors", "checked", "not_checked", "bytes", "from_cache"}));
  EXPECT_EQ(out["coverage"]["tensors"], 3);
  EXPECT_EQ(out["semantics"], "compat");
  ASSERT_EQ(out["hits"].size(), 2u);
  const Json& hit = out["hits"][0];
  EXPECT_EQ(keys(hit), (Keys{"watch",     "watch_name", "rule",  "abbr",       "severity",    "rank",   "graph",   "graph_id", "step",
                             "execution", "node",       "op",    "slot",       "gradient_of", "dtype",  "shape",   "message",  "actual",
                             "params",    "details",    "stats", "not_finite", "summary",     "advice", "follows", "source",   "stack"}));
  EXPECT_EQ(hit["node"], "D/a");
  EXPECT_EQ(hit["slot"], "output:0");
  EXPECT_EQ(hit["severity"], "error");
  EXPECT_EQ(hit["message"], "1 of 2 -Inf");
  EXPECT_EQ(hit["source"], Json::parse(R"json({"file": "t.py", "line": 38})json"));
  EXPECT_EQ(hit["shape"], Json::array({2}));
  EXPECT_EQ(keys(hit["stats"]), kStatsKeys);
  EXPECT_EQ(hit["stack"], Json::parse(R"json([{"file": "t.py", "line": 38, "code": "x = log(x)"}])json"));
}

TEST(Json, CausesAreThereOnceTheyWereLookedFor) {
  FakeSession s(json_net());
  put_broken(s);
  CheckResult result = checked(s, "TO");
  Json out = Json::parse(check_report(s, result, json_style()));
  EXPECT_TRUE(out["causes"].is_null());
  EXPECT_TRUE(out["hits"][0]["follows"].is_null());
  ASSERT_TRUE(find_causes(s, {}, &result).ok());
  out = Json::parse(check_report(s, result, json_style()));
  ASSERT_EQ(out["causes"].size(), 1u);
  EXPECT_EQ(keys(out["causes"][0]), (Keys{"kind", "sentence", "evidence", "rank", "graph", "graph_id", "step", "execution", "node", "op",
                                          "slot", "steps", "findings", "total", "source", "stack"}));
  EXPECT_EQ(out["causes"][0]["findings"], 2);
  for (const Json& hit : out["hits"]) EXPECT_EQ(hit["follows"], 0);
}

TEST(Json, ThresholdConditionCarriesItsParametersAndNotCheckedItsReason) {
  FakeSession s(json_net());
  put_broken(s);
  s.put("p", 0, f32({5, 1}));
  const Json out = Json::parse(check_report(s, checked(s, "TL max_gt=1"), json_style()));
  ASSERT_EQ(out["hits"].size(), 1u);
  EXPECT_EQ(out["hits"][0]["params"],
            Json::parse(R"json([{"name": "max_gt", "threshold": 1.0, "actual": 5.0, "hit": true}])json"));
  EXPECT_EQ(out["hits"][0]["actual"], 5.0);
  EXPECT_EQ(out["hits"][0]["message"], "max 5 > 1");
  ASSERT_EQ(out["not_checked"].size(), 2u);
  EXPECT_EQ(keys(out["not_checked"][0]), (Keys{"watch", "rule", "abbr", "rank", "graph", "graph_id", "step", "execution", "node", "op",
                                               "slot", "reason", "error_code", "errors"}));
  EXPECT_EQ(out["not_checked"][0]["error_code"], 2);
}

TEST(Json, CheckLinesAreOneHitEachAndASummary) {
  FakeSession s(json_net());
  put_broken(s);
  const std::string text = check_report(s, checked(s, "TO"), json_style(Format::kJsonl));
  ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(Json::parse(text.substr(0, text.find('\n')))["node"], "D/a");
  const Json last = Json::parse(text.substr(text.rfind('\n', text.size() - 2) + 1));
  EXPECT_EQ(keys(last["summary"]), (Keys{"msdbg", "dump", "semantics", "steps", "interrupted", "coverage", "by_rank", "total_hits",
                                         "causes", "explained", "overflows", "from_rules", "rules", "rule_problems", "gate", "not_checked"}));
  EXPECT_EQ(last["summary"]["total_hits"], 2);
}

TEST(Json, OriginHasTheAgreedKeysInOrder) {
  FakeSession s(json_net());
  put_broken(s);
  const Json out = Json::parse(origin_report(s, find_origins(s, {}).value(), json_style()));
  EXPECT_EQ(keys(out), (Keys{"msdbg", "dump", "predicate", "interrupted", "coverage", "steps", "origins", "put_in", "overflows", "overwritten",
                             "not_checked", "unfinished"}));
  EXPECT_EQ(out["predicate"], "NaN or Inf");
  ASSERT_EQ(out["origins"].size(), 1u);
  const Json& origin = out["origins"][0];
  EXPECT_EQ(keys(origin), (Keys{"order", "kind", "certain", "rank",   "graph",   "graph_id",      "step",       "execution", "node",
                                "op",    "slot", "ranks",   "dtype",  "shape",   "message",       "not_finite", "stats",     "bad_count",
                                "first", "rows", "inputs",  "chains", "reached", "ranks_reached", "update",     "put_in",    "sound_before", "part_of",
                                "bad_part", "grown", "source", "stack"}));
  EXPECT_EQ(origin["first"], Json::parse("[[0]]"));
  EXPECT_EQ(keys(origin["inputs"][0]),
            (Keys{"slot", "rank", "node", "producer_slot", "state", "reason", "message", "zeros_at_bad", "stats"}));
  EXPECT_EQ(origin["message"], "1 of 2 elements are -Inf, none NaN; first at [0]");
  EXPECT_EQ(origin["not_finite"], "1 of 2 -Inf");
  EXPECT_EQ(origin["inputs"][0]["message"], "finite, min 0, max 1, 1 zero at the same places");
  EXPECT_EQ(origin["chains"][0][1]["not_finite"], "1 of 2 NaN");
  EXPECT_EQ(origin["inputs"][0]["node"], "p");
  ASSERT_EQ(origin["chains"].size(), 1u);
  ASSERT_EQ(origin["chains"][0].size(), 2u);
  EXPECT_EQ(origin["chains"][0][1]["node"], "D/b");
  EXPECT_EQ(origin["chains"][0][1]["bad"], true);
  EXPECT_EQ(out["steps"][0]["origin_count"], 1);
  EXPECT_EQ(out["steps"][0]["bad_tensors"], 2);
  EXPECT_EQ(origin["reached"], 2);
}

TEST(Json, StatsNodesAndDoctorHaveTheAgreedKeysInOrder) {
  FakeSession s(json_net());
  put_broken(s);
  const TensorId id = s.id("D/a", 0);
  const Json stats = Json::parse(stats_report(s, {{s.describe(id).value(), s.stats(id).value()}}, json_style()));
  EXPECT_EQ(keys(stats), (Keys{"dump", "tensors"}));
  EXPECT_EQ(keys(stats["tensors"][0]), (Keys{"rank", "graph", "graph_id", "step", "execution", "node", "op", "slot", "gradient_of", "dtype",
                                             "shape", "stats", "problem"}));

  const GraphPtr graph = s.graphs()[0];
  const Json nodes = Json::parse(nodes_report(s, {{graph.get(), id.node}}, json_style()));
  EXPECT_EQ(keys(nodes), (Keys{"dump", "nodes"}));
  EXPECT_EQ(keys(nodes["nodes"][0]),
            (Keys{"name", "op", "kind", "scope", "rank", "graph", "graph_id", "inputs", "outputs", "source", "stack"}));
  EXPECT_EQ(nodes["nodes"][0]["inputs"], Json::parse(R"json([{"node": "p", "slot": "output:0"}])json"));
  EXPECT_EQ(nodes["nodes"][0]["outputs"], Json::parse(R"json([{"dtype": "unknown", "shape": null}])json"));

  const Json doctor = Json::parse(doctor_report(s, s.inspect(), json_style()));
  EXPECT_EQ(keys(doctor), (Keys{"dump", "layout", "epoch", "framework_version", "device_target", "nets", "ranks", "graphs", "files",
                                "by_rank", "problems", "settings"}));
  EXPECT_EQ(keys(doctor["graphs"][0]), (Keys{"rank", "graph", "graph_id", "kernels", "steps", "from_file"}));
  EXPECT_EQ(keys(doctor["files"]),
            (Keys{"tensors", "parameters", "constants", "statistics", "device_format", "other"}));
  EXPECT_EQ(doctor["graphs"][0]["steps"], Json::array({0}));
  EXPECT_EQ(doctor["graphs"][0]["kernels"], 2);
}

TEST(Json, ValuesThatDoNotExistAreNullAndInfinitiesAreText) {
  const Json none = Json::parse(json_text(stats_answer(compute_stats(f32({NAN, NAN})->view()), Shape{2})));
  EXPECT_TRUE(none["min"].is_null());
  EXPECT_TRUE(none["mean"].is_null());
  EXPECT_EQ(none["nan_count"], 2);
  EXPECT_EQ(none["first_bad"], Json::array({0}));

  Stats stats;
  stats.known = kStatMax | kStatMean;
  stats.max = 3;
  stats.mean = -INFINITY;
  const Json some = Json::parse(json_text(stats_answer(stats, {})));
  EXPECT_EQ(some["max"], 3.0);
  EXPECT_EQ(some["mean"], "-Infinity");
  EXPECT_TRUE(some["count"].is_null());
  EXPECT_TRUE(some["zero_percentage"].is_null());
}

TEST(Json, NamesThatAreNoUtf8GiveValidJson) {
  FakeSession s(fake_graph({{"D/\xff\xfe\x1b[0m", "X"}}));
  s.put("D/\xff\xfe\x1b[0m", 0, f32({NAN}));
  const std::string text = check_report(s, checked(s, "TO"), json_style());
  const Json out = Json::parse(text);
  EXPECT_EQ(out["hits"].size(), 1u);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Json, InterruptedResultsSaySo) {
  FakeSession s(json_net());
  put_broken(s);
  CheckResult result = checked(s, "TO");
  result.interrupted = true;
  result.total_hits = 9;
  const Json out = Json::parse(check_report(s, result, json_style()));
  EXPECT_EQ(out["interrupted"], true);
  EXPECT_EQ(out["total_hits"], 9);
}

TEST(Json, OutputIsTheSameForEveryNumberOfThreads) {
  std::vector<std::string> texts;
  for (unsigned threads : {1u, 5u}) {
    FakeSession s(json_net());  // a second query to the same session would be answered from cached statistics, and report that
    put_broken(s);
    OriginOptions options;
    options.threads = threads;
    texts.push_back(origin_report(s, find_origins(s, options).value(), json_style()));
  }
  EXPECT_EQ(texts[0], texts[1]);
}

}  // namespace
}  // namespace msdbg
