#include "script/rule_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "script/rule_clock.h"
#include "script/rule_findings.h"
#include "script/rule_ranks.h"

namespace msdbg::script {

/// The tensor that the rules of a check are asked about, one after the other: all get the same object.
struct TensorAtHand {
  TensorId id;
  std::optional<FunctionRef> object;
};

namespace {

using Function = std::shared_ptr<FunctionRef>;

// Shared by the functions of one rule.
struct RuleState {
  std::shared_ptr<RuleInfo> info;
  std::shared_ptr<TensorAtHand> at_hand;
  double budget = kDefaultRuleBudget;
  bool needs_previous = false, needs_elements = false;
  uint32_t fields = 0;   ///< required statistics
  uint32_t operand_has = 0;  ///< `check` is called only where this count of an operand is above 0
  Function check, except, step_end, finish;
  std::string given_up;  ///< reason why it is no longer called

  std::string broken(const RuleCall& call) {
    const std::string reason = "rule error: " + call.problem();
    if (call.exceeded_limit()) given_up = reason;
    return reason;
  }
};

// clang-format off
constexpr std::pair<std::string_view, uint32_t> kStatFields[] = {
    {"count", kStatCount},          {"min", kStatMin},              {"max", kStatMax},         {"mean", kStatMean},
    {"abs_mean", kStatAbsMean},     {"std", kStatStd},              {"l2_norm", kStatL2Norm},  {"nan_count", kStatNan},
    {"pos_inf_count", kStatPosInf}, {"neg_inf_count", kStatNegInf}, {"zero_count", kStatZero}, {"pos_count", kStatPos},
    {"neg_count", kStatNeg},        {"first_bad", kStatFirstBad},   {"dtype_max_count", kStatDtypeMax},
    {"zero_percentage", kStatZero | kStatCount}};
// clang-format on
constexpr uint32_t kCounts = kStatNan | kStatPosInf | kStatNegInf | kStatZero | kStatPos | kStatNeg | kStatDtypeMax;
// Fields that a row of statistic.csv may contain.
constexpr uint32_t kRowFields = kStatCount | kStatMin | kStatMax | kStatMean | kStatNan | kStatPosInf | kStatNegInf | kStatZero | kStatPos |
                                kStatNeg | kStatL2Norm | kStatStd;

void read_needs(lua_State* L, int index, RuleState& rule, Watchpoint& point) {
  OptionTable instance(L, index, "rule");
  instance.with("needs", [&](int at) {
    for (const std::string& word : list_argument<std::string>(L, at, fmt::format("rule '{}': field 'needs'", rule.info->name))) {
      if (word == "previous") rule.needs_previous = true;
      else if (word == "elements") rule.needs_elements = true;
      for (const auto& [name, bits] : kStatFields) {
        if (name == word) rule.fields |= bits;
      }
    }
    // A comparison with the previous value needs the elements of both.
    point.needs_elements = rule.needs_elements || rule.needs_previous || rule.fields == 0 || (rule.fields & ~kRowFields) != 0;
  });
}

void read_operand_has(lua_State* L, int index, RuleState& rule) {
  const std::string word = text_field(L, index, "operand_has");
  if (word.empty()) return;
  for (const auto& [name, field] : kStatFields) {
    if (name == word && (field & ~kCounts) == 0) rule.operand_has = field;
  }
  if (rule.operand_has == 0) misuse(fmt::format("rule '{}': field 'operand_has': no count '{}'", rule.info->name, word));
}

Function function_field(lua_State* L, int index, const char* key, Vm& vm) {
  push_raw(L, index, key);
  if (lua_isfunction(L, -1)) return std::make_shared<FunctionRef>(vm, L);
  lua_pop(L, 1);
  return nullptr;
}

ScriptVerdict not_checked(std::string reason, uint32_t code = 0) {
  ScriptVerdict verdict;
  verdict.verdict = Verdict::kNotChecked;
  verdict.reason = std::move(reason);
  verdict.error_code = code;
  return verdict;
}

// The statistics of the previous value. nullopt: see `why`, which stays empty for an empty tensor.
std::optional<std::pair<Stats, Shape>> previous_stats(SessionBox& box, const CheckedTensor& tensor, ScriptVerdict* why) {
  Session& session = *box.session;
  bool history_missing = false;
  const Result<TensorId> id = session.previous(tensor.id, &history_missing);
  if (!id) {
    // As for conditions: an empty tensor has nothing that could have changed.
    if (tensor.stats->knows(kStatCount) && tensor.stats->count == 0) {
      *why = ScriptVerdict{};
    } else {
      *why = not_checked(history_missing ? "no execution history of the graph" : "no previous step",
                         kErrorNoPrevious | (history_missing ? uint32_t{kErrorNoHistory} : 0));
    }
    return std::nullopt;
  }
  const Result<Stats> stats = session.stats(*id);
  const Result<TensorInfo> info = session.describe(*id);
  if (!stats || !info) {
    *why = not_checked(
        fmt::format("previous step {} cannot be used: {}", id->step, stats ? info.status().message() : stats.status().message()),
        kErrorNoPrevious);
    return std::nullopt;
  }
  return std::pair(*stats, info->shape);
}

void push_tensor_at_hand(lua_State* L, SessionBox& box, RuleState& rule, const CheckedTensor& tensor) {
  if (!rule.at_hand) return push_checked_tensor(L, box, tensor);
  TensorAtHand& at_hand = *rule.at_hand;
  if (!at_hand.object || at_hand.id != tensor.id) {
    at_hand.id = tensor.id;
    push_checked_tensor(L, box, tensor);
    at_hand.object.emplace(*box.vm, L);
  }
  at_hand.object->push(L);
}

// `previous` may be null.
ScriptVerdict call_with_tensor(SessionBox& box, RuleState& rule, const Function& function, const CheckedTensor& tensor,
                               const std::pair<Stats, Shape>* previous) {
  lua_State* L = box.thread;
  const int top = lua_gettop(L);
  if (!lua_checkstack(L, 20)) return not_checked("rule error: the Lua stack is full");
  function->push(L);
  push_tensor_at_hand(L, box, rule, tensor);
  if (previous != nullptr) push_stats(L, previous->first, previous->second);
  else lua_pushnil(L);
  push(L, tensor.id.step);
  push(L, tensor.id.rank);
  RuleCall call(*box.vm, rule.budget, rule.info->name.c_str());
  ScriptVerdict verdict;
  if (call.call(L, 4, 1)) verdict = read_verdict(L);
  else verdict = not_checked(call.cancelled() ? "interrupted" : rule.broken(call));
  lua_settop(L, top);
  return verdict;
}

// True also where an operand cannot be read: `check` tells what that means.
bool may_have(Session& session, const TensorId& tensor, uint32_t count) {
  const bool inputs_known = session.graph(tensor.rank, tensor.graph)->from_file();
  for (uint32_t index = 0;; ++index) {
    const std::optional<TensorId> operand = operand_of(session, tensor, index);
    if (!operand) return false;
    const Result<uint32_t> above_zero = session.counts_above_zero(*operand);
    if (above_zero ? (*above_zero & count) != 0 : above_zero.status().code() != Code::kNotFound) return true;
    if (!above_zero && !inputs_known) return false;  // only the dumped ones are known
  }
}

ScriptVerdict ask(SessionBox& box, RuleState& rule, const CheckedTensor& tensor) {
  if (!rule.given_up.empty()) return not_checked(rule.given_up);
  const bool elements = tensor.info == nullptr || tensor.info->availability != Availability::kStatisticsOnly;
  if (rule.needs_elements && !elements) return not_checked("no tensor data (statistics only)");
  if (!tensor.stats->knows(rule.fields)) return not_checked("no tensor data (the statistics do not decide it)");
  std::optional<std::pair<Stats, Shape>> previous;
  if (rule.needs_previous) {
    ScriptVerdict why;
    previous = previous_stats(box, tensor, &why);
    if (!previous) return why;
  }
  if (!rule.check) return {};  // it judges whole steps
  if (rule.operand_has != 0 && !may_have(*box.session, tensor.id, rule.operand_has)) return {};
  return call_with_tensor(box, rule, rule.check, tensor, previous ? &*previous : nullptr);
}

ScriptPhase run_phase(SessionBox& box, RuleState& rule, const Function& function, const char* phase, std::optional<int> rank,
                      std::optional<int64_t> step) {
  ScriptPhase out;
  if (!rule.given_up.empty()) return out;  // its tensors report the reason
  lua_State* L = box.thread;
  const int top = lua_gettop(L);
  if (!lua_checkstack(L, 20)) return out.problem = "rule error: the Lua stack is full", out;
  function->push(L);
  push(L, rank);
  push(L, step);
  RuleCall call(*box.vm, rule.budget, rule.info->name.c_str());
  if (call.call(L, 2, 1)) out = read_findings(L, box, rank, step, phase);
  else if (!call.cancelled()) out.problem = rule.broken(call);
  lua_settop(L, top);
  return out;
}

Severity severity_of(const std::string& word) {
  return word == "error" ? Severity::kError : word == "info" ? Severity::kInfo : Severity::kWarning;
}

// Appends watchpoints for the instance tables in the list at `index`, with new numbers; rules with an invalid selector or condition
// become problems.
void collect_rules(lua_State* L, int index, SessionBox& box, std::vector<Watchpoint>* points, CheckResult* result) {
  int id = 0;
  for (const Watchpoint& point : *points) id = std::max(id, point.id);
  const auto at_hand = std::make_shared<TensorAtHand>();
  for_each_element(L, index, "run_rules: instances", [&](int i) {
    const int at = lua_gettop(L);
    if (!lua_istable(L, at)) misuse(fmt::format("run_rules: instances: element {}: a table is expected, not {}", i, value_text(L, at)));
    try {
      points->push_back(rule_watchpoint(L, at, box, ++id, at_hand));
      // check() would fail for a selector without nodes, and with it all other rules.
      if (!points->back().optional) value_or_throw(resolve_or_explain(points->back().on, box.session->graphs()));
      result->rules.push_back(points->back().info);
    } catch (const ScriptError& error) {
      const std::string file = text_field(L, at, "file");
      result->rule_problems.push_back({text_field(L, at, "rule"),
                                       fmt::format("rule error: {}{}", file.empty() ? "" : file + ": ", error.message()),
                                       RuleProblemKind::kBroken});
      if (!points->empty() && points->back().id == id) points->pop_back();
    }
  });
}

// {{rule, reason, kind}} at `index`; kinds "unset" and "idle" are not errors of the rule.
std::vector<RuleProblem> read_problems(lua_State* L, int index) {
  std::vector<RuleProblem> out;
  for_each_element(L, index, "run_rules: problems", [&](int) {
    const std::string kind = text_field(L, -1, "kind");
    const RuleProblemKind means = kind == "unset"  ? RuleProblemKind::kUnset
                                  : kind == "idle" ? RuleProblemKind::kIdle
                                                   : RuleProblemKind::kBroken;
    const std::string reason = (means == RuleProblemKind::kBroken ? "rule error: " : "") + text_field(L, -1, "reason");
    out.push_back({text_field(L, -1, "rule"), reason, means});
  });
  return out;
}

}  // namespace

Result<CheckResult> check_with_rules(lua_State* L, SessionBox& box, int instances, int problems, std::vector<Watchpoint> points,
                                     const CheckOptions& options) {
  CheckResult rules;
  rules.rule_problems = read_problems(L, problems);
  collect_rules(L, instances, box, &points, &rules);
  Result<CheckResult> result = check_here(L, box, points, options);
  if (!result) return result;
  rules.rule_problems.insert(rules.rule_problems.end(), result->rule_problems.begin(), result->rule_problems.end());
  result->rule_problems = std::move(rules.rule_problems);
  result->rules = std::move(rules.rules);
  return result;
}

Watchpoint rule_watchpoint(lua_State* L, int index, SessionBox& box, int id, std::shared_ptr<TensorAtHand> at_hand) {
  Vm& vm = *box.vm;
  auto state = std::make_shared<RuleState>();
  state->at_hand = std::move(at_hand);
  state->info = std::make_shared<RuleInfo>();
  RuleInfo& info = *state->info;
  info.name = text_field(L, index, "rule");
  info.abbr = text_field(L, index, "abbr");
  info.summary = text_field(L, index, "summary");
  info.cause = text_field(L, index, "cause");
  info.next = text_field(L, index, "next");
  info.file = text_field(L, index, "file");
  info.severity = severity_of(text_field(L, index, "severity"));

  Watchpoint point;
  point.id = id;
  point.rule = info.name;
  point.name = text_field(L, index, "name");
  point.severity = info.severity;
  point.info = state->info;
  OptionTable instance(L, index, fmt::format("rule '{}'", info.name));
  point.optional = instance.boolean("optional").value_or(false);
  if (!instance.with("on", [&](int at) { point.on = selector_argument(L, at, "rule '" + info.name + "': what it selects"); }))
    misuse(fmt::format("rule '{}': field 'on' is missing", info.name));
  point.turn = instance.id("turn").value_or(0);
  state->budget = instance.number("budget").value_or(kDefaultRuleBudget);
  set_slots(&point, instance.text("slots").value_or("output"));
  point.inputs_instead = instance.boolean("inputs_instead").value_or(false);
  state->except = function_field(L, index, "except", vm);
  if (state->except) {
    point.except = [&box, state](const CheckedTensor& tensor) {
      return state->given_up.empty() ? call_with_tensor(box, *state, state->except, tensor, nullptr) : not_checked(state->given_up);
    };
  }
  if (const std::string when = text_field(L, index, "when"); !when.empty()) {
    When parsed = value_or_throw(parse_when(when));
    if (Condition* condition = std::get_if<Condition>(&parsed)) point.condition = std::move(*condition);
    else point.expression = std::move(std::get<Expression>(parsed));
    return point;
  }
  info.remembers = true;
  if (text_field(L, index, "compares") == "ranks") {
    compare_ranks(box, point);
    return point;
  }
  read_needs(L, index, *state, point);
  read_operand_has(L, index, *state);
  point.asks_for_counts = state->operand_has != 0;
  state->check = function_field(L, index, "check", vm);
  state->step_end = function_field(L, index, "step_end", vm);
  state->finish = function_field(L, index, "finish", vm);
  if (!state->check && !state->step_end && !state->finish)
    misuse(fmt::format("rule '{}': it has neither 'when' nor 'check', 'step_end' or 'finish'", info.name));
  point.script = [&box, state](const CheckedTensor& tensor) { return ask(box, *state, tensor); };
  if (state->step_end) {
    point.step_end = [&box, state](int rank, int64_t step) { return run_phase(box, *state, state->step_end, "step_end", rank, step); };
  }
  if (state->finish) {
    point.finish = [&box, state] { return run_phase(box, *state, state->finish, "finish", {}, {}); };
  }
  return point;
}

}  // namespace msdbg::script
