// What a bad tensor affected in its step, or where it came from.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/collectives.h"
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

Result<Propagation> propagation(Session& session, const TensorId& tensor, const PropagationOptions& options) {
  const Result<TensorInfo> info = session.describe(tensor);
  if (!info) return info.status();
  const Graph* graph = session.graph(tensor.rank, tensor.graph);
  if (graph == nullptr) return Status(Code::kNotFound, fmt::format("there is no graph {} of rank {}", tensor.graph, tensor.rank));

  OriginOptions judged;
  judged.predicate = options.predicate;
  // The way back may lead to other ranks.
  if (!options.up || Collectives(session.graphs()).empty()) judged.ranks = IntSet::of(tensor.rank);
  judged.semantics = options.semantics;
  judged.mem_limit_bytes = options.mem_limit_bytes;
  judged.threads = options.threads;
  judged.progress = options.progress;
  Evidence evidence(session, judged);
  OriginResult seen;
  const IntSet step = IntSet::of(tensor.step);
  evidence.expect_steps(step);
  if (Status status = evidence.judge_steps(step, seen); !status.ok()) return status;
  Propagation result;
  result.tensor = tensor;
  result.predicate = options.predicate.text;
  result.up = options.up;
  result.edges_known = graph->from_file();
  std::vector<TensorId> own;
  for (const TensorId& id : evidence.listed()) {
    if (id.graph == tensor.graph && id.rank == tensor.rank) own.push_back(id);
  }
  PreviousStep before = previous_step(session, *graph, tensor.step);
  if (before.step && !seen.interrupted) {
    if (Status status = evidence.judge_parameters(*before.step, seen); !status.ok()) return status;
  }
  result.coverage = seen.coverage;
  result.not_checked = std::move(seen.not_checked);
  result.interrupted = seen.interrupted;
  if (result.interrupted) return result;

  const StepModel model(evidence, *graph, tensor.step, std::move(before), own);
  result.stats = evidence.stats(tensor);
  const JudgedTensor* verdict = evidence.find(tensor);
  if (verdict && verdict->state == InputState::kUnknown) {
    return Status(Code::kUnsupported,
                  fmt::format("'{}' could not be judged on {}: {}", result.predicate, session.tensor_name(tensor), verdict->reason));
  }
  result.holds = evidence.is_bad(tensor);
  if (result.holds) grow_cone(evidence, model, result);
  if (result.holds && options.up && result.edges_known) {
    Result<Trail> trail = follow_trail(evidence, tensor);
    if (!trail) return trail.status();
    result.trail = std::move(*trail);
  }
  std::set<std::pair<NodeId, uint32_t>> connected;
  for (const PropagationNode& node : result.nodes) connected.insert({node.node, node.execution});
  for (const TensorId& id : own) {
    if (id.slot.io != Io::kOutput || model.is_unwritten(id)) continue;
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
