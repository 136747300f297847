// msdbg.origin and msdbg.report.
#include <fmt/format.h>

#include <cmath>

#include "script/bind_parts.h"
#include "script/predicate.h"
#include "script/push_answer.h"

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
  made.ranks = ranks_option(options, *box);
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
  made.progress = progress_of(vm_of(L), "checking");
  Result<OriginResult> found = find_origins(session, made);
  made.progress = nullptr;
  predicate.throw_failure();
  result->result = value_or_throw(std::move(found));
  if (result->result.interrupted) throw ScriptError(Status(Code::kInterrupted, "origin: interrupted"));
  push_object(L, std::move(result));
  return 1;
}

Answer answer_of(const OriginBox& box) { return origin_answer(*box.session->session, box.result); }

template <Key key>
constexpr auto origin_field = answer_field<OriginBox, answer_of, key>;

int origin_text(lua_State* L) {
  const OriginBox& box = self<OriginBox>(L);
  return give(L, without_last_newline(origin_report(box.session->open(), box.result, table_style(L))));
}

constexpr Member kOriginFields[] = {
    {"dump", guard<origin_field<"dump">>},
    {"predicate", guard<origin_field<"predicate">>},
    {"interrupted", guard<origin_field<"interrupted">>},
    {"coverage", guard<origin_field<"coverage">>},
    {"steps", guard<origin_field<"steps">>},
    {"origins", guard<origin_field<"origins">>},
    {"put_in", guard<origin_field<"put_in">>},
    {"overflows", guard<origin_field<"overflows">>},
    {"overwritten", guard<origin_field<"overwritten">>},
    {"not_checked", guard<origin_field<"not_checked">>},
    {"unfinished", guard<origin_field<"unfinished">>}};
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
  ReportStyle style = table_style(L);
  style.format = format;
  // Formats that list rules without a finding get them from the rules that ran, or else from the watchpoints.
  if (box.check && !box.check->result.rules.empty()) {
    for (const auto& info : box.check->result.rules) {
      if (info) style.rules_run.push_back(info->name);
    }
  } else if (box.check) {
    for (const auto& watch : box.check->session->watches) {
      if (watch->point.enabled) style.rules_run.push_back(watch->point.rule);
    }
  }
  if (box.check) require_causes(L, *box.check);
  if (box.check) style.exit_status = box.check->result.interrupted ? 130 : box.check->result.total_hits > 0 ? 1 : 0;
  if (box.check) return give(L, check_report(box.check->session->open(), box.check->result, style));
  return give(L, origin_report(box.origin->session->open(), box.origin->result, style));
}
int render_table(lua_State* L) { return render(L, Format::kTable); }
int render_json(lua_State* L) { return render(L, Format::kJson); }
int render_jsonl(lua_State* L) { return render(L, Format::kJsonl); }
int render_csv(lua_State* L) { return render(L, Format::kCsv); }
// The page with a path, the comment without one.
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
