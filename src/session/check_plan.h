// The plan of a check: the tensors to check, and what each of them needs for all its watchpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "msdbg/check.h"

namespace msdbg {

/// The watchpoints of a tensor; equal sets are stored once.
struct WatchSet {
  std::vector<const Watchpoint*> watches;  ///< by rule, then id: the order of results
  StatsRequest request;
  std::vector<Expression> expressions;             ///< each text once
  std::shared_ptr<const ExpressionSet> compiled;   ///< all expressions together; null without expressions
  bool needs_previous = false;
  bool needs_stats = false;  ///< false: the flags alone decide
};

/// When a node's value is known within its step: constants first, then operators in execution order. A Parameter holds its value at
/// the end of the step and comes after its causes.
using PlaceInStep = std::pair<int, uint32_t>;
PlaceInStep place_in_step(const Node& node);

struct PlannedTensor {
  TensorId id;
  PlaceInStep place;
  uint32_t set = 0;      ///< index into CheckPlan::sets
  bool missing = false;  ///< watched, but not dumped; only with CheckOptions::report_missing
};

struct CheckPlan {
  std::vector<PlannedTensor> tensors;  ///< by rank, step, graph, position in the step, node, execution, slot
  std::vector<WatchSet> sets;
  std::vector<int64_t> steps;
  bool inputs_instead = false;  ///< Watchpoint::inputs_instead took effect
  /// Rules without matching tensors, and requested steps and ranks that do not exist.
  std::vector<RuleProblem> problems;
};

/// False if a condition is decided without elements: overflow flags, and initial weights, which a dump does not contain.
bool needs_elements(const Session& session, const Watchpoint& watch);

/// Resolves selectors once and lists the matching tensors. `watchpoints` must outlive the plan.
///
/// Constants never change: they are left out unless a selector asks for them (`@constant`, `op:Const` or `=NAME`).
/// Error: kNotFound for a selector without nodes, a step or a rank that does not exist.
Result<CheckPlan> make_plan(Session& session, std::span<const Watchpoint> watchpoints, const CheckOptions& options);

}  // namespace msdbg
