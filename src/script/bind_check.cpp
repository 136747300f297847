// s:check, s:recheck, and functions as conditions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "script/bind_parts.h"
#include "script/objects.h"
#include "script/rule_run.h"

namespace msdbg::script {
namespace {

// ---- running

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

void bind_check(lua_State* L) {
  define_check_result(L);
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
