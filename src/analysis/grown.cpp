#include "analysis/grown.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace msdbg {
namespace {

constexpr double kMuch = 100;
constexpr size_t kMostCompared = 1000;  // a training sends their statistics for it

double largest(const Stats& stats) { return std::max(std::fabs(stats.min), std::fabs(stats.max)); }

}  // namespace

std::vector<Grown> grown_parameters(Evidence& evidence, const StepModel& model, NodeId node) {
  std::vector<Grown> out;
  // Steps in between, which were not dumped, can have made it larger.
  if (model.before().step != model.step() - 1) return out;
  const Graph& graph = model.graph();
  std::vector<NodeId> waiting{node};
  std::set<NodeId> seen{node};
  for (size_t compared = 0; !waiting.empty() && compared < kMostCompared;) {
    const NodeId id = waiting.back();
    waiting.pop_back();
    for (uint32_t slot = 0; slot < graph.node(id).inputs.size(); ++slot) {
      const NodeId producer = graph.effective_producer(id, slot).node;
      if (producer == kNoNode || !seen.insert(producer).second) continue;
      if (graph.node(producer).kind == NodeKind::kOperator) waiting.push_back(producer);
      if (graph.node(producer).kind != NodeKind::kParameter) continue;
      const Value value = model.at_start(producer);
      if (value.state != InputState::kGood || !value.tensor || value.tensor->step != model.step()) continue;
      TensorId old = model.id(producer, {Io::kOutput, 0});
      old.step = *model.before().step;
      ++compared;
      const std::optional<Stats> now = evidence.stats(*value.tensor), before = evidence.stats(old);
      if (!now || !before || largest(*before) == 0 || !(largest(*now) > kMuch * largest(*before))) continue;
      out.push_back({old, largest(*now), largest(*before)});
    }
  }
  std::ranges::sort(out, std::greater(), [](const Grown& each) { return each.largest / each.before; });
  return out;
}

}  // namespace msdbg
