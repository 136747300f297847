#include "analysis/cause_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/derivative.h"

namespace msdbg {
namespace {

/// An operator that has no finite result where this input is zero.
struct ZeroRule {
  std::string_view op;
  uint32_t slot;
  CauseKind kind;
  std::string_view what;
};
constexpr ZeroRule kZeroRules[] = {
    {"log", 0, CauseKind::kLogOfZero, "logarithm of 0"},
    {"div", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"realdiv", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"floordiv", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"truncatediv", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"mod", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"floormod", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"truncatemod", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"reciprocal", 0, CauseKind::kDivisionByZero, "division by 0"},
    {"inv", 0, CauseKind::kDivisionByZero, "division by 0"},
    {"rsqrt", 0, CauseKind::kDivisionByZero, "division by the square root of 0"},
    {"sqrtgrad", 0, CauseKind::kDivisionByZero, "division by the square root of 0"},
    // The whole derivative as one node, of the gradient and what the operator read.
    {"sqrt'", 1, CauseKind::kDivisionByZero, "division by the square root of 0"},
    {"rsqrt'", 1, CauseKind::kDivisionByZero, "division by the square root of 0"},
    {"log'", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"div'", 2, CauseKind::kDivisionByZero, "division by 0"},
};
constexpr std::string_view kProducts[] = {"matmul", "batchmatmul", "conv2d", "conv3d", "dense"};
constexpr std::string_view kSums[] = {"add", "addn", "tensoradd", "sub", "biasadd"};

/// exp(-x) is below the normal numbers of float32 from here on.
constexpr double kSmallestExponent = 87;

/// "104 -Inf", "3 NaN and 1 +Inf".
std::string bad_words(const Stats& stats) {
  std::string out;
  struct Bad {
    uint64_t count;
    StatField field;
    const char* word;
  };
  for (const Bad& bad : {Bad{stats.nan_count, kStatNan, "NaN"}, Bad{stats.neg_inf_count, kStatNegInf, "-Inf"},
                         Bad{stats.pos_inf_count, kStatPosInf, "+Inf"}}) {
    if (bad.count == 0) continue;
    // Statistics from a file may only tell that there are some.
    out += fmt::format("{}{} {}", out.empty() ? "" : " and ", stats.knows(bad.field) ? std::to_string(bad.count) : "some", bad.word);
  }
  return out;
}

double magnitude(const Stats& stats) { return std::max(std::abs(stats.min), std::abs(stats.max)); }

class Reasons {
 public:
  Reasons(const Session& session, const Origin& origin)
      : origin_(origin), unseen_(unseen_ranks(session, origin)),
        op_(to_lower(session.node(origin.tensor).op) + (is_whole_derivative(session.node(origin.tensor)) ? "'" : "")),
        grown_(changed_outside(origin) ? printable(session.node(origin.grown.front().parameter).name) : ""), limit_(dtype_max(origin.info.dtype)) {}

  Reason reason() const {
    const std::string bad = bad_words(origin_.stats);
    if (origin_.kind == OriginKind::kInput || origin_.kind == OriginKind::kUnrecorded) {
      const std::string of = counts_known() ? fmt::format(" of {}", origin_.stats.count) : "";
      return {CauseKind::kBadInput, bad.empty() ? "it came in bad" : fmt::format("it came in with {}{}", bad, of), ""};
    }
    if (origin_.kind == OriginKind::kParameter)
      return {CauseKind::kBadParameter, fmt::format("it already held {}", bad.empty() ? "bad values" : bad), ""};
    if (!unseen_.empty()) {
      // A sum of good values can overflow; it is never NaN.
      const std::string_view overflow = origin_.stats.nan_count > 0 ? "" : ", or the sum overflows";
      return {CauseKind::kUnknown, fmt::format("{} from another rank{}: {}", bad.empty() ? "bad values" : bad, overflow, unseen_), ""};
    }
    if (changed_outside(origin_)) {
      const Grown& most = origin_.grown.front();
      return {CauseKind::kUnknown, fmt::format("{}, after something outside of the graph changed {}", bad.empty() ? "bad" : bad, grown_),
              fmt::format("up to {}, {} after step {}", format_short(most.largest), format_short(most.before), most.parameter.step)};
    }
    if (!bad.empty()) {
      if (Reason found = zero(); found.kind != CauseKind::kUnknown) return found;
      if (Reason found = negative(); found.kind != CauseKind::kUnknown) return found;
      if (Reason found = underflow(); found.evidence.size() > 0) return found;
      if (Reason found = overflow(); origin_.certain && found.kind != CauseKind::kUnknown) return found;
    }
    return {CauseKind::kUnknown,
            fmt::format("{}{}", bad.empty() ? "bad" : bad, origin_.certain ? " from sound inputs" : ", as far as its inputs are known"),
            ""};
  }

 private:
  /// Right before the step; what made a weight large in an earlier step may be its update.
  static bool changed_outside(const Origin& origin) { return !origin.grown.empty() && !origin.grown.front().since; }

  bool counts_known() const { return origin_.stats.knows(kStatNan | kStatPosInf | kStatNegInf); }

  /// The values that the operator took, where they are known and finite.
  const Stats* input(uint32_t slot) const {
    const auto found = std::find_if(origin_.inputs.begin(), origin_.inputs.end(), [&](const OriginInput& in) { return in.slot == slot; });
    if (found == origin_.inputs.end() || found->state != InputState::kGood || !found->stats) return nullptr;
    return is_float(found->stats->dtype) && found->stats->knows(kStatMin | kStatMax) ? &*found->stats : nullptr;
  }

  Reason zero() const {
    const auto rule = std::find_if(std::begin(kZeroRules), std::end(kZeroRules), [&](const ZeroRule& each) { return each.op == op_; });
    if (rule == std::end(kZeroRules)) return {};
    const Stats* const stats = input(rule->slot);
    if (stats == nullptr || !stats->knows(kStatZero) || stats->zero_count == 0) return {};
    const bool same = std::any_of(origin_.inputs.begin(), origin_.inputs.end(),
                                  [&](const OriginInput& in) { return in.slot == rule->slot && in.zeros_at_bad; });
    return {rule->kind, std::string(rule->what),
            fmt::format("{} {} in input:{}{}", stats->zero_count, stats->zero_count == 1 ? "zero" : "zeros", rule->slot,
                        same ? ", at the same places" : "")};
  }

  Reason negative() const {
    const bool log = op_ == "log";
    const Stats* const stats = log || op_ == "sqrt" || op_ == "rsqrt" ? input(0) : nullptr;
    if (stats == nullptr || !(stats->min < 0) || origin_.stats.nan_count == 0) return {};
    return {log ? CauseKind::kLogOfNegative : CauseKind::kRootOfNegative,
            log ? "logarithm of a negative number" : "square root of a negative number",
            fmt::format("input:0 goes down to {}", format_short(stats->min))};
  }

  /// Kernels that take the logarithm of a probability which float32 rounds to 0.
  Reason underflow() const {
    const Stats* const logits = op_.find("softmaxcrossentropy") != std::string::npos ? input(0) : nullptr;
    if (logits == nullptr || origin_.stats.pos_inf_count == 0 || !(logits->max - logits->min > kSmallestExponent)) return {};
    return {CauseKind::kUnknown, "a probability became 0 in the loss",
            fmt::format("logits from {} to {}", format_short(logits->min), format_short(logits->max))};
  }

  Reason overflow() const {
    const std::string type(dtype_name(origin_.info.dtype));
    const Stats* const first = input(0);
    if (!(limit_ > 0) || first == nullptr) return {};
    const double a = magnitude(*first);
    const auto ends = [&](const std::string& inputs) { return fmt::format("{}, {} ends at {}", inputs, type, format_short(limit_)); };
    const std::string one = fmt::format("input up to {}", format_short(a));
    if (op_ == "cast" && a > limit_) return {CauseKind::kCastOverflow, "overflow of a cast to " + type, ends(one)};
    if ((op_ == "exp" || op_ == "expm1") && first->max > std::log(limit_))
      return {CauseKind::kExpOverflow, "overflow of an exponential", ends(one)};
    if (op_ == "square" && a * a > limit_) return {CauseKind::kProductOverflow, "overflow of a product", ends(one)};
    // A sum of n terms is at most n times the largest; where even that fits, something else happened.
    const Stats* const second = input(1);
    const double b = second == nullptr ? 0 : magnitude(*second);
    const bool product = std::any_of(std::begin(kProducts), std::end(kProducts), [&](std::string_view op) { return op_.starts_with(op); });
    if ((product || op_ == "mul") && second != nullptr) {
      const auto terms = product ? static_cast<double>(std::min(first->count, second->count)) : 1.0;
      if (a * b * terms > limit_)
        return {CauseKind::kProductOverflow, "overflow of a product",
                ends(fmt::format("inputs up to {} and {}", format_short(a), format_short(b)))};
    }
    const bool of_elements = op_ == "reducesum" || op_ == "biasaddgrad" || op_ == "cumsum";
    if (!of_elements && std::find(std::begin(kSums), std::end(kSums), op_) == std::end(kSums)) return {};
    double most = of_elements ? a * static_cast<double>(first->count) : 0;
    for (const OriginInput& each : origin_.inputs) {
      const Stats* const stats = of_elements ? nullptr : input(each.slot);
      if (stats != nullptr) most += magnitude(*stats);
    }
    return most > limit_ ? Reason{CauseKind::kSumOverflow, "overflow of a sum", ends(one)} : Reason{};
  }

  const Origin& origin_;
  const std::string unseen_, op_, grown_;
  const double limit_;
};

}  // namespace

std::string_view cause_kind_name(CauseKind kind) {
  switch (kind) {
    case CauseKind::kUnknown: return "unknown";
    case CauseKind::kLogOfZero: return "log_of_zero";
    case CauseKind::kLogOfNegative: return "log_of_negative";
    case CauseKind::kRootOfNegative: return "root_of_negative";
    case CauseKind::kDivisionByZero: return "division_by_zero";
    case CauseKind::kCastOverflow: return "cast_overflow";
    case CauseKind::kProductOverflow: return "product_overflow";
    case CauseKind::kSumOverflow: return "sum_overflow";
    case CauseKind::kExpOverflow: return "exp_overflow";
    case CauseKind::kBadInput: return "bad_input";
    case CauseKind::kBadParameter: return "bad_parameter";
    case CauseKind::kRateZero: return "rate_zero";
    case CauseKind::kRateTooLarge: return "rate_too_large";
    case CauseKind::kDeadUnits: return "dead_units";
    case CauseKind::kVanishing: return "vanishing";
    case CauseKind::kLossScale: return "loss_scale";
    case CauseKind::kReplica: return "replica";
  }
  return "unknown";
}

Reason reason_of(const Session& session, const Origin& origin) { return Reasons(session, origin).reason(); }

}  // namespace msdbg
