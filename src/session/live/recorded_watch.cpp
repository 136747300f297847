#include "session/live/recorded_watch.h"

#include <algorithm>

namespace msdbg::live {

bool recorded_watchpoint(const debugger::WatchpointHit& hit, Watchpoint* watch) {
  const auto catalogue = condition_catalogue();
  // Several conditions of the catalogue share a number on the wire; the one named after any tensor fits all targets.
  const ConditionSpec* spec = nullptr;
  for (const ConditionSpec& candidate : catalogue) {
    if (candidate.enumerator != hit.watch_condition().condition()) continue;
    if (spec == nullptr || candidate.target == Target::kTensor) spec = &candidate;
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
