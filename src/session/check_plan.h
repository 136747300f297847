// The plan of a check: which tensors are looked at, and what each of them needs for all its watchpoints together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "msdbg/session.h"

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

struct PlannedTensor {
  TensorId id;
  uint32_t order = 0;    ///< Node::order
  uint32_t set = 0;      ///< index into CheckPlan::sets
  bool missing = false;  ///< watched, but not dumped; only with CheckOptions::report_missing
};

struct CheckPlan {
  std::vector<PlannedTensor> tensors;  ///< by rank, step, graph, execution order, execution, slot
  std::vector<WatchSet> sets;
  std::vector<int64_t> steps;
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
