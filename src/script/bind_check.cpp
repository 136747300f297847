// s:check, s:recheck, and the result object with its hits as plain tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "script/objects.h"
#include "script/rule_run.h"

namespace msdbg::script {
namespace {

// ---- running
// -----------------------------------------------------------------------------------------------------------

int run_check(lua_State* L, SessionBox& box, CheckOptions options) {
  Session& session = box.open();
  // The copies stay, whatever a watchpoint's function does to the list.
  const std::vector<Watchpoint> points = watchpoints_of(box);
  if (points.empty()) misuse("check: there is no watchpoint; make one, e.g. s:watch { on = \"**\", when = \"TO\" }");
  box.last_check = options;
  auto result = std::make_shared<ResultBox>();
  result->session = box.shared_from_this();
  const InUse guard(box, "check");
  box.thread = L;
  result->result = value_or_throw(check(session, points, options));
  box.last_result = std::make_shared<CheckResult>(result->result);
  if (result->result.interrupted) {
    throw ScriptError("interrupted",
                      fmt::format("interrupted after {} of {} tensors; s.last_result has what was found",
                                  result->result.coverage.checked, result->result.coverage.tensors),
                      true);
  }
  push_result(L, std::move(result));
  return 1;
}

}  // namespace

CheckOptions check_options_at(lua_State* L, int index, const SessionBox& box, const char* call) {
  OptionTable options(L, index, call);
  CheckOptions made = box.defaults;
  if (box.live != nullptr && box.current_step) made.steps = IntSet::of(*box.current_step);
  if (const auto steps = options.numbers("steps")) made.steps = *steps;
  if (const auto ranks = options.numbers("ranks")) made.ranks = *ranks;
  if (const auto missing = options.boolean("report_missing")) made.report_missing = *missing;
  if (const auto most = options.integer("max_hits")) {
    if (*most < 0) misuse(fmt::format("{}: option 'max_hits': 0 or more is expected, not {}", call, *most));
    made.max_hits = static_cast<size_t>(*most);
  }
  read_check_options(options, &made);
  options.finish();
  return made;
}

namespace {

int check_session(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  box.open();
  return run_check(L, box, check_options_at(L, 2, box, "check"));
}

int recheck_session(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  box.open();
  if (box.live != nullptr) return recheck_live(L, box);
  if (!lua_isnoneornil(L, 2))
    misuse(
        "recheck: takes no options, it looks at the steps of the last check; use s:check { steps = ... } for others");
  return run_check(L, box, box.last_check.value_or(box.defaults));
}

int get_last_result(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  if (!box.last_result) {
    lua_pushnil(L);
    return 1;
  }
  auto result = std::make_shared<ResultBox>();
  result->session = box.shared_from_this();
  result->result = *box.last_result;
  push_result(L, std::move(result));
  return 1;
}

// ---- tables
// ------------------------------------------------------------------------------------------------------------

void push_strings(lua_State* L, const std::vector<std::string>& texts) {
  lua_createtable(L, static_cast<int>(texts.size()), 0);
  for (size_t i = 0; i < texts.size(); ++i) {
    push_text(L, texts[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  set_record_class(L, "list");
}

void push_params(lua_State* L, const std::vector<ParamResult>& params) {
  lua_createtable(L, static_cast<int>(params.size()), 0);
  for (size_t i = 0; i < params.size(); ++i) {
    lua_createtable(L, 0, 4);
    set_field(L, "name", params[i].name);
    set_field(L, "threshold", params[i].threshold);
    if (params[i].actual) set_field(L, "actual", *params[i].actual);
    set_field(L, "hit", params[i].hit);
    set_record_class(L, "param");
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
}

void push_hit(lua_State* L, const SessionBox& box, const Hit& hit) {
  lua_createtable(L, 0, 24);
  set_field(L, "watch", hit.watch_id);
  if (!hit.watch_name.empty()) set_field(L, "watch_name", hit.watch_name);
  set_field(L, "rule", hit.rule);
  set_field(L, "abbr", hit.abbr);
  set_field(L, "severity", severity_name(hit.severity));
  set_place(L, box, hit.tensor);
  set_field(L, "dtype", dtype_name(hit.dtype));
  push_shape(L, hit.shape);
  lua_setfield(L, -2, "shape");
  push_params(L, hit.params);
  lua_setfield(L, -2, "params");
  set_field(L, "error_code", 0);
  push_strings(L, {});
  lua_setfield(L, -2, "errors");
  lua_createtable(L, 0, static_cast<int>(hit.details.size()));
  for (const auto& [name, value] : hit.details) set_field(L, name.c_str(), value);
  lua_setfield(L, -2, "details");
  push_stats(L, hit.stats, hit.shape);
  lua_setfield(L, -2, "stats");
  push_stack(L, box.session->node(hit.tensor).stack);
  lua_setfield(L, -2, "stack");
  if (hit.info) set_field(L, "advice", hit.info->advice());
  else if (const auto spec = find_condition(hit.rule)) set_field(L, "advice", (*spec)->advice);
  set_record_class(L, "hit");
}

void push_not_checked(lua_State* L, const SessionBox& box, const NotChecked& entry) {
  lua_createtable(L, 0, 14);
  if (entry.watch_id != 0) set_field(L, "watch", entry.watch_id);
  set_field(L, "rule", entry.rule);
  set_field(L, "abbr", entry.abbr);
  set_place(L, box, entry.tensor);
  set_field(L, "reason", entry.reason);
  set_field(L, "error_code", entry.error_code);
  push_strings(L, error_texts(entry.error_code));
  lua_setfield(L, -2, "errors");
  set_record_class(L, "not_checked");
}

// ---- the result object
// -------------------------------------------------------------------------------------------------

template <typename Make>
int cached(lua_State* L, const char* key, Make make) {
  lua_getfenv(L, 1);
  lua_getfield(L, -1, key);
  if (lua_istable(L, -1)) return 1;
  lua_pop(L, 1);
  make();
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, key);
  return 1;
}

ResultBox& open_result(lua_State* L) {
  ResultBox& box = self<ResultBox>(L);
  box.session->open();
  return box;
}

int get_hits(lua_State* L) {
  return cached(L, "hits", [L] {
    const ResultBox& box = open_result(L);
    lua_createtable(L, static_cast<int>(box.result.hits.size()), 0);
    for (size_t i = 0; i < box.result.hits.size(); ++i) {
      push_hit(L, *box.session, box.result.hits[i]);
      lua_rawseti(L, -2, static_cast<int>(i) + 1);
    }
    set_record_class(L, "hits");
  });
}

int get_not_checked(lua_State* L) {
  return cached(L, "not_checked", [L] {
    const ResultBox& box = open_result(L);
    lua_createtable(L, static_cast<int>(box.result.not_checked.size()), 0);
    for (size_t i = 0; i < box.result.not_checked.size(); ++i) {
      push_not_checked(L, *box.session, box.result.not_checked[i]);
      lua_rawseti(L, -2, static_cast<int>(i) + 1);
    }
    set_record_class(L, "hits");
  });
}

int get_rule_problems(lua_State* L) {
  const auto& problems = self<ResultBox>(L).result.rule_problems;
  lua_createtable(L, static_cast<int>(problems.size()), 0);
  for (size_t i = 0; i < problems.size(); ++i) {
    lua_createtable(L, 0, 2);
    set_field(L, "rule", problems[i].rule);
    set_field(L, "reason", problems[i].reason);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

int get_coverage(lua_State* L) {
  const Coverage& coverage = self<ResultBox>(L).result.coverage;
  lua_createtable(L, 0, 5);
  set_field(L, "tensors", coverage.tensors);
  set_field(L, "checked", coverage.checked);
  set_field(L, "not_checked", coverage.not_checked);
  set_field(L, "bytes", coverage.bytes);
  set_field(L, "from_cache", coverage.from_cache);
  set_record_class(L, "coverage");
  return 1;
}

int get_steps(lua_State* L) {
  const auto& steps = self<ResultBox>(L).result.steps;
  lua_createtable(L, static_cast<int>(steps.size()), 0);
  for (size_t i = 0; i < steps.size(); ++i) {
    lua_pushnumber(L, static_cast<double>(steps[i]));
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  set_record_class(L, "list");
  return 1;
}

int get_interrupted(lua_State* L) { return lua_pushboolean(L, self<ResultBox>(L).result.interrupted), 1; }
int get_total_hits(lua_State* L) {
  return lua_pushnumber(L, static_cast<double>(self<ResultBox>(L).result.total_hits)), 1;
}
int get_semantics(lua_State* L) { return push_text(L, semantics_name(self<ResultBox>(L).result.semantics)), 1; }

int result_text(lua_State* L) {
  const ResultBox& box = open_result(L);
  std::string text = check_report(box.session->open(), box.result, {});
  while (text.ends_with('\n')) text.pop_back();
  push_text(L, text);
  return 1;
}

constexpr Member kFields[] = {
    {"hits", guard<get_hits>},          {"not_checked", guard<get_not_checked>}, {"coverage", guard<get_coverage>},
    {"steps", guard<get_steps>},        {"interrupted", guard<get_interrupted>}, {"total_hits", guard<get_total_hits>},
    {"semantics", guard<get_semantics>}, {"rule_problems", guard<get_rule_problems>}};
constexpr Member kMeta[] = {{"__tostring", guard<result_text>}};

// ---- functions as conditions
// ---------------------------------------------------------------------------------------------

}  // namespace

ScriptVerdict read_verdict(lua_State* L) {
  ScriptVerdict verdict;
  const int top = lua_gettop(L);
  if (lua_isnil(L, top) || (lua_isboolean(L, top) && !lua_toboolean(L, top))) {
    verdict.verdict = Verdict::kClean;
  } else if (lua_isboolean(L, top)) {
    verdict.verdict = Verdict::kHit;
  } else if (lua_istable(L, top)) {
    verdict.verdict = Verdict::kHit;
    lua_pushnil(L);
    while (lua_next(L, top) != 0) {
      const auto key = text_at(L, -2);
      if (key && *key == "not_checked" && text_at(L, -1)) {
        verdict.verdict = Verdict::kNotChecked;
        verdict.reason = *text_at(L, -1);
      } else if (key && *key == "actual" && number_at(L, -1))
        verdict.actual = number_at(L, -1);
      else if (key) {
        const auto number = number_at(L, -1);
        const auto text = text_at(L, -1);
        verdict.details.emplace_back(*key, number ? format_double(*number) : text ? *text : value_text(L, -1));
      }
      lua_pop(L, 1);
    }
    std::sort(verdict.details.begin(), verdict.details.end());  // table order is random
  } else {
    verdict.verdict = Verdict::kNotChecked;
    verdict.reason = fmt::format("rule error: the function returned {}; true, false, nil or a table is expected",
                                 value_text(L, top));
  }
  lua_pop(L, 1);
  return verdict;
}

// Hits are made once and kept in the userdata's environment, so that r.hits is the same table every time.
void push_result(lua_State* L, std::shared_ptr<ResultBox> result) {
  push_object(L, std::move(result));
  lua_newtable(L);
  lua_setfenv(L, -2);
}

std::vector<Watchpoint> watchpoints_of(SessionBox& box) {
  std::vector<Watchpoint> points;
  for (const auto& watch : box.watches) {
    points.push_back(watch->point);
    if (!watch->function || watch->point.info) continue;  // functions of rules are there already
    points.back().script = [&box, copy = std::make_shared<WatchBox>(*watch)](const CheckedTensor& tensor) {
      return call_watch_function(box.thread, box, *copy, tensor);
    };
  }
  return points;
}

ScriptVerdict call_watch_function(lua_State* L, SessionBox& session, const WatchBox& watch,
                                  const CheckedTensor& tensor) {
  const int top = lua_gettop(L);
  ScriptVerdict verdict;
  if (!lua_checkstack(L, 20)) return {Verdict::kNotChecked, "rule error: the Lua stack is full", {}, {}};
  watch.function->push(L);
  auto box = std::make_shared<TensorBox>();
  box->session = session.shared_from_this();
  box->info = *tensor.info;
  box->info.id = tensor.id;
  box->stats = *tensor.stats;
  box->suspension = session.suspension;
  box->name = session.session->tensor_name(tensor.id);
  push_object(L, std::move(box));
  lua_createtable(L, 0, 5);
  set_field(L, "step", tensor.id.step);
  set_field(L, "rank", tensor.id.rank);
  push_object(L, session.shared_from_this());
  lua_setfield(L, -2, "session");
  push_object(L, std::make_shared<WatchBox>(watch));
  lua_setfield(L, -2, "watch");
  if (protected_call(L, 2, 1)) {
    verdict = read_verdict(L);
  } else {
    verdict.verdict = Verdict::kNotChecked;
    verdict.reason = "rule error: " + error_text(read_error(L, -1), false);
  }
  lua_settop(L, top);
  return verdict;
}

void set_place(lua_State* L, const SessionBox& box, const TensorId& id) {
  const Graph* graph = box.session->graph(id.rank, id.graph);
  const Node& node = box.session->node(id);
  set_field(L, "rank", id.rank);
  set_field(L, "graph", graph != nullptr ? graph->name() : "");
  set_field(L, "graph_id", id.graph);
  set_field(L, "step", id.step);
  set_field(L, "execution", id.execution);
  set_field(L, "node", node.name);
  set_field(L, "op", node.op);
  set_field(L, "slot", slot_name(id.slot));
}

void bind_check(lua_State* L) {
  define_class(L, {ClassName<ResultBox>::value, {}, kFields, kMeta, {}, nullptr}, guard<collect_object<ResultBox>>,
               guard<equal_objects<ResultBox>>);
  luaL_getmetatable(L, ClassName<SessionBox>::registry);
  lua_getfield(L, -1, "methods");
  for (const Member& member : {Member{"check", guard<check_session>}, Member{"recheck", guard<recheck_session>}}) {
    lua_pushcfunction(L, member.function);
    lua_setfield(L, -2, member.name);
  }
  lua_getfield(L, -2, "fields");
  lua_pushcfunction(L, guard<get_last_result>);
  lua_setfield(L, -2, "last_result");
  lua_pop(L, 3);
}

}  // namespace msdbg::script
