// The result of a check: an object whose fields are those of docs/json.md.
#include "script/bind_parts.h"
#include "script/push_answer.h"

namespace msdbg::script {

namespace {

// ---- the result object

// The list under `key` of the result at `index`, created once by `make` if `keep`.  [-0, +1, e]
template <typename Make>
void push_cached(lua_State* L, int index, const char* key, Make make, bool keep = true) {
  const auto box = object_argument<ResultBox>(L, index, key);
  lua_getfenv(L, index);
  push_raw(L, -1, key);
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    box->session->open();
    make(*box);
    set_result_class(L, "hits");
    if (keep) lua_pushvalue(L, -1), lua_setfield(L, -3, key);
  }
  lua_remove(L, -2);
}

int get_causes(lua_State* L) {
  require_causes(L, self<ResultBox>(L));
  if (!self<ResultBox>(L).result.causes) return lua_pushnil(L), 1;
  push_cached(L, 1, "causes", [L](const ResultBox& box) {
    push_list(L, *box.result.causes, [&](const Cause& cause) { push_answer(L, cause_answer(*box.session->session, cause), "causes"); });
  });
  return 1;
}

int get_result_hits(lua_State* L) { return self<ResultBox>(L), push_hits(L, 1), 1; }
int get_result_not_checked(lua_State* L) { return self<ResultBox>(L), push_all_not_checked(L, 1), 1; }

Answer summary_of(const ResultBox& box) { return check_summary(*box.session->session, box.result); }

// What is counted depends on the causes: a finding that one of them explains away is none.
template <Key key>
int result_field(lua_State* L) {
  require_causes(L, self<ResultBox>(L));
  return answer_field<ResultBox, summary_of, key>(L);
}

int result_text(lua_State* L) {
  ResultBox& box = self<ResultBox>(L);
  require_causes(L, box);
  ReportStyle style = table_style(L);
  style.numbered = style.place == Place::kPrompt;
  style.rules = box.asked;
  style.rules_run = box.names;
  return give(L, without_last_newline(check_report(box.session->open(), box.result, style)));
}

constexpr Member kResultFields[] = {
    {"causes", guard<get_causes>},
    {"hits", guard<get_result_hits>},
    {"not_checked", guard<get_result_not_checked>},
    {"dump", guard<result_field<"dump">>},
    {"semantics", guard<result_field<"semantics">>},
    {"steps", guard<result_field<"steps">>},
    {"interrupted", guard<result_field<"interrupted">>},
    {"coverage", guard<result_field<"coverage">>},
    {"by_rank", guard<result_field<"by_rank">>},
    {"total_hits", guard<result_field<"total_hits">>},
    {"explained", guard<result_field<"explained">>},
    {"overflows", guard<result_field<"overflows">>},
    {"from_rules", guard<result_field<"from_rules">>},
    {"rules", guard<result_field<"rules">>},
    {"rule_problems", guard<result_field<"rule_problems">>}};
constexpr Member kResultMeta[] = {{"__tostring", guard<result_text>}};

}  // namespace

// Not while a check runs, whose functions may look at an earlier result, and not once a training has gone on: its values are gone.
void require_causes(lua_State* L, ResultBox& box) {
  SessionBox& session = *box.session;
  if (box.result.causes || !session.in_use.empty()) return;
  if (session.live != nullptr && box.suspension != session.suspension) return;
  const InUse guard(session, "check");
  CheckOptions limits = session.last_check.value_or(session.defaults);
  // A run of a training is of all ranks, whatever was checked before.
  if (box.result.ranks.empty()) limits.ranks = IntSet::all();
  limits.progress = progress_of(vm_of(L), "looking for causes");
  const Status status = find_causes(session.open(), limits, &box.result);
  if (status.code() == Code::kInterrupted) throw ScriptError(status);
}

void push_hits(lua_State* L, int index) {
  const auto result = object_argument<ResultBox>(L, index, "hits");
  require_causes(L, *result);
  // A callback sees them before their causes are looked for.
  const bool keep = result->session->in_use.empty();
  const auto make = [L](const ResultBox& box) {
    push_list(L, box.result.hits, [&](const Hit& hit) {
      Answer answer = hit_answer(*box.session->session, hit);
      if (hit.follows) answer["follows"] = *hit.follows + 1;  // lists begin with 1 here
      push_answer(L, answer, "hits");
    });
  };
  push_cached(L, index, "hits", make, keep);
}

void push_all_not_checked(lua_State* L, int index) {
  push_cached(L, index, "not_checked", [L](const ResultBox& box) {
    push_list(L, box.result.not_checked,
              [&](const NotChecked& entry) { push_answer(L, not_checked_answer(*box.session->session, entry), "not_checked"); });
  });
}

// Hits are created once and kept in the userdata's environment: r.hits is always the same table.
void push_result(lua_State* L, std::shared_ptr<ResultBox> result) {
  push_object(L, std::move(result));
  lua_newtable(L);
  lua_setfenv(L, -2);
}

void define_check_result(lua_State* L) {
  define_class<ResultBox>(L, {.fields = kResultFields, .meta = kResultMeta});
}

}  // namespace msdbg::script
