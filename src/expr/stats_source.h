// Finds reductions that the statistics pass has already computed. Private to the module.
#pragma once

#include <optional>

#include "expr/dag.h"
#include "msdbg/simd.h"

namespace msdbg::expr {

/// The elements for which a truth value of x holds: a subset of the finite ones, and whether it holds for the others.
struct StatsCount {
  enum class Part : uint8_t { kNone, kFinite, kZero, kNonZero, kPos, kNotPos, kNeg, kNotNeg, kRange, kNotRange };
  Part part = Part::kNone;
  RangeRequest range = {0, 0};
  bool nan = false, pos_inf = false, neg_inf = false;

  StatsCount complement() const;
};

/// How to get the value of one reduction over x or abs(x) from the statistics.
struct StatsSource {
  Op op = Op::kAny;     ///< the reduction
  bool magnitude = false;  ///< over abs(x)
  bool finite = false;     ///< over the finite elements only
  StatsCount count;        ///< for any, all, count, percent
  uint32_t fields = 0;     ///< required bits of StatField

  bool counts_range() const {
    return counts_truth(op) && (count.part == StatsCount::Part::kRange || count.part == StatsCount::Part::kNotRange);
  }
  double value(const Stats& stats, const StatsRequest& request) const;
};

/// nullopt if the statistics do not contain it.
std::optional<StatsSource> find_stats_source(const Dag& dag, NodeId reduction);

/// The value of any, all, count or percent for `hits` among `considered` elements; shared by both ways to count.
double from_count(Op op, uint64_t hits, uint64_t considered);

}  // namespace msdbg::expr
