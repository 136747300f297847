// What a bad tensor affected in its step, or where it came from.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/propagation_cone.h"

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

namespace {

/// The previous step, if its Parameter files hold the values at the start of this one.
PreviousStep before_step(const Session& session, const Graph& graph, int64_t step) {
  const std::vector<int64_t> steps = session.steps(graph.rank(), graph.id()), all = session.steps();
  const auto at = std::lower_bound(steps.begin(), steps.end(), step);
  if (at == steps.begin()) return {std::nullopt, "no earlier step was dumped"};
  const int64_t previous = *std::prev(at);
  for (int64_t between = previous + 1; between < step; ++between) {
    if (!std::binary_search(all.begin(), all.end(), between)) return {std::nullopt, fmt::format("step {} was not dumped", between)};
  }
  return {previous, ""};
}

}  // namespace

Result<Propagation> propagation(Session& session, const TensorId& tensor, const PropagationOptions& options) {
  const Result<TensorInfo> info = session.describe(tensor);
  if (!info) return info.status();
  const Graph* graph = session.graph(tensor.rank, tensor.graph);
  if (graph == nullptr) return Status(Code::kNotFound, fmt::format("there is no graph {} of rank {}", tensor.graph, tensor.rank));

  OriginOptions judged;
  judged.predicate = options.predicate;
  judged.ranks = IntSet::of(tensor.rank);
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
  PreviousStep before = before_step(session, *graph, tensor.step);
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
