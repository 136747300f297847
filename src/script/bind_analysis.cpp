// msdbg.origin and msdbg.report.
#include <fmt/format.h>

#include <cmath>

#include "script/objects.h"

namespace msdbg::script {
namespace {

// ---- origin
// --------------------------------------------------------------------------------------------------------------

// A text, or a function of a tensor; the function is kept by `holder` as long as the search runs.
// The first error that it raises goes to `failure`: it would fail on every tensor alike.
Predicate read_predicate(lua_State* L, SessionBox& session, std::shared_ptr<WatchBox>* holder, std::shared_ptr<std::string> failure) {
  if (!lua_isfunction(L, -1))
    return value_or_throw(parse_predicate(text_argument(L, lua_gettop(L), "origin: option 'when' (text or function)")));
  auto watch = std::make_shared<WatchBox>();
  watch->session = session.shared_from_this();
  lua_pushvalue(L, -1);
  watch->function = std::make_shared<FunctionRef>(*session.vm, L);
  watch->point.name = "origin";
  *holder = watch;
  Predicate predicate;
  predicate.text = "a function";
  predicate.when = Predicate::Function([L, &session, watch, failure](const CheckedTensor& tensor) -> std::optional<bool> {
    if (!failure->empty()) return std::nullopt;
    const ScriptVerdict verdict = call_watch_function(L, session, *watch, tensor);
    if (verdict.verdict == Verdict::kNotChecked) {
      const std::string name = fmt::format("{} step {}", session.session->tensor_name(tensor.id), tensor.id.step);
      constexpr std::string_view kRaised = "rule error: ";  // how call_watch_function() begins it then
      if (verdict.reason.starts_with(kRaised))
        *failure = fmt::format("origin: option 'when' on {}: {}", name, verdict.reason.substr(kRaised.size()));
      else log(LogLevel::kWarning, fmt::format("origin: {}: {}", name, verdict.reason));
      return std::nullopt;
    }
    return verdict.verdict == Verdict::kHit;
  });
  return predicate;
}

int find_origin(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "origin: session");
  Session& session = box->open();
  OptionTable options(L, 2, "origin");
  OriginOptions made;
  CheckOptions common = box->defaults;
  std::shared_ptr<WatchBox> holder;
  const auto failure = std::make_shared<std::string>();
  if (const auto steps = options.numbers("steps")) made.steps = *steps;
  if (const auto ranks = options.numbers("ranks")) made.ranks = *ranks;
  read_check_options(options, &common);
  made.semantics = common.semantics;
  made.threads = common.threads;
  made.mem_limit_bytes = common.mem_limit_bytes;
  if (options.push("when")) {
    made.predicate = read_predicate(L, *box, &holder, failure);
    lua_pop(L, 1);
  }
  options.finish();
  auto result = std::make_shared<OriginBox>();
  result->session = box;
  const InUse guard(*box, "origin");
  Result<OriginResult> found = find_origins(session, made);
  if (!failure->empty()) throw ScriptError("invalid_argument", *failure, true);
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
  lua_newtable(L);
  int i = 0;
  for (const OriginInput& input : origin.inputs) {
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
    lua_rawseti(L, -2, ++i);
  }
}

void push_chains(lua_State* L, const SessionBox& box, const Origin& origin) {
  lua_newtable(L);
  int i = 0;
  for (const auto& chain : origin.chains) {
    lua_newtable(L);
    int k = 0;
    for (const ChainLink& link : chain) {
      lua_newtable(L);
      set_place(L, box, link.tensor);
      set_field(L, "bad", link.bad);
      push_optional_stats(L, link.stats, box, link.tensor);
      set_record_class(L, "tensor_place");
      lua_rawseti(L, -2, ++k);
    }
    lua_rawseti(L, -2, ++i);
  }
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
  lua_newtable(L);
  for (size_t i = 0; i < origin.first.size(); ++i) {
    push_shape(L, origin.first[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
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
    lua_newtable(L);
    set_place(L, box, *origin.update);
    set_record_class(L, "tensor_place");
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
  lua_newtable(L);
  int i = 0;
  for (const StepOrigins& step : box.result.steps) {
    lua_newtable(L);
    set_field(L, "rank", step.rank);
    set_field(L, "graph_id", step.graph);
    set_field(L, "step", step.step);
    set_field(L, "bad_tensors", step.bad_tensors);
    lua_newtable(L);
    for (size_t k = 0; k < step.origins.size(); ++k) {
      push_origin(L, *box.session, step.origins[k]);
      lua_rawseti(L, -2, static_cast<int>(k) + 1);
    }
    lua_setfield(L, -2, "origins");
    lua_newtable(L);
    for (size_t k = 0; k < step.losses.size(); ++k) {
      lua_newtable(L);
      set_place(L, *box.session, step.losses[k]);
      set_record_class(L, "tensor_place");
      lua_rawseti(L, -2, static_cast<int>(k) + 1);
    }
    lua_setfield(L, -2, "losses");
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

int get_predicate(lua_State* L) { return push_text(L, self<OriginBox>(L).result.predicate), 1; }
int get_not_checked(lua_State* L) {
  return lua_pushnumber(L, static_cast<double>(self<OriginBox>(L).result.not_checked.size())), 1;
}

std::string without_last_newline(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

int origin_text(lua_State* L) {
  const OriginBox& box = self<OriginBox>(L);
  push_text(L, without_last_newline(origin_report(box.session->open(), box.result, table_style())));
  return 1;
}

constexpr Member kOriginFields[] = {{"origins", guard<get_origins>},
                                    {"steps", guard<get_steps>},
                                    {"predicate", guard<get_predicate>},
                                    {"not_checked_count", guard<get_not_checked>}};
constexpr Member kOriginMeta[] = {{"__tostring", guard<origin_text>}};

// ---- report
// --------------------------------------------------------------------------------------------------------------

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
  if (box.check)
    push_text(L, check_report(box.check->session->open(), box.check->result, style));
  else
    push_text(L, origin_report(box.origin->session->open(), box.origin->result, style));
  return 1;
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
  define_class(L, {ClassName<OriginBox>::value, {}, kOriginFields, kOriginMeta, {}, nullptr},
               guard<collect_object<OriginBox>>, guard<equal_objects<OriginBox>>);
  define_class(L, {ClassName<ReportBox>::value, kReportMethods, {}, {}, {}, nullptr}, guard<collect_object<ReportBox>>,
               guard<equal_objects<ReportBox>>);
  lua_pushcfunction(L, guard<find_origin>);
  lua_setfield(L, -2, "origin");
  lua_pushcfunction(L, guard<make_report>);
  lua_setfield(L, -2, "report");
  lua_pushcfunction(L, guard<page_form_of>);
  lua_setfield(L, -2, "page_form");
}

}  // namespace msdbg::script
