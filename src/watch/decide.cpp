// Decides from finished statistics. Definitions: docs/conditions.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "msdbg/condition_numbers.h"
#include "msdbg/watch.h"

namespace msdbg {
namespace {

constexpr uint32_t kBadFields = kStatNan | kStatPosInf | kStatNegInf;
constexpr std::string_view kNoTensorData = "no tensor data (statistics only)";

bool is_overflow(const ConditionSpec& spec) {
  using namespace condition_number;
  return spec.enumerator == kNan || spec.enumerator == kInf || spec.enumerator == kTensorOverflow;
}
bool is_change(const ConditionSpec& spec) {
  using namespace condition_number;
  return spec.enumerator == kChangeTooLarge || spec.enumerator == kChangeTooSmall;
}

/// `max_min_gt` -> {"max_min", "gt"}. Old conditions have statistic and direction in their own name.
struct Comparison {
  std::string_view statistic, direction;
};
Comparison comparison_of(const ConditionSpec& spec, std::string_view param) {
  const std::string_view name = param == "param" ? spec.id : param;
  const size_t cut = name.rfind('_');
  return {name.substr(0, cut), name.substr(cut + 1)};
}

bool compare(double actual, std::string_view direction, double threshold) {
  if (direction == "gt") return actual > threshold;
  if (direction == "lt") return actual < threshold;
  if (direction == "ge") return actual >= threshold;
  return direction == "le" && actual <= threshold;
}

/// A missing bound is infinite; without both there is no range to count in.
std::optional<RangeRequest> range_of(const Condition& condition) {
  const std::optional<double> start = condition.param("range_start_inclusive");
  const std::optional<double> end = condition.param("range_end_inclusive");
  if (!start && !end) return std::nullopt;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return RangeRequest{start.value_or(-kInfinity), end.value_or(kInfinity)};
}

bool wants_percentage(const Condition& condition) {
  return condition.param("range_percentage_lt") || condition.param("range_percentage_gt");
}

CloseRequest close_of(const Condition& condition) {
  return {condition.param("rtol").value_or(1e-5), condition.param("atol").value_or(1e-8)};
}

uint32_t fields_of(std::string_view statistic) {
  if (statistic == "max") return kStatMax;
  if (statistic == "min") return kStatMin;
  if (statistic == "max_min") return kStatMax | kStatMin;
  if (statistic == "mean") return kStatMean;
  if (statistic == "abs_mean") return kStatAbsMean;
  if (statistic == "sd") return kStatStd;
  if (statistic == "zero_percentage") return kStatCount | kStatZero;
  if (statistic == "range_percentage") return kStatCount | kStatRanges;
  return kStatChange;
}

/// The index of `wanted` in `have`; the caller requested it, so it is missing only in statistics from a file.
template <typename T>
std::optional<size_t> index_of(const std::vector<T>& have, const T& wanted) {
  auto it = std::find(have.begin(), have.end(), wanted);
  return it == have.end() ? std::nullopt : std::optional(static_cast<size_t>(it - have.begin()));
}

class Judge {
 public:
  Judge(const Condition& condition, const Stats& stats, const StatsRequest& request, Previous previous,
        Semantics semantics, int64_t steps)
      : condition_(condition),
        spec_(*condition.spec),
        stats_(stats),
        request_(request),
        previous_(previous),
        steps_(static_cast<double>(steps)),
        compat_(semantics == Semantics::kCompat) {
    for (const ParamSpec& param : spec_.params) {
      if (const std::optional<double> value = condition.param(param.name)) {
        decision_.params.push_back({std::string(param.name), *value, std::nullopt, false});
      }
    }
  }

  Decision run() {
    if (stats_.knows(kStatCount) && stats_.count == 0) return decision_;
    if (spec_.enumerator == condition_number::kOperatorOverflow)
      return not_checked("overflow flags of the hardware are not part of the tensor");
    if (is_overflow(spec_)) return overflow();
    if (const uint32_t code = error_code(); code != 0) return failed(code);
    if (spec_.needs_previous && previous_ == Previous::kSizeDiffers) {
      return not_checked("previous value has another number of elements");
    }
    if (!stats_.knows(needed_fields(condition_, compat_ ? Semantics::kCompat : Semantics::kFinite))) {
      return not_checked(kNoTensorData);
    }
    if (!compat_ && stats_.finite_count() == 0) return not_checked("no finite element");
    if (spec_.enumerator == condition_number::kNotChanged) return unchanged();
    if (is_change(spec_)) {
      if (compat_ && stats_.prev_nonfinite_count > 0) return not_checked("NaN or Inf in the previous value");
      if (stats_.pairs == 0) return not_checked("no element is finite in this and the previous step");
    }
    return thresholds();
  }

 private:
  Decision not_checked(std::string_view reason) {
    decision_.verdict = Verdict::kNotChecked;
    decision_.reason = reason;
    return decision_;
  }

  Decision failed(uint32_t code) {
    decision_.error_code = code;
    const std::string_view bad = (code & 3) == 3      ? "NaN and Inf"
                                 : (code & kErrorNan) ? "NaN"
                                 : (code & kErrorInf) ? "Inf"
                                                      : "";
    std::string reason;
    if (!bad.empty()) reason = fmt::format("{} in the tensor (semantics compat)", bad);
    for (const std::string& text : error_texts(code & ~uint32_t{kErrorNan | kErrorInf})) {
      if (!reason.empty()) reason += "; ";
      reason += text;
    }
    return not_checked(reason);
  }

  uint32_t error_code() const {
    uint32_t code = 0;
    if (compat_) {
      if (stats_.nan_count > 0) code |= kErrorNan;
      if (stats_.inf_count() > 0) code |= kErrorInf;
    }
    if (spec_.needs_previous) {
      if (previous_ == Previous::kMissing) code |= kErrorNoPrevious;
      if (previous_ == Previous::kNoHistory) code |= kErrorNoPrevious | kErrorNoHistory;
    }
    return code;
  }

  Decision overflow() {
    uint64_t bad = 0;
    if (spec_.enumerator != condition_number::kInf) bad += stats_.nan_count;
    if (spec_.enumerator != condition_number::kNan) bad += stats_.inf_count();
    // One NaN decides, even if a statistics file does not count the other values.
    if (bad == 0 && !stats_.knows(needed_fields(condition_, Semantics::kCompat))) return not_checked(kNoTensorData);
    if (bad > 0) decision_.verdict = Verdict::kHit;
    return decision_;
  }

  Decision unchanged() {
    const std::optional<size_t> place = index_of(request_.close, close_of(condition_));
    if (!place || *place >= stats_.close_counts.size()) return not_checked(kNoTensorData);
    // A pair with a NaN or Inf in the previous value is never close.
    const uint64_t wanted = compat_ ? stats_.count : stats_.pairs;
    if (wanted > 0 && stats_.close_counts[*place] == wanted) decision_.verdict = Verdict::kHit;
    return decision_;
  }

  Decision thresholds() {
    for (ParamResult& result : decision_.params) {
      auto param = std::find_if(spec_.params.begin(), spec_.params.end(),
                                [&](const ParamSpec& p) { return p.name == result.name; });
      if (param->kind != ParamKind::kCheck) continue;
      const Comparison comparison = comparison_of(spec_, result.name);
      result.actual = actual(comparison.statistic);
      if (result.actual && is_change(spec_) && comparison.direction == "gt") *result.actual /= steps_;
      result.hit = result.actual && compare(*result.actual, comparison.direction, result.threshold);
      if (result.hit) decision_.verdict = Verdict::kHit;
    }
    return decision_;
  }

  std::optional<double> actual(std::string_view statistic) const {
    if (statistic == "max") return stats_.max;
    if (statistic == "min") return stats_.min;
    if (statistic == "max_min") return stats_.max - stats_.min;
    if (statistic == "mean") return stats_.mean;
    if (statistic == "abs_mean") return stats_.abs_mean;
    if (statistic == "sd") return stats_.std;
    if (statistic == "zero_percentage") return percentage(stats_.zero_count);
    if (statistic == "abs_mean_update_ratio") {
      return stats_.diff_abs_mean / (stats_.prev_abs_mean + condition_.param("epsilon").value_or(1e-9));
    }
    const std::optional<RangeRequest> range = range_of(condition_);
    if (!range) return std::nullopt;
    const std::optional<size_t> place = index_of(request_.ranges, *range);
    if (!place || *place >= stats_.range_counts.size()) return std::nullopt;
    return percentage(stats_.range_counts[*place]);
  }

  /// The percentage of judged elements: all of them in compat (where all are finite), otherwise the finite ones.
  double percentage(uint64_t part) const {
    return static_cast<double>(part) * 100.0 / static_cast<double>(compat_ ? stats_.count : stats_.finite_count());
  }

  const Condition& condition_;
  const ConditionSpec& spec_;
  const Stats& stats_;
  const StatsRequest& request_;
  const Previous previous_;
  const double steps_;
  const bool compat_;
  Decision decision_;
};

}  // namespace

void add_needs(const Condition& condition, StatsRequest& request) {
  if (condition.spec->enumerator == condition_number::kNotChanged) {
    const CloseRequest close = close_of(condition);
    if (!index_of(request.close, close)) request.close.push_back(close);
  }
  if (is_change(*condition.spec)) request.change = true;
  if (const std::optional<RangeRequest> range = range_of(condition); range && wants_percentage(condition)) {
    if (!index_of(request.ranges, *range)) request.ranges.push_back(*range);
  }
}

uint32_t needed_fields(const Condition& condition, Semantics semantics) {
  const ConditionSpec& spec = *condition.spec;
  switch (spec.enumerator) {
    case condition_number::kOperatorOverflow:
      return 0;
    case condition_number::kNan:
      return kStatNan;
    case condition_number::kInf:
      return kStatPosInf | kStatNegInf;
    case condition_number::kTensorOverflow:
      return kBadFields;
    case condition_number::kNotChanged:
      return kBadFields | kStatChange;
    default:
      break;
  }
  uint32_t fields =
      semantics == Semantics::kCompat || condition.param("zero_percentage_ge") || wants_percentage(condition)
          ? kBadFields
          : 0;
  for (const ParamSpec& param : spec.params) {
    if (param.kind != ParamKind::kCheck || !condition.param(param.name)) continue;
    if (param.unit == "percent" && spec.enumerator == 21 && !range_of(condition)) continue;
    fields |= fields_of(comparison_of(spec, param.name).statistic);
  }
  return fields;
}

Decision decide(const Condition& condition, const Stats& stats, const StatsRequest& request, Previous previous,
                Semantics semantics, int64_t steps) {
  return Judge(condition, stats, request, previous, semantics, steps).run();
}

}  // namespace msdbg
