#include "analysis/step_models.h"

namespace msdbg {

bool StepModels::judge(int64_t step) {
  if (!judged_.insert(step).second) return true;
  status_ = evidence_.judge_steps(IntSet::of(step), seen_);
  if (!status_.ok() || seen_.interrupted) return false;
  parameters_.insert(step);
  for (const TensorId& id : evidence_.listed()) tensors_[{id.rank, id.graph, step}].push_back(id);
  return true;
}

const StepModel* StepModels::find(int rank, int graph, int64_t step) {
  const auto known = models_.find({rank, graph, step});
  if (known != models_.end()) return known->second.get();
  const Graph* const of = session_.graph(rank, graph);
  if (of == nullptr || !status_.ok() || seen_.interrupted || !judge(step)) return nullptr;
  PreviousStep before = previous_step(session_, *of, step);
  if (before.step && parameters_.insert(*before.step).second) {
    status_ = evidence_.judge_parameters(*before.step, seen_);
    if (!status_.ok() || seen_.interrupted) return nullptr;
  }
  const std::vector<TensorId>& own = tensors_[{rank, graph, step}];
  return models_.emplace(std::tuple(rank, graph, step), std::make_unique<StepModel>(evidence_, *of, step, std::move(before), own))
      .first->second.get();
}

}  // namespace msdbg
