// The result of a check: an object whose hits and gaps are plain tables.
#include <algorithm>

#include "script/bind_parts.h"

namespace msdbg::script {

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

namespace {

void set_texts(lua_State* L, const char* key, const std::vector<std::string>& texts) {
  push(L, texts);
  set_record_class(L, "list");
  lua_setfield(L, -2, key);
}

void push_params(lua_State* L, const std::vector<ParamResult>& params) {
  push_list(L, params, [L](const ParamResult& param) {
    lua_createtable(L, 0, 4);
    set_field(L, "name", param.name);
    set_field(L, "threshold", param.threshold);
    set_field(L, "actual", param.actual);
    set_field(L, "hit", param.hit);
    set_record_class(L, "param");
  });
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
  set_texts(L, "errors", {});
  lua_createtable(L, 0, static_cast<int>(hit.details.size()));
  for (const auto& [name, value] : hit.details) set_field(L, name.c_str(), value);
  lua_setfield(L, -2, "details");
  push_stats(L, hit.stats, hit.shape);
  lua_setfield(L, -2, "stats");
  push_stack(L, box.session->node(hit.tensor).stack);
  lua_setfield(L, -2, "stack");
  if (hit.info) {
    set_field(L, "summary", hit.info->summary);
    set_field(L, "advice", hit.info->advice());
  } else if (const auto spec = find_condition(hit.rule)) {
    set_field(L, "advice", (*spec)->advice);
  }
  if (const std::string bad = nonfinite_text(hit.stats); !bad.empty()) set_field(L, "not_finite", bad);
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
  set_texts(L, "errors", error_texts(entry.error_code));
  set_record_class(L, "not_checked");
}

// ---- the result object

// The list under `key` of the result at `index`, made by `make` once.  [-0, +1, e]
template <typename Make>
void push_cached(lua_State* L, int index, const char* key, Make make) {
  const auto box = object_argument<ResultBox>(L, index, key);
  lua_getfenv(L, index);
  push_raw(L, -1, key);
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    box->session->open();
    make(*box);
    set_record_class(L, "hits");
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, key);
  }
  lua_remove(L, -2);
}

int get_hits(lua_State* L) { return self<ResultBox>(L), push_hits(L, 1), 1; }
int get_not_checked(lua_State* L) { return self<ResultBox>(L), push_all_not_checked(L, 1), 1; }

int get_rule_problems(lua_State* L) {
  push_list(L, self<ResultBox>(L).result.rule_problems, [L](const RuleProblem& problem) {
    lua_createtable(L, 0, 2);
    set_field(L, "rule", problem.rule);
    set_field(L, "reason", problem.reason);
  });
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
  push(L, self<ResultBox>(L).result.steps);
  set_record_class(L, "list");
  return 1;
}

int get_from_rules(lua_State* L) { return give(L, !self<ResultBox>(L).result.rules.empty()); }
int get_interrupted(lua_State* L) { return give(L, self<ResultBox>(L).result.interrupted); }
int get_total_hits(lua_State* L) {
  return give(L, self<ResultBox>(L).result.total_hits);
}
int get_semantics(lua_State* L) { return give(L, semantics_name(self<ResultBox>(L).result.semantics)); }

int result_text(lua_State* L) {
  const ResultBox& box = self<ResultBox>(L);
  ReportStyle style = table_style();
  style.hints = vm_of(L).at_prompt;
  return give(L, without_last_newline(check_report(box.session->open(), box.result, style)));
}

constexpr Member kFields[] = {
    {"hits", guard<get_hits>},          {"not_checked", guard<get_not_checked>}, {"coverage", guard<get_coverage>},
    {"steps", guard<get_steps>},        {"interrupted", guard<get_interrupted>}, {"total_hits", guard<get_total_hits>},
    {"semantics", guard<get_semantics>}, {"rule_problems", guard<get_rule_problems>}, {"from_rules", guard<get_from_rules>}};
constexpr Member kMeta[] = {{"__tostring", guard<result_text>}};

}  // namespace

void push_hits(lua_State* L, int index) {
  push_cached(L, index, "hits", [L](const ResultBox& box) {
    push_list(L, box.result.hits, [&](const Hit& hit) { push_hit(L, *box.session, hit); });
  });
}

void push_all_not_checked(lua_State* L, int index) {
  push_cached(L, index, "not_checked", [L](const ResultBox& box) {
    push_list(L, box.result.not_checked, [&](const NotChecked& entry) { push_not_checked(L, *box.session, entry); });
  });
}

// Hits are made once and kept in the userdata's environment, so that r.hits is the same table every time.
void push_result(lua_State* L, std::shared_ptr<ResultBox> result) {
  push_object(L, std::move(result));
  lua_newtable(L);
  lua_setfenv(L, -2);
}

void define_check_result(lua_State* L) {
  define_class<ResultBox>(L, {.fields = kFields, .meta = kMeta});
}

}  // namespace msdbg::script
