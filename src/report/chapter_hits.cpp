// Every finding on a line, what the findings follow from, and advice for each kind.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/chapters.h"
#include "report/check_formats.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

std::string name_of(const Hit& hit) { return hit.abbr.empty() ? hit.rule : hit.abbr; }

/// Findings with the same cause, or without a known one.
struct Group {
  uint64_t findings = 0;
  std::map<std::string, uint64_t> rules;
  std::set<int64_t> steps;
};

Line cause_line(Context& context, const CheckResult& check, std::optional<size_t> cause) {
  return {cause ? context.cause_run((*check.causes)[*cause]) : muted("no known cause")};
}

Sheet cause_sheet(Context& context, const CheckResult& check) {
  std::map<std::optional<size_t>, Group> groups;
  for (const Hit& hit : check.hits) {
    Group& group = groups[hit.follows];
    ++group.findings;
    ++group.rules[name_of(hit)];
    group.steps.insert(hit.tensor.step);
  }
  Sheet sheet;
  sheet.caption = "Findings by cause";
  sheet.columns = {{"follow from"}, {.title = "why", .named = true}, {"findings", true}, {"by rule"}, {.title = "in steps", .named = true}};
  sheet.sorts = true;
  sheet.open = 12;
  const auto add = [&](std::optional<size_t> cause) {
    const auto found = groups.find(cause);
    if (found == groups.end()) return;
    const Group& group = found->second;
    std::string rules, why;
    for (const auto& [rule, count] : group.rules) rules += fmt::format("{}{} {}", rules.empty() ? "" : ", ", rule, count);
    if (cause) why = why_text((*check.causes)[*cause]);
    const std::vector<int64_t> steps(group.steps.begin(), group.steps.end());
    sheet.rows.push_back({cause_line(context, check, cause),
                          {plain(std::move(why))},
                          {plain(std::to_string(group.findings))},
                          {plain(std::move(rules))},
                          {plain(numbers_text(steps))}});
  };
  for (size_t i = 0; i < check.causes->size(); ++i) add(i);
  add(std::nullopt);
  return sheet;
}

Sheet hit_sheet(Context& context, const CheckResult& check, bool causes) {
  Sheet sheet;
  sheet.caption = "Findings";
  sheet.sorts = true;
  const bool executions = std::any_of(check.hits.begin(), check.hits.end(), [](const Hit& hit) { return hit.tensor.execution > 0; });
  if (context.several_ranks()) sheet.columns.push_back({.title = "rank", .number = true, .groups = true});
  if (context.several_graphs()) sheet.columns.push_back({.title = "graph", .number = true});
  sheet.columns.push_back({.title = "step", .number = true, .groups = true, .step = true});
  if (executions) sheet.columns.push_back({"run", true});
  sheet.columns.push_back({.title = "rule", .groups = true});
  for (const char* title : {"tensor", "what"}) sheet.columns.push_back({title});
  sheet.columns.push_back({.title = "source", .groups = true});
  if (causes) sheet.columns.push_back({.title = "follows from", .groups = true, .named = true});
  for (const Hit& hit : check.hits) {
    if (sheet.rows.size() == context.options.max_hits) break;
    const Answer answer = hit_answer(context.session, hit);
    const Node& node = context.node(hit.tensor);
    std::vector<Line> row;
    if (context.several_ranks()) row.push_back({plain(answer["rank"].dump())});
    if (context.several_graphs()) row.push_back({plain(answer["graph_id"].dump())});
    row.push_back({plain(answer["step"].dump())});
    if (executions) row.push_back({plain(answer["execution"].dump())});
    row.push_back({Run{name_of(hit), hit.severity == Severity::kError ? Look::kBad : Look::kStrong, hit.rule}});
    row.push_back({context.tensor_run(hit.tensor)});
    row.push_back({plain(text_at(answer, "message"))});
    const std::string place = source_place(node, false);
    row.push_back(place.empty() ? Line{} : Line{code(place, source_place(node, true))});
    if (causes) row.push_back(cause_line(context, check, hit.follows));
    sheet.rows.push_back(std::move(row));
  }
  return sheet;
}

void add_advice(Context& context, const CheckResult& check, Section* section) {
  std::set<std::string> seen;
  Facts facts;
  for (const Hit& hit : check.hits) {
    if (!seen.insert(hit.rule).second) continue;
    const Answer answer = hit_answer(context.session, hit);
    const std::string summary = text_at(answer, "summary"), advice = text_at(answer, "advice");
    if (advice.empty() && summary.empty()) continue;
    Line line;
    if (!summary.empty()) line.push_back(strong(summary + (advice.empty() ? "." : ". ")));
    line.push_back(plain(advice));
    facts.rows.push_back({name_of(hit), std::move(line)});
  }
  if (facts.rows.empty()) return;
  section->blocks.push_back(Heading{{plain("What to try")}});
  section->blocks.push_back(std::move(facts));
}

}  // namespace

std::optional<Section> hit_chapter(Context& context) {
  const CheckResult* check = context.input.check;
  if (check == nullptr || (check->total_hits == 0 && check->explained.empty())) return std::nullopt;
  Section section{"findings-list", "Findings", {}};
  if (!check->explained.empty()) {
    const Explained& first = check->explained.front();
    const std::string says = fmt::format("No fault: {}. {}, first ", counted(check->explained.size(), "tensor"), first.what);
    section.blocks.push_back(Paragraph{{plain(says),
                                        context.tensor_run(first.from), plain(fmt::format(" ({}).", first.evidence))}});
  }
  if (check->total_hits == 0) return section;
  std::string says = fmt::format("{} on {}", counted(check->total_hits, "finding"), counted(check->coverage.tensors, "tensor"));
  if (!context.options.rules.empty()) says += fmt::format(", by {}", context.options.rules);
  section.blocks.push_back(Paragraph{{plain(says + ".")}});
  const bool causes = check->causes && !check->causes->empty();
  if (causes) section.blocks.push_back(cause_sheet(context, *check));
  Sheet sheet = hit_sheet(context, *check, causes);
  const size_t listed = sheet.rows.size();
  section.blocks.push_back(std::move(sheet));
  if (listed < check->total_hits) {
    section.blocks.push_back(
        Paragraph{{muted(fmt::format("{} more are not listed here; msdbg check lists them all.", check->total_hits - listed))}});
  }
  add_advice(context, *check, &section);
  return section;
}

}  // namespace msdbg::page
