#include "analysis/gathered.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/collectives.h"

namespace msdbg {
namespace {

constexpr size_t kMostSteps = 8;  // that are compared

/// What a gathered value and its parts have in common.
struct Extremes {
  uint64_t count = 0;
  double min = std::numeric_limits<double>::infinity(), max = -min;
  bool operator==(const Extremes&) const = default;
  bool finite() const { return std::isfinite(min) && std::isfinite(max); }
  void add(const Extremes& other) {
    count += other.count;
    // NaN stays.
    if (!(other.min >= min)) min = other.min;
    if (!(other.max <= max)) max = other.max;
  }
};

std::optional<Extremes> extremes(Evidence& evidence, const TensorId& id) {
  const std::optional<Stats> stats = evidence.stats(id);
  return stats ? std::optional(Extremes{stats->count, stats->min, stats->max}) : std::nullopt;
}

/// Whether two values are equal in the nearest steps in which they are finite; nullopt if there is none.
template <typename First, typename Second>
std::optional<bool> equal_in_other_steps(const std::vector<int64_t>& steps, int64_t step, const First& first, const Second& second) {
  size_t looks = 0;
  for (auto at = std::ranges::lower_bound(steps, step); at != steps.begin() && looks < kMostSteps; ++looks) {
    --at;
    const std::optional<Extremes> one = first(*at);
    if (!one || !one->finite()) continue;
    const std::optional<Extremes> other = second(*at);
    if (other && other->finite()) return *one == *other;
  }
  return std::nullopt;
}

/// What the call gave in a step: one output, or one for each rank.
std::optional<Extremes> gathered(Evidence& evidence, const StepModel& model, const Execution& call, int64_t step) {
  Extremes all;
  for (uint32_t slot = 0; slot < model.graph().node(call.node).outputs.size(); ++slot) {
    TensorId id = model.id(call.node, {Io::kOutput, slot}, call.index);
    id.step = step;
    if (const auto part = extremes(evidence, id)) all.add(*part);
  }
  return all.count > 0 ? std::optional(all) : std::nullopt;
}

}  // namespace

std::vector<Execution> gathering_calls(const StepModel& model) {
  std::vector<Execution> calls;
  for (const Execution& call : model.executions()) {
    if (collective_kind(model.graph().node(call.node)) == CollectiveKind::kAllGather) calls.push_back(call);
  }
  return calls;
}

std::optional<Execution> gathered_by(Evidence& evidence, const StepModel& model, const std::vector<Execution>& calls, NodeId parameter) {
  if (calls.empty()) return std::nullopt;
  const Graph& graph = model.graph();
  uint32_t first_use = UINT32_MAX;
  for (const Use& use : graph.effective_users(parameter)) first_use = std::min(first_use, graph.node(use.node).order);
  const std::vector<int64_t> steps = evidence.session().steps(graph.rank(), graph.id());
  const auto whole = [&](int64_t step) {
    TensorId id = model.id(parameter, Slot{});
    id.step = step;
    return extremes(evidence, id);
  };
  const std::optional<Extremes> now = whole(model.step());
  if (!now) return std::nullopt;
  std::optional<Execution> possible;
  for (const Execution& call : calls) {
    if (graph.node(call.node).order >= first_use) break;
    const std::optional<Extremes> made = gathered(evidence, model, call, model.step());
    if (!made || made->count != now->count) continue;
    const auto equal = equal_in_other_steps(steps, model.step(), whole, [&](int64_t step) { return gathered(evidence, model, call, step); });
    if (equal == true) return call;
    if (!equal && !possible) possible = call;
  }
  // No other step shows its values: the number of elements must do.
  return graph.node(parameter).name.ends_with("_flat_param") ? possible : std::nullopt;
}

std::optional<TensorId> bad_part(Evidence& evidence, const TensorId& weight, const std::vector<int>& ranks) {
  Session& session = evidence.session();
  const Graph* const graph = session.graph(weight.rank, weight.graph);
  if (graph == nullptr || !graph->recorded_calls() || ranks.size() < 2 || weight.slot.io != Io::kOutput) return std::nullopt;
  const std::optional<Shape> whole = graph->node(weight.node).outputs[weight.slot.index].shape;
  if (!whole || whole->empty()) return std::nullopt;
  const auto is_part = [&](const TensorId& id) {
    const Result<TensorInfo> info = session.describe(id);
    return info && info->shape.size() == whole->size() && info->shape[0] < (*whole)[0] &&
           std::equal(whole->begin() + 1, whole->end(), info->shape.begin() + 1);
  };
  for (const NodeId node : graph->execution_order()) {
    if (graph->node(node).role != CallRole::kOptimizer) continue;
    for (uint32_t slot = 0; slot < graph->node(node).inputs.size(); ++slot) {
      std::vector<TensorId> bad;
      size_t good = 0;
      for (const int rank : ranks) {
        const Graph* const other = session.graph(rank, weight.graph);
        const Node* const same = other == nullptr ? nullptr : other->find(graph->node(node).name);
        if (same == nullptr) break;
        const TensorId id{rank, weight.graph, weight.step, 0, same->id, {Io::kInput, slot}};
        const JudgedTensor* const verdict = evidence.find(id);
        if (verdict == nullptr || verdict->state == InputState::kUnknown || bad.size() > 1) break;
        if (verdict->state == InputState::kBad) bad.push_back(id);
        else ++good;
      }
      if (bad.size() == 1 && good + 1 == ranks.size() && is_part(bad.front())) return bad.front();
    }
  }
  return std::nullopt;
}

std::optional<TensorId> update_of_part(Evidence& evidence, const StepModel& model, const TensorId& input) {
  const Graph& graph = model.graph();
  const std::vector<int64_t> steps = evidence.session().steps(graph.rank(), graph.id());
  const std::optional<Extremes> now = extremes(evidence, input);
  if (!now || !model.before().step) return std::nullopt;
  const auto taken = [&](int64_t step) {
    TensorId id = input;
    id.step = step;
    return extremes(evidence, id);
  };
  std::optional<TensorId> found;
  for (const NodeId node : graph.execution_order()) {
    if (graph.node(node).role != CallRole::kOptimizer || !graph.node(node).op->ends_with('_') || graph.node(node).outputs.empty()) continue;
    TensorId output = model.id(node, Slot{});
    const auto left = [&](int64_t step) -> std::optional<Extremes> {
      const auto after = std::ranges::lower_bound(steps, step);
      if (after == steps.begin()) return std::nullopt;
      TensorId id = output;
      id.step = *std::prev(after);
      return extremes(evidence, id);
    };
    if (left(model.step()).value_or(Extremes()).count != now->count) continue;
    if (equal_in_other_steps(steps, model.step(), taken, left) != true) continue;
    output.step = *model.before().step;
    found = output;  // the last one that wrote it
  }
  return found;
}

}  // namespace msdbg
