// report:html and report:markdown(path): the page of a result.
#include <fmt/format.h>

#include "msdbg/atomic_file.h"
#include "msdbg/html_report.h"
#include "script/objects.h"

namespace msdbg::script {
namespace {

size_t count_option(OptionTable& options, const char* key, size_t otherwise, int64_t most) {
  const auto value = options.integer(key, 0, most);
  return value ? static_cast<size_t>(*value) : otherwise;
}

/// Adds what was not requested: a page shows findings and origins. A live training is searched only on request.
void complete(lua_State* L, SessionBox& box, const ReportBox& report, std::optional<CheckResult>* check_result,
              std::optional<OriginResult>* origins) {
  Session& session = box.open();
  if (box.live != nullptr) return;
  if (!report.check) {
    CheckOptions options = box.defaults;
    if (!report.origin->result.steps.empty()) {
      std::string steps;
      for (const StepOrigins& step : report.origin->result.steps) steps += fmt::format("{}{}", steps.empty() ? "" : ",", step.step);
      options.steps = value_or_throw(IntSet::parse(steps));
    }
    options.progress = progress_of(vm_of(L), "checking");
    *check_result = value_or_throw(check(session, default_watchpoints(), options));
  } else if (!report.check->result.steps.empty()) {
    OriginOptions options;
    std::string steps;
    for (int64_t step : report.check->result.steps) steps += fmt::format("{}{}", steps.empty() ? "" : ",", step);
    options.steps = value_or_throw(IntSet::parse(steps));
    if (box.last_check) options.ranks = box.last_check->ranks;
    options.semantics = report.check->result.semantics;
    options.threads = box.defaults.threads;
    options.mem_limit_bytes = box.defaults.mem_limit_bytes;
    options.progress = progress_of(vm_of(L), "checking");
    *origins = value_or_throw(find_origins(session, options));
  }
  if ((*check_result && (*check_result)->interrupted) || (*origins && (*origins)->interrupted)) {
    throw ScriptError(Status(Code::kInterrupted, "report: interrupted; nothing was written"));
  }
  CheckResult& checked = *check_result ? **check_result : report.check->result;
  const OriginResult* const found = *origins ? &**origins : report.origin ? &report.origin->result : nullptr;
  if (const Status status = find_causes(session, box.defaults, &checked, found); !status.ok()) throw ScriptError(status);
}

}  // namespace

int page_form_of(lua_State* L) {
  const PageForm form = value_or_throw(page_form(text_argument(L, 1, "report: file")));
  return give(L, form == PageForm::kHtml ? "html" : "markdown");
}

int render_page(lua_State* L, PageForm form) {
  const ReportBox& report = self<ReportBox>(L);
  SessionBox& box = report.check ? *report.check->session : *report.origin->session;
  Session& session = box.open();
  std::optional<std::string> path;
  if (!lua_isnoneornil(L, 2)) path = text_argument(L, 2, "report: path");
  OptionTable options(L, 3, "report");
  PageOptions page;
  page.max_hits = count_option(options, "max_hits", page.max_hits, 5000);
  page.max_tensors = count_option(options, "tensors", page.max_tensors, 100);
  page.max_layers = count_option(options, "layers", page.max_layers, 500);
  if (const auto rules = options.text("rules")) page.rules = *rules;
  if (const auto command = options.text("command")) page.command = *command;
  page.guide = guide_entries(L, options, "guide");
  options.finish();
  std::string text;
  {
    const InUse guard(box, "report");
    std::optional<CheckResult> check_result;
    std::optional<OriginResult> origins;
    complete(L, box, report, &check_result, &origins);
    page.progress = progress_of(vm_of(L), "drawing");
    PageInput input;
    input.check = report.check ? &report.check->result : check_result ? &*check_result : nullptr;
    input.origin = report.origin ? &report.origin->result : origins ? &*origins : nullptr;
    if (page.rules.empty()) page.rules = report.check ? "the watchpoints of the script" : "the default rules";
    text = value_or_throw(page_text(session, input, page, form));
  }
  if (!path) return give(L, text);
  if (const Status status = write_file(*path, text); !status.ok()) throw ScriptError("io_error", "report: " + status.message(), true);
  return give(L, *path);
}

}  // namespace msdbg::script
