#include "analysis/grown.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <set>
#include <span>

#include "msdbg/tensor.h"

namespace msdbg {
namespace {

constexpr double kMuch = 100;
constexpr uint64_t kMostBytes = 256 << 20;  // of what is compared: a training sends the elements
constexpr double kUnusual = 1000;           // earlier steps are of interest only if a weight is larger
constexpr int kEarlierSteps = 16;           // as many as the history of a training keeps

double largest(const Stats& stats) { return std::max(std::fabs(stats.min), std::fabs(stats.max)); }

/// Looks for one jump in the files of the earlier ones of `steps`, the latest first. `after` was read in the step of `id`.
std::optional<Grown> earlier_jump(Evidence& evidence, const Graph& graph, std::span<const int64_t> steps, const TensorId& id, double after,
                                  uint64_t& compared) {
  TensorId later = id;
  for (int i = 0; i < kEarlierSteps && compared < kMostBytes; ++i) {
    const PreviousStep previous = previous_step(evidence.session(), graph, later.step, steps);
    if (!previous.step) return std::nullopt;
    TensorId earlier = later;
    earlier.step = *previous.step;
    const std::optional<Stats> stats = evidence.stats(earlier);
    if (!stats || largest(*stats) == 0) return std::nullopt;
    compared += stats->count * item_size(stats->dtype);
    if (after > kMuch * largest(*stats)) return Grown{earlier, after, largest(*stats), later.step};
    after = largest(*stats);
    if (after <= kUnusual) return std::nullopt;
    later = earlier;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Grown> grown_parameters(Evidence& evidence, const StepModel& model, NodeId node) {
  std::vector<Grown> out;
  // Steps in between, which were not dumped, can have made it larger.
  if (model.before().step != model.step() - 1) return out;
  const Graph& graph = model.graph();
  const std::vector<int64_t> steps = evidence.session().steps();
  std::deque<NodeId> waiting{node};  // the nearest first
  std::set<NodeId> seen{node};
  for (uint64_t compared = 0; !waiting.empty() && compared < kMostBytes;) {
    const NodeId id = waiting.front();
    waiting.pop_front();
    for (uint32_t slot = 0; slot < graph.node(id).inputs.size(); ++slot) {
      const NodeId producer = graph.effective_producer(id, slot).node;
      if (producer == kNoNode || !seen.insert(producer).second) continue;
      if (graph.node(producer).kind == NodeKind::kOperator) waiting.push_back(producer);
      if (graph.node(producer).kind != NodeKind::kParameter) continue;
      const Value value = model.at_start(producer);
      if (value.state != InputState::kGood || !value.tensor) continue;
      TensorId old = model.id(producer, {Io::kOutput, 0});
      old.step = *model.before().step;
      const std::optional<Stats> before = evidence.stats(old);
      if (!before || largest(*before) == 0) continue;
      compared += before->count * item_size(before->dtype);
      // Where no operator recorded what it read, the value is that of the step before.
      const std::optional<Stats> now = value.tensor->step == model.step() ? evidence.stats(*value.tensor) : std::nullopt;
      if (now && largest(*now) > kMuch * largest(*before)) {
        out.push_back({old, largest(*now), largest(*before), std::nullopt});
      } else if (largest(*before) > kUnusual) {
        if (const auto jump = earlier_jump(evidence, graph, steps, old, largest(*before), compared)) out.push_back(*jump);
      }
    }
  }
  // What happened last comes first.
  const auto factor = [](const Grown& each) { return each.largest / each.before; };
  std::ranges::sort(out, [&](const Grown& a, const Grown& b) {
    return a.parameter.step != b.parameter.step ? a.parameter.step > b.parameter.step : factor(a) > factor(b);
  });
  return out;
}

}  // namespace msdbg
