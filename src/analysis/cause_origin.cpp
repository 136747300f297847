#include "analysis/cause_origin.h"

#include <algorithm>

namespace msdbg {

OriginIndex::OriginIndex(const Session& session, const OriginResult& origins) : session_(session) {
  for (const StepOrigins& step : origins.steps) steps_[{step.rank, step.graph, step.step}] = &step;
  for (const StepOrigins& step : origins.others) steps_[{step.rank, step.graph, step.step}] = &step;
}

const Origin* OriginIndex::of(const TensorId& id) const {
  if (const Origin* const found = earliest(id); found != nullptr || id.slot.io == Io::kInput) return found;
  const Graph* const graph = session_.graph(id.rank, id.graph);
  for (uint32_t slot = 0; slot < session_.node(id).inputs.size(); ++slot) {
    TensorId taken = id;
    taken.slot = {Io::kInput, slot};
    if (const Origin* const found = earliest(taken)) return found;
    // Where inputs were not dumped, what their producers put out.
    const Edge producer = graph->effective_producer(id.node, slot);
    if (producer.node == kNoNode || graph->node(producer.node).kind != NodeKind::kOperator) continue;
    taken.node = producer.node;
    taken.slot = {Io::kOutput, producer.slot};
    if (const Origin* const found = earliest(taken)) return found;
  }
  return nullptr;
}

const Origin* OriginIndex::listed(const TensorId& id) const {
  const auto step = steps_.find({id.rank, id.graph, id.step});
  if (step == steps_.end()) return nullptr;
  const auto& follows = step->second->follows;
  const auto entry = std::lower_bound(follows.begin(), follows.end(), id, [](const auto& a, const TensorId& b) { return a.first < b; });
  return entry == follows.end() || entry->first != id ? nullptr : told(*step->second, entry->second);
}

const Origin* OriginIndex::told(const StepOrigins& step, uint32_t index) const {
  OriginPlace place{step.rank, step.graph, index};
  if (index >= step.origins.size()) {
    const std::optional<OriginPlace>& origin = step.arrivals[index - step.origins.size()].origin;
    if (!origin) return nullptr;
    place = *origin;
  }
  auto at = steps_.find({place.rank, place.graph, step.step});
  if (at != steps_.end() && at->second->told_by) at = steps_.find({*at->second->told_by, place.graph, step.step});
  return at == steps_.end() || place.index >= at->second->origins.size() ? nullptr : &at->second->origins[place.index];
}

std::vector<const Origin*> OriginIndex::alike(const Origin& origin) const {
  std::vector<const Origin*> out;
  const std::string reason = unseen_ranks(session_, origin);
  const auto at = steps_.find({origin.tensor.rank, origin.tensor.graph, origin.tensor.step});
  if (reason.empty() || at == steps_.end()) return out;
  for (const Origin& each : at->second->origins) {
    if (unseen_ranks(session_, each) == reason) out.push_back(&each);
  }
  return out;
}

std::span<const int> OriginIndex::ranks(const Origin& origin) const {
  const auto at = steps_.find({origin.tensor.rank, origin.tensor.graph, origin.tensor.step});
  return at == steps_.end() ? std::span<const int>() : at->second->ranks;
}

const Origin* OriginIndex::earliest(const TensorId& id) const {
  const Origin* found = listed(id);
  // The update is of an earlier step, which ends this.
  for (int64_t step = id.step; found != nullptr && found->update && found->update->step < step;) {
    step = found->update->step;
    const Origin* before = listed(*found->update);
    const Graph* const graph = before == nullptr ? session_.graph(found->update->rank, found->update->graph) : nullptr;
    if (const Node* const same = graph ? graph->find(session_.node(found->tensor).name) : nullptr) {
      // Some optimizers leave their output unwritten; the parameter shows what they did.
      before = listed({graph->rank(), graph->id(), step, 0, same->id, {}});
      // ... or its file of the graph that took it.
      TensorId file = found->tensor;
      file.step = step;
      if (before == nullptr && file.graph != graph->id() && session_.node(file).kind == NodeKind::kParameter) before = listed(file);
    }
    if (before == nullptr) break;
    found = before;
  }
  return found;
}

}  // namespace msdbg
