#include "analysis/grown.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <set>

#include "msdbg/tensor.h"

namespace msdbg {
namespace {

constexpr double kMuch = 100;
constexpr uint64_t kMostBytes = 256 << 20;  // of what is compared: a training sends the elements

double largest(const Stats& stats) { return std::max(std::fabs(stats.min), std::fabs(stats.max)); }

}  // namespace

std::vector<Grown> grown_parameters(Evidence& evidence, const StepModel& model, NodeId node) {
  std::vector<Grown> out;
  // Steps in between, which were not dumped, can have made it larger.
  if (model.before().step != model.step() - 1) return out;
  const Graph& graph = model.graph();
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
      if (value.state != InputState::kGood || !value.tensor || value.tensor->step != model.step()) continue;
      TensorId old = model.id(producer, {Io::kOutput, 0});
      old.step = *model.before().step;
      const std::optional<Stats> before = evidence.stats(old);
      if (!before || largest(*before) == 0) continue;
      compared += before->count * item_size(before->dtype);
      const std::optional<Stats> now = evidence.stats(*value.tensor);
      if (!now || !(largest(*now) > kMuch * largest(*before))) continue;
      out.push_back({old, largest(*now), largest(*before)});
    }
  }
  std::ranges::sort(out, std::greater(), [](const Grown& each) { return each.largest / each.before; });
  return out;
}

}  // namespace msdbg
