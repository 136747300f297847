// msdbg.origin and msdbg.report.
#include <fmt/format.h>

#include <cmath>

#include "script/predicate.h"

namespace msdbg::script {
namespace {

// ---- origin --------------------------------------------------------------------------------------------------------

int find_origin(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "origin: session");
  Session& session = box->open();
  OptionTable options(L, 2, "origin");
  OriginOptions made;
  CheckOptions common = box->defaults;
  if (const auto steps = options.numbers("steps")) made.steps = *steps;
  if (const auto ranks = options.numbers("ranks")) made.ranks = *ranks;
  read_check_options(options, &common);
  made.semantics = common.semantics;
  made.threads = common.threads;
  made.mem_limit_bytes = common.mem_limit_bytes;
  const ScriptPredicate predicate(L, options, *box, "origin");
  made.predicate = predicate.predicate();
  options.finish();
  auto result = std::make_shared<OriginBox>();
  result->session = box;
  const InUse guard(*box, "origin");
  Result<OriginResult> found = find_origins(session, made);
  predicate.throw_failure();
  result->result = value_or_throw(std::move(found));
  if (result->result.interrupted) throw ScriptError(Status(Code::kInterrupted, "origin: interrupted"));
  push_object(L, std::move(result));
  return 1;
}

void push_optional_stats(lua_State* L, const std::optional<Stats>& stats, const SessionBox& box,
                         const std::optional<TensorId>& id) {
  if (!stats) return;
  Shape shape;
  if (id) {
    if (const auto info = box.session->describe(*id)) shape = info->shape;
  }
  push_stats(L, *stats, shape);
  lua_setfield(L, -2, "stats");
}

std::string_view known_name(Known state) {
  return state == Known::kSound ? "sound" : state == Known::kBad ? "bad" : "unknown";
}
std::string_view kind_name(OriginKind kind) {
  return kind == OriginKind::kOperator ? "operator" : kind == OriginKind::kParameter ? "parameter" : "input";
}

void push_inputs(lua_State* L, const SessionBox& box, const Origin& origin) {
  const Graph* graph = box.session->graph(origin.tensor.rank, origin.tensor.graph);
  push_list(L, origin.inputs, [&](const OriginInput& input) {
    lua_newtable(L);
    set_field(L, "slot", slot_name({Io::kInput, input.slot}));
    if (input.producer.node != kNoNode && graph != nullptr) {
      set_field(L, "node", graph->node(input.producer.node).name);
      set_field(L, "producer_slot", slot_name({Io::kOutput, input.producer.slot}));
    } else {
      set_field(L, "node", input.producer.name);
    }
    set_field(L, "state", known_name(input.state));
    if (!input.reason.empty()) set_field(L, "reason", input.reason);
    push_optional_stats(L, input.stats, box, input.value);
    set_record_class(L, "origin_input");
  });
}

void push_tensor_place(lua_State* L, const SessionBox& box, const TensorId& id) {
  lua_newtable(L);
  set_place(L, box, id);
  set_record_class(L, "tensor_place");
}

void push_chains(lua_State* L, const SessionBox& box, const Origin& origin) {
  push_list(L, origin.chains, [&](const auto& chain) {
    push_list(L, chain, [&](const ChainLink& link) {
      push_tensor_place(L, box, link.tensor);
      set_field(L, "bad", link.bad);
      push_optional_stats(L, link.stats, box, link.tensor);
    });
  });
}

void push_origin(lua_State* L, const SessionBox& box, const Origin& origin) {
  lua_newtable(L);
  set_field(L, "kind", kind_name(origin.kind));
  set_place(L, box, origin.tensor);
  set_field(L, "dtype", dtype_name(origin.info.dtype));
  push_shape(L, origin.info.shape);
  lua_setfield(L, -2, "shape");
  push_stats(L, origin.stats, origin.info.shape);
  lua_setfield(L, -2, "stats");
  push_list(L, origin.first, [L](const auto& coordinates) { push_shape(L, coordinates); });
  lua_setfield(L, -2, "first");
  set_field(L, "bad_count", origin.bad_count);
  set_field(L, "certain", origin.certain);
  set_field(L, "reached", origin.reached);
  push_inputs(L, box, origin);
  lua_setfield(L, -2, "inputs");
  push_chains(L, box, origin);
  lua_setfield(L, -2, "chains");
  push_stack(L, box.session->node(origin.tensor).stack);
  lua_setfield(L, -2, "stack");
  if (origin.update) {
    push_tensor_place(L, box, *origin.update);
    lua_setfield(L, -2, "update");
  }
  set_record_class(L, "origin");
}

// All origins, the first of each step before its others.
int get_origins(lua_State* L) {
  const OriginBox& box = self<OriginBox>(L);
  box.session->open();
  lua_newtable(L);
  int i = 0;
  for (const StepOrigins& step : box.result.steps) {
    for (const Origin& origin : step.origins) {
      push_origin(L, *box.session, origin);
      lua_rawseti(L, -2, ++i);
    }
  }
  set_record_class(L, "hits");
  return 1;
}

int get_steps(lua_State* L) {
  const OriginBox& box = self<OriginBox>(L);
  box.session->open();
  push_list(L, box.result.steps, [&](const StepOrigins& step) {
    lua_newtable(L);
    set_field(L, "rank", step.rank);
    set_field(L, "graph_id", step.graph);
    set_field(L, "step", step.step);
    set_field(L, "bad_tensors", step.bad_tensors);
    push_list(L, step.origins, [&](const Origin& origin) { push_origin(L, *box.session, origin); });
    lua_setfield(L, -2, "origins");
    push_list(L, step.losses, [&](const TensorId& loss) { push_tensor_place(L, *box.session, loss); });
    lua_setfield(L, -2, "losses");
  });
  return 1;
}

int get_predicate(lua_State* L) { return give(L, self<OriginBox>(L).result.predicate); }
int get_not_checked(lua_State* L) {
  return give(L, self<OriginBox>(L).result.not_checked.size());
}

int origin_text(lua_State* L) {
  const OriginBox& box = self<OriginBox>(L);
  return give(L, without_last_newline(origin_report(box.session->open(), box.result, table_style())));
}

constexpr Member kOriginFields[] = {{"origins", guard<get_origins>},
                                    {"steps", guard<get_steps>},
                                    {"predicate", guard<get_predicate>},
                                    {"not_checked_count", guard<get_not_checked>}};
constexpr Member kOriginMeta[] = {{"__tostring", guard<origin_text>}};

// ---- report --------------------------------------------------------------------------------------------------------

int make_report(lua_State* L) {
  const auto session = object_argument<SessionBox>(L, 1, "report: session");
  auto report = std::make_shared<ReportBox>();
  if (const auto* check = holder_at<ResultBox>(L, 2))
    report->check = *check;
  else if (const auto* origin = holder_at<OriginBox>(L, 2))
    report->origin = *origin;
  else
    misuse(fmt::format("report: result: a check result or an origin result is expected, not {}", value_text(L, 2)));
  push_object(L, std::move(report));
  return 1;
}

int render(lua_State* L, Format format) {
  const ReportBox& box = self<ReportBox>(L);
  if (!box.check && format > Format::kJsonl) misuse("report: csv, markdown, junit and sarif are for the result of a check");
  ReportStyle style = table_style();
  style.format = format;
  // Formats that list rules without a finding learn them from the rules, where those were run, else from the watchpoints.
  if (box.check && !box.check->result.rules.empty()) {
    for (const auto& info : box.check->result.rules) {
      if (info) style.rules_run.push_back(info->name);
    }
  } else if (box.check) {
    for (const auto& watch : box.check->session->watches) {
      if (watch->point.enabled) style.rules_run.push_back(watch->point.rule);
    }
  }
  if (box.check) style.exit_status = box.check->result.interrupted ? 130 : box.check->result.total_hits > 0 ? 1 : 0;
  if (box.check) return give(L, check_report(box.check->session->open(), box.check->result, style));
  return give(L, origin_report(box.origin->session->open(), box.origin->result, style));
}
int render_table(lua_State* L) { return render(L, Format::kTable); }
int render_json(lua_State* L) { return render(L, Format::kJson); }
int render_jsonl(lua_State* L) { return render(L, Format::kJsonl); }
int render_csv(lua_State* L) { return render(L, Format::kCsv); }
// With a path it is the page, without one the comment.
int render_markdown(lua_State* L) { return lua_isnoneornil(L, 2) ? render(L, Format::kMarkdown) : render_page(L, PageForm::kMarkdown); }
int render_html(lua_State* L) { return render_page(L, PageForm::kHtml); }
int render_junit(lua_State* L) { return render(L, Format::kJunit); }
int render_sarif(lua_State* L) { return render(L, Format::kSarif); }

constexpr Member kReportMethods[] = {
    {"table", guard<render_table>},       {"json", guard<render_json>},   {"jsonl", guard<render_jsonl>}, {"csv", guard<render_csv>},
    {"markdown", guard<render_markdown>}, {"junit", guard<render_junit>}, {"sarif", guard<render_sarif>},
    {"html", guard<render_html>}};

}  // namespace

void bind_analysis(lua_State* L) {
  define_class<OriginBox>(L, {.fields = kOriginFields, .meta = kOriginMeta});
  define_class<ReportBox>(L, {.methods = kReportMethods});
  add_functions(L, {{"origin", guard<find_origin>}, {"report", guard<make_report>}, {"page_form", guard<page_form_of>}});
}

}  // namespace msdbg::script
