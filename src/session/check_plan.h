// The plan of a check: which tensors are checked, and what each of them needs for all its watchpoints together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "msdbg/check.h"

namespace msdbg {

/// Watchpoints that share a tensor; equal sets are stored once.
struct WatchSet {
  std::vector<const Watchpoint*> watches;  ///< by rule, then id: the order of the results
  StatsRequest request;
  std::vector<Expression> expressions;             ///< each text once
  std::shared_ptr<const ExpressionSet> compiled;   ///< of them together; null when there are none
  bool needs_previous = false;
  bool needs_stats = false;  ///< false: decided from flags alone
};

/// Where in its step the value of a node is known: constants were there before, operators follow in execution order, and a Parameter
/// holds its value at the end of the step, so it comes after its causes.
using PlaceInStep = std::pair<int, uint32_t>;
PlaceInStep place_in_step(const Node& node);

struct PlannedTensor {
  TensorId id;
  PlaceInStep place;
  uint32_t set = 0;      ///< index into CheckPlan::sets
  bool missing = false;  ///< watched, but not dumped; only with CheckOptions::report_missing
};

struct CheckPlan {
  std::vector<PlannedTensor> tensors;  ///< by rank, step, graph, place in the step, node, execution, slot
  std::vector<WatchSet> sets;
  std::vector<int64_t> steps;
  /// Rules without matching tensors, and requested steps and ranks that do not exist.
  std::vector<RuleProblem> problems;
};

/// False where a condition is decided without elements: overflow flags, and initial weights, which a dump does not
/// hold.
bool needs_elements(const Session& session, const Watchpoint& watch);

/// Resolves selectors once and lists the tensors they name. `watchpoints` must outlive the plan.
///
/// Constants are left out unless a selector asks for them (`@constant`, `op:Const` or `=NAME`), as they never change.
/// Error: kNotFound for a selector without nodes, a step or a rank that does not exist.
Result<CheckPlan> make_plan(Session& session, std::span<const Watchpoint> watchpoints, const CheckOptions& options);

}  // namespace msdbg
