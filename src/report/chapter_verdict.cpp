// The verdict: one sentence, and the facts that a reader needs with it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/chapters.h"
#include "report/check_formats.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

/// "step 0", "step 0 on rank 1".
std::string place_text(Context& context, const TensorId& id) {
  std::string text = fmt::format("step {} on rank {}", id.step, id.rank);
  if (context.several_graphs()) text += fmt::format(" in graph {}", id.graph);
  if (id.execution > 0) text += fmt::format(" (execution {})", id.execution);
  return text;
}

void add_source(Context& context, const TensorId& id, Line* line) {
  const std::string place = source_place(context.node(id), false);
  if (place.empty()) return;
  line->push_back(plain(", at "));
  line->push_back(code(place, source_place(context.node(id), true)));
}

/// "104 of 192 elements of its output are -Inf"
std::string what_broke(const Origin& origin) {
  const Stats& stats = origin.stats;
  if (stats.nan_count + stats.inf_count() == 0) return "";
  if (stats.count == 1)
    return fmt::format("its only element is {}", stats.nan_count > 0 ? "NaN" : stats.pos_inf_count > 0 ? "+Inf" : "-Inf");
  std::string text = nonfinite_text(stats);
  if (const size_t of = text.find(" of "); of != std::string::npos) {
    const size_t space = text.find(' ', of + 4);
    if (space != std::string::npos) text.insert(space, " elements are");
  }
  return text;
}

Line origin_sentence(Context& context, const Origin& origin) {
  const TensorId& id = origin.tensor;
  Line line;
  const std::string what = what_broke(origin);
  switch (origin.kind) {
    case OriginKind::kOperator:
      line.push_back(context.node_run(id));
      line.push_back(bad(origin.certain ? " broke first" : " is the first known to be broken"));
      if (!what.empty())
        line.push_back(plain(": " + what));
      else
        line.push_back(plain(fmt::format(": it satisfies '{}'", context.input.origin->predicate)));
      line.push_back(plain(", in " + place_text(context, id)));
      break;
    case OriginKind::kParameter:
      line.push_back(plain("Parameter "));
      line.push_back(context.node_run(id));
      line.push_back(bad(" was broken before the step began"));
      if (origin.bad_part) line.push_back(plain(fmt::format(", in the part that rank {} holds", origin.bad_part->rank)));
      if (!what.empty()) line.push_back(plain(": " + what));
      line.push_back(plain(", in " + place_text(context, id)));
      break;
    case OriginKind::kUnrecorded:
    case OriginKind::kInput:
      line.push_back(plain(origin.part_of ? "The part of " : "The input "));
      line.push_back(context.node_run(origin.part_of.value_or(id)));
      if (origin.part_of) line.push_back(plain(fmt::format(" that rank {} holds", id.rank)));
      line.push_back(bad(origin.part_of ? " was broken before the step began" : " came in broken"));
      if (!what.empty()) line.push_back(plain(": " + what));
      line.push_back(plain(", in " + place_text(context, id)));
      break;
  }
  add_source(context, id, &line);
  line.push_back(plain("."));
  return line;
}

std::string not_checked_part(const Coverage& coverage) { return fmt::format("{} not checked", coverage.not_checked); }

Line findings_sentence(Context& context) {
  const CheckResult& check = *context.input.check;
  const auto first =
      std::min_element(check.hits.begin(), check.hits.end(), [](const Hit& a, const Hit& b) { return a.tensor.step < b.tensor.step; });
  Line line;
  line.push_back(bad(counted(check.total_hits, "finding")));
  std::set<int64_t> steps;
  for (const Hit& hit : check.hits) steps.insert(hit.tensor.step);
  line.push_back(plain(fmt::format(" in {} of {}", steps.size(), counted(check.steps.size(), "step"))));
  if (first == check.hits.end()) {
    line.push_back(plain("."));
    return line;
  }
  line.push_back(plain(", the first on "));
  line.push_back(context.node_run(first->tensor));
  line.push_back(plain(" in " + place_text(context, first->tensor)));
  if (const std::string what = what_text(*first); !what.empty())
    line.push_back(plain(fmt::format(": {} ({})", first->rule, what)));
  else
    line.push_back(plain(": " + first->rule));
  add_source(context, first->tensor, &line);
  line.push_back(plain("."));
  return line;
}

Line nothing_sentence(Context& context) {
  const Coverage coverage = context.coverage();
  const size_t steps = context.steps_looked_at().size();
  if (coverage.tensors == 0) return {plain("Nothing was checked: no rule names a tensor of these steps and ranks.")};
  if (coverage.checked == 0)
    return {plain(fmt::format("Nothing could be checked: none of {} can be evaluated.", counted(coverage.tensors, "tensor")))};
  return {plain(fmt::format("Nothing found among {} of {}, {}.", counted(coverage.checked, "tensor"), counted(steps, "step"),
                            not_checked_part(coverage)))};
}

/// Findings that follow from one cause.
void cause_remarks(Context& context, const CheckResult& check, Document* document) {
  constexpr size_t kMost = 3;
  size_t told = 0;
  for (const Cause& cause : check.causes.value_or(std::vector<Cause>{})) {
    if (!is_worth_telling(cause)) continue;
    if (++told > kMost) break;
    Line line{plain(fmt::format("{} of {} {} from ", cause.findings, counted(cause.total, "finding"),
                                cause.findings == 1 ? "follows" : "follow")),
              context.cause_run(cause), plain(fmt::format(", step{} {}", cause.steps.size() > 1 ? "s" : "", numbers_text(cause.steps)))};
    add_source(context, cause.tensor, &line);
    line.push_back(plain(": "));
    line.push_back(strong(cause.what));
    line.push_back(plain(cause.evidence.empty() ? "." : fmt::format(" ({}).", cause.evidence)));
    document->remarks.push_back(std::move(line));
  }
}

void loss_remark(Context& context, const StepOrigins& step, Document* document) {
  if (step.losses.empty()) return;
  const auto stats = context.session.stats(step.losses.front());
  Line line;
  if (stats && stats->min == stats->min)
    line.push_back(plain(fmt::format("The loss of that step is {}, finite: it does not show the fault.", format_short(stats->min, 5))));
  else
    line.push_back(plain("The loss of that step looks sound: it does not show the fault."));
  document->remarks.push_back(std::move(line));
}

void later_remark(Context& context, Document* document) {
  if (context.origins.size() < 2) return;
  std::vector<int64_t> again;
  for (const StepOrigins* step : context.origins) {
    if (step != context.origins.front() && (again.empty() || again.back() != step->step)) again.push_back(step->step);
  }
  Line line{plain(fmt::format("Also broken: {} {}", again.size() == 1 ? "step" : "steps", numbers_text(again)))};
  if (context.stories.size() > 1) {
    line.push_back(plain("; another place breaks first in "));
    for (size_t i = 1; i < context.stories.size(); ++i) {
      if (i > 1) line.push_back(plain(", "));
      const TensorId& id = context.stories[i]->origins.front().tensor;
      line.push_back(plain(context.when_text(id, *context.stories[i]) + " ("));
      line.push_back(context.node_run(id));
      line.push_back(plain(")"));
    }
  }
  line.push_back(plain("."));
  document->remarks.push_back(std::move(line));
}

/// Findings before anything broke are closer to the cause than what broke.
void earlier_remark(Context& context, Document* document) {
  if (context.input.check == nullptr) return;
  const int64_t broke = context.origins.front()->step;
  const Hit* first = nullptr;
  uint64_t count = 0;
  for (const Hit& hit : context.input.check->hits) {
    if (hit.tensor.step >= broke) continue;
    ++count;
    if (first == nullptr || hit.tensor.step < first->tensor.step) first = &hit;
  }
  if (first == nullptr) return;
  const std::string what = what_text(*first);
  document->remarks.push_back(
      {plain(fmt::format("Before that, {}: the first in step {} on ", counted(count, "finding"), first->tensor.step)),
       context.tensor_run(first->tensor), plain(fmt::format(", {}{}.", first->rule, what.empty() ? "" : fmt::format(" ({})", what)))});
}

void glance(Context& context, const TensorId& id, const TensorInfo& info, uint64_t bad_tensors, Document* document) {
  auto& rows = document->glance;
  const Node& node = context.node(id);
  rows.push_back({"Operator", {code(node.op)}});
  rows.push_back({"Tensor", {code(fmt::format("{} {}{}", slot_name(id.slot), dtype_name(info.dtype), shape_text(info.shape)))}});
  rows.push_back({"Step", {plain(std::to_string(id.step))}});
  rows.push_back({"Rank", {plain(std::to_string(id.rank))}});
  const std::string place = source_place(node, false);
  rows.push_back({"Source", {place.empty() ? muted("not recorded") : code(place, source_place(node, true))}});
  if (bad_tensors > 0) rows.push_back({"Broken in this step", {plain(counted(bad_tensors, "tensor"))}});
}

}  // namespace

void add_verdict(Context& context, Document* document) {
  const SessionInfo& info = context.session.info();
  document->subject = context.options.dump.empty() ? info.source : context.options.dump;
  const CheckResult* check = context.input.check;
  const bool hits = check != nullptr && check->total_hits > 0;
  document->broken = !context.origins.empty() || hits;
  if (!context.origins.empty()) {
    const StepOrigins& step = *context.origins.front();
    const Origin& origin = step.origins.front();
    document->verdict = origin_sentence(context, origin);
    if (hits) cause_remarks(context, *check, document);
    earlier_remark(context, document);
    loss_remark(context, step, document);
    later_remark(context, document);
    glance(context, origin.tensor, origin.info, step.bad_tensors, document);
  } else if (hits) {
    document->verdict = findings_sentence(context);
    cause_remarks(context, *check, document);
    if (!check->hits.empty()) {
      TensorInfo of_first;
      const auto first = std::min_element(check->hits.begin(), check->hits.end(),
                                          [](const Hit& a, const Hit& b) { return a.tensor.step < b.tensor.step; });
      of_first.dtype = first->dtype;
      of_first.shape = first->shape;
      glance(context, first->tensor, of_first, 0, document);
    }
  } else {
    document->verdict = nothing_sentence(context);
    const std::string rules = context.options.rules.empty() ? "" : fmt::format("Asked: {}", context.options.rules);
    if (!rules.empty())
      document->remarks.push_back({plain(rules + (context.input.origin != nullptr ? ", and where NaN or Inf comes from." : "."))});
  }
  if (context.partial())
    document->remarks.push_back({bad("Partial: the search was interrupted, and the rest may hold more.")});
  if (document->broken && context.coverage().not_checked > 0) {
    document->remarks.push_back({plain(
        fmt::format("{} of {}: see Coverage.", not_checked_part(context.coverage()), counted(context.coverage().tensors, "tensor")))});
  }
  const auto is_broken = [](const RuleProblem& problem) { return problem.kind == RuleProblemKind::kBroken; };
  const auto broken = check == nullptr ? 0 : std::count_if(check->rule_problems.begin(), check->rule_problems.end(), is_broken);
  if (broken > 0) {
    document->remarks.push_back(
        {bad(counted(static_cast<uint64_t>(broken), "rule")), plain(" broke: its findings are unknown, see Coverage.")});
  }
  if (check != nullptr && !context.origins.empty()) {
    document->glance.push_back({"Findings", {plain(std::to_string(check->total_hits))}});
  }
  std::string title;
  for (const Run& run : document->verdict) title += run.text;
  document->title = fmt::format("{}: {}", info.short_name.empty() ? info.source : info.short_name, title);
}

}  // namespace msdbg::page
