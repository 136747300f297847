#include "analysis/gathered.h"

#include <algorithm>
#include <cmath>

#include "analysis/collectives.h"

namespace msdbg {
namespace {

constexpr size_t kMostSteps = 8;  // that are compared

bool is_update(const Node& node) { return node.role == CallRole::kOptimizer && node.op->ends_with('_') && !node.outputs.empty(); }

}  // namespace

bool GatheredWeights::Extremes::finite() const { return std::isfinite(min) && std::isfinite(max); }

void GatheredWeights::Extremes::add(const Extremes& other) {
  count += other.count;
  // NaN stays.
  if (!(other.min >= min)) min = other.min;
  if (!(other.max <= max)) max = other.max;
}

GatheredWeights::GatheredWeights(Evidence& evidence, const StepModel& model)
    : evidence_(evidence), model_(model), steps_(evidence.session().steps(model.graph().rank(), model.graph().id())) {
  const auto is_bad = [&](const Execution& call) {
    for (uint32_t slot = 0; slot < model.graph().node(call.node).outputs.size(); ++slot) {
      if (evidence.is_bad(model.id(call.node, {Io::kOutput, slot}, call.index))) return true;
    }
    return false;
  };
  for (const Execution& call : model.executions()) {
    if (collective_kind(model.graph().node(call.node)) == CollectiveKind::kAllGather && is_bad(call)) calls_.push_back(call);
  }
}

std::optional<GatheredWeights::Extremes> GatheredWeights::extremes(const TensorId& id) {
  const auto [at, fresh] = known_.try_emplace(id);
  if (!fresh) return at->second;
  if (const std::optional<Stats> stats = evidence_.stats(id)) at->second = Extremes{stats->count, stats->min, stats->max};
  return at->second;
}

/// What the call gave in a step: one output, or one for each rank.
std::optional<GatheredWeights::Extremes> GatheredWeights::gathered(const Execution& call, int64_t step) {
  Extremes all;
  for (uint32_t slot = 0; slot < model_.graph().node(call.node).outputs.size(); ++slot) {
    TensorId id = model_.id(call.node, {Io::kOutput, slot}, call.index);
    id.step = step;
    if (const auto part = extremes(id)) all.add(*part);
  }
  return all.count > 0 ? std::optional(all) : std::nullopt;
}

/// Whether two values are equal in the nearest step before in which they are finite; nullopt if there is none.
template <typename First, typename Second>
std::optional<bool> GatheredWeights::equal_before(const First& first, const Second& second) const {
  size_t looks = 0;
  for (auto at = std::ranges::lower_bound(steps_, model_.step()); at != steps_.begin() && looks < kMostSteps; ++looks) {
    --at;
    const std::optional<Extremes> one = first(*at);
    if (!one || !one->finite()) continue;
    const std::optional<Extremes> other = second(*at);
    if (other && other->finite()) return *one == *other;
  }
  return std::nullopt;
}

std::optional<NodeId> GatheredWeights::call_of(NodeId parameter) {
  if (calls_.empty()) return std::nullopt;
  const Graph& graph = model_.graph();
  uint32_t first_use = UINT32_MAX;
  for (const Use& use : graph.effective_users(parameter)) first_use = std::min(first_use, graph.node(use.node).order);
  const auto whole = [&](int64_t step) {
    TensorId id = model_.id(parameter, Slot{});
    id.step = step;
    return extremes(id);
  };
  const std::optional<Extremes> now = whole(model_.step());
  if (!now) return std::nullopt;
  std::optional<NodeId> possible;
  for (const Execution& call : calls_) {
    if (graph.node(call.node).order >= first_use) break;
    if (gathered(call, model_.step()).value_or(Extremes()).count != now->count) continue;
    const auto equal = equal_before(whole, [&](int64_t step) { return gathered(call, step); });
    if (equal == true) return call.node;
    if (!equal && !possible) possible = call.node;
  }
  // No other step shows its values: the number of elements must do.
  return graph.node(parameter).name.ends_with("_flat_param") ? possible : std::nullopt;
}

std::optional<TensorId> GatheredWeights::update_of_part(const TensorId& input) {
  const Graph& graph = model_.graph();
  const std::optional<Extremes> now = extremes(input);
  if (!now || !model_.before().step) return std::nullopt;
  const auto taken = [&](int64_t step) {
    TensorId id = input;
    id.step = step;
    return extremes(id);
  };
  std::optional<TensorId> found;
  for (const NodeId node : graph.execution_order()) {
    if (!is_update(graph.node(node))) continue;
    TensorId output = model_.id(node, Slot{});
    const auto left = [&](int64_t step) -> std::optional<Extremes> {
      const auto after = std::ranges::lower_bound(steps_, step);
      if (after == steps_.begin()) return std::nullopt;
      TensorId id = output;
      id.step = *std::prev(after);
      return extremes(id);
    };
    if (left(model_.step()).value_or(Extremes()).count != now->count || equal_before(taken, left) != true) continue;
    output.step = *model_.before().step;
    found = output;  // the last one that wrote it
  }
  return found;
}

std::vector<TensorId> bad_parts(Evidence& evidence, const Graph& graph, int64_t step, const std::vector<int>& ranks) {
  std::vector<TensorId> found;
  if (!graph.recorded_calls() || ranks.size() < 2) return found;
  std::vector<const Graph*> graphs;
  for (const int rank : ranks) graphs.push_back(evidence.session().graph(rank, graph.id()));
  if (std::ranges::count(graphs, nullptr) > 0) return found;
  for (const NodeId node : graph.execution_order()) {
    if (graph.node(node).role != CallRole::kOptimizer) continue;
    for (uint32_t slot = 0; slot < graph.node(node).inputs.size(); ++slot) {
      std::vector<TensorId> bad;
      size_t good = 0;
      for (const Graph* const each : graphs) {
        const Node* const same = each->find(graph.node(node).name);
        if (same == nullptr || bad.size() > 1) break;
        const TensorId id{each->rank(), each->id(), step, 0, same->id, {Io::kInput, slot}};
        const JudgedTensor* const verdict = evidence.find(id);
        if (verdict == nullptr || verdict->state == InputState::kUnknown) break;
        if (verdict->state == InputState::kBad) bad.push_back(id);
        else ++good;
      }
      if (bad.size() == 1 && good + 1 == ranks.size()) found.push_back(bad.front());
    }
  }
  return found;
}

std::optional<TensorId> part_of(Session& session, const std::vector<TensorId>& parts, const TensorId& weight) {
  const std::vector<OutputType>& types = session.node(weight).outputs.get();
  if (weight.slot.io != Io::kOutput || weight.slot.index >= types.size()) return std::nullopt;
  const std::optional<Shape>& whole = types[weight.slot.index].shape;
  if (!whole || whole->empty()) return std::nullopt;
  for (const TensorId& part : parts) {
    const Result<TensorInfo> info = session.describe(part);
    const bool fits = info && info->shape.size() == whole->size() && info->shape[0] < (*whole)[0] &&
                      std::equal(whole->begin() + 1, whole->end(), info->shape.begin() + 1);
    if (fits) return part;
  }
  return std::nullopt;
}

}  // namespace msdbg
