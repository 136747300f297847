#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "msdbg/watch.h"
#include "watch/texts.h"

namespace msdbg {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr ParamKind kCheck = ParamKind::kCheck;
constexpr ParamKind kSupport = ParamKind::kSupport;
constexpr ParamKind kHidden = ParamKind::kHidden;

constexpr ParamSpec number(std::string_view name, std::string_view help, double low = -kInfinity,
                           ParamKind kind = kCheck) {
  return {name, kind, false, std::nullopt, low, kInfinity, false, "", help};
}
constexpr ParamSpec percent(std::string_view name, std::string_view help, std::optional<double> default_value = {}) {
  return {name, kCheck, false, default_value, 0, 100, false, "percent", help};
}
constexpr ParamSpec fraction(std::string_view name, std::string_view help, double default_value) {
  return {name, kCheck, false, default_value, 0, kInfinity, false, "fraction", help};
}

constexpr ParamSpec kZeroPercentage = percent("zero_percentage_ge", "zeros make up at least this percentage", 100);
constexpr ParamSpec kMaxGt = number("max_gt", "the largest element is above this");
constexpr ParamSpec kMinLt = number("min_lt", "the smallest element is below this");
constexpr ParamSpec kEpsilon{"epsilon", kHidden,    false,
                             1e-9,      -kInfinity, kInfinity,
                             false,     "",         "added to the mean of |previous| before dividing"};

constexpr std::array kInitialParams = {kZeroPercentage, kMaxGt, kMinLt};
constexpr std::array kTooLargeParams = {number("abs_mean_gt", "the mean of absolute values is above this", 0), kMaxGt,
                                        number("min_gt", "the smallest element is above this"),
                                        number("mean_gt", "the mean is above this")};
constexpr std::array kTooSmallParams = {number("abs_mean_lt", "the mean of absolute values is below this", 0),
                                        number("max_lt", "the largest element is below this"), kMinLt,
                                        number("mean_lt", "the mean is below this")};
constexpr std::array kAllZeroParams = {kZeroPercentage};
constexpr std::array kChangeLargeParams = {
    fraction("abs_mean_update_ratio_gt", "mean |x - previous| / mean |previous| is above this", 0.1), kEpsilon};
constexpr std::array kChangeSmallParams = {
    fraction("abs_mean_update_ratio_lt", "mean |x - previous| / mean |previous| is below this", 1e-4), kEpsilon};
constexpr std::array kNotChangedParams = {
    fraction("rtol", "every |x - previous| is at most atol + rtol * |previous|", 1e-5),
    ParamSpec{"atol", kHidden, false, 1e-8, -kInfinity, kInfinity, false, "", "absolute part of the tolerance"},
    ParamSpec{"equal_nan", kHidden, true, 0, 0, 1, false, "", "accepted for old watchpoints; has no effect"}};
constexpr std::array kRangeParams = {
    number("range_start_inclusive", "lower end of the range", -kInfinity, kSupport),
    number("range_end_inclusive", "upper end of the range", -kInfinity, kSupport),
    percent("range_percentage_lt", "less than this percentage is inside the range"),
    percent("range_percentage_gt", "more than this percentage is inside the range"),
    ParamSpec{"max_min_lt", kCheck, false, std::nullopt, 0, kInfinity, true, "", "max - min is below this"},
    number("max_min_gt", "max - min is above this; 0 means not constant", 0)};
constexpr std::array kLegacyParams = {number("param", "the limit")};

constexpr ConditionSpec spec(std::string_view id, std::string_view abbr, int enumerator, Target target,
                             std::span<const ParamSpec> params, const texts::Text& text) {
  const bool overflow = enumerator == 13 || enumerator <= 2;
  const bool needs_previous = enumerator >= 18 && enumerator <= 20;
  return {id,     abbr,         enumerator, target, overflow ? Severity::kError : Severity::kWarning, needs_previous,
          params, text.summary, text.advice};
}

constexpr Target kTensor = Target::kTensor;
constexpr Target kWeight = Target::kWeight;
constexpr Target kGradient = Target::kGradient;
constexpr Target kActivation = Target::kActivation;

constexpr std::array kCatalogue = {
    spec("operator_overflow", "OO", 2, kTensor, {}, texts::kOperatorOverflow),
    spec("tensor_overflow", "TO", 13, kTensor, {}, texts::kTensorOverflow),
    spec("weight_overflow", "WO", 13, kWeight, {}, texts::kWeightOverflow),
    spec("gradient_exploding", "GE", 13, kGradient, {}, texts::kGradientExploding),
    spec("weight_initialization", "WI", 14, kWeight, kInitialParams, texts::kWeightInitialization),
    spec("tensor_too_large", "TL", 15, kTensor, kTooLargeParams, texts::kTensorTooLarge),
    spec("weight_too_large", "WL", 15, kWeight, kTooLargeParams, texts::kWeightTooLarge),
    spec("gradient_too_large", "GL", 15, kGradient, kTooLargeParams, texts::kGradientTooLarge),
    spec("tensor_too_small", "TS", 16, kTensor, kTooSmallParams, texts::kTensorTooSmall),
    spec("weight_too_small", "WS", 16, kWeight, kTooSmallParams, texts::kWeightTooSmall),
    spec("gradient_vanishing", "GV", 16, kGradient, kTooSmallParams, texts::kGradientVanishing),
    spec("tensor_all_zero", "TZ", 17, kTensor, kAllZeroParams, texts::kTensorAllZero),
    spec("weight_change_too_large", "WCL", 18, kWeight, kChangeLargeParams, texts::kWeightChangeTooLarge),
    spec("weight_change_too_small", "WCS", 19, kWeight, kChangeSmallParams, texts::kWeightChangeTooSmall),
    spec("weight_not_changed", "WNC", 20, kWeight, kNotChangedParams, texts::kWeightNotChanged),
    spec("tensor_range", "TR", 21, kTensor, kRangeParams, texts::kTensorRange),
    spec("activation_range", "AR", 21, kActivation, kRangeParams, texts::kActivationRange),
    // Conditions of MindSpore 1.0, still evaluated.
    spec("nan", "", 0, kTensor, {}, texts::kNan),
    spec("inf", "", 1, kTensor, {}, texts::kInf),
    spec("max_gt", "", 3, kTensor, kLegacyParams, texts::kMaxGt),
    spec("max_lt", "", 4, kTensor, kLegacyParams, texts::kMaxLt),
    spec("min_gt", "", 5, kTensor, kLegacyParams, texts::kMinGt),
    spec("min_lt", "", 6, kTensor, kLegacyParams, texts::kMinLt),
    spec("max_min_gt", "", 7, kTensor, kLegacyParams, texts::kMaxMinGt),
    spec("max_min_lt", "", 8, kTensor, kLegacyParams, texts::kMaxMinLt),
    spec("mean_gt", "", 9, kTensor, kLegacyParams, texts::kMeanGt),
    spec("mean_lt", "", 10, kTensor, kLegacyParams, texts::kMeanLt),
    spec("sd_gt", "", 11, kTensor, kLegacyParams, texts::kSdGt),
    spec("sd_lt", "", 12, kTensor, kLegacyParams, texts::kSdLt),
};

}  // namespace

std::span<const ConditionSpec> condition_catalogue() { return kCatalogue; }

const ConditionSpec* condition_named(std::string_view id_or_abbr) {
  const std::string_view wanted = trim(id_or_abbr);
  const auto is = [&](std::string_view name) { return name.size() == wanted.size() && starts_with_nocase(name, wanted); };
  if (wanted.empty()) return nullptr;
  const auto found = std::ranges::find_if(kCatalogue, [&](const ConditionSpec& spec) { return is(spec.id) || is(spec.abbr); });
  return found == std::end(kCatalogue) ? nullptr : &*found;
}

Result<const ConditionSpec*> find_condition(std::string_view id_or_abbr) {
  if (const ConditionSpec* found = condition_named(id_or_abbr)) return found;
  const std::string wanted = to_lower(trim(id_or_abbr));
  std::vector<std::string> names;
  for (const ConditionSpec& candidate : kCatalogue) {
    names.emplace_back(candidate.id);
    if (!candidate.abbr.empty()) names.emplace_back(candidate.abbr);
  }
  if (wanted.empty()) {
    return Status(Code::kNotFound,
                  "no condition given: write an id such as tensor_overflow or an abbreviation such as TO");
  }
  const std::vector<std::string> close = nearest(wanted, names);
  return Status(
      Code::kNotFound,
      close.empty()
          ? fmt::format("no condition '{}' (tensor_overflow, tensor_too_large, tensor_all_zero, ...)", id_or_abbr)
          : fmt::format("no condition '{}': did you mean {}?", id_or_abbr, fmt::join(close, ", ")));
}

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kInfo:
      return "info";
  }
  return "warning";
}

std::string_view semantics_name(Semantics semantics) { return semantics == Semantics::kCompat ? "compat" : "finite"; }

Result<Semantics> parse_semantics(std::string_view text) {
  const std::string word = to_lower(trim(text));
  if (word == "compat") return Semantics::kCompat;
  if (word == "finite") return Semantics::kFinite;
  return Status(Code::kInvalidArgument, fmt::format("semantics '{}': use compat or finite", text));
}

Result<NanVerdict> parse_nan_verdict(std::string_view text) {
  const std::string word = to_lower(trim(text));
  if (word == "hit") return NanVerdict::kHit;
  if (word == "clean") return NanVerdict::kClean;
  return Status(Code::kInvalidArgument, fmt::format("nan '{}': use hit or clean", text));
}

std::vector<std::string> error_texts(uint32_t error_code) {
  constexpr std::array<std::pair<uint32_t, std::string_view>, 6> kTexts = {
      {{kErrorNan, "NaN in the tensor"},
       {kErrorInf, "Inf in the tensor"},
       {kErrorNoPrevious, "no previous step"},
       {kErrorOutOfMemory, "larger than the memory limit"},
       {kErrorNoHistory, "no execution history of the graph"},
       {kErrorNoValue, "no stored value"}}};
  std::vector<std::string> found;
  for (const auto& [bit, text] : kTexts) {
    if (error_code & bit) found.emplace_back(text);
  }
  return found;
}

}  // namespace msdbg
