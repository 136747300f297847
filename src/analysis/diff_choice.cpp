// Checks the requested steps, ranks and graphs against what the two sides have.
#include <fmt/format.h>

#include "analysis/diff_parts.h"

namespace msdbg {
namespace {

std::vector<int64_t> ranks_of(const Session& session) { return {session.ranks().begin(), session.ranks().end()}; }

Status check_side(const Session& session, const char* side, const IntSet& ranks, std::optional<int> graph, const IntSet& steps) {
  const auto missing = [&](const std::string& what, const std::vector<int64_t>& have) {
    return Status(Code::kNotFound, fmt::format("diff: {} has no {} (have {})", side, what, numbers_text(have)));
  };
  const auto all_ranks = ranks_of(session);
  if (!all_ranks.empty() && chosen(all_ranks, ranks).empty()) return missing("rank " + ranks.text(), all_ranks);
  std::set<int64_t> graphs, have;
  for (const GraphPtr& each : session.graphs()) {
    if (!ranks.contains(each->rank())) continue;
    graphs.insert(each->id());
    if (graph && *graph != each->id()) continue;
    for (const int64_t step : session.steps(each->rank(), each->id())) have.insert(step);
  }
  if (graph && !graphs.count(*graph)) return missing(fmt::format("graph {}", *graph), {graphs.begin(), graphs.end()});
  const std::vector<int64_t> all_steps(have.begin(), have.end());
  const std::string of_graph = graph ? fmt::format(" of graph {}", *graph) : "";
  if (all_steps.empty()) return Status(Code::kNotFound, fmt::format("diff: {} has no step{}", side, of_graph));
  return chosen(all_steps, steps).empty() ? missing(fmt::format("step {}{}", steps.text(), of_graph), all_steps) : Status();
}

}  // namespace

std::vector<int64_t> chosen(std::span<const int64_t> numbers, const IntSet& wanted) {
  std::vector<int64_t> out;
  for (int64_t n : numbers) {
    if (wanted.contains(n)) out.push_back(n);
  }
  return out;
}

Status check_choice(const Session& a, const Session& b, const DiffOptions& options) {
  if (Status status = check_side(a, "A", options.ranks_a, options.graph_a, options.steps_a); !status.ok()) return status;
  return check_side(b, "B", options.ranks_b, options.graph_b, options.steps_b);
}

Status nothing_paired(const Session& a, const Session& b, const DiffOptions& options, const DiffPlan& plan) {
  if (plan.graphs.empty()) {
    const auto ranks_a = chosen(ranks_of(a), options.ranks_a), ranks_b = chosen(ranks_of(b), options.ranks_b);
    bool common = ranks_a.size() == 1 && ranks_b.size() == 1;
    for (const int64_t rank : ranks_a) common = common || !chosen(ranks_b, IntSet::of(rank)).empty();
    if (!common)
      return Status(Code::kNotFound, fmt::format("diff: no rank of A is one of B: A has {}, B has {} (pair two: --ranks-a {} --ranks-b {})",
                                                 numbers_text(ranks_a), numbers_text(ranks_b), ranks_a.front(), ranks_b.front()));
    return Status(Code::kNotFound,
                  "diff: no graph of A has an operator in common with one of B; --graph-a and --graph-b pair two anyway");
  }
  for (const auto& pair : plan.graphs) {
    const auto steps_a = chosen(a.steps(pair->a->rank(), pair->a->id()), options.steps_a);
    const auto steps_b = chosen(b.steps(pair->b->rank(), pair->b->id()), options.steps_b);
    if (steps_a.empty() || steps_b.empty()) continue;
    return Status(Code::kNotFound, fmt::format("diff: no step of A is one of B: A has {}, B has {} (pair two: --steps-a {} --steps-b {})",
                                               numbers_text(steps_a), numbers_text(steps_b), steps_a.front(), steps_b.front()));
  }
  return Status(Code::kNotFound, "diff: the matched graphs did not run in the requested steps");
}

}  // namespace msdbg
