#include "expr/stats_source.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace msdbg::expr {
namespace {

using Part = StatsCount::Part;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargest = std::numeric_limits<double>::max();
constexpr uint32_t kSpecials = kStatCount | kStatNan | kStatPosInf | kStatNegInf;

double below(double value) { return std::nextafter(value, -kInf); }
double above(double value) { return std::nextafter(value, kInf); }

Part opposite(Part part) {
  // Each part is adjacent to its complement.
  return static_cast<Part>(static_cast<int>(part) ^ 1);
}

/// The finite elements for which `x op limit` holds.
void finite_part(Op op, double limit, StatsCount* out) {
  const auto range = [&](double low, double high) {
    out->part = Part::kRange;
    out->range = {low, high};
  };
  if (limit == 0) {
    switch (op) {
      case Op::kLess: out->part = Part::kNeg; return;
      case Op::kLessEqual: out->part = Part::kNotPos; return;
      case Op::kGreater: out->part = Part::kPos; return;
      case Op::kGreaterEqual: out->part = Part::kNotNeg; return;
      case Op::kEqual: out->part = Part::kZero; return;
      default: out->part = Part::kNonZero; return;
    }
  }
  switch (op) {
    case Op::kLess: return range(-kLargest, below(limit));
    case Op::kLessEqual: return range(-kLargest, limit);
    case Op::kGreater: return range(above(limit), kLargest);
    case Op::kGreaterEqual: return range(limit, kLargest);
    default: break;
  }
  range(limit, limit);
  if (op == Op::kNotEqual) out->part = Part::kNotRange;
}

/// The same for `abs(x) op limit`; false if a single range cannot express it.
bool finite_part_of_magnitude(Op op, double limit, StatsCount* out) {
  const bool greater = op == Op::kGreater || op == Op::kGreaterEqual;
  if (limit == 0 && (op == Op::kEqual || op == Op::kLessEqual)) {
    out->part = Part::kZero;
  } else if (limit == 0 && (op == Op::kNotEqual || op == Op::kGreater)) {
    out->part = Part::kNonZero;
  } else if (op == Op::kEqual || op == Op::kNotEqual) {
    return false;
  } else if (limit <= 0) {
    out->part = greater ? Part::kFinite : Part::kNone;
  } else {
    const double end = op == Op::kLess || op == Op::kGreaterEqual ? below(limit) : limit;
    out->part = greater ? Part::kNotRange : Part::kRange;
    out->range = {-end, end};
  }
  return true;
}

std::optional<StatsCount> find_count(const Dag& dag, NodeId truth) {
  const DagNode& node = dag[truth];
  if (node.op == Op::kNot) {
    std::optional<StatsCount> inner = find_count(dag, node.a);
    return inner ? std::optional(inner->complement()) : std::nullopt;
  }
  const bool magnitude = dag.is(node.a, Op::kAbs);
  if (!dag.is(magnitude ? dag[node.a].a : node.a, Op::kX)) return std::nullopt;
  StatsCount count;
  if (node.op == Op::kIsNan) {
    count.nan = true;
  } else if (node.op == Op::kIsInf) {
    count.pos_inf = count.neg_inf = true;
  } else if (node.op == Op::kIsFinite) {
    count.part = Part::kFinite;
  } else if (is_comparison(node.op) && dag.is(node.b, Op::kNumber)) {
    const double limit = dag[node.b].value;
    if (!std::isfinite(limit)) return std::nullopt;
    if (magnitude) {
      if (!finite_part_of_magnitude(node.op, limit, &count)) return std::nullopt;
    } else {
      finite_part(node.op, limit, &count);
    }
    count.nan = apply(node.op, kNan, limit) != 0;
    count.pos_inf = apply(node.op, kInf, limit) != 0;
    count.neg_inf = apply(node.op, magnitude ? kInf : -kInf, limit) != 0;
  } else {
    return std::nullopt;
  }
  return count;
}

uint32_t fields_of(const StatsCount& count) {
  switch (count.part) {
    case Part::kNone:
    case Part::kFinite: return kSpecials;
    case Part::kZero:
    case Part::kNonZero: return kSpecials | kStatZero;
    case Part::kPos:
    case Part::kNotPos: return kSpecials | kStatPos;
    case Part::kNeg:
    case Part::kNotNeg: return kSpecials | kStatNeg;
    case Part::kRange:
    case Part::kNotRange: break;
  }
  return kSpecials | kStatRanges;
}

uint64_t finite_hits(const StatsCount& count, const Stats& stats, const StatsRequest& request) {
  const uint64_t all = stats.finite_count();
  uint64_t hits = 0;
  switch (count.part) {
    case Part::kNone:
    case Part::kFinite: break;
    case Part::kZero:
    case Part::kNonZero: hits = stats.zero_count; break;
    case Part::kPos:
    case Part::kNotPos: hits = stats.pos_count; break;
    case Part::kNeg:
    case Part::kNotNeg: hits = stats.neg_count; break;
    case Part::kRange:
    case Part::kNotRange: {
      const auto at = std::find(request.ranges.begin(), request.ranges.end(), count.range);
      MSDBG_CHECK(at != request.ranges.end());
      hits = stats.range_counts[static_cast<size_t>(at - request.ranges.begin())];
      break;
    }
  }
  return static_cast<int>(count.part) % 2 == 0 ? hits : all - hits;
}

/// The sum from which `mean` was computed. Of the doubles that give this mean, prefers an integer: sums of counts and flags are
/// compared with ==.
double sum_from_mean(double mean, uint64_t n) {
  if (n == 0) return 0;
  const auto count = static_cast<double>(n);
  const double sum = mean * count, whole = std::nearbyint(sum);
  return whole / count == mean ? whole : sum;
}

}  // namespace

StatsCount StatsCount::complement() const {
  StatsCount result = *this;
  result.part = opposite(part);
  result.nan = !nan;
  result.pos_inf = !pos_inf;
  result.neg_inf = !neg_inf;
  return result;
}

double from_count(Op op, uint64_t hits, uint64_t considered) {
  switch (op) {
    case Op::kAny: return hits > 0;
    case Op::kAll: return hits == considered;
    case Op::kCount: return static_cast<double>(hits);
    default: return static_cast<double>(hits) * 100.0 / static_cast<double>(considered);
  }
}

double StatsSource::value(const Stats& stats, const StatsRequest& request) const {
  const uint64_t finite_count = stats.finite_count();
  if (counts_truth(op)) {
    uint64_t hits = finite_hits(count, stats, request);
    if (finite) return from_count(op, hits, finite_count);
    if (count.nan) hits += stats.nan_count;
    if (count.pos_inf) hits += stats.pos_inf_count;
    if (count.neg_inf) hits += stats.neg_inf_count;
    return from_count(op, hits, stats.count);
  }
  const bool nan = !finite && stats.nan_count > 0;
  const bool pos_inf = !finite && stats.pos_inf_count > 0, neg_inf = !finite && stats.neg_inf_count > 0;
  const bool of_magnitude = magnitude || op == Op::kNorm1 || op == Op::kNorm2 || op == Op::kNormInf;
  if (op == Op::kMinOf) return neg_inf ? -kInf : finite_count > 0 || !pos_inf ? stats.min : kInf;
  if (op == Op::kMaxOf && !magnitude) return pos_inf ? kInf : finite_count > 0 || !neg_inf ? stats.max : -kInf;
  if (op == Op::kMaxOf) {
    if (pos_inf || neg_inf) return kInf;
    return finite_count > 0 ? std::max(std::fabs(stats.min), std::fabs(stats.max)) : kNan;
  }
  if (nan || (op == Op::kStd && (pos_inf || neg_inf))) return kNan;
  if (pos_inf || neg_inf) {
    if (of_magnitude) return kInf;
    return pos_inf && neg_inf ? kNan : pos_inf ? kInf : -kInf;
  }
  switch (op) {
    case Op::kSum: return sum_from_mean(stats.mean, finite_count);
    case Op::kNorm1: return sum_from_mean(stats.abs_mean, finite_count);
    case Op::kMean: return magnitude ? stats.abs_mean : stats.mean;
    case Op::kStd: return stats.std;
    case Op::kNorm2: return stats.l2_norm;
    default: return finite_count > 0 ? std::max(std::fabs(stats.min), std::fabs(stats.max)) : 0;
  }
}

std::optional<StatsSource> find_stats_source(const Dag& dag, NodeId reduction) {
  const DagNode& node = dag[reduction];
  StatsSource source;
  source.op = node.op;
  if (node.mask != kNoNode) {
    if (!dag.is(node.mask, Op::kIsFinite) || !dag.is(dag[node.mask].a, Op::kX)) return std::nullopt;
    source.finite = true;
  }
  if (counts_truth(node.op)) {
    const std::optional<StatsCount> count = find_count(dag, node.a);
    if (!count) return std::nullopt;
    source.count = *count;
    source.fields = fields_of(*count);
    return source;
  }
  source.magnitude = dag.is(node.a, Op::kAbs);
  if (!dag.is(source.magnitude ? dag[node.a].a : node.a, Op::kX)) return std::nullopt;
  switch (node.op) {
    case Op::kSum: source.fields = kStatMean; break;
    case Op::kNorm1: source.fields = kStatAbsMean; break;
    case Op::kMean: source.fields = source.magnitude ? kStatAbsMean : kStatMean; break;
    case Op::kMinOf:
      if (source.magnitude) return std::nullopt;
      source.fields = kStatMin;
      break;
    case Op::kMaxOf: source.fields = source.magnitude ? kStatMin | kStatMax : kStatMax; break;
    case Op::kStd:
      if (source.magnitude) return std::nullopt;
      source.fields = kStatStd;
      break;
    case Op::kNorm2: source.fields = kStatL2Norm; break;
    default: source.fields = kStatMin | kStatMax; break;
  }
  source.fields |= kSpecials;
  return source;
}

}  // namespace msdbg::expr
