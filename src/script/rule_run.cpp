#include "script/rule_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "script/rule_clock.h"

namespace msdbg::script {
namespace {

using Function = std::shared_ptr<FunctionRef>;

// What the functions of one rule share.
struct RuleState {
  std::shared_ptr<RuleInfo> info;
  double budget = kDefaultRuleBudget;
  bool needs_previous = false;
  uint32_t fields = 0;   ///< statistics that must be known
  Function check, step_end, finish;
  std::string given_up;  ///< why it is not called any more

  std::string broken(const RuleCall& call) {
    const std::string reason = "rule error: " + call.problem();
    if (call.hopeless()) given_up = reason;
    return reason;
  }
};

// clang-format off
constexpr std::pair<std::string_view, uint32_t> kFields[] = {
    {"count", kStatCount},          {"min", kStatMin},              {"max", kStatMax},         {"mean", kStatMean},
    {"abs_mean", kStatAbsMean},     {"std", kStatStd},              {"l2_norm", kStatL2Norm},  {"nan_count", kStatNan},
    {"pos_inf_count", kStatPosInf}, {"neg_inf_count", kStatNegInf}, {"zero_count", kStatZero}, {"pos_count", kStatPos},
    {"neg_count", kStatNeg},        {"first_bad", kStatFirstBad},   {"dtype_max_count", kStatDtypeMax},
    {"zero_percentage", kStatZero | kStatCount}};
// clang-format on
// What a row of statistic.csv may say.
constexpr uint32_t kRowFields = kStatCount | kStatMin | kStatMax | kStatMean | kStatNan | kStatPosInf | kStatNegInf | kStatZero | kStatPos |
                                kStatNeg | kStatL2Norm | kStatStd;

void read_needs(lua_State* L, int index, RuleState& rule, Watchpoint& point) {
  lua_getfield(L, index, "needs");
  if (lua_istable(L, -1)) {
    bool elements = false;
    for (int i = 1;; ++i) {
      lua_rawgeti(L, -1, i);
      const auto word = text_at(L, -1);
      lua_pop(L, 1);
      if (!word) break;
      if (*word == "previous") rule.needs_previous = true;
      else if (*word == "elements") elements = true;
      for (const auto& [name, bits] : kFields) {
        if (name == *word) rule.fields |= bits;
      }
    }
    // The difference to the previous value is what such a rule is after, and that needs both.
    point.needs_elements = elements || rule.needs_previous || rule.fields == 0 || (rule.fields & ~kRowFields) != 0;
  }
  lua_pop(L, 1);
}

Function function_field(lua_State* L, int index, const char* key, Vm& vm) {
  lua_getfield(L, index, key);
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

// The statistics of the value before; nullopt with `why` filled, or, for an empty tensor, without.
std::optional<std::pair<Stats, Shape>> previous_stats(SessionBox& box, const CheckedTensor& tensor, ScriptVerdict* why) {
  Session& session = *box.session;
  bool history_missing = false;
  const Result<TensorId> id = session.previous(tensor.id, &history_missing);
  if (!id) {
    // As for conditions: there is nothing in an empty tensor that could have changed.
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

ScriptVerdict ask(SessionBox& box, RuleState& rule, const CheckedTensor& tensor) {
  if (!rule.given_up.empty()) return not_checked(rule.given_up);
  if (!tensor.stats->knows(rule.fields)) return not_checked("no tensor data (the statistics do not decide it)");
  std::optional<std::pair<Stats, Shape>> previous;
  if (rule.needs_previous) {
    ScriptVerdict why;
    previous = previous_stats(box, tensor, &why);
    if (!previous) return why;
  }
  lua_State* L = box.thread;
  const int top = lua_gettop(L);
  if (!lua_checkstack(L, 20)) return not_checked("rule error: the Lua stack is full");
  rule.check->push(L);
  auto object = std::make_shared<TensorBox>();
  object->session = box.shared_from_this();
  object->info = *tensor.info;
  object->info.id = tensor.id;
  object->stats = *tensor.stats;
  object->suspension = box.suspension;
  object->name = box.session->tensor_name(tensor.id);
  push_object(L, std::move(object));
  if (previous) push_stats(L, previous->first, previous->second);
  else lua_pushnil(L);
  RuleCall call(*box.vm, rule.budget, rule.info->name.c_str());
  ScriptVerdict verdict;
  if (call.call(L, 2, 1)) verdict = read_verdict(L);
  else verdict = not_checked(call.stopped_from_outside() ? "interrupted" : rule.broken(call));
  lua_settop(L, top);
  return verdict;
}

// ---- findings at the end of a step or of the run

std::string optional_text(lua_State* L, int index, const char* key) {
  lua_getfield(L, index, key);
  std::string text = text_at(L, -1).value_or("");
  lua_pop(L, 1);
  return text;
}

std::optional<int64_t> optional_integer(lua_State* L, int index, const char* key) {
  lua_getfield(L, index, key);
  const auto number = integer_at(L, -1);
  lua_pop(L, 1);
  return number;
}

// `fields` are those that say where, not what.
Result<TensorId> place_of(lua_State* L, int index, SessionBox& box, std::optional<int> rank, std::optional<int64_t> step) {
  lua_getfield(L, index, "tensor");
  const auto* holder = holder_at<TensorBox>(L, -1);
  const std::shared_ptr<TensorBox> tensor = holder != nullptr ? *holder : nullptr;
  lua_pop(L, 1);
  if (tensor) return tensor->info.id;
  const std::string node = optional_text(L, index, "node");
  if (node.empty()) return Status(Code::kInvalidArgument, "a finding has neither 'tensor' nor 'node'");
  if (const auto given = optional_integer(L, index, "rank")) rank = static_cast<int>(*given);
  if (const auto given = optional_integer(L, index, "step")) step = *given;
  if (!step) return Status(Code::kInvalidArgument, fmt::format("the finding on '{}' has no 'step'", node));
  const Result<NodeRef> ref = find_node(box.session->graphs(), node, rank, {});
  if (!ref) return ref.status();
  const std::string slot_text = optional_text(L, index, "slot");
  const auto slot = parse_slot(slot_text.empty() ? "output:0" : slot_text);
  if (!slot)
    return Status(Code::kInvalidArgument, fmt::format("the finding on '{}' has the slot '{}'; e.g. output:0 is one", node, slot_text));
  return TensorId{ref->graph->rank(), ref->graph->id(), *step, 0, ref->node, *slot};
}

ScriptPhase read_findings(lua_State* L, SessionBox& box, std::optional<int> rank, std::optional<int64_t> step, const char* phase) {
  ScriptPhase out;
  const int list = lua_gettop(L);
  if (lua_isnil(L, list)) return out;
  for (int i = 1;; ++i) {
    lua_rawgeti(L, list, i);
    if (lua_isnil(L, -1)) break;
    const int entry = lua_gettop(L);
    if (!lua_istable(L, entry)) {
      out.problem = fmt::format("rule error: element {} of what {} returned is {}; a table with 'tensor' or 'node' is expected", i, phase,
                                value_text(L, entry));
      return out;
    }
    const Result<TensorId> place = place_of(L, entry, box, rank, step);
    if (!place) {
      out.problem = fmt::format("rule error: {}: {}", phase, place.status().message());
      return out;
    }
    for (const char* key : {"tensor", "node", "step", "rank", "slot"}) {
      lua_pushnil(L);
      lua_setfield(L, entry, key);
    }
    ScriptVerdict verdict = read_verdict(L);
    out.findings.push_back({*place, verdict.actual, std::move(verdict.details)});
  }
  return out;
}

ScriptPhase run_phase(SessionBox& box, RuleState& rule, const Function& function, const char* phase, std::optional<int> rank,
                      std::optional<int64_t> step) {
  ScriptPhase out;
  if (!rule.given_up.empty()) return out;  // its tensors say so
  lua_State* L = box.thread;
  const int top = lua_gettop(L);
  lua_checkstack(L, 20);
  function->push(L);
  if (rank) lua_pushinteger(L, *rank);
  else lua_pushnil(L);
  if (step) lua_pushnumber(L, static_cast<double>(*step));
  else lua_pushnil(L);
  RuleCall call(*box.vm, rule.budget, rule.info->name.c_str());
  if (call.call(L, 2, 1)) out = read_findings(L, box, rank, step, phase);
  else if (!call.stopped_from_outside()) out.problem = rule.broken(call);
  lua_settop(L, top);
  return out;
}

Severity severity_of(const std::string& word) {
  return word == "error" ? Severity::kError : word == "info" ? Severity::kInfo : Severity::kWarning;
}

}  // namespace

void collect_rules(lua_State* L, int index, SessionBox& box, std::vector<Watchpoint>* points, CheckResult* result) {
  int id = 0;
  for (const Watchpoint& point : *points) id = std::max(id, point.id);
  for (int i = 1;; ++i) {
    lua_rawgeti(L, index, i);
    const int at = lua_gettop(L);
    if (!lua_istable(L, at)) {
      lua_pop(L, 1);
      return;
    }
    try {
      points->push_back(rule_watchpoint(L, at, box, ++id));
      // A selector without nodes is an error of check(), which would take all other rules with it.
      if (!points->back().optional) value_or_throw(resolve_or_explain(points->back().on, box.session->graphs()));
      result->rules.push_back(points->back().info);
    } catch (const ScriptError& error) {
      const std::string file = optional_text(L, at, "file");
      result->rule_problems.push_back({optional_text(L, at, "rule"),
                                       fmt::format("rule error: {}{}", file.empty() ? "" : file + ": ", error.message()),
                                       RuleProblemKind::kBroken});
      if (!points->empty() && points->back().id == id) points->pop_back();
    }
    lua_settop(L, at - 1);
  }
}

void add_rules(CheckResult found, CheckResult* result) {
  found.rule_problems.insert(found.rule_problems.end(), result->rule_problems.begin(), result->rule_problems.end());
  result->rule_problems = std::move(found.rule_problems);
  result->rules = std::move(found.rules);
}

std::vector<RuleProblem> read_problems(lua_State* L, int index) {
  std::vector<RuleProblem> out;
  for (int i = 1; lua_istable(L, index); ++i) {
    lua_rawgeti(L, index, i);
    const bool end = !lua_istable(L, -1);
    if (!end) {
      const int entry = lua_gettop(L);
      const std::string kind = optional_text(L, entry, "kind");
      const RuleProblemKind means = kind == "unset"  ? RuleProblemKind::kUnset
                                    : kind == "idle" ? RuleProblemKind::kIdle
                                                     : RuleProblemKind::kBroken;
      out.push_back({optional_text(L, entry, "rule"),
                     (means == RuleProblemKind::kBroken ? "rule error: " : "") + optional_text(L, entry, "reason"), means});
    }
    lua_pop(L, 1);
    if (end) break;
  }
  return out;
}

Watchpoint rule_watchpoint(lua_State* L, int index, SessionBox& box, int id) {
  Vm& vm = *box.vm;
  auto state = std::make_shared<RuleState>();
  state->info = std::make_shared<RuleInfo>();
  RuleInfo& info = *state->info;
  info.name = optional_text(L, index, "rule");
  info.abbr = optional_text(L, index, "abbr");
  info.summary = optional_text(L, index, "summary");
  info.cause = optional_text(L, index, "cause");
  info.next = optional_text(L, index, "next");
  info.file = optional_text(L, index, "file");
  info.severity = severity_of(optional_text(L, index, "severity"));

  Watchpoint point;
  point.id = id;
  point.rule = info.name;
  point.name = optional_text(L, index, "name");
  point.severity = info.severity;
  point.info = state->info;
  lua_getfield(L, index, "optional");
  point.optional = lua_toboolean(L, -1) != 0;
  lua_getfield(L, index, "on");
  point.on = selector_argument(L, lua_gettop(L), "rule '" + info.name + "': what it selects");
  lua_getfield(L, index, "turn");
  point.turn = static_cast<int>(lua_tointeger(L, -1));
  lua_getfield(L, index, "budget");
  state->budget = number_at(L, -1).value_or(kDefaultRuleBudget);
  lua_pop(L, 4);
  set_slots(&point, optional_text(L, index, "slots"));
  if (const std::string when = optional_text(L, index, "when"); !when.empty()) {
    When parsed = value_or_throw(parse_when(when));
    if (Condition* condition = std::get_if<Condition>(&parsed)) point.condition = std::move(*condition);
    else point.expression = std::move(std::get<Expression>(parsed));
    return point;
  }
  read_needs(L, index, *state, point);
  state->check = function_field(L, index, "check", vm);
  state->step_end = function_field(L, index, "step_end", vm);
  state->finish = function_field(L, index, "finish", vm);
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
