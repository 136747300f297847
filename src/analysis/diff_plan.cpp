// Ranks, graphs and steps of two sides that belong together, and the tensors in them.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analysis/diff_parts.h"
#include "analysis/match_blind.h"
#include "msdbg/analysis.h"

namespace msdbg {
namespace {

/// Numbers of both sides that belong together; what is left over becomes a note "rank 1: only in A".
std::vector<std::pair<int64_t, int64_t>> pair_numbers(std::vector<int64_t> a, std::vector<int64_t> b, bool in_order,
                                                      const std::string& what, DiffResult& result) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  std::vector<int64_t> only_a, only_b;
  if (in_order) {
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      if (i >= b.size()) only_a.push_back(a[i]);
      else if (i >= a.size()) only_b.push_back(b[i]);
      else pairs.emplace_back(a[i], b[i]);
    }
  } else {
    for (int64_t n : a) {
      if (std::binary_search(b.begin(), b.end(), n)) pairs.emplace_back(n, n);
      else only_a.push_back(n);
    }
    for (int64_t n : b) {
      if (!std::binary_search(a.begin(), a.end(), n)) only_b.push_back(n);
    }
  }
  for (const auto& [side, numbers] : {std::pair("A", only_a), std::pair("B", only_b)}) {
    if (numbers.empty()) continue;
    result.notes.push_back({fmt::format("{}{} {}: only in {}", what, numbers.size() == 1 ? "" : "s", numbers_text(numbers), side)});
  }
  return pairs;
}

std::vector<int64_t> chosen_ranks(const Session& session, const IntSet& wanted) {
  const std::vector<int64_t> ranks(session.ranks().begin(), session.ranks().end());
  return chosen(ranks, wanted);
}

std::vector<const Graph*> graphs_of(const Session& session, int64_t rank, std::optional<int> id) {
  std::vector<const Graph*> out;
  for (const GraphPtr& graph : session.graphs()) {
    if (graph->rank() == rank && (!id || *id == graph->id()) && !session.steps(graph->rank(), graph->id()).empty())
      out.push_back(graph.get());
  }
  return out;
}

/// The share of names that both have, ignoring the numbers of operators.
double overlap(const Graph& a, const Graph& b) {
  const auto names = [](const Graph& graph) {
    std::map<std::string, size_t> counts;
    for (NodeId id : graph.execution_order()) {
      const std::string& name = graph.node(id).name;
      ++counts[name.substr(0, name.rfind("-op"))];
    }
    return counts;
  };
  const auto left = names(a), right = names(b);
  size_t common = 0;
  for (const auto& [name, count] : left) {
    const auto found = right.find(name);
    if (found != right.end()) common += std::min(count, found->second);
  }
  const size_t most = std::max(a.execution_order().size(), b.execution_order().size());
  return most == 0 ? (a.id() == b.id() ? 1.0 : 0.0) : static_cast<double>(common) / static_cast<double>(most);
}

std::vector<std::pair<const Graph*, const Graph*>> pair_graphs(const Session& a, const Session& b, int64_t rank_a, int64_t rank_b,
                                                               const DiffOptions& options, DiffResult& result) {
  const auto left = graphs_of(a, rank_a, options.graph_a), right = graphs_of(b, rank_b, options.graph_b);
  std::vector<std::pair<const Graph*, const Graph*>> pairs;
  std::set<const Graph*> taken;
  if (left.size() == 1 && right.size() == 1) {
    return {{left[0], right[0]}};
  }
  using Ranked = std::tuple<double, bool, size_t, size_t>;
  std::vector<Ranked> ranked;
  for (size_t i = 0; i < left.size(); ++i) {
    for (size_t k = 0; k < right.size(); ++k) {
      const double share = overlap(*left[i], *right[k]);
      if (share > 0) ranked.emplace_back(-share, left[i]->id() != right[k]->id(), i, k);
    }
  }
  std::sort(ranked.begin(), ranked.end());
  for (const auto& [share, other_id, i, k] : ranked) {
    if (taken.count(left[i]) || taken.count(right[k])) continue;
    taken.insert(left[i]);
    taken.insert(right[k]);
    pairs.emplace_back(left[i], right[k]);
  }
  std::sort(pairs.begin(), pairs.end(), [](const auto& x, const auto& y) { return x.second->id() < y.second->id(); });
  for (const auto& [graphs, side] : {std::pair(&left, "A"), std::pair(&right, "B")}) {
    for (const Graph* graph : *graphs) {
      if (!taken.count(graph)) result.notes.push_back({fmt::format("graph {} of rank {}: only in {}", graph->id(), graph->rank(), side)});
    }
  }
  return pairs;
}

/// The graphs that a note is about, "" if there is only one: "rank 1, graph 0: ".
std::string pair_words(const Session& a, const Session& b, const Graph& graph_a, const Graph& graph_b) {
  if (a.graphs().size() == 1 && b.graphs().size() == 1) return "";
  const std::string in_b = fmt::format("rank {}, graph {}", graph_b.rank(), graph_b.id());
  if (graph_a.rank() == graph_b.rank() && graph_a.id() == graph_b.id()) return in_b + ": ";
  return fmt::format("rank {}, graph {} of A against {} of B: ", graph_a.rank(), graph_a.id(), in_b);
}

/// Structural operators and values that were not dumped are not losses.
bool is_worth_listing(const Node& node, const std::set<NodeId>& dumped) {
  return node.kind == NodeKind::kOperator ? !is_structural(node.op) : dumped.count(node.id) > 0;
}

std::set<NodeId> dumped_nodes(Session& session, const Graph& graph, const IntSet& steps) {
  TensorQuery query;
  query.ranks = IntSet::of(graph.rank());
  query.graph = graph.id();
  query.steps = steps;
  std::set<NodeId> nodes;
  for (const TensorId& id : session.tensors(query)) nodes.insert(id.node);
  return nodes;
}

void list_unmatched(Session& a, Session& b, const GraphPair& pair, const DiffOptions& options, DiffResult& result) {
  const auto add = [&](Session& session, const Graph& graph, const std::vector<NodeId>& nodes, const IntSet& steps,
                       std::vector<UnmatchedNode>& out) {
    const std::set<NodeId> dumped = dumped_nodes(session, graph, steps);
    const std::optional<Selector> on = options.on ? std::optional(options.on->in(session.graphs())) : std::nullopt;
    for (NodeId id : nodes) {
      if (on && !on->matches(graph, graph.node(id))) continue;
      if (is_worth_listing(graph.node(id), dumped)) out.push_back({graph.rank(), graph.id(), id});
    }
  };
  add(a, *pair.a, pair.match.only_a, options.steps_a, result.only_a);
  add(b, *pair.b, pair.match.only_b, options.steps_b, result.only_b);
}

void count_matches(const GraphPair& pair, DiffResult& result) {
  for (const NodeMatch& match : pair.match.nodes) {
    if (is_structural(pair.b->node(match.b).op)) continue;
    ++result.matched_nodes;
    switch (match.how) {
      case MatchMethod::kMap: ++result.by_map; break;
      case MatchMethod::kName: ++result.by_name; break;
      case MatchMethod::kStructure: ++result.by_structure; break;
      case MatchMethod::kValue: ++result.by_value; break;
    }
  }
}

void note_unknown_edges(const Session& a, const Session& b, const GraphPair& pair, DiffResult& result) {
  for (const auto& [session, graph, side] : {std::tuple(&a, pair.a, "A"), std::tuple(&b, pair.b, "B")}) {
    if (knows_edges(*graph)) continue;
    std::string text = session->info().kind == SessionKind::kCheckpoint ? fmt::format("{} is a checkpoint, which has no graph", side)
                                                            : fmt::format("{} has no readable file of graph {}", side, graph->id());
    if (graph->rank() != 0) text += fmt::format(" of rank {}", graph->rank());
    if (std::find(result.unknown_edges.begin(), result.unknown_edges.end(), text) == result.unknown_edges.end())
      result.unknown_edges.push_back(text);
  }
}

}  // namespace

Result<DiffPlan> plan_diff(Session& a, Session& b, const DiffOptions& options, DiffResult& result) {
  DiffPlan plan;
  if (const Status status = check_choice(a, b, options); !status.ok()) return status;
  const auto ranks_a = chosen_ranks(a, options.ranks_a), ranks_b = chosen_ranks(b, options.ranks_b);
  const bool ranks_in_order = options.ranks_a.text() != options.ranks_b.text() || (ranks_a.size() == 1 && ranks_b.size() == 1);
  const bool steps_in_order = options.steps_a.text() != options.steps_b.text();
  bool same = &a == &b;
  std::vector<std::string> map_problems;
  size_t pairs_of_graphs = 0;
  for (const auto& [rank_a, rank_b] : pair_numbers(ranks_a, ranks_b, ranks_in_order, "rank", result)) {
    for (const auto& [graph_a, graph_b] : pair_graphs(a, b, rank_a, rank_b, options, result)) {
      std::vector<std::string> problems;
      plan.graphs.push_back(pair_nodes(a, b, *graph_a, *graph_b, options, &problems));
      // An entry is wrong when no pair of graphs knows its names.
      if (pairs_of_graphs++ == 0) {
        map_problems = problems;
      } else {
        std::erase_if(map_problems,
                      [&](const std::string& text) { return std::find(problems.begin(), problems.end(), text) == problems.end(); });
      }
      const GraphPair& pair = *plan.graphs.back();
      count_matches(pair, result);
      note_unknown_edges(a, b, pair, result);
      list_unmatched(a, b, pair, options, result);
      const auto steps_a = chosen(a.steps(graph_a->rank(), graph_a->id()), options.steps_a);
      const auto steps_b = chosen(b.steps(graph_b->rank(), graph_b->id()), options.steps_b);
      const std::string what = pair_words(a, b, *graph_a, *graph_b) + "step";
      size_t ordinal = 0;
      for (const auto& [step_a, step_b] : pair_numbers(steps_a, steps_b, steps_in_order, what, result)) {
        DiffPart part;
        part.graphs = plan.graphs.size() - 1;
        part.rank_a = graph_a->rank();
        part.rank_b = graph_b->rank();
        part.step_a = step_a;
        part.step_b = step_b;
        part.ordinal = ordinal++;
        plan.parts.push_back(part);
        same = same && step_a == step_b && graph_a == graph_b;
      }
    }
  }
  if (!map_problems.empty()) return Status(Code::kInvalidArgument, "diff: mapping " + map_problems.front());
  if (plan.parts.empty()) return nothing_paired(a, b, options, plan);
  if (same) {
    return Status(Code::kInvalidArgument,
                  "diff: both sides are the same part of the same dump; name two dumps, or two steps (--steps-a 1 --steps-b 2), ranks or "
                  "graphs of it");
  }
  std::stable_sort(plan.parts.begin(), plan.parts.end(), [&](const DiffPart& x, const DiffPart& y) {
    return std::tuple(x.step_b, x.rank_b, plan.graphs[x.graphs]->b->id()) < std::tuple(y.step_b, y.rank_b, plan.graphs[y.graphs]->b->id());
  });
  std::map<size_t, size_t> last;
  for (size_t i = 0; i < plan.parts.size(); ++i) {
    DiffPart& part = plan.parts[i];
    if (const auto before = last.find(part.graphs); before != last.end()) part.previous = before->second;
    last[part.graphs] = i;
    const std::pair steps(part.step_a, part.step_b);
    if (std::find(result.steps.begin(), result.steps.end(), steps) == result.steps.end()) result.steps.push_back(steps);
  }
  return plan;
}

std::vector<TensorDiff> list_tensors(Session& a, Session& b, const DiffPlan& plan, const DiffPart& part, const DiffOptions& options) {
  const GraphPair& pair = *plan.graphs[part.graphs];
  const auto list = [](Session& session, const Graph& graph, int64_t step) {
    TensorQuery query;
    query.ranks = IntSet::of(graph.rank());
    query.graph = graph.id();
    query.steps = IntSet::of(step);
    query.inputs = graph.recorded_calls();
    return session.tensors(query);
  };
  std::vector<TensorId> of_a = list(a, *pair.a, part.step_a);
  std::set<TensorId> left(of_a.begin(), of_a.end());

  const auto wanted = [&](const NodeMatch& match) {
    return !options.on || options.on->matches(*pair.a, pair.a->node(match.a)) || options.on->matches(*pair.b, pair.b->node(match.b));
  };
  // A mapping file may name two calls that compute the same from other arguments.
  const auto left_out = [&](const NodeMatch& match, const TensorId& id) {
    const bool other_call = pair.a->recorded_calls() && match.how == MatchMethod::kMap &&
                            pair.a->node(match.a).op.get() != pair.b->node(match.b).op.get();
    return other_call && id.slot.io == Io::kInput;
  };
  std::vector<TensorDiff> entries;
  const auto add = [&](const NodeMatch& match, const TensorId& in_a, const TensorId& in_b, std::string reason) {
    TensorDiff entry;
    entry.a = in_a;
    entry.b = in_b;
    entry.how = match.how;
    entry.reason = std::move(reason);
    entry.edges_known = pair.edges_known;
    const PathLength& path = pair.paths[match.b];
    entry.path = {path.additions * (part.ordinal + 1), path.operators * (part.ordinal + 1)};
    entries.push_back(std::move(entry));
  };
  for (const TensorId& id : list(b, *pair.b, part.step_b)) {
    const NodeMatch* match = pair.of_b[id.node];
    if (!match || !wanted(*match) || left_out(*match, id)) continue;
    if (pair.b->node(id.node).kind == NodeKind::kConstant && part.ordinal > 0) continue;
    TensorId other = {part.rank_a, pair.a->id(), part.step_a, id.execution, match->a, id.slot};
    if (match->how == MatchMethod::kValue) {
      if (id.slot.index != match->slot_b) continue;
      other.slot.index = match->slot_a;
    }
    add(*match, other, id, left.erase(other) ? "" : "A has no value of it");
  }
  for (const TensorId& id : of_a) {
    const NodeMatch* match = pair.of_a[id.node];
    if (!match || !wanted(*match) || !left.count(id) || left_out(*match, id)) continue;
    if (pair.a->node(id.node).kind == NodeKind::kConstant && part.ordinal > 0) continue;
    TensorId other = {part.rank_b, pair.b->id(), part.step_b, id.execution, match->b, id.slot};
    if (match->how == MatchMethod::kValue) {
      if (id.slot.index != match->slot_a) continue;
      other.slot.index = match->slot_b;
    }
    add(*match, id, other, "B has no value of it");
  }
  // Some optimizers never write their output buffers.
  for (TensorDiff& entry : entries) {
    // Without edges, only the operator's type is known.
    if (!entry.reason.empty() || (pair.edges_known && !pair.updated.count(entry.b.node))) continue;
    for (const auto& [session, side] : {std::pair(&a, "A"), std::pair(&b, "B")}) {
      if (has_unwritten_outputs(session->info(), pair.b->node(entry.b.node))) {
        entry.reason = fmt::format("this optimizer's output is uninitialised memory ({})", side);
      }
    }
  }
  // A parameter's file holds the value that the step left behind. Without edges any of them may have been updated.
  const auto place = [&](const TensorDiff& entry) {
    const Node& node = pair.b->node(entry.b.node);
    const int phase = node.kind == NodeKind::kOperator ? 1 : !pair.edges_known || pair.updater.count(node.id) ? 2 : 0;
    return std::tuple(phase, entry.b.execution, node.order, node.id, entry.b.slot);
  };
  std::stable_sort(entries.begin(), entries.end(), [&](const TensorDiff& x, const TensorDiff& y) { return place(x) < place(y); });
  return entries;
}

}  // namespace msdbg
