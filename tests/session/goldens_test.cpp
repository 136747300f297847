// The results of MindSpore's own offline debugger on real dumps, compared tensor by tensor with check() and stats().
//
// A golden identifies each tensor by its file: the test finds a value by the file it came from, and compares the names as well. If
// an entry has `rule` or `rule_stats`, the reference is known to be wrong and the rule applies.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "msdbg/check.h"
#include "msdbg/dump.h"


namespace msdbg {
namespace {

using Json = nlohmann::json;

const std::string kData = MSDBG_TEST_DATA;

Json read_json(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

double number(const Json& value) {
  return value.is_string() ? parse_double(value.get<std::string>()).value() : value.get<double>();
}

/// Letters and digits, everything else as one `_`: what every release keeps of a name in file names.
std::string plain(std::string_view name) {
  std::string text;
  for (char c : name) {
    const bool keep = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (keep) text += c;
    if (!keep && !text.empty() && text.back() != '_') text += '_';
  }
  return text;
}

bool same_name(std::string_view golden, std::string_view ours) {
  const std::string a = plain(golden), b = plain(ours);
  return a.ends_with(b) || b.ends_with(a);
}

/// Statistics that are sums and may differ in the last bits; all others are exact.
bool is_sum(std::string_view param) {
  return param.find("mean") != std::string_view::npos || param.find("sd") != std::string_view::npos;
}

bool close(double actual, double wanted, double scale) {
  if (std::isnan(wanted) || std::isinf(wanted)) return std::isnan(wanted) ? std::isnan(actual) : actual == wanted;
  return std::abs(actual - wanted) <= 1e-12 * scale;
}

/// An open dump and its tensors by file.
class OpenDump {
 public:
  explicit OpenDump(const std::string& name) {
    Result<std::unique_ptr<Session>> opened = open_dump(kData + "/dumps/" + name);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    if (!opened) return;
    session_ = std::move(*opened);
    for (int64_t step : session_->steps()) {
      TensorQuery query;
      query.inputs = true;
      query.steps = IntSet::of(step);  // separately: constants are listed for the first requested step
      for (const TensorId& id : session_->tensors(query)) {
        const Result<TensorInfo> info = session_->describe(id);
        if (!info) continue;  // a file that is in a golden but missing here fails in find()
        by_file_[info->source.substr(info->source.find("/rank_") + 1)] = id;
      }
    }
  }

  Session* session() { return session_.get(); }
  const TensorId* find(const std::string& file) const {
    auto it = by_file_.find(file);
    return it == by_file_.end() ? nullptr : &it->second;
  }

 private:
  std::unique_ptr<Session> session_;
  std::map<std::string, TensorId> by_file_;
};

void expect_stats(const Json& wanted, const Json& rule, const Stats& have) {
  auto field = [&](const char* name) {
    return rule.is_object() && rule.contains(name) ? rule.at(name) : wanted.at(name);
  };
  auto value = [&](const char* name, double actual, double scale) {
    const Json golden = field(name);
    if (golden.is_null()) {
      EXPECT_TRUE(std::isnan(actual)) << name;
    } else if (scale == 0) {
      EXPECT_EQ(actual, number(golden)) << name;
    } else {
      EXPECT_TRUE(close(actual, number(golden), scale)) << name << ": " << actual << " instead of " << number(golden);
    }
  };
  EXPECT_EQ(have.count, field("count").get<uint64_t>());
  EXPECT_EQ(have.zero_count, field("zero").get<uint64_t>());
  EXPECT_EQ(have.neg_count, field("negative").get<uint64_t>());
  EXPECT_EQ(have.pos_count, field("positive").get<uint64_t>());
  EXPECT_EQ(have.nan_count, field("nan").get<uint64_t>());
  EXPECT_EQ(have.neg_inf_count, field("neg_inf").get<uint64_t>());
  EXPECT_EQ(have.pos_inf_count, field("pos_inf").get<uint64_t>());
  EXPECT_EQ(have.dtype == DType::kBool, field("is_bool").get<bool>());
  value("max", have.max, 0);
  value("min", have.min, 0);
  value("avg", have.mean, have.abs_mean);
}

// ---- goldens -------------------------------------------------------------------------------------------------------

class Golden : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = read_json(kData + "/goldens/" + GetParam() + ".json");
    ASSERT_EQ(golden_.at("format"), "msdbg-golden-1");
    dump_ = std::make_unique<OpenDump>(golden_.at("dump").get<std::string>());
    ASSERT_NE(dump_->session(), nullptr);
  }
  Session& session() { return *dump_->session(); }

  /// The file that the reference used as the previous value: the newest of the same slot.
  const TensorId* previous_file(const Json& group, const Json& tensor) const {
    const Json step = group.contains("rule_previous") ? group.at("rule_previous") : group.at("previous");
    if (step.is_null()) return nullptr;
    for (const Json& other : golden_.at("tensors")) {
      if (other.at("graph") == tensor.at("graph") && other.at("iteration") == step &&
          other.at("node") == tensor.at("node") && other.at("io") == tensor.at("io") &&
          other.at("slot") == tensor.at("slot")) {
        return dump_->find(other.at("file").get<std::string>());
      }
    }
    return nullptr;
  }

  /// True in the two cases in which a session compares with another value than the reference: constants, which are a single value
  /// without a previous one here, and loop bodies, where the reference compares the newest executions of two steps and a session
  /// those with the same number.
  bool other_previous(const TensorId& id, const TensorId& before) {
    bool history_missing = false;
    const Result<TensorId> ours = session().previous(id, &history_missing);
    if (history_missing || (ours && *ours == before)) return false;
    const bool constant = session().node(id).kind == NodeKind::kConstant;
    EXPECT_TRUE(constant || id.execution > 0 || before.execution > 0) << session().tensor_name(id);
    return true;
  }

  Json golden_;
  std::unique_ptr<OpenDump> dump_;
};

TEST_P(Golden, EveryTensorIsListedUnderItsNameWithItsStatistics) {
  ASSERT_FALSE(golden_.at("tensors").empty());
  for (const Json& tensor : golden_.at("tensors")) {
    const std::string file = tensor.at("file");
    SCOPED_TRACE(file);
    const TensorId* id = dump_->find(file);
    ASSERT_NE(id, nullptr) << "not listed";
    EXPECT_EQ(id->graph, tensor.at("graph").get<int>());
    EXPECT_EQ(id->step, tensor.at("iteration").get<int64_t>());
    EXPECT_EQ(slot_name(id->slot),
              tensor.at("io").get<std::string>() + ":" + std::to_string(tensor.at("slot").get<int>()));
    EXPECT_TRUE(same_name(tensor.at("node").get<std::string>(), session().node(*id).name) ||
                same_name(tensor.at("node").get<std::string>(), session().node(*id).file_key))
        << tensor.at("node") << " is " << session().node(*id).name;
    const Result<TensorInfo> info = session().describe(*id);
    ASSERT_TRUE(info.ok()) << info.status().message();
    EXPECT_EQ(dtype_name(info->dtype), tensor.at("dtype").get<std::string>());
    EXPECT_EQ(info->shape, tensor.at("shape").get<Shape>());
    EXPECT_EQ(info->bytes, tensor.at("bytes").get<uint64_t>());
    const Result<Stats> stats = session().stats(*id);
    ASSERT_TRUE(stats.ok()) << stats.status().message();
    expect_stats(tensor.at("stats"), tensor.value("rule_stats", Json()), *stats);
  }
}

/// The expected result for one tensor and watchpoint.
struct Wanted {
  bool hit = false;
  uint32_t error = 0;
  Json actual = Json::object();
  std::optional<std::set<std::string>> satisfied;
};

Wanted wanted_of(const Json& record) {
  Wanted wanted;
  if (record.contains("rule")) {
    const Json& rule = record.at("rule");
    wanted.hit = rule.at("hit");
    wanted.error = rule.at("error");
    wanted.actual = rule.value("actual", Json::object());
    return wanted;
  }
  wanted.error = record.at("error");
  wanted.hit = wanted.error == 0;
  wanted.actual = record.value("actual", Json::object());
  if (record.contains("satisfied")) wanted.satisfied = record.at("satisfied").get<std::set<std::string>>();
  return wanted;
}

/// The actual result.
struct Answer {
  Verdict verdict = Verdict::kClean;
  uint32_t error = 0;
  std::string reason;
  std::vector<ParamResult> params;
};
using Answers = std::map<std::pair<int, TensorId>, Answer>;

Answers answers_of(const CheckResult& result) {
  Answers answers;
  for (const Hit& hit : result.hits) answers[{hit.watch_id, hit.tensor}] = {Verdict::kHit, 0, "", hit.params};
  for (const NotChecked& open : result.not_checked) {
    answers[{open.watch_id, open.tensor}] = {Verdict::kNotChecked, open.error_code, open.reason, {}};
  }
  return answers;
}

Watchpoint watchpoint_of(const Json& golden) {
  Watchpoint watch;
  watch.id = golden.at("id");
  watch.on = Selector::parse("@all or @constant").value();  // selects the watched nodes from the answers
  watch.inputs = !golden.at("is_output").get<bool>();
  watch.outputs = !watch.inputs;
  Condition condition;  // as passed to the evaluator: some goldens have bounds that creation refuses
  condition.spec = find_condition(golden.at("condition").get<std::string>()).value();
  for (const auto& [name, value] : golden.at("params").items()) condition.params[name] = number(value);
  EXPECT_EQ(condition.spec->enumerator, golden.at("enum").get<int>());
  watch.rule = condition.spec->id;
  watch.condition = std::move(condition);
  return watch;
}

/// A mean within rounding of its threshold may fall on either side.
bool on_the_edge(const Condition& condition, const Wanted& wanted, const Answer& answer, double scale) {
  for (const auto& [name, threshold] : condition.params) {
    if (!is_sum(name == "param" ? condition.spec->id : std::string_view(name))) continue;
    std::optional<double> actual;
    if (wanted.actual.contains(name)) actual = number(wanted.actual.at(name));
    for (const ParamResult& param : answer.params) {
      if (param.name == name && param.actual) actual = param.actual;
    }
    if (actual && std::abs(*actual - threshold) <= 1e-9 * scale) return true;
  }
  return false;
}

/// `abs_mean` is the tensor's: a mean may cancel out, therefore its rounding is measured by the mean of absolute values.
void expect_same(const Condition& condition, const Wanted& wanted, const Answer& answer, double abs_mean) {
  if (on_the_edge(condition, wanted, answer, abs_mean)) return;
  EXPECT_EQ(answer.verdict == Verdict::kHit, wanted.hit) << answer.reason;
  EXPECT_EQ(answer.error, wanted.error) << answer.reason;
  if (answer.verdict != Verdict::kHit || !wanted.hit) return;
  std::set<std::string> satisfied;
  for (const ParamResult& param : answer.params) {
    if (param.hit) satisfied.insert(param.name);
    ASSERT_EQ(param.actual.has_value(), wanted.actual.contains(param.name)) << param.name;
    if (!param.actual) continue;
    const double golden = number(wanted.actual.at(param.name));
    const bool ratio = param.name.find("ratio") != std::string::npos;
    const bool sum = is_sum(param.name == "param" ? condition.spec->id : std::string_view(param.name));
    const double scale = !sum ? 0 : ratio ? std::abs(golden) : std::max(abs_mean, std::abs(golden));
    EXPECT_TRUE(close(*param.actual, golden, scale)) << param.name << ": " << *param.actual << " instead of " << golden;
  }
  if (wanted.satisfied) {
    EXPECT_EQ(satisfied, *wanted.satisfied);
  }
}

/// The result against a previous value chosen by the test.
Answer answer_against(Session& session, const Condition& condition, const TensorId& id, const TensorId& previous) {
  StatsRequest request;
  add_needs(condition, request);
  const Result<Stats> stats = session.stats(id, previous, request);
  EXPECT_TRUE(stats.ok()) << stats.status().message();
  if (!stats) return {};
  const Decision decision = decide(condition, *stats, request, Previous::kPresent, Semantics::kCompat);
  return {decision.verdict, decision.error_code, decision.reason, decision.params};
}

TEST_P(Golden, EveryWatchpointAnswersAsTheReference) {
  std::vector<Watchpoint> watches;
  std::map<int, std::set<std::string>> nodes;
  std::map<int, int> graph_of;
  for (const Json& watch : golden_.at("watchpoints")) {
    watches.push_back(watchpoint_of(watch));
    nodes[watches.back().id] = watch.at("nodes").get<std::set<std::string>>();
    graph_of[watches.back().id] = watch.at("graph");
  }
  std::map<int64_t, CheckResult> results;
  size_t compared = 0, hits = 0;
  for (const Json& group : golden_.at("checks")) {
    const int64_t step = group.at("iteration");
    const int graph = group.at("graph");
    if (results.count(step) == 0) {
      CheckOptions options;
      options.steps = IntSet::of(step);
      Result<CheckResult> result = check(session(), watches, options);
      ASSERT_TRUE(result.ok()) << result.status().message();
      results[step] = std::move(*result);
    }
    const Answers answers = answers_of(results[step]);
    std::map<std::tuple<int, std::string, int>, const Json*> records;
    for (const Json& record : group.at("records")) {
      records[{record.at("w").get<int>(), record.at("node").get<std::string>(), record.at("slot").get<int>()}] =
          &record;
    }
    for (const Json& tensor : golden_.at("tensors")) {
      if (tensor.at("graph") != graph || tensor.at("iteration") != step) continue;
      const std::string node = tensor.at("node");
      const TensorId* id = dump_->find(tensor.at("file").get<std::string>());
      ASSERT_NE(id, nullptr);
      for (const Watchpoint& watch : watches) {
        const bool is_output = tensor.at("io") == "output";
        if (graph_of[watch.id] != graph || is_output != watch.outputs || nodes[watch.id].count(node) == 0) continue;
        SCOPED_TRACE(watch.condition->text() + " on " + tensor.at("file").get<std::string>());
        const auto record = records.find({watch.id, node, tensor.at("slot").get<int>()});
        const Wanted wanted = record == records.end() ? Wanted{} : wanted_of(*record->second);
        ++compared;
        hits += wanted.hit ? 1 : 0;
        const double abs_mean = session().stats(*id)->abs_mean;
        const TensorId* before = watch.condition->spec->needs_previous ? previous_file(group, tensor) : nullptr;
        if (before && other_previous(*id, *before)) {
          expect_same(*watch.condition, wanted, answer_against(session(), *watch.condition, *id, *before), abs_mean);
          continue;
        }
        const auto found = answers.find({watch.id, *id});
        expect_same(*watch.condition, wanted, found == answers.end() ? Answer{} : found->second, abs_mean);
      }
    }
  }
  EXPECT_GT(compared, 100u);
  EXPECT_GT(hits, 0u);
}

INSTANTIATE_TEST_SUITE_P(Dumps, Golden,
                         ::testing::Values("lenet-2.0.0-ok", "lenet-2.0.0-filter", "lenet-1.5.0-ok",
                                           "lenet-2.7.1-lognan", "types-1.5.0", "types-2.0.0", "two-1.5.0", "two-2.0.0",
                                           "control-1.5.0", "control-2.0.0", "long-1.5.0", "long-2.0.0"),
                         [](const auto& made) { return plain(made.param); });

// ---- the other reader ----------------------------------------------------------------------------------------------

/// Conditions of the reference files, by number.
constexpr std::pair<int, const char*> kReferenceWatches[] = {{1, "TO"},
                                                             {2, "TL abs_mean_gt=1"},
                                                             {3, "TZ 40"},
                                                             {4, "WCL abs_mean_update_ratio_gt=0.5"},
                                                             {5, "WNC rtol=1e-5 atol=1e-8"}};

class Reference : public Golden {
 protected:
  void SetUp() override {
    golden_ = read_json(kData + "/reference/" + GetParam() + ".json");
    dump_ = std::make_unique<OpenDump>(GetParam());
    ASSERT_NE(dump_->session(), nullptr);
  }

  TensorId id_of(const std::string& node, const Json& step, Io io, const Json& slot) {
    TensorId id;
    const Node* found = session().graph(0, 0)->find(node);
    EXPECT_NE(found, nullptr) << node;
    id.node = found ? found->id : kNoNode;
    id.step = step;
    id.slot = {io, slot.get<uint32_t>()};
    return id;
  }
};

TEST_P(Reference, StatisticsOfEveryKernelAgree) {
  for (const Json& row : golden_.at("statistics")) {
    const TensorId id =
        id_of(row.at("node"), row.at("iteration"), row.at("io") == "input" ? Io::kInput : Io::kOutput, row.at("slot"));
    SCOPED_TRACE(session().tensor_name(id));
    const Result<Stats> stats = session().stats(id);
    ASSERT_TRUE(stats.ok()) << stats.status().message();
    EXPECT_EQ(stats->dtype, dtype_from_mindspore(row.at("dtype")));
    EXPECT_EQ(session().describe(id)->shape, row.at("shape").get<Shape>());
    expect_stats(row, Json(), *stats);
  }
}

TEST_P(Reference, HitsOfEveryKernelOutputAgree) {
  std::set<std::string> kernels;
  for (const Json& row : golden_.at("statistics")) kernels.insert(row.at("node"));
  std::vector<Watchpoint> watches;
  for (const auto& [id, text] : kReferenceWatches) {
    Watchpoint watch;
    watch.id = id;
    watch.on = Selector::parse("@all").value();
    watch.condition = parse_condition(text).value();
    watch.rule = text;
    watches.push_back(std::move(watch));
  }
  Result<CheckResult> result = check(session(), watches, {});
  ASSERT_TRUE(result.ok()) << result.status().message();

  using Key = std::tuple<int64_t, int, std::string, uint32_t, uint32_t>;  // step, watchpoint, node, slot, error code
  std::set<Key> wanted, have;
  for (const Json& hit : golden_.at("hits")) {
    wanted.emplace(hit.at("iteration").get<int64_t>(), hit.at("watchpoint").get<int>(),
                   hit.at("name").get<std::string>(), hit.at("slot").get<uint32_t>(),
                   hit.at("error_code").get<uint32_t>());
  }
  auto keep = [&](const TensorId& id, int watch, uint32_t error) {
    const std::string& name = session().node(id).name;
    if (kernels.count(name)) have.emplace(id.step, watch, name, id.slot.index, error);
  };
  for (const Hit& hit : result->hits) keep(hit.tensor, hit.watch_id, 0);
  for (const NotChecked& open : result->not_checked) {
    if (open.error_code != 0) keep(open.tensor, open.watch_id, open.error_code);
  }
  EXPECT_EQ(have, wanted);
}

INSTANTIATE_TEST_SUITE_P(Dumps, Reference, ::testing::Values("lenet-1.5.0-ok", "lenet-2.0.0-ok", "lenet-2.0.0-filter"),
                         [](const auto& made) { return plain(made.param); });

}  // namespace
}  // namespace msdbg
