// Comparing without elements: by checksums, and by the statistics that both sides have.
#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/diff_parts.h"

namespace msdbg {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
/// statistic.csv has six digits.
constexpr double kLeastTolerance = 1e-5;

/// What is known of one side without its elements, or from them if only the other side has none.
std::optional<Stats> facts_of(Session& session, const TensorId& id) {
  if (auto given = session.given_statistics(id)) return given;
  if (session.can_step()) return std::nullopt;
  const StatsRow row = session.stats_row(id);
  return row.stats;
}

class Facts {
 public:
  Facts(const Stats& a, const Stats& b, CloseRequest tolerance) : a_(a), b_(b), tolerance_(tolerance) {}

  std::vector<StatisticPair> pairs() {
    presence("nan", kStatNan, a_.nan_count, b_.nan_count);
    presence("inf", kStatPosInf | kStatNegInf, a_.inf_count(), b_.inf_count());
    const double largest = both(kStatMin | kStatMax) ? std::max(std::fabs(b_.min), std::fabs(b_.max)) : std::fabs(b_.max);
    number("min", kStatMin, a_.min, b_.min, largest);
    number("max", kStatMax, a_.max, b_.max, largest);
    // The mean may be near zero: the size of the elements tells what is much.
    const double rms = b_.knows(kStatL2Norm) && b_.count > 0 ? b_.l2_norm / std::sqrt(static_cast<double>(b_.count)) : largest;
    number("mean", kStatMean, a_.mean, b_.mean, rms);
    number("l2_norm", kStatL2Norm, a_.l2_norm, b_.l2_norm, b_.l2_norm);
    return std::move(pairs_);
  }
  /// Of every statistic.
  bool agree() const { return agree_; }

 private:
  bool both(uint32_t fields) const { return a_.knows(fields) && b_.knows(fields); }
  void presence(std::string_view name, uint32_t fields, uint64_t in_a, uint64_t in_b) {
    // A count that is not known may still say that there is one.
    if ((!a_.knows(fields) && in_a == 0) || (!b_.knows(fields) && in_b == 0)) return;
    add({name, in_a > 0 ? 1.0 : 0.0, in_b > 0 ? 1.0 : 0.0, (in_a > 0) == (in_b > 0) ? 0 : kUnbounded}, 0);
  }
  void number(std::string_view name, uint32_t field, double in_a, double in_b, double scale) {
    if (!both(field)) return;
    const bool same = in_a == in_b || (std::isnan(in_a) && std::isnan(in_b));
    const double error = std::fabs(in_a - in_b);
    if (same) add({name, in_a, in_b, 0}, 0);
    else if (!std::isfinite(error)) add({name, in_a, in_b, kUnbounded}, 0);
    else add({name, in_a, in_b, scale > 0 ? error / scale : kUnbounded}, tolerance_.rtol + (scale > 0 ? tolerance_.atol / scale : 0));
  }
  void add(StatisticPair pair, double tolerance) {
    agree_ = agree_ && pair.error <= tolerance;
    pairs_.push_back(pair);
  }

  const Stats &a_, &b_;
  const CloseRequest tolerance_;
  std::vector<StatisticPair> pairs_;
  bool agree_ = true;
};

}  // namespace

bool compare_facts(Session& a, Session& b, const DiffOptions& options, TensorDiff& entry) {
  const std::string sum_a = a.checksum(entry.a), sum_b = b.checksum(entry.b);
  const bool sums = !sum_a.empty() && !sum_b.empty() && entry.dtype_a == entry.dtype_b &&
                    std::string_view(sum_a).substr(0, sum_a.find(' ')) == std::string_view(sum_b).substr(0, sum_b.find(' '));
  if (sums && sum_a == sum_b) {
    entry.evidence = DiffEvidence::kChecksum;
    entry.state = DiffState::kEqual;
    return true;
  }
  const auto facts_a = facts_of(a, entry.a), facts_b = facts_of(b, entry.b);
  bool agree = true;
  if (facts_a && facts_b) {
    const bool given = options.rtol || options.atol;
    CloseRequest tolerance = default_tolerance(entry.dtype_a, entry.dtype_b, entry.path);
    tolerance = given ? CloseRequest{options.rtol.value_or(0), options.atol.value_or(0)}
                      : CloseRequest{std::max(tolerance.rtol, kLeastTolerance), 0};
    entry.tolerance = tolerance;
    Facts facts(*facts_a, *facts_b, tolerance);
    entry.statistics = facts.pairs();
    agree = facts.agree();
  }
  if (sums) {
    entry.evidence = DiffEvidence::kChecksum;
    // Unequal bits of nearly equal values are rounding, as far as the statistics tell.
    entry.state = agree && !entry.statistics.empty() ? DiffState::kClose : DiffState::kDifferent;
    return true;
  }
  if (entry.statistics.empty()) return false;
  entry.evidence = DiffEvidence::kStatistics;
  entry.state = agree ? DiffState::kClose : DiffState::kDifferent;
  return true;
}

double TensorDiff::relative_error() const {
  if (evidence == DiffEvidence::kElements) return measures.relative_error();
  if (state == DiffState::kEqual) return 0;
  if (statistics.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::ranges::max_element(statistics, {}, &StatisticPair::error)->error;
}

}  // namespace msdbg
