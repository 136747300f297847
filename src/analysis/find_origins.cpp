// For each step: judges the dumped tensors, then searches for origins in every graph that ran.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "analysis/gathered.h"
#include "analysis/origin.h"

namespace msdbg {
namespace {

class Search {
 public:
  Search(Session& session, const OriginOptions& options)
      : session_(session), options_(options), evidence_(session, options), collectives_(session.graphs()), writes_(session) {}

  Result<OriginResult> run() {
    result_.predicate = options_.predicate.text;
    all_steps_ = session_.steps();
    std::vector<int64_t> chosen;
    std::copy_if(all_steps_.begin(), all_steps_.end(), std::back_inserter(chosen),
                 [&](int64_t step) { return options_.steps.contains(step); });
    result_.asked_ranks = options_.ranks;
    result_.asked_steps = options_.steps;
    if (chosen.empty()) return no_steps();
    evidence_.expect_steps(options_.steps);
    for (int64_t step : chosen) {
      if (Status status = look_at(step); !status.ok()) return status;
      if (result_.interrupted) break;
    }
    const auto earlier = [](const StepOrigins& a, const StepOrigins& b) {
      return std::tie(a.step, a.rank, a.began, a.graph) < std::tie(b.step, b.rank, b.began, b.graph);
    };
    std::ranges::sort(result_.steps, earlier);
    std::ranges::sort(result_.others, earlier);
    std::stable_sort(result_.not_checked.begin(), result_.not_checked.end(),
                     [](const NotChecked& a, const NotChecked& b) {
                       return std::tie(a.tensor.rank, a.tensor.step, a.tensor.graph) <
                              std::tie(b.tensor.rank, b.tensor.step, b.tensor.graph);
                     });
    return std::move(result_);
  }

 private:
  /// check() reports steps and ranks that do not exist.
  Result<OriginResult> no_steps() {
    if (Status status = evidence_.judge_steps(options_.steps, result_); !status.ok()) return status;
    return std::move(result_);
  }

  Status look_at(int64_t step) {
    if (Status status = evidence_.judge_steps(IntSet::of(step), result_); !status.ok()) return status;
    if (result_.interrupted) return {};
    judged_.insert(step);
    std::map<std::pair<int, int>, std::vector<TensorId>> by_graph;
    for (const TensorId& tensor : evidence_.listed()) by_graph[{tensor.rank, tensor.graph}].push_back(tensor);
    std::vector<std::unique_ptr<StepModel>> models;
    RankModels ranks(collectives_);
    for (const GraphPtr& graph : session_.graphs()) {
      const std::vector<TensorId>& own = by_graph[{graph->rank(), graph->id()}];
      if (own.empty()) continue;
      PreviousStep values = previous_step(session_, *graph, step, all_steps_);
      if (values.step && judged_.insert(*values.step).second) {
        if (Status status = evidence_.judge_parameters(*values.step, result_); !status.ok()) return status;
      }
      if (result_.interrupted || interrupt_requested()) {
        result_.interrupted = true;
        return {};
      }
      models.push_back(std::make_unique<StepModel>(evidence_, *graph, step, std::move(values), own));
      ranks.add(*models.back());
    }
    std::vector<StepOrigins> found;
    for (const auto& model : models) {
      StepOrigins origins = search_step(evidence_, *model, ranks, writes_);
      result_.put_in.insert(result_.put_in.end(), origins.put_in.begin(), origins.put_in.end());
      if (origins.origins.empty() && origins.arrivals.empty()) continue;
      origins.began = time_of(origins);
      found.push_back(std::move(origins));
    }
    join_graphs(found);
    join_ranks(session_, collectives_, std::move(found), &result_);
    find_bad_parts(step);
    for (const int rank : session_.ranks()) {
      if (!options_.ranks.contains(rank)) continue;
      // What cannot be read is a matter of the condition operator_overflow, which says so.
      if (Result<std::vector<OverflowRecord>> overflows = session_.overflow_records(rank, step))
        std::ranges::move(*overflows, std::back_inserter(result_.overflows));
      std::vector<Overwritten> overwritten = session_.overwritten(rank, step);
      std::ranges::move(overwritten, std::back_inserter(result_.overwritten));
    }
    evidence_.forget_step(step);
    return {};
  }

  /// Finds whose part made a gathered weight bad, where the gathering was not recorded.
  void find_bad_parts(int64_t step) {
    for (StepOrigins& each : result_.steps) {
      const auto held = [](const Origin& origin) { return origin.kind == OriginKind::kParameter && !origin.update; };
      if (each.step != step || std::ranges::none_of(each.origins, held)) continue;
      const std::vector<TensorId> parts = bad_parts(evidence_, *session_.graph(each.rank, each.graph), step, each.ranks);
      for (Origin& origin : each.origins) {
        if (!parts.empty() && held(origin)) origin.bad_part = part_of(session_, parts, origin.tensor);
      }
    }
  }

  /// Control flow on tensors splits a network into graphs: those that broke on what others had handed over follow the one that broke first.
  void join_graphs(std::vector<StepOrigins>& found) const {
    const auto begins_bad = [](const StepOrigins& each) { return each.origins.front().kind == OriginKind::kParameter; };
    std::map<int, StepOrigins*> firsts;  // by rank
    for (StepOrigins& each : found) {
      if (each.origins.empty() || (each.began == 0 && !begins_bad(each))) continue;
      const auto [at, is_new] = firsts.try_emplace(each.rank, &each);
      if (!is_new && each.began < at->second->began) at->second = &each;
    }
    for (StepOrigins& each : found) {
      const auto at = firsts.find(each.rank);
      if (at == firsts.end() || at->second == &each || each.began == 0 || !each.arrivals.empty()) continue;
      const Graph& graph = *session_.graph(each.rank, each.graph);
      if (!std::ranges::all_of(each.origins, [&](const Origin& origin) { return is_behind_another_graph(graph, origin); })) continue;
      StepOrigins& first = *at->second;
      for (const Origin& origin : each.origins) each.arrivals.push_back({origin.tensor, first.origins.front().tensor, std::nullopt});
      each.origins.clear();
      first.graphs_behind.push_back(each.graph);
      first.bad_tensors += each.bad_tensors;
      first.origins.front().reached += each.follows.size() + changed_by(first, each.graph);
    }
  }

  /// Parameters of the graph whose files show what another one made of them.
  static uint64_t changed_by(const StepOrigins& step, int graph) {
    return static_cast<uint64_t>(std::ranges::count_if(step.follows, [&](const auto& entry) {
      if (entry.second < step.origins.size()) return false;
      const TensorId& from = step.arrivals[entry.second - step.origins.size()].from;
      return from.rank == step.rank && from.graph == graph;
    }));
  }

  /// 0 where it was so when the step began, or the files do not tell.
  uint64_t time_of(const StepOrigins& origins) const {
    if (origins.origins.empty()) return 0;
    const Origin& first = origins.origins.front();
    const bool at_start = session_.node(first.tensor).kind == NodeKind::kParameter && first.kind != OriginKind::kOperator;
    return at_start ? 0 : session_.written_at(first.tensor).value_or(0);
  }

  Session& session_;
  const OriginOptions& options_;
  Evidence evidence_;
  Collectives collectives_;
  ParameterWrites writes_;
  OriginResult result_;
  std::vector<int64_t> all_steps_;
  std::set<int64_t> judged_;
};

}  // namespace

Result<OriginResult> find_origins(Session& session, const OriginOptions& options) {
  return Search(session, options).run();
}

}  // namespace msdbg
