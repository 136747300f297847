// What a bad tensor affected in its step, or where it came from, on all ranks.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/propagation_cone.h"
#include "analysis/trail.h"

namespace msdbg {

std::string_view propagation_role_name(PropagationRole role) {
  switch (role) {
    case PropagationRole::kOrigin:
      return "origin";
    case PropagationRole::kPassed:
      return "passed on";
    case PropagationRole::kAbsorbed:
      return "absorbed";
    case PropagationRole::kCannot:
      return "cannot hold it";
    case PropagationRole::kClean:
      return "clean";
    case PropagationRole::kUnknown:
      return "unknown";
  }
  return "unknown";
}

std::string_view trail_end_name(TrailEnd end) {
  return end == TrailEnd::kOrigin ? "origin" : end == TrailEnd::kInput ? "input" : "unknown";
}

std::string_view parameter_moment_name(ParameterMoment moment) {
  return moment == ParameterMoment::kStart ? "start" : moment == ParameterMoment::kEnd ? "end" : "";
}

namespace {

/// Which value of a bad parameter the answer is about: its file shows how the step left it, and others took what it was before.
void find_moment(Evidence& evidence, const StepModel& model, Propagation& result) {
  const TensorId& tensor = result.tensor;
  if (tensor.slot.io != Io::kOutput || model.graph().node(tensor.node).kind != NodeKind::kParameter) return;
  const Value start = model.at_start(tensor.node);
  const TensorId seen = start.shown.value_or(start.tensor.value_or(tensor));
  if (start.state == InputState::kBad && seen != tensor) {
    result.stats = evidence.stats(seen);
    result.moment = ParameterMoment::kStart;
  } else if (start.state != InputState::kBad && !model.updaters(tensor.node).empty()) {
    result.moment = ParameterMoment::kEnd;
    result.broke_at_end = start.state == InputState::kGood;
  }
}

}  // namespace

Result<Propagation> propagation(Session& session, const TensorId& tensor, const PropagationOptions& options) {
  const Result<TensorInfo> info = session.describe(tensor);
  if (!info) return info.status();
  const Graph* graph = session.graph(tensor.rank, tensor.graph);
  if (graph == nullptr) return Status(Code::kNotFound, fmt::format("there is no graph {} of rank {}", tensor.graph, tensor.rank));

  OriginOptions judged;
  judged.predicate = options.predicate;
  // Collectives lead to other ranks.
  if (Collectives(session.graphs()).empty()) judged.ranks = IntSet::of(tensor.rank);
  judged.semantics = options.semantics;
  judged.mem_limit_bytes = options.mem_limit_bytes;
  judged.threads = options.threads;
  judged.progress = options.progress;
  Evidence evidence(session, judged);
  OriginResult seen;
  evidence.expect_steps(IntSet::of(tensor.step));
  StepModels models(evidence, seen);
  const StepModel* const model = models.find(tensor);
  if (!models.status().ok()) return models.status();
  Propagation result;
  result.tensor = tensor;
  result.predicate = options.predicate.text;
  result.up = options.up;
  result.edges_known = graph->from_file();
  result.coverage = seen.coverage;
  result.not_checked = std::move(seen.not_checked);
  result.interrupted = seen.interrupted;
  if (model == nullptr) return result;

  result.stats = evidence.stats(tensor);
  const JudgedTensor* verdict = evidence.find(tensor);
  if (verdict && verdict->state == InputState::kUnknown) {
    return Status(Code::kUnsupported,
                  fmt::format("'{}' could not be judged on {}: {}", result.predicate, session.tensor_name(tensor), verdict->reason));
  }
  result.holds = evidence.is_bad(tensor);
  if (result.holds) {
    find_moment(evidence, *model, result);
    if (options.up) grow_cone_up(models, *model, result);
    else grow_cone_down(models, *model, result);
  }
  if (result.holds && options.up && result.edges_known) {
    Result<Trail> trail = follow_trail(models, tensor);
    if (!trail) return trail.status();
    result.trail = std::move(*trail);
  }
  std::set<std::pair<NodeId, uint32_t>> connected;
  for (const PropagationNode& node : result.nodes) {
    if (node.rank == tensor.rank && node.graph == tensor.graph) connected.insert({node.node, node.execution});
  }
  for (const TensorId& id : model->tensors()) {
    if (id.slot.io != Io::kOutput || model->is_unwritten(id)) continue;
    const JudgedTensor* found = evidence.find(id);
    if (!found) continue;
    if (found->state == InputState::kGood) ++result.clean_outputs;
    if (found->state != InputState::kBad) continue;
    ++result.bad_in_step;
    if (!connected.contains({id.node, id.execution})) ++result.bad_elsewhere;
  }
  return result;
}

}  // namespace msdbg
