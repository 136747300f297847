#include "analysis/replica_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "analysis/replica_programs.h"
#include "analysis/replica_sets.h"
#include "msdbg/base.h"

namespace msdbg {
namespace {

/// What a rank's optimizer ran in a step.
struct Ran {
  std::map<std::string, size_t> calls;                                          // by type
  std::map<std::string, TensorId> first;                                        // of the type
  std::map<std::pair<std::string, std::string>, std::map<double, std::string>> numbers;  // type and argument -> values, as printed
};
using RanByRank = std::map<int, Ran>;

class CallFinder {
 public:
  CallFinder(Session& session, ReplicasResult& result) : session_(session), result_(result) {}

  void run() {
    std::map<int, std::map<int, const Graph*>> graphs;  // by id and rank
    for (const GraphPtr& graph : session_.graphs()) {
      if (graph->recorded_calls() && std::ranges::binary_search(result_.ranks, graph->rank())) graphs[graph->id()][graph->rank()] = graph.get();
    }
    for (const auto& [id, of_rank] : graphs) {
      if (of_rank.size() < 2) continue;
      for (const int64_t step : result_.steps) {
        RanByRank ran;
        for (const auto& [rank, graph] : of_rank) {
          if (interrupt_requested()) return;
          const std::vector<int64_t> steps = session_.steps(rank, id);
          if (std::ranges::binary_search(steps, step)) ran[rank] = calls_of(*graph, step);
        }
        for (const auto& [rank, own] : ran) {
          if (!own.calls.empty()) updates_.insert(rank);
        }
        if (ran.size() < 2) continue;
        find_missing(ran, step);
        find_lacking(ran, step);
        find_numbers(ran, step);
      }
    }
    for (ReplicaDifference& each : found_) {
      // A rank without an optimizer may have nothing to train.
      const auto trains = [&](int rank) { return updates_.contains(rank); };
      if (each.cause != ReplicaCause::kNoUpdate || std::ranges::all_of(each.odd, trains)) result_.differences.push_back(std::move(each));
    }
    std::ranges::stable_sort(result_.differences, {}, [](const ReplicaDifference& each) { return each.tensor.step; });
  }

 private:
  Ran calls_of(const Graph& graph, int64_t step) {
    Ran ran;
    for (const NodeId id : graph.execution_order()) {
      const Node& node = graph.node(id);
      if (node.role != CallRole::kOptimizer || session_.executions(graph.rank(), graph.id(), step, id) == 0) continue;
      const std::string type = printable(node.op);
      const TensorId call{graph.rank(), graph.id(), step, 0, id, {}};
      ++ran.calls[type];
      ran.first.try_emplace(type, call);
      for (const Attribute& argument : session_.arguments(call)) {
        if (const auto value = parse_double(argument.value.get())) ran.numbers[{type, argument.name.get()}].try_emplace(*value, argument.value.get());
      }
    }
    return ran;
  }

  void find_missing(const RanByRank& ran, int64_t step) {
    std::vector<int> with, without;
    for (const auto& [rank, own] : ran) (own.calls.empty() ? without : with).push_back(rank);
    if (with.empty() || without.empty() || is_told(without, step)) return;
    const TensorId there = ran.at(with.front()).first.begin()->second;
    const Graph* const graph = session_.graph(without.front(), there.graph);
    const Node* const own = graph->find(session_.node(there).name);
    if (own == nullptr) return;
    TensorId here{without.front(), there.graph, step, 0, own->id, there.slot};
    add(ReplicaCause::kNoUpdate, here, there, there, without, with, with.size() > without.size(), "", step);
  }

  /// Calls in front of the update that the ranks with other weights in the next step did not run, such as those that clip gradients.
  void find_lacking(const RanByRank& ran, int64_t step) {
    for (ReplicaDifference& each : found_) {
      if (each.cause == ReplicaCause::kCalls && !lacking(ran, each).empty()) each.steps.push_back(step);
    }
    for (const ReplicaDifference& each : result_.differences) {
      const bool weights = each.cause == ReplicaCause::kValue && each.what == ReplicaKind::kParameter && differs_mostly(each);
      if (!weights || !each.arguments.empty() || each.tensor.step != step + 1) continue;
      const std::vector<TensorId> calls = lacking(ran, each);
      if (calls.empty()) continue;
      constexpr size_t kMost = 4;
      std::string text;
      for (size_t i = 0; i < std::min(kMost, calls.size()); ++i)
        text += fmt::format("{}{}", i == 0 ? "no " : ", ", printable(session_.node(calls[i]).op));
      if (calls.size() > kMost) text += fmt::format(" and {} more", calls.size() - kMost);
      const auto order = [&](const auto& entry) { return session_.node(entry.second).order; };
      const TensorId own = std::ranges::min_element(ran.at(each.odd.front()).first, {}, order)->second;
      return add(ReplicaCause::kCalls, own, own, calls.front(), each.odd, each.others, each.decided, text, step);
    }
  }

  /// The first call of each type that all of the others ran and none of the odd ranks did, which ran nothing else, in execution order.
  std::vector<TensorId> lacking(const RanByRank& ran, const ReplicaDifference& made) {
    const auto runs = [&](int rank, const std::string& type) { return ran.at(rank).calls.contains(type); };
    const auto known = [&](int rank) { return ran.contains(rank) && !ran.at(rank).calls.empty(); };
    if (!std::ranges::all_of(made.odd, known) || !std::ranges::all_of(made.others, known)) return {};
    std::vector<TensorId> out;
    for (const int rank : made.odd) {
      for (const auto& [type, count] : ran.at(rank).calls) {
        if (!runs(made.others.front(), type)) return {};
      }
    }
    for (const auto& [type, call] : ran.at(made.others.front()).first) {
      const bool all = std::ranges::all_of(made.others, [&](int rank) { return runs(rank, type); });
      if (all && std::ranges::none_of(made.odd, [&](int rank) { return runs(rank, type); })) out.push_back(call);
    }
    std::ranges::sort(out, {}, [&](const TensorId& call) { return session_.node(call).order; });
    return out;
  }

  void find_numbers(const RanByRank& ran, int64_t step) {
    struct Told {
      std::string type, arguments;  // the first type, the arguments of all
    };
    std::map<std::pair<std::vector<int>, std::vector<int>>, Told> told;  // by odd ranks and others
    const auto found = std::ranges::find_if(ran, [](const auto& entry) { return !entry.second.calls.empty(); });
    if (found == ran.end()) return;
    const Ran& first = found->second;
    for (const auto& [key, values] : first.numbers) {
      std::map<double, std::vector<int>> groups;
      bool usable = values.size() == 1;
      for (const auto& [rank, own] : ran) {
        if (own.calls.empty()) continue;
        const auto theirs = own.numbers.find(key);
        // Several values are those of several groups of parameters, and so may be those of ranks that update other ones.
        usable = usable && theirs != own.numbers.end() && theirs->second.size() == 1 && own.calls.at(key.first) == first.calls.at(key.first);
        if (usable) groups[theirs->second.begin()->first].push_back(rank);
      }
      if (!usable || groups.size() != 2) continue;
      auto odd = groups.begin(), others = std::next(odd);
      if (odd->second.size() > others->second.size() || (odd->second.size() == others->second.size() && odd->second.front() < others->second.front()))
        std::swap(odd, others);
      const auto ranks = std::pair(odd->second, others->second);
      const auto printed = [&](const std::vector<int>& of) { return ran.at(of.front()).numbers.at(key).begin()->second; };
      std::string& text = told.try_emplace(ranks, Told{key.first, {}}).first->second.arguments;
      text += fmt::format("{}{} of {} = {} instead of {}", text.empty() ? "" : ", ", key.second, key.first, printed(odd->second),
                          printed(others->second));
    }
    for (const auto& [ranks, each] : told) {
      const auto& [odd, others] = ranks;
      if (is_told(odd, step, true)) continue;
      const TensorId own = ran.at(odd.front()).first.at(each.type), there = ran.at(others.front()).first.at(each.type);
      add(ReplicaCause::kSetting, own, own, there, odd, others, others.size() > odd.size(), each.arguments, step);
    }
  }

  /// What a weight or another call of these ranks shows already: by this step, or at the beginning of the next one.
  bool is_told(const std::vector<int>& odd, int64_t step, bool by_number = false) {
    const auto same = [&](const ReplicaDifference& each) {
      return std::ranges::find_first_of(odd, each.odd) != odd.end() || std::ranges::find_first_of(odd, each.others) != odd.end();
    };
    const auto explains = [&](const ReplicaDifference& each) {
      // How far a weight moved tells less than the number that made it move.
      const bool moved = each.moved && (!by_number || *each.moved == 0 || each.tensor.step <= step);
      return each.tensor.step <= step + 1 && same(each) && (!each.arguments.empty() || moved || each.shifted());
    };
    if (std::ranges::any_of(result_.differences, explains)) return true;
    for (ReplicaDifference& each : found_) {
      if (!same(each)) continue;
      // Counters that an update has missed stay behind.
      if (each.cause == ReplicaCause::kSetting && each.steps.back() != step) each.steps.push_back(step);
      return true;
    }
    return false;
  }

  void add(ReplicaCause cause, const TensorId& tensor, const TensorId& seen, const TensorId& expected, const std::vector<int>& odd,
           const std::vector<int>& others, bool decided, std::string arguments, int64_t step) {
    ReplicaDifference& made = found_.emplace_back();
    made.cause = cause;
    made.what = ReplicaKind::kUpdate;
    made.tensor = tensor;
    made.seen = seen;
    made.expected = expected;
    made.odd = odd;
    made.others = others;
    made.decided = decided;
    if (!arguments.empty()) made.called = tensor;
    made.arguments = std::move(arguments);
    made.steps = {step};
  }

  Session& session_;
  ReplicasResult& result_;
  std::set<int> updates_;  // ranks that ran an optimizer in some step
  std::vector<ReplicaDifference> found_;
};

}  // namespace

bool is_renumbered(Session& session, const Sighting& sighting, const Parts& equal) {
  const auto number = [&](int rank) {
    const TensorId id = sighting.tensor(rank);
    const Graph& graph = *session.graph(rank, id.graph);
    const Node& own = graph.node(id.node);
    return std::ranges::count_if(graph.execution_order(), [&](NodeId other) {
      const Node& node = graph.node(other);
      const bool before = node.role == own.role && node.order < own.order && node.op.get() == own.op.get();
      return before && session.executions(rank, id.graph, id.step, other) > 0;
    });
  };
  const auto first = number(equal.front().front());
  return std::ranges::any_of(equal, [&](const auto& ranks) { return number(ranks.front()) != first; });
}

void find_other_calls(Session& session, ReplicasResult* result) {
  CallFinder(session, *result).run();
  find_other_programs(session, result);
}

}  // namespace msdbg
