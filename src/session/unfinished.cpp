#include "msdbg/unfinished.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "msdbg/short_names.h"

namespace msdbg {
namespace {

/// What a graph has in a step, by node.
struct Seen {
  std::vector<bool> operators;
  size_t count = 0;
  bool parameters = false;
};

class Search {
 public:
  Search(Session& session, const IntSet& steps, const IntSet& ranks) : session_(session), steps_(steps), ranks_(ranks) {}

  std::vector<UnfinishedStep> run() {
    std::map<int, int64_t> last;  // of each rank
    for (const GraphPtr& graph : session_.graphs()) {
      for (const int64_t step : session_.steps(graph->rank(), graph->id())) {
        const auto [known, first] = last.try_emplace(graph->rank(), step);
        if (!first) known->second = std::max(known->second, step);
      }
    }
    std::vector<UnfinishedStep> found;
    for (const GraphPtr& graph : session_.graphs()) {
      if ((!graph->recorded_calls() && !graph->from_file()) || !ranks_.contains(graph->rank())) continue;
      const std::vector<int64_t> steps = session_.steps(graph->rank(), graph->id());
      if (steps.empty() || steps.back() != last.at(graph->rank()) || !steps_.contains(steps.back())) continue;
      if (auto unfinished = look_at(*graph, steps)) found.push_back(*unfinished);
    }
    std::ranges::sort(found, {}, [](const UnfinishedStep& each) { return std::tuple(each.step, each.rank, each.graph); });
    return found;
  }

 private:
  using Key = std::tuple<int, int, int64_t>;  // rank, graph, step

  const Seen& seen(const Graph& graph, int64_t step) {
    const auto [known, first] = seen_.try_emplace(Key(graph.rank(), graph.id(), step));
    Seen& seen = known->second;
    if (!first) return seen;
    seen.operators.resize(graph.nodes().size());
    TensorQuery query;
    query.ranks = IntSet::of(graph.rank());
    query.steps = IntSet::of(step);
    query.graph = graph.id();
    query.inputs = true;
    for (const TensorId& id : session_.tensors(query)) {
      const NodeKind kind = graph.node(id.node).kind;
      if (kind == NodeKind::kParameter) seen.parameters = true;
      if (kind != NodeKind::kOperator || seen.operators[id.node]) continue;
      seen.operators[id.node] = true;
      ++seen.count;
    }
    return seen;
  }

  struct Expected {
    std::vector<NodeId> operators;  // in execution order
    bool parameters = false;        // a finished step has some
    bool seen = false;              // in a step, not by the graph alone
  };

  Expected expected(const Graph& graph, const std::vector<int64_t>& steps) {
    if (steps.size() > 1) {
      const Seen& before = seen(graph, steps[steps.size() - 2]);
      return pick(graph, before.parameters, true, [&](const Node& node) { return before.operators[node.id]; });
    }
    const Graph* most = nullptr;  // another rank that got further
    for (const GraphPtr& other : session_.graphs()) {
      if (other->id() != graph.id() || other->rank() == graph.rank()) continue;
      const std::vector<int64_t> theirs = session_.steps(other->rank(), other->id());
      if (!std::ranges::binary_search(theirs, steps.back()) || !seen(*other, steps.back()).parameters) continue;
      if (most == nullptr || seen(*other, steps.back()).count > seen(*most, steps.back()).count) most = other.get();
    }
    if (most != nullptr) {
      const Seen& theirs = seen(*most, steps.back());
      return pick(graph, true, true, [&](const Node& node) {
        const Node* same = most->find(node.name);
        return same != nullptr && theirs.operators[same->id];
      });
    }
    if (!session_.info().all_operators) return {};
    // Some types of operators are never dumped.
    std::set<std::string_view> types;
    const Seen& own = seen(graph, steps.back());
    for (const Node& node : graph.nodes()) {
      if (own.operators[node.id]) types.insert(node.op.get());
    }
    return pick(graph, true, false, [&](const Node& node) { return types.contains(node.op.get()); });
  }

  template <typename Has>
  static Expected pick(const Graph& graph, bool parameters, bool seen, Has has) {
    Expected expected{.operators = {}, .parameters = parameters, .seen = seen};
    for (const NodeId id : graph.execution_order()) {
      if (graph.node(id).kind == NodeKind::kOperator && has(graph.node(id))) expected.operators.push_back(id);
    }
    return expected;
  }

  std::optional<UnfinishedStep> look_at(const Graph& graph, const std::vector<int64_t>& steps) {
    const Seen& own = seen(graph, steps.back());
    if (own.parameters && !graph.recorded_calls()) return std::nullopt;
    const Expected expected = this->expected(graph, steps);
    UnfinishedStep step{.step = steps.back(), .rank = graph.rank(), .graph = graph.id(), .operators = expected.operators.size()};
    size_t later = 0;  // that ran although an operator before them did not
    NodeId last = kNoNode;
    for (const NodeId id : expected.operators) {
      if (!own.operators[id]) {
        if (step.next == kNoNode) step.next = id;
        continue;
      }
      ++step.ran;
      if (step.next != kNoNode) ++later;
      else last = id;
    }
    if (step.next == kNoNode) return std::nullopt;
    // Without the missing parameters as a sign, a branch that was not taken or a dump of some operators looks alike, but has gaps.
    constexpr size_t kFewMissing = 3, kFewLater = 20;
    const bool sure = expected.seen && expected.parameters && !graph.recorded_calls();
    if (graph.recorded_calls() && (!stops_in_a_pass(graph, step) || is_left_out(graph, step.next, steps))) return std::nullopt;
    if (!sure && (step.operators - step.ran < kFewMissing || later * kFewLater > step.ran)) return std::nullopt;
    if (last != kNoNode && later == 0 && waits_in(graph, last, step.step)) {
      step.next = last;
      --step.ran;
    }
    return step;
  }

  /// An exchange that another rank never came to. Its output is dumped when it begins.
  bool waits_in(const Graph& graph, NodeId last, int64_t step) {
    constexpr std::array<std::string_view, 6> kExchanges = {"allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "receive"};
    const std::string op = to_lower(graph.node(last).op);
    if (std::ranges::none_of(kExchanges, [&](std::string_view name) { return op.find(name) != std::string::npos; })) return false;
    return std::ranges::any_of(session_.graphs(), [&](const GraphPtr& other) {
      if (other->id() != graph.id() || other->rank() == graph.rank()) return false;
      const Node* const theirs = other->find(graph.node(last).name);
      if (theirs == nullptr) return false;
      return !std::ranges::binary_search(session_.steps(other->rank(), other->id()), step) || !seen(*other, step).operators[theirs->id];
    });
  }

  /// An earlier step ran without it, too, as one between two exchanges of weights.
  bool is_left_out(const Graph& graph, NodeId next, const std::vector<int64_t>& steps) {
    constexpr size_t kMostSteps = 8;
    const size_t earlier = std::min(steps.size() - 1, kMostSteps);
    return std::any_of(steps.end() - 1 - static_cast<ptrdiff_t>(earlier), steps.end() - 1,
                       [&](int64_t step) { return !seen(graph, step).operators[next]; });
  }

  /// A step may leave out its update, and a step without a backward pass may evaluate.
  bool stops_in_a_pass(const Graph& graph, const UnfinishedStep& step) {
    if (step.ran == 0) return false;  // its table was lost, which the session says
    const Node& next = graph.node(step.next);
    if (next.role == CallRole::kForward) return !in_category(next, Category::kOptimizer);
    if (next.role != CallRole::kBackward) return false;
    const size_t own = seen(graph, step.step).count;
    return std::ranges::any_of(session_.graphs(), [&](const GraphPtr& other) {
      return other->id() == graph.id() && other->rank() != graph.rank() && seen(*other, step.step).count > own;
    });
  }

  Session& session_;
  const IntSet &steps_, &ranks_;
  std::map<Key, Seen> seen_;
};

}  // namespace

std::vector<UnfinishedStep> unfinished_steps(Session& session, const IntSet& steps, const IntSet& ranks) {
  if (session.info().kind != SessionKind::kDump || session.can_step()) return {};
  return Search(session, steps, ranks).run();
}

std::vector<std::string> unfinished_texts(Session& session, const IntSet& steps, const IntSet& ranks) {
  ShortNames names(session.graphs());
  struct End {
    std::string before;
    size_t ran = 0, operators = 0;
    std::vector<int> ranks;
  };
  std::map<int64_t, std::vector<End>> by_step;
  for (const UnfinishedStep& each : unfinished_steps(session, steps, ranks)) {
    const Node& node = session.graph(each.rank, each.graph)->node(each.next);
    const std::string place = source_place(node, false);
    End end{printable(names.of(node.name)) + (place.empty() ? "" : fmt::format(" ({})", place)), each.ran, each.operators, {}};
    std::vector<End>& ends = by_step[each.step];
    const auto same = [&](const End& other) { return other.before == end.before && other.ran == end.ran && other.operators == end.operators; };
    auto known = std::ranges::find_if(ends, same);
    if (known == ends.end()) known = ends.insert(ends.end(), std::move(end));
    if (known->ranks.empty() || known->ranks.back() != each.rank) known->ranks.push_back(each.rank);
  }
  std::vector<std::string> texts;
  for (auto& [step, ends] : by_step) {
    // The rank that stopped first is the one that others may wait for.
    std::ranges::stable_sort(ends, {}, &End::ran);
    std::string text = fmt::format("step {} is unfinished:", step);
    for (const End& end : ends) {
      const bool first = &end == &ends.front();
      const std::string who = session.ranks().size() > 1 ? ranks_text(end.ranks) : "it";
      text += fmt::format("{} {}{} before {}, after {}{}", first ? "" : ";", who, first ? (end.ranks.size() > 1 ? " end" : " ends") : "",
                          end.before, end.ran, first ? fmt::format(" of {} operators", end.operators) : "");
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

void add_rank_problems(Session& session, std::vector<Problem>& problems) {
  std::map<int, std::set<int64_t>> steps_of_rank;
  for (const GraphPtr& graph : session.graphs()) {
    const std::vector<int64_t> steps = session.steps(graph->rank(), graph->id());
    if (!steps.empty()) steps_of_rank[graph->rank()].insert(steps.begin(), steps.end());
  }
  const std::string& source = session.info().source;
  for (const auto& [rank, steps] : steps_of_rank) {
    const auto& [first, others] = *steps_of_rank.begin();
    if (steps == others) continue;
    const auto text = [](const std::set<int64_t>& numbers) { return numbers_text(std::vector<int64_t>(numbers.begin(), numbers.end())); };
    problems.push_back({Severity::kWarning, source,
                        fmt::format("rank {} has steps {}, rank {} has steps {}: what compares ranks sees only the steps that both have", rank,
                                    text(steps), first, text(others))});
  }
  for (const std::string& text : unfinished_texts(session, IntSet::all(), IntSet::all()))
    problems.push_back({Severity::kWarning, source, text + ": the training ended there, or the dump is still being written"});
}

}  // namespace msdbg
