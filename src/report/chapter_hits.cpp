// Every finding in a line, what the findings follow from, and what to do about their kind.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "msdbg/answers.h"
#include "report/chapters.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

std::string name_of(const Hit& hit) { return hit.abbr.empty() ? hit.rule : hit.abbr; }

std::string text_at(const Answer& answer, const char* key) { return answer[key].is_string() ? answer[key].get<std::string>() : ""; }

/// Findings with one cause, or with none that is known.
struct Group {
  const Origin* cause = nullptr;
  uint64_t findings = 0;
  std::map<std::string, uint64_t> rules;
  std::set<int64_t> steps;

  void add(const Hit& hit) {
    ++findings;
    ++rules[name_of(hit)];
    steps.insert(hit.tensor.step);
  }
};

/// By the node that broke first, in the order in which the findings come.
std::vector<Group> groups_of(const Context& context, const CheckResult& check) {
  std::vector<Group> groups;
  Group unexplained;
  std::map<std::tuple<int, int, NodeId>, size_t> places;
  for (const Hit& hit : check.hits) {
    const Origin* const cause = context.cause(hit.tensor);
    if (cause == nullptr) {
      unexplained.add(hit);
      continue;
    }
    const TensorId& id = cause->tensor;
    const auto [at, fresh] = places.try_emplace({id.rank, id.graph, id.node}, groups.size());
    if (fresh) groups.push_back({cause, 0, {}, {}});
    groups[at->second].add(hit);
  }
  if (unexplained.findings > 0) groups.push_back(std::move(unexplained));
  return groups;
}

Line cause_line(Context& context, const Origin* cause) {
  return {cause == nullptr ? muted("no known origin") : context.cause_run(*cause)};
}

Sheet cause_sheet(Context& context, const std::vector<Group>& groups) {
  Sheet sheet;
  sheet.caption = "Findings by cause";
  sheet.columns = {{"follow from"}, {"findings", true}, {"by rule"}, {.title = "in steps", .named = true}};
  sheet.sorts = true;
  sheet.open = 12;
  for (const Group& group : groups) {
    std::string rules;
    for (const auto& [rule, count] : group.rules) rules += fmt::format("{}{} {}", rules.empty() ? "" : ", ", rule, count);
    const std::vector<int64_t> steps(group.steps.begin(), group.steps.end());
    sheet.rows.push_back({cause_line(context, group.cause),
                          {plain(std::to_string(group.findings))},
                          {plain(std::move(rules))},
                          {plain(numbers_text(steps))}});
  }
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
    if (causes) row.push_back(cause_line(context, context.cause(hit.tensor)));
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
  if (check == nullptr || check->total_hits == 0) return std::nullopt;
  Section section{"findings-list", "Findings", {}};
  std::string says = fmt::format("{} on {}", counted(check->total_hits, "finding"), counted(check->coverage.tensors, "tensor"));
  if (!context.options.rules.empty()) says += fmt::format(", by {}", context.options.rules);
  section.blocks.push_back(Paragraph{{plain(says + ".")}});
  const std::vector<Group> groups = groups_of(context, *check);
  const bool causes = !groups.empty() && groups.front().cause != nullptr;
  if (causes) section.blocks.push_back(cause_sheet(context, groups));
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
