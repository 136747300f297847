// What the plans for MindSpore's own dumps and for msprobe share. Private to the analysis module.
#pragma once

#include <span>
#include <vector>

#include "msdbg/dump_plan.h"

namespace msdbg {

struct StepRange {
  int64_t first = 0, last = 0;
};

/// The ranges of an IntSet that is not all(), and the number of steps.
/// Error: kInvalidArgument for one without an end, or with a negative step.
Result<std::vector<StepRange>> step_ranges(const IntSet& steps, std::optional<uint64_t>* count);

/// The bytes of a tensor's elements; nullopt if the type or the shape is not known.
std::optional<uint64_t> bytes_of(const OutputType& type);

/// The configuration of msprobe for graphs of recorded calls.
Result<DumpPlan> plan_calls(std::span<const GraphPtr> graphs, std::span<const NodeRef> nodes, const DumpPlanOptions& options);

}  // namespace msdbg
