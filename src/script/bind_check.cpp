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
  // Copies, because a watchpoint's function may change the list.
  const std::vector<Watchpoint> points = watchpoints_of(box);
  if (points.empty()) misuse("check: there is no watchpoint; make one, e.g. s:watch { on = \"**\", when = \"TO\" }");
  box.last_check = options;
  return give_check(L, box, value_or_throw(check_here(L, box, points, options)), "", names_of(points));
}

}  // namespace

Result<CheckResult> check_here(lua_State* L, SessionBox& box, const std::vector<Watchpoint>& points, const CheckOptions& options) {
  Session& session = box.open();
  const InUse guard(box, "check");
  box.thread = L;
  CheckOptions shown = options;
  if (!shown.progress) shown.progress = progress_of(vm_of(L), "checking");
  return check(session, points, shown);
}

std::vector<std::string> names_of(std::span<const Watchpoint> points) {
  std::vector<std::string> names;
  for (const Watchpoint& point : points) {
    if (point.enabled) names.push_back(point.rule);
  }
  return names;
}

int give_check(lua_State* L, SessionBox& box, CheckResult found, std::string asked, std::vector<std::string> names) {
  box.last_result = std::make_shared<ResultBox>(ResultBox{nullptr, std::move(found), std::move(asked), std::move(names), box.suspension});
  auto result = std::make_shared<ResultBox>(*box.last_result);
  result->session = box.shared_from_this();
  if (result->result.interrupted) {
    throw ScriptError("interrupted",
                      fmt::format("interrupted after {} of {} tensors; s.last_result has what was found",
                                  result->result.coverage.checked, result->result.coverage.tensors),
                      true);
  }
  push_result(L, std::move(result));
  return 1;
}

CheckOptions check_options_at(lua_State* L, int index, const SessionBox& box, const char* call) {
  OptionTable options(L, index, call);
  CheckOptions made = box.defaults;
  if (box.live != nullptr && box.current_step) made.steps = IntSet::of(*box.current_step);
  if (const auto steps = options.numbers("steps")) made.steps = *steps;
  made.ranks = ranks_option(options, box);
  if (const auto missing = options.boolean("report_missing")) made.report_missing = *missing;
  if (const auto most = options.integer("max_hits", 0, INT64_MAX)) made.max_hits = static_cast<size_t>(*most);
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
  CheckOptions again = box.defaults;
  if (box.current_rank) again.ranks = IntSet::of(*box.current_rank);
  return run_check(L, box, box.last_check.value_or(std::move(again)));
}

int get_last_result(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  if (!box.last_result) return lua_pushnil(L), 1;
  auto result = std::make_shared<ResultBox>(*box.last_result);
  result->session = box.shared_from_this();
  push_result(L, std::move(result));
  return 1;
}

}  // namespace

ScriptVerdict read_verdict(lua_State* L, std::span<const std::string_view> ignored) {
  ScriptVerdict verdict;
  const int top = lua_gettop(L);
  if (!truth_at(L, top)) {
    verdict.verdict = Verdict::kClean;
  } else if (lua_isboolean(L, top)) {
    verdict.verdict = Verdict::kHit;
  } else if (lua_istable(L, top)) {
    verdict.verdict = Verdict::kHit;
    for_each_entry(L, top, "verdict", [&] {
      const auto key = text_at(L, -2), text = text_at(L, -1);
      const auto number = number_at(L, -1);
      if (!key || std::find(ignored.begin(), ignored.end(), *key) != ignored.end()) return;
      if (*key == "not_checked" && text) {
        verdict.verdict = Verdict::kNotChecked;
        verdict.reason = *text;
      } else if (*key == "actual" && number) {
        verdict.actual = number;
      } else {
        verdict.details.emplace_back(*key, number ? format_double(*number) : text ? *text : value_text(L, -1));
      }
    });
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
    if (!watch->function || watch->point.info) continue;  // functions of rules are set already
    points.back().script = [&box, copy = std::make_shared<WatchBox>(*watch)](const CheckedTensor& tensor) {
      return call_watch_function(box.thread, box, *copy, tensor);
    };
  }
  return points;
}

void push_checked_tensor(lua_State* L, SessionBox& session, const CheckedTensor& tensor) {
  auto box = std::make_shared<TensorBox>();
  box->session = session.shared_from_this();
  box->info = *tensor.info;
  box->info.id = tensor.id;
  box->stats = *tensor.stats;
  box->suspension = session.suspension;
  box->name = session.session->tensor_name(tensor.id);
  push_object(L, std::move(box));
}

ScriptVerdict call_watch_function(lua_State* L, SessionBox& session, const WatchBox& watch,
                                  const CheckedTensor& tensor) {
  const int top = lua_gettop(L);
  ScriptVerdict verdict;
  if (!lua_checkstack(L, 20)) return {Verdict::kNotChecked, "rule error: the Lua stack is full", {}, {}};
  watch.function->push(L);
  push_checked_tensor(L, session, tensor);
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
  add_methods<SessionBox>(L, {{"check", guard<check_session>}, {"recheck", guard<recheck_session>}},
                          {{"last_result", guard<get_last_result>}});
}

}  // namespace msdbg::script
