// The page as a whole: its chapters, their order, and the findings they cover.
#include "msdbg/html_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/chapters.h"
#include "report/check_formats.h"
#include "report/table.h"

namespace msdbg {

Result<PageForm> page_form(std::string_view path) {
  const std::string lower = to_lower(path);
  for (std::string_view ending : {".html", ".htm"}) {
    if (lower.ends_with(ending)) return PageForm::kHtml;
  }
  for (std::string_view ending : {".md", ".markdown"}) {
    if (lower.ends_with(ending)) return PageForm::kMarkdown;
  }
  return Status(Code::kInvalidArgument, fmt::format("{}: the ending says what is written; use .html or .md", printable(path)));
}

std::vector<Watchpoint> default_watchpoints() {
  std::vector<Watchpoint> list;
  for (const PresetRule& rule : default_rules()) {
    auto selector = Selector::parse(rule.on);
    auto condition = parse_condition(rule.when);
    if (!selector || !condition) continue;  // an invalid entry of the table; its own test reports it
    Watchpoint watch;
    watch.id = static_cast<int>(list.size()) + 1;
    watch.rule = rule.name;
    watch.on = *selector;
    watch.optional = true;
    watch.inputs_instead = rule.on == "@all";
    watch.severity = condition->spec->severity;
    watch.condition = std::move(*condition);
    list.push_back(std::move(watch));
  }
  return list;
}

Result<PageFindings> look_for_page(Session& session, std::span<const Watchpoint> watchpoints, const CheckOptions& check_options) {
  auto checked = check(session, watchpoints, check_options);
  if (!checked) return checked.status();
  return add_origins(session, std::move(*checked), check_options);
}

Result<PageFindings> add_origins(Session& session, CheckResult checked, const CheckOptions& check_options) {
  PageFindings findings;
  findings.check = std::move(checked);
  if (findings.check.interrupted) return findings;
  OriginOptions options;
  options.steps = check_options.steps;
  options.ranks = check_options.ranks;
  options.semantics = check_options.semantics;
  options.mem_limit_bytes = check_options.mem_limit_bytes;
  options.threads = check_options.threads;
  options.progress = check_options.progress;
  auto found = find_origins(session, options);
  if (!found) return found.status();
  findings.origin = std::move(*found);
  if (findings.origin.interrupted) return findings;
  if (const Status status = find_causes(session, check_options, &findings.check, &findings.origin); !status.ok()) return status;
  return findings;
}

Result<std::string> page_text(Session& session, const PageInput& input, const PageOptions& options, PageForm form) {
  if (input.check == nullptr && input.origin == nullptr) {
    return Status(Code::kInvalidArgument, "report: nothing to report; pass the result of a check or of a search for origins");
  }
  page::Context context(session, input, options);
  page::Document document;
  page::add_verdict(context, &document);
  if (const Status status = page::add_provenance(context, &document); !status.ok()) return status;
  // Pictures first: earlier chapters link to those that exist.
  auto tensors = page::tensor_chapter(context);
  using Chapter = std::optional<page::Section> (*)(page::Context&);
  const auto add = [&](std::optional<page::Section> section) {
    if (section) document.sections.push_back(std::move(*section));
  };
  for (const Chapter chapter : {page::origin_chapter, page::ranks_chapter, page::graph_chapter}) add(chapter(context));
  add(std::move(tensors));
  for (const Chapter chapter : {page::trend_chapter, page::layers_chapter, page::hit_chapter, page::guide_chapter, page::source_chapter,
                                page::coverage_chapter, page::environment_chapter, page::command_chapter}) {
    if (interrupt_requested()) context.failure = Status(Code::kInterrupted, "report: interrupted");
    if (!context.failure.ok()) return context.failure;
    add(chapter(context));
  }
  for (page::Line& remark : context.remarks) document.remarks.push_back(std::move(remark));
  return form == PageForm::kHtml ? page::html(document) : page::markdown(document);
}

namespace page {

std::string text_at(const Answer& answer, const char* key) { return answer[key].is_string() ? answer[key].get<std::string>() : ""; }

std::string number_at(const Answer& answer, const char* key) {
  return answer[key].is_number() ? format_short(answer[key].get<double>()) : "";
}

namespace {

/// A comment far to the right of its line moves next to it.
std::string without_gaps(const std::string& code) {
  std::string out;
  for (const char c : code) {
    if (c != ' ' || !out.ends_with("  ")) out += c;
  }
  return out;
}

}  // namespace

Context::Context(Session& s, const PageInput& i, const PageOptions& o) : session(s), input(i), options(o) {
  if (input.origin != nullptr) {
    for (const StepOrigins& step : input.origin->steps) {
      if (!step.origins.empty()) origins.push_back(&step);
    }
  }
  const auto when = [](const StepOrigins* step) { return std::tie(step->step, step->rank, step->graph); };
  std::stable_sort(origins.begin(), origins.end(), [&](const auto* a, const auto* b) { return when(a) < when(b); });
  std::map<std::pair<int, int>, NodeId> last;
  for (const StepOrigins* step : origins) {
    const NodeId broken = step->origins.front().tensor.node;
    const auto [at, fresh] = last.try_emplace({step->rank, step->graph}, broken);
    if ((fresh || at->second != broken) && stories.size() < kMostStories) stories.push_back(step);
    at->second = broken;
  }
  if (input.check == nullptr) return;
  for (const Hit& hit : input.check->hits) {
    std::vector<std::string>& names = marks_[{hit.tensor.rank, hit.tensor.graph, hit.tensor.step, hit.tensor.node}];
    const std::string& name = hit.abbr.empty() ? hit.rule : hit.abbr;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
}

const std::string& Context::short_name(const TensorId& id) {
  const auto [at, fresh] = names_.try_emplace({id.rank, id.graph, id.node});
  if (fresh) at->second = msdbg::short_name(session, id);
  return at->second;
}

std::string Context::tensor_text(const TensorId& id) {
  if (node(id).kind == NodeKind::kParameter && id.slot == Slot{}) return short_name(id);
  return fmt::format("{}:{}", short_name(id), slot_name(id.slot));
}

Run Context::tensor_run(const TensorId& id) {
  Run run = code(tensor_text(id), session.tensor_name(id));
  run.target = anchor(id);
  return run;
}

Run Context::node_run(const TensorId& id) {
  Run run = code(short_name(id), node(id).name);
  run.target = anchor(id);
  return run;
}

std::string Context::when_text(const TensorId& id) const { return when_text(id, id.step, {&id.rank, 1}); }

std::string Context::when_text(const TensorId& id, const StepOrigins& step) const {
  return when_text(id, step.step, step.ranks.empty() ? std::span(&id.rank, 1) : std::span(step.ranks));
}

std::string Context::when_text(const TensorId& id, int64_t step, std::span<const int> ranks) const {
  std::string text = fmt::format("step {}", step);
  if (several_ranks()) text += ", " + ranks_text(ranks);
  if (several_graphs()) text += fmt::format(", graph {}", id.graph);
  if (id.execution > 0) text += fmt::format(", execution {}", id.execution);
  return text;
}

Run Context::cause_run(const Cause& cause) {
  Run run = node_run(cause.tensor);
  if (several_ranks()) run.text += fmt::format(", rank {}", cause.tensor.rank);
  return run;
}

Line Context::source_line(const Node& node) const {
  const std::string place = source_place(node, false);
  if (place.empty()) return {};
  Line line{code(place, source_place(node, true))};
  if (const StackFrame* frame = user_frame(node); frame != nullptr && !frame->code.empty()) {
    line.push_back(plain("  "));
    line.push_back(code(without_gaps(frame->code)));
  }
  return line;
}

std::vector<std::string> Context::marks(const TensorId& id) const {
  const auto at = marks_.find({id.rank, id.graph, id.step, id.node});
  return at == marks_.end() ? std::vector<std::string>{} : at->second;
}

std::string Context::anchor(const TensorId& id) const {
  const auto at = anchors_.find(id);
  return at == anchors_.end() ? "" : at->second;
}

Semantics Context::semantics() const { return input.check != nullptr ? input.check->semantics : Semantics::kCompat; }

std::vector<int64_t> Context::steps_looked_at() const { return input.check != nullptr ? input.check->steps : session.steps(); }

Coverage Context::coverage() const { return input.check != nullptr ? input.check->coverage : input.origin->coverage; }

bool Context::partial() const {
  return (input.check != nullptr && input.check->interrupted) || (input.origin != nullptr && input.origin->interrupted);
}

}  // namespace page
}  // namespace msdbg
