// Reductions that the statistics pass has computed already. Private to the module.
#pragma once

#include <optional>

#include "expr/dag.h"
#include "msdbg/simd.h"

namespace msdbg::expr {

/// Which elements a truth value of x holds for: a subset of the finite ones, and whether it holds for the others.
struct StatsCount {
  enum class Part : uint8_t { kNone, kFinite, kZero, kNonZero, kPos, kNotPos, kNeg, kNotNeg, kRange, kNotRange };
  Part part = Part::kNone;
  RangeRequest range = {0, 0};
  bool nan = false, pos_inf = false, neg_inf = false;

  StatsCount complement() const;
};

/// How the statistics give the value of one reduction over x or abs(x).
struct StatsSource {
  Op op = Op::kAny;     ///< the reduction
  bool magnitude = false;  ///< of abs(x)
  bool finite = false;     ///< over the finite elements only
  StatsCount count;        ///< of any, all, count, percent
  uint32_t fields = 0;     ///< bits of StatField it takes

  bool counts_range() const {
    return counts_truth(op) && (count.part == StatsCount::Part::kRange || count.part == StatsCount::Part::kNotRange);
  }
  double value(const Stats& stats, const StatsRequest& request) const;
};

/// nullopt when the statistics do not know it.
std::optional<StatsSource> find_stats_source(const Dag& dag, NodeId reduction);

/// Shared by both ways to count: what any, all, count and percent make of `hits` among `considered` elements.
double from_count(Op op, uint64_t hits, uint64_t considered);

}  // namespace msdbg::expr
