// Every finding in a line, and what to do about its kind.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/chapters.h"
#include "report/check_formats.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

std::string name_of(const Hit& hit) { return hit.abbr.empty() ? hit.rule : hit.abbr; }

Sheet hit_sheet(Context& context, const CheckResult& check) {
  Sheet sheet;
  sheet.caption = "Findings";
  sheet.stacks = true;
  const bool executions = std::any_of(check.hits.begin(), check.hits.end(), [](const Hit& hit) { return hit.tensor.execution > 0; });
  if (context.several_ranks()) sheet.columns.push_back({"rank", true});
  if (context.several_graphs()) sheet.columns.push_back({"graph", true});
  sheet.columns.push_back({"step", true});
  if (executions) sheet.columns.push_back({"run", true});
  for (const char* title : {"rule", "tensor", "what", "source"}) sheet.columns.push_back({title});
  for (const Hit& hit : check.hits) {
    if (sheet.rows.size() == context.options.max_hits) break;
    const Node& node = context.node(hit.tensor);
    std::vector<Line> row;
    if (context.several_ranks()) row.push_back({plain(std::to_string(hit.tensor.rank))});
    if (context.several_graphs()) row.push_back({plain(std::to_string(hit.tensor.graph))});
    row.push_back({plain(std::to_string(hit.tensor.step))});
    if (executions) row.push_back({plain(std::to_string(hit.tensor.execution))});
    Run rule{name_of(hit), hit.severity == Severity::kError ? Look::kBad : Look::kStrong, hit.rule};
    row.push_back({std::move(rule)});
    row.push_back({context.tensor_run(hit.tensor)});
    row.push_back({plain(what_text(hit))});
    const std::string place = source_place(node, false);
    row.push_back(place.empty() ? Line{} : Line{code(place, source_place(node, true))});
    sheet.rows.push_back(std::move(row));
  }
  return sheet;
}

void tell_advice(const CheckResult& check, Section* section) {
  std::vector<std::string> order;
  std::map<std::string, std::string> abbrs;
  for (const Hit& hit : check.hits) {
    if (abbrs.try_emplace(hit.rule, hit.abbr).second) order.push_back(hit.rule);
  }
  Facts facts;
  for (const std::string& rule : order) {
    const std::string& abbr = abbrs[rule];
    std::string summary, advice = advice_of(check, rule);
    if (const RuleInfo* info = rule_info(check, rule)) summary = info->summary;
    // A preset of another name keeps the advice of the condition that it uses.
    if (const auto spec = find_condition(abbr); spec && advice.empty()) {
      summary = (*spec)->summary;
      advice = (*spec)->advice;
    } else if (spec && summary.empty()) {
      summary = (*spec)->summary;
    }
    if (advice.empty() && summary.empty()) continue;
    Line line;
    if (!summary.empty()) line.push_back(strong(summary + (advice.empty() ? "." : ". ")));
    line.push_back(plain(advice));
    facts.rows.push_back({abbr.empty() ? rule : abbr, std::move(line)});
  }
  if (facts.rows.empty()) return;
  section->blocks.push_back(Heading{{plain("What to try")}});
  section->blocks.push_back(std::move(facts));
}

}  // namespace

std::optional<Section> hit_chapter(Context& context) {
  const CheckResult* check = context.input.check;
  if (check == nullptr || check->total_hits == 0) return std::nullopt;
  Section section{"findings-list", "Findings", {}};
  std::string says = fmt::format("{} on {}", counted(check->total_hits, "finding"), counted(check->coverage.tensors, "tensor"));
  if (!context.options.rules.empty()) says += fmt::format(", by {}", context.options.rules);
  section.blocks.push_back(Paragraph{{plain(says + ".")}});
  Sheet sheet = hit_sheet(context, *check);
  const size_t listed = sheet.rows.size();
  section.blocks.push_back(std::move(sheet));
  if (listed < check->total_hits) {
    section.blocks.push_back(
        Paragraph{{muted(fmt::format("{} more are not listed here; msdbg check lists them all.", check->total_hits - listed))}});
  }
  tell_advice(*check, &section);
  return section;
}

}  // namespace msdbg::page
