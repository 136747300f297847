#include "session/live/recorded_watch.h"

#include <algorithm>

namespace msdbg::live {

Target target_of(const Node& node) {
  if (node.kind == NodeKind::kParameter) return node.trainable ? Target::kWeight : Target::kTensor;
  if (in_category(node, Category::kGradient)) return Target::kGradient;
  return in_category(node, Category::kActivation) ? Target::kActivation : Target::kTensor;
}

bool recorded_watchpoint(const debugger::WatchpointHit& hit, Target target, Watchpoint* watch) {
  const auto catalogue = condition_catalogue();
  const ConditionSpec* spec = nullptr;
  for (const ConditionSpec& candidate : catalogue) {
    if (candidate.enumerator != hit.watch_condition().condition()) continue;
    const bool better = candidate.target == target || (candidate.target == Target::kTensor && spec != nullptr && spec->target != target);
    if (spec == nullptr || better) spec = &candidate;
  }
  if (spec == nullptr) return false;
  Condition condition;
  condition.spec = spec;
  for (const auto& param : hit.watch_condition().params()) {
    const bool known = std::any_of(spec->params.begin(), spec->params.end(),
                                   [&](const ParamSpec& p) { return p.name == param.name(); });
    if (known && !param.disabled()) condition.params[param.name()] = param.value();
  }
  watch->id = hit.id();
  watch->name = "recorded";
  watch->rule = std::string(spec->id);
  watch->condition = std::move(condition);
  watch->severity = spec->severity;
  return true;
}

}  // namespace msdbg::live
