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
  push_strings(L, error_texts(entry.error_code));
  lua_setfield(L, -2, "errors");
  set_record_class(L, "not_checked");
}

// ---- the result object

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

int get_from_rules(lua_State* L) { return lua_pushboolean(L, !self<ResultBox>(L).result.rules.empty()), 1; }
int get_interrupted(lua_State* L) { return lua_pushboolean(L, self<ResultBox>(L).result.interrupted), 1; }
int get_total_hits(lua_State* L) {
  return lua_pushnumber(L, static_cast<double>(self<ResultBox>(L).result.total_hits)), 1;
}
int get_semantics(lua_State* L) { return push_text(L, semantics_name(self<ResultBox>(L).result.semantics)), 1; }

int result_text(lua_State* L) {
  const ResultBox& box = open_result(L);
  ReportStyle style = table_style();
  style.hints = vm_of(L).at_prompt;
  std::string text = check_report(box.session->open(), box.result, style);
  while (text.ends_with('\n')) text.pop_back();
  push_text(L, text);
  return 1;
}

constexpr Member kFields[] = {
    {"hits", guard<get_hits>},          {"not_checked", guard<get_not_checked>}, {"coverage", guard<get_coverage>},
    {"steps", guard<get_steps>},        {"interrupted", guard<get_interrupted>}, {"total_hits", guard<get_total_hits>},
    {"semantics", guard<get_semantics>}, {"rule_problems", guard<get_rule_problems>}, {"from_rules", guard<get_from_rules>}};
constexpr Member kMeta[] = {{"__tostring", guard<result_text>}};

}  // namespace

// Hits are made once and kept in the userdata's environment, so that r.hits is the same table every time.
void push_result(lua_State* L, std::shared_ptr<ResultBox> result) {
  push_object(L, std::move(result));
  lua_newtable(L);
  lua_setfenv(L, -2);
}

void define_check_result(lua_State* L) {
  define_class(L, {ClassName<ResultBox>::value, {}, kFields, kMeta, {}, nullptr}, guard<collect_object<ResultBox>>,
               guard<equal_objects<ResultBox>>);
}

}  // namespace msdbg::script
