#include "report/origin_rest.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "msdbg/answers.h"
#include "report/follow_text.h"
#include "report/origin_words.h"
#include "report/rank_grid.h"
#include "report/table.h"

namespace msdbg {

std::string origin_line(std::string_view name, std::string_view text) { return fmt::format("  {:<11}{}\n", name, text); }
std::string origin_more(std::string_view text) { return fmt::format("{}{}\n", kOriginIndent, text); }

namespace {

/// A training keeps values that somebody watches: nobody is told that the others are good.
std::string unseen_line(Session& session) {
  if (!session.can_step()) return "";
  std::set<std::tuple<int, int, NodeId>> seen;
  for (const TensorId& tensor : session.tensors({})) seen.emplace(tensor.rank, tensor.graph, tensor.node);
  uint64_t unseen = 0;
  for (const GraphPtr& graph : session.graphs()) {
    for (const NodeId id : graph->execution_order()) {
      const Node& node = graph->node(id);
      if (!node.outputs.empty() && !is_structural(node.op) && !seen.contains({graph->rank(), graph->id(), id})) ++unseen;
    }
  }
  if (unseen == 0) return "";
  return fmt::format("{} {} no value now: they have not run in this step, or nothing watches them (watch ** TO)\n", counted(unseen, "operator"),
                     unseen == 1 ? "has" : "have");
}

}  // namespace

std::string origin_name(const Session& session, const TensorId& id, const ReportStyle& style) {
  const Node& node = session.node(id);
  const std::string shown = style.wide ? printable(node.name) : brief_name(session, node.name);
  return node.kind == NodeKind::kParameter && id.slot == Slot{} ? shown
                                                                : fmt::format("{}:{}", shown, slot_name(id.slot));
}

bool asks_for_bad_values(const OriginResult& result) {
  return result.predicate == "NaN or Inf" || result.predicate == "NaN" || result.predicate == "Inf";
}

std::string overwritten_text(Session& session, const OriginResult& result, const ReportStyle& style) {
  constexpr size_t kShown = 6;
  std::string out;
  for (size_t i = 0; i < result.overwritten.size() && (i < kShown || style.wide); ++i) {
    const Overwritten& each = result.overwritten[i];
    out += fmt::format("step {}  rank {}\n", each.after.step, each.after.rank);
    out += fmt::format("  overwritten  {}, which should equal {}\n", origin_name(session, each.after, style),
                       origin_name(session, each.before, style));
    out += origin_more(overwritten_values(session, each));
    out += origin_more(each.reason);
    if (const std::string source = source_place(session.node(each.after), true); !source.empty()) out += origin_line("source", source);
  }
  const size_t all = result.overwritten.size();
  if (all > kShown && !style.wide) out += fmt::format("  ... {} more values that were overwritten (all: --wide)\n", all - kShown);
  return out.empty() ? out : out + "\n";
}

std::string put_in_text(Session& session, const OriginResult& result, const ReportStyle& style) {
  constexpr size_t kShown = 3;
  if (result.put_in.empty()) return "";
  uint64_t tensors = 0;
  for (const PutIn& each : result.put_in) tensors += each.held_by.size();
  std::string out = fmt::format("no fault: {} hold{} Inf that the program put in; no loss, gradient or parameter took it over\n",
                                counted(tensors, "tensor"), tensors == 1 ? "s" : "");
  struct Group {
    std::set<int64_t> steps;
    std::set<int> ranks;
  };
  // The same value in many steps and on many ranks is one line.
  std::vector<std::pair<std::string, Group>> groups;
  std::map<std::string, size_t> places;
  for (const PutIn& each : result.put_in) {
    const std::string what = fmt::format("{}  {}", origin_name(session, each.tensor, style), printable(each.argument));
    const auto [at, fresh] = places.try_emplace(what, groups.size());
    if (fresh) groups.emplace_back(what, Group());
    groups[at->second].second.steps.insert(each.tensor.step);
    groups[at->second].second.ranks.insert(each.tensor.rank);
  }
  for (size_t i = 0; i < groups.size() && (i < kShown || style.wide); ++i) {
    const auto& [what, group] = groups[i];
    const std::vector<int64_t> steps(group.steps.begin(), group.steps.end());
    const std::vector<int> on(group.ranks.begin(), group.ranks.end());
    const std::string ranks = session.ranks().size() > 1 ? ranks_text(on) + "  " : "";
    out += fmt::format("  step{} {}  {}{}\n", steps.size() == 1 ? "" : "s", numbers_text(steps), ranks, what);
  }
  if (groups.size() > kShown && !style.wide) out += fmt::format("  ... {} more (all: --wide)\n", groups.size() - kShown);
  return out;
}

std::string lacking_text(const Session& session, const OriginResult& result) {
  std::string out;
  if (session.can_step()) return out;
  for (const std::string& line : lacking_lines(stats_grid(session, result.asked_ranks, result.asked_steps))) out += line + "\n";
  return out;
}

std::string healthy_line(Session& session, const OriginResult& result) {
  const Coverage& coverage = result.coverage;
  if (result.interrupted) return "";
  const std::string subject =
      asks_for_bad_values(result) ? "no " + (result.predicate == "NaN or Inf" ? std::string("NaN and no Inf") : result.predicate)
                   : fmt::format("nothing satisfies '{}'", printable(result.predicate));
  if (coverage.checked == 0 && coverage.not_checked == 0) {
    return session.can_step() ? "nothing was checked: no tensor can be read from the training now\n"
                               : "nothing was checked: there is no output, parameter or input tensor\n";
  }
  if (coverage.checked == 0) return "nothing was judged: every tensor is listed above\n";
  const std::string tensors = counted(coverage.checked, "output, parameter and input tensor");
  if (!result.put_in.empty() || !result.overwritten.empty())
    return fmt::format("healthy otherwise: nothing{} is {} in {}\n", result.put_in.empty() ? "" : " else", result.predicate, tensors);
  if (coverage.not_checked > 0) return fmt::format("healthy otherwise: {} in {}\n", subject, tensors);
  return fmt::format("healthy: {} in {}, all checked\n{}", subject, tensors, unseen_line(session));
}

namespace {

/// What to look at first: the weight that grew, where it is large, or a suspicious input, or what is bad itself.
TensorId worth_a_look(const Origin& origin) {
  if (!origin.grown.empty()) {
    const Grown& most = origin.grown.front();
    if (const auto& seen = most.value ? most.value : most.seen_by) return *seen;
  }
  for (const OriginInput& input : origin.inputs) {
    if (input.value && input.stats && worth_showing(input)) return *input.value;
  }
  return origin.shown.value_or(origin.tensor);
}

}  // namespace

std::string next_text(Session& session, const OriginResult& result, const ReportStyle& style) {
  const Origin& origin = result.steps.front().origins.front();
  const TensorId shown = worth_a_look(origin);
  Hint hint{"show", {fmt::format("{}:{}", brief_name(session, session.node(shown).name), slot_name(shown.slot))}};
  // A training has the values of one step.
  if (!session.can_step()) follow::add_place(session, shown, &hint.words);
  else if (session.ranks().size() > 1) hint.words.insert(hint.words.end(), {"--rank", fmt::format("{}", shown.rank)});
  std::string out = fmt::format("next: {}\n", hint_text(session, hint, style.place));
  // What an operator made of sound inputs on some ranks may come of a weight that only one of them holds.
  const bool computed = session.node(origin.tensor).kind == NodeKind::kOperator && unseen_ranks(session, origin).empty();
  if (computed && session.ranks().size() > 1) out += fmt::format("      {}\n", hint_text(session, {"replicas", {}}, style.place));
  return out;
}

}  // namespace msdbg
