#include "expr/program.h"

#include <algorithm>

namespace msdbg::expr {
namespace {

Gather gather_for(Op op) {
  switch (op) {
    case Op::kSum:
    case Op::kMean: return Gather::kSum;
    case Op::kMinOf: return Gather::kLeast;
    case Op::kMaxOf: return Gather::kGreatest;
    case Op::kStd: return Gather::kMoments;
    case Op::kNorm1: return Gather::kMagnitudes;
    case Op::kNorm2: return Gather::kSquares;
    case Op::kNormInf: return Gather::kLargest;
    default: return Gather::kCount;
  }
}

}  // namespace

Program::Program(std::span<const Expression> expressions) {
  for (const Expression& expression : expressions) {
    const Root root = dag.add(*expression.data_->tree, expression.data_->source);
    roots.push_back(root);
    texts.push_back(expression.text());
    root_uses_previous.push_back(dag[root.node].uses_previous);
    root_is_element.push_back(!expression.is_scalar());
  }
  // Folding may leave unused nodes; only those that a root needs are computed.
  std::vector<bool> needed(dag.size(), false);
  for (const Root& root : roots) {
    for (NodeId id : {root.node, root.actual, root.threshold}) {
      if (id != kNoNode) needed[static_cast<size_t>(id)] = true;
    }
  }
  for (size_t i = dag.size(); i-- > 0;) {
    if (!needed[i]) continue;
    const DagNode& node = dag[static_cast<NodeId>(i)];
    for (NodeId arg : {node.a, node.b, node.mask}) {
      if (arg != kNoNode) needed[static_cast<size_t>(arg)] = true;
    }
    if (node.op == Op::kPrev) needs_previous = true;
  }
  for (size_t i = 0; i < dag.size(); ++i) {
    if (needed[i] && is_reduction(dag[static_cast<NodeId>(i)].op)) add_reduction(static_cast<NodeId>(i));
  }
  for (const Root& root : roots) passes = std::max(passes, dag[root.node].passes);

  for (int with_previous = 0; with_previous < 2; ++with_previous) {
    for (int pass = 1; pass <= passes; ++pass) {
      std::vector<int> fed;
      for (size_t i = 0; i < accumulators.size(); ++i) {
        if (accumulators[i].pass == pass && (with_previous == 1 || !accumulators[i].uses_previous)) {
          fed.push_back(static_cast<int>(i));
        }
      }
      code_[with_previous].push_back(compile_gathers(*this, fed));
    }
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    element_code_.push_back(root_is_element[i] ? compile_elements(*this, roots[i].node) : Code());
  }
}

void Program::add_reduction(NodeId id) {
  const DagNode& node = dag[id];
  Reduction reduction;
  reduction.node = id;
  reduction.stats = find_stats_source(dag, id);
  if (reduction.stats) {
    fields |= reduction.stats->fields;
    if (reduction.stats->counts_range() &&
        std::find(request.ranges.begin(), request.ranges.end(), reduction.stats->count.range) == request.ranges.end()) {
      request.ranges.push_back(reduction.stats->count.range);
    }
  } else {
    const bool of_magnitude = node.op == Op::kMean && dag.is(node.a, Op::kAbs);
    const NodeId arg = of_magnitude ? dag[node.a].a : node.a;
    reduction.accumulator = accumulate(of_magnitude ? Gather::kMagnitudes : gather_for(node.op), arg, node.mask);
    const bool divides = node.op == Op::kMean || node.op == Op::kAll || node.op == Op::kPercent;
    if (divides && node.mask != kNoNode) reduction.considered = accumulate(Gather::kCount, node.mask, kNoNode);
  }
  reductions.push_back(std::move(reduction));
}

int Program::accumulate(Gather gather, NodeId arg, NodeId mask) {
  for (size_t i = 0; i < accumulators.size(); ++i) {
    const Accumulator& other = accumulators[i];
    if (other.gather == gather && other.arg == arg && other.mask == mask) return static_cast<int>(i);
  }
  Accumulator made{gather, arg, mask, dag[arg].passes + 1, dag[arg].uses_previous};
  if (mask != kNoNode) {
    made.pass = std::max(made.pass, dag[mask].passes + 1);
    made.uses_previous = made.uses_previous || dag[mask].uses_previous;
  }
  accumulators.push_back(made);
  return static_cast<int>(accumulators.size() - 1);
}

const Reduction* Program::reduction(NodeId node) const {
  const auto at = std::lower_bound(reductions.begin(), reductions.end(), node,
                                   [](const Reduction& reduction, NodeId id) { return reduction.node < id; });
  return at != reductions.end() && at->node == node ? &*at : nullptr;
}

std::vector<NodeId> Program::reductions_under(NodeId node) const {
  std::vector<bool> reached(static_cast<size_t>(node) + 1, false);
  reached.back() = true;
  std::vector<NodeId> found;
  for (size_t i = reached.size(); i-- > 0;) {
    if (!reached[i]) continue;
    const DagNode& part = dag[static_cast<NodeId>(i)];
    for (NodeId arg : {part.a, part.b, part.mask}) {
      if (arg != kNoNode) reached[static_cast<size_t>(arg)] = true;
    }
    if (is_reduction(part.op)) found.push_back(static_cast<NodeId>(i));
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace msdbg::expr
