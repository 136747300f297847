#include "analysis/cause_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

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
    {"log2", 0, CauseKind::kLogOfZero, "logarithm of 0"},
    {"log10", 0, CauseKind::kLogOfZero, "logarithm of 0"},
    {"xlogy", 1, CauseKind::kLogOfZero, "logarithm of 0"},
    {"div", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"realdiv", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"floordiv", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"truncatediv", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"mod", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"floormod", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"truncatemod", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"fmod", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"remainder", 1, CauseKind::kDivisionByZero, "division by 0"},
    {"addcdiv", 2, CauseKind::kDivisionByZero, "division by 0"},
    {"addcdivext", 2, CauseKind::kDivisionByZero, "division by 0"},
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

/// An operator that is NaN where input 0 is outside of an interval.
struct DomainRule {
  std::string_view op;
  double low, high;
  CauseKind kind;
  std::string_view outside;
  CauseKind end_kind = CauseKind::kUnknown;
  std::string_view at_end = "";  ///< where it is infinite at an end of the interval, and no ZeroRule says so
};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::string_view kNegativeLog = "logarithm of a negative number", kNegativeRoot = "square root of a negative number";
constexpr DomainRule kDomains[] = {
    {"log", 0, kInf, CauseKind::kLogOfNegative, kNegativeLog},
    {"log2", 0, kInf, CauseKind::kLogOfNegative, kNegativeLog},
    {"log10", 0, kInf, CauseKind::kLogOfNegative, kNegativeLog},
    {"log1p", -1, kInf, CauseKind::kLogOfNegative, kNegativeLog, CauseKind::kLogOfZero, "logarithm of 0"},
    {"sqrt", 0, kInf, CauseKind::kRootOfNegative, kNegativeRoot},
    {"rsqrt", 0, kInf, CauseKind::kRootOfNegative, kNegativeRoot},
    {"pow", 0, kInf, CauseKind::kOutOfDomain, "fractional power of a negative number"},
    {"powtensorscalar", 0, kInf, CauseKind::kOutOfDomain, "fractional power of a negative number"},
    {"asin", -1, 1, CauseKind::kOutOfDomain, "arcsine of a number outside -1 to 1"},
    {"acos", -1, 1, CauseKind::kOutOfDomain, "arccosine of a number outside -1 to 1"},
    {"acosh", 1, kInf, CauseKind::kOutOfDomain, "inverse hyperbolic cosine of a number below 1"},
    {"atanh", -1, 1, CauseKind::kOutOfDomain, "inverse hyperbolic tangent of a number outside -1 to 1", CauseKind::kOutOfDomain,
     "inverse hyperbolic tangent of 1 or -1"},
    {"erfinv", -1, 1, CauseKind::kOutOfDomain, "inverse error function of a number outside -1 to 1", CauseKind::kOutOfDomain,
     "inverse error function of 1 or -1"},
    {"logit", 0, 1, CauseKind::kOutOfDomain, "logit of a number outside 0 to 1", CauseKind::kOutOfDomain, "logit of 0 or 1"},
};
constexpr ProductRule kProducts[] = {
    {"mul", 0, 1, false},        {"muls", 0, 1, false},  {"addcmul", 1, 2, false}, {"addcmulext", 1, 2, false}, {"mm", 0, 1, true},
    {"bmm", 0, 1, true},         {"mv", 0, 1, true},     {"dot", 0, 1, true},      {"vdot", 0, 1, true},        {"linear", 0, 1, true},
    {"convolution", 0, 1, true}, {"addmm", 1, 2, true},  {"addmv", 1, 2, true},    {"addbmm", 1, 2, true},      {"baddbmm", 1, 2, true},
};
constexpr std::string_view kProductFamilies[] = {"matmul", "batchmatmul", "conv1d", "conv2d", "conv3d", "dense"};  // and names that begin so
constexpr std::string_view kSumsOfElements[] = {"reducesum", "biasaddgrad", "cumsum", "cumsumext",  "sum",
                                                "sumext",    "nansum",      "mean",   "reducemean", "meanext"};
constexpr std::string_view kNorms[] = {"norm", "linalg_vector_norm", "linalgvectornorm", "lpnorm", "lpnormv2"};
constexpr std::string_view kProductsOfElements[] = {"prod", "cumprod", "reduceprod", "prodext"};
constexpr std::string_view kNormalizations[] = {"layernorm", "layer_norm", "groupnorm", "group_norm", "batchnorm", "batch_norm", "instancenorm",
                                                "instance_norm"};  // parts of names
constexpr std::string_view kSquares[] = {"square", "mse_loss", "mseloss", "mselossext"};
constexpr std::string_view kDeviations[] = {"std", "var", "std_mean", "var_mean", "stdmean", "varmean", "reducestd"};
constexpr std::string_view kSameElements[] = {"t",          "transpose", "transposeview", "permute",    "view",   "_unsafe_view", "viewas",
                                              "reshape",    "detach",    "alias",         "clone",      "copy",   "contiguous",   "expand",
                                              "expanddims", "slice",     "select",        "narrow",     "split",  "unsqueeze",    "squeeze",
                                              "flatten",    "_to_copy",  "cast",          "as_strided", "asstrided"};
constexpr std::string_view kLabelLosses[] = {"nll_loss_forward", "nll_loss2d_forward", "nllloss", "nllloss2d"};
constexpr std::string_view kSums[] = {"add", "addext", "addn", "tensoradd", "sub", "subext", "biasadd", "hypot"};

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

}  // namespace

double largest_magnitude(const Stats& stats) { return std::max(std::abs(stats.min), std::abs(stats.max)); }

bool changed_outside(const Origin& origin) {
  if (origin.grown.empty()) return false;
  const Grown& most = origin.grown.front();
  return !most.since || (most.at_begin && *most.since == origin.tensor.step);
}

namespace {

class Reasons {
 public:
  Reasons(const Session& session, const Origin& origin)
      : origin_(origin), unseen_(unseen_ranks(session, origin)),
        op_(to_lower(session.node(origin.tensor).op) + (is_whole_derivative(session.node(origin.tensor)) ? "'" : "")),
        part_of_(origin.part_of ? session.node(*origin.part_of).name : ""),
        grown_(changed_outside(origin) ? grown_name(session, origin.grown.front()) : ""), limit_(dtype_max(origin.info.dtype)) {}

  Reason reason() const {
    const std::string bad = bad_words(origin_.stats);
    if (origin_.part_of) {
      return {CauseKind::kBadParameter,
              fmt::format("this rank's part of {} held {}", printable(part_of_), bad.empty() ? "bad values" : bad), ""};
    }
    if (origin_.kind == OriginKind::kInput || origin_.kind == OriginKind::kUnrecorded) {
      const std::string of = counts_known() ? fmt::format(" of {}", origin_.stats.count) : "";
      return {CauseKind::kBadInput, bad.empty() ? "it came in bad" : fmt::format("it came in with {}{}", bad, of), ""};
    }
    if (origin_.kind == OriginKind::kParameter) {
      const std::string where = origin_.bad_part ? fmt::format(" in the part of rank {}", origin_.bad_part->rank) : "";
      return {CauseKind::kBadParameter, fmt::format("it already held {}{}", bad.empty() ? "bad values" : bad, where), ""};
    }
    if (!unseen_.empty()) {
      // A sum of good values can overflow; it is never NaN.
      const std::string_view overflow = origin_.stats.nan_count > 0 ? "" : ", or the sum overflows";
      return {CauseKind::kUnknown, fmt::format("{} from another rank{}: {}", bad.empty() ? "bad values" : bad, overflow, unseen_), ""};
    }
    if (changed_outside(origin_)) {
      const Grown& most = origin_.grown.front();
      if (most.at_begin) {
        return {CauseKind::kUnknown,
                fmt::format("{}, after {} became far too large in step {} or right after it", bad.empty() ? "bad" : bad, grown_, *most.since - 1),
                fmt::format("up to {}, {} when step {} began", format_short(most.largest), format_short(most.before), most.parameter.step)};
      }
      return {CauseKind::kUnknown, fmt::format("{}, after something outside of the graph changed {}", bad.empty() ? "bad" : bad, grown_),
              fmt::format("up to {}, {} after step {}", format_short(most.largest), format_short(most.before), most.parameter.step)};
    }
    if (!bad.empty()) {
      if (Reason found = zero(); found.kind != CauseKind::kUnknown) return found;
      if (Reason found = domain(); found.kind != CauseKind::kUnknown) return found;
      if (Reason found = nothing_to_take(); found.kind != CauseKind::kUnknown) return found;
      if (Reason found = power(); found.kind != CauseKind::kUnknown) return found;
      if (Reason found = underflow(); found.evidence.size() > 0) return found;
      if (Reason found = overflow(); origin_.certain && found.kind != CauseKind::kUnknown) return found;
    }
    return {CauseKind::kUnknown,
            fmt::format("{}{}", bad.empty() ? "bad" : bad, origin_.certain ? " from sound inputs" : ", as far as its inputs are known"),
            ""};
  }

 private:
  static std::string grown_name(const Session& session, const Grown& grown) {
    const std::string name = printable(session.node(grown.parameter).name);
    return grown.one_rank ? fmt::format("{} on rank {}", name, grown.parameter.rank) : name;
  }

  bool counts_known() const { return origin_.stats.knows(kStatNan | kStatPosInf | kStatNegInf); }

  /// The values that the operator took, where they are known and finite.
  const Stats* input(uint32_t slot) const {
    const auto found = std::find_if(origin_.inputs.begin(), origin_.inputs.end(), [&](const OriginInput& in) { return in.slot == slot; });
    if (found == origin_.inputs.end() || found->state != InputState::kGood || !found->stats) return nullptr;
    return is_float(found->stats->dtype) && found->stats->knows(kStatMin | kStatMax) ? &*found->stats : nullptr;
  }

  bool has_input(uint32_t slot) const { return std::ranges::find(origin_.inputs, slot, &OriginInput::slot) != origin_.inputs.end(); }

  bool is_empty(uint32_t slot) const {
    const auto found = std::ranges::find(origin_.inputs, slot, &OriginInput::slot);
    return found != origin_.inputs.end() && found->stats && found->stats->knows(kStatCount) && found->stats->count == 0;
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

  /// NaN from outside of the interval in which the operator is defined, or infinite at an end of it.
  Reason domain() const {
    const auto rule = std::find_if(std::begin(kDomains), std::end(kDomains), [&](const DomainRule& each) { return each.op == op_; });
    const Stats* const stats = rule == std::end(kDomains) ? nullptr : input(0);
    if (stats == nullptr) return {};
    const bool below = stats->min < rule->low, above = stats->max > rule->high;
    if ((below || above) && origin_.stats.nan_count > 0) {
      const std::string from = below ? fmt::format(" goes down to {}", format_short(stats->min)) : "";
      const std::string to = above ? fmt::format("{} up to {}", below ? " and" : " goes", format_short(stats->max)) : "";
      return {rule->kind, std::string(rule->outside), fmt::format("input:0{}{}", from, to)};
    }
    const bool at_low = stats->min == rule->low, at_high = stats->max == rule->high;
    if (rule->at_end.empty() || origin_.stats.inf_count() == 0 || below || above || (!at_low && !at_high)) return {};
    return {rule->end_kind, std::string(rule->at_end),
            fmt::format("input:0 {} to {}", at_low ? "goes down" : "goes up", format_short(at_low ? stats->min : stats->max))};
  }

  /// What has no value: the mean of no element, the deviation of one, the softmax of a row without a finite number.
  Reason nothing_to_take() const {
    const bool deviation = is_one_of(kDeviations);
    if (is_empty(0)) {
      const bool mean = op_.find("mean") != std::string::npos || op_.find("loss") != std::string::npos || op_.find("cross_entropy") != std::string::npos;
      return {CauseKind::kOutOfDomain,
              fmt::format("{} of an empty tensor", deviation ? "standard deviation or variance" : mean ? "mean" : "statistic"), ""};
    }
    if (origin_.stats.nan_count == 0) return {};
    const bool mean_of_labels = origin_.certain && is_one_of(kLabelLosses) && origin_.tensor.slot.index == 0;
    if (mean_of_labels && input(0) != nullptr && origin_.stats.count == 1) {
      return {CauseKind::kOutOfDomain, "mean loss over no label: each is ignored or has weight 0", ""};
    }
    const Stats* const one = input(0);
    if (one != nullptr && deviation && std::pow(largest_magnitude(*one), 2) < limit_) {
      return {CauseKind::kOutOfDomain, "standard deviation or variance of a single number", ""};
    }
    const bool softmax = op_ == "softmax" || op_ == "_softmax" || op_ == "logsoftmax" || op_ == "_log_softmax" || op_ == "softmaxext";
    const auto first = std::ranges::find(origin_.inputs, 0u, &OriginInput::slot);
    if (!softmax || first == origin_.inputs.end() || !first->stats) return {};
    const Stats& stats = *first->stats;
    if (stats.neg_inf_count == 0 || stats.nan_count > 0 || stats.pos_inf_count > 0) return {};
    return {CauseKind::kOutOfDomain, "softmax of a row that is -Inf everywhere", fmt::format("{} -Inf in input:0", stats.neg_inf_count)};
  }

  /// A power that is infinite: of 0, or too large for the type.
  Reason power() const {
    const Stats* const base = op_ == "pow" || op_ == "powtensorscalar" ? input(0) : nullptr;
    if (base == nullptr || origin_.stats.nan_count > 0) return {};
    const Stats* const exponent = input(1);
    if (!has_input(1)) {  // a number in the program
      const bool of_zero = base->knows(kStatZero) && base->zero_count > 0;
      if (of_zero || !(limit_ > 0) || !(largest_magnitude(*base) > 1)) return {};
      return {CauseKind::kProductOverflow, "overflow of a power", fmt::format("input:0 up to {}", format_short(largest_magnitude(*base)))};
    }
    if (exponent == nullptr) return {};
    if (exponent->min < 0 && base->knows(kStatZero) && base->zero_count > 0) {
      return {CauseKind::kDivisionByZero, "negative power of 0",
              fmt::format("{} {} in input:0", base->zero_count, base->zero_count == 1 ? "zero" : "zeros")};
    }
    if (!(limit_ > 0) || !(std::pow(largest_magnitude(*base), exponent->max) > limit_)) return {};
    return {CauseKind::kProductOverflow, "overflow of a power",
            fmt::format("input:0 up to {} to the power of up to {}", format_short(largest_magnitude(*base)), format_short(exponent->max))};
  }

  /// Kernels that take the logarithm of a probability which float32 rounds to 0.
  Reason underflow() const {
    const Stats* const logits = op_.find("softmaxcrossentropy") != std::string::npos ? input(0) : nullptr;
    if (logits == nullptr || origin_.stats.pos_inf_count == 0 || !(logits->max - logits->min > kSmallestExponent)) return {};
    return {CauseKind::kUnknown, "a probability became 0 in the loss",
            fmt::format("logits from {} to {}", format_short(logits->min), format_short(logits->max))};
  }

  std::string ends(const std::string& inputs) const {
    return fmt::format("{}, {} ends at {}", inputs, dtype_name(origin_.info.dtype), format_short(limit_));
  }
  static std::string up_to(double a) { return fmt::format("input up to {}", format_short(a)); }
  template <size_t N>
  bool is_one_of(const std::string_view (&ops)[N]) const {
    return std::ranges::find(ops, op_) != std::end(ops);
  }

  /// The derivative of a product multiplies, too, and that of a cast casts: both with the gradient as input 0.
  std::string_view linear_op() const { return std::string_view(op_).substr(0, op_.find('\'')); }

  Reason product() const {
    const std::string_view name = linear_op();
    const std::optional<ProductRule> rule = product_rule(name);
    if (!rule) return {};
    const Stats *const first = input(rule->a), *const second = input(rule->b);
    if (first == nullptr) return {};
    const double a = largest_magnitude(*first);
    // A number in the program is no input.
    if (name.starts_with("mul") && !has_input(1) && origin_.stats.nan_count == 0) return {CauseKind::kProductOverflow, "overflow of a product", ends(up_to(a))};
    if (second == nullptr) return {};
    const double b = largest_magnitude(*second), terms = rule->sums ? static_cast<double>(std::min(first->count, second->count)) : 1;
    if (!(a * b * terms > limit_)) return {};
    return {CauseKind::kProductOverflow, "overflow of a product", ends(fmt::format("inputs up to {} and {}", format_short(a), format_short(b)))};
  }

  /// By a number that is not 0: those are found before, unless the program has it.
  Reason quotient() const {
    const Stats* const above = op_ == "div" || op_ == "divs" || op_ == "realdiv" ? input(0) : nullptr;
    const Stats* const below = above == nullptr ? nullptr : input(1);
    if (above != nullptr && !has_input(1)) return {CauseKind::kDivisionByZero, "division by 0, or by too small a number", ends(up_to(largest_magnitude(*above)))};
    if (below == nullptr || origin_.stats.nan_count > 0 || !(below->min > 0 || below->max < 0)) return {};
    const double a = largest_magnitude(*above), b = std::min(std::abs(below->min), std::abs(below->max));
    if (!(a / b > limit_)) return {};
    return {CauseKind::kProductOverflow, "overflow of a quotient", ends(fmt::format("input up to {}, divided by down to {}", format_short(a), format_short(b)))};
  }

  Reason overflow() const {
    if (!(limit_ > 0)) return {};
    if (Reason found = product(); found.kind != CauseKind::kUnknown) return found;
    if (Reason found = quotient(); found.kind != CauseKind::kUnknown) return found;
    const Stats* const first = input(0);
    if (first == nullptr) return {};
    const double a = largest_magnitude(*first);
    const bool cast = linear_op() == "cast" || linear_op() == "_to_copy";
    if (cast && a > limit_) return {CauseKind::kCastOverflow, fmt::format("overflow of a cast to {}", dtype_name(origin_.info.dtype)), ends(up_to(a))};
    const bool exponential = ((op_ == "exp" || op_ == "expm1") && first->max > std::log(limit_)) ||
                             (op_ == "exp2" && first->max > std::log2(limit_)) ||
                             ((op_ == "sinh" || op_ == "cosh") && a > std::log(limit_));
    if (exponential) return {CauseKind::kExpOverflow, "overflow of an exponential", ends(up_to(a))};
    const Stats* const second = input(1);
    const double difference = op_ == "square" || second == nullptr ? a : a + largest_magnitude(*second);
    if (is_one_of(kSquares) && difference * difference > limit_) return {CauseKind::kProductOverflow, "overflow of a square", ends(up_to(difference))};
    const auto count = static_cast<double>(first->count);
    // Where the variance is not the result, it is computed in float32 at least.
    const bool normalises = std::ranges::any_of(kNormalizations, [&](std::string_view part) { return op_.find(part) != std::string::npos; });
    const double most_variance = normalises ? std::max(limit_, dtype_max(DType::kFloat32)) : limit_;
    if ((normalises || is_one_of(kDeviations)) && a * a > most_variance) return {CauseKind::kProductOverflow, "overflow of a variance", up_to(a)};
    if (is_one_of(kProductsOfElements) && a > 1 && count * std::log(a) > std::log(limit_))
      return {CauseKind::kProductOverflow, "overflow of a product", ends(up_to(a))};
    if (is_one_of(kNorms) && a * std::sqrt(count) > limit_) return {CauseKind::kSumOverflow, "overflow of a norm", ends(up_to(a))};
    // A sum of n terms is at most n times the largest; where even that fits, something else happened.
    const bool of_elements = is_one_of(kSumsOfElements);
    if (!of_elements && !is_one_of(kSums)) return {};
    double most = of_elements ? a * count : 0;
    for (const OriginInput& each : origin_.inputs) {
      const Stats* const stats = of_elements ? nullptr : input(each.slot);
      if (stats != nullptr) most += largest_magnitude(*stats);
    }
    return most > limit_ ? Reason{CauseKind::kSumOverflow, "overflow of a sum", ends(up_to(a))} : Reason{};
  }

  const Origin& origin_;
  const std::string unseen_, op_, part_of_, grown_;
  const double limit_;
};

}  // namespace

std::string_view cause_kind_name(CauseKind kind) {
  switch (kind) {
    case CauseKind::kUnknown: return "unknown";
    case CauseKind::kLogOfZero: return "log_of_zero";
    case CauseKind::kLogOfNegative: return "log_of_negative";
    case CauseKind::kRootOfNegative: return "root_of_negative";
    case CauseKind::kOutOfDomain: return "out_of_domain";
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

std::optional<ProductRule> product_rule(std::string_view op) {
  const bool family = std::ranges::any_of(kProductFamilies, [&](std::string_view begin) { return op.starts_with(begin); });
  if (family) return ProductRule{op, 0, 1, true};
  const auto known = std::ranges::find(kProducts, op, &ProductRule::op);
  return known == std::end(kProducts) ? std::nullopt : std::optional(*known);
}

bool passes_elements(std::string_view op) { return std::ranges::find(kSameElements, op) != std::end(kSameElements); }

Reason reason_of(const Session& session, const Origin& origin) { return Reasons(session, origin).reason(); }

}  // namespace msdbg
