// Validation of conditions: the parameters that each one accepts and requires.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "msdbg/watch.h"

namespace msdbg {
namespace {

using Params = std::map<std::string, double, std::less<>>;

const ParamSpec* find_param(const ConditionSpec& spec, std::string_view name) {
  auto it = std::find_if(spec.params.begin(), spec.params.end(), [&](const ParamSpec& p) { return p.name == name; });
  return it == spec.params.end() ? nullptr : &*it;
}

std::vector<std::string> names_of(const ConditionSpec& spec, ParamKind kind) {
  std::vector<std::string> names;
  for (const ParamSpec& param : spec.params) {
    if (param.kind == kind) names.emplace_back(param.name);
  }
  return names;
}

std::string interval_text(const ParamSpec& spec) {
  if (spec.is_bool) return "0 or 1";
  if (std::isinf(spec.low) && std::isinf(spec.high)) return "a finite number";
  return fmt::format("{}{}, {}{}", spec.low_open || std::isinf(spec.low) ? '(' : '[', format_double(spec.low),
                     std::isinf(spec.high) ? "Inf" : format_double(spec.high), std::isinf(spec.high) ? ')' : ']');
}

bool accepts(const ParamSpec& spec, double value) {
  if (!std::isfinite(value)) return false;
  if (spec.is_bool) return value == 0 || value == 1;
  return (spec.low_open ? value > spec.low : value >= spec.low) && value <= spec.high;
}

Status invalid(const ConditionSpec& spec, std::string_view what) {
  return Status(Code::kInvalidArgument, fmt::format("{}: {}", spec.id, what));
}

Status check_value(const ConditionSpec& spec, std::string_view name, double value) {
  if (spec.params.empty()) return invalid(spec, fmt::format("takes no parameter, '{}' was given", name));
  const ParamSpec* param = find_param(spec, name);
  if (!param) {
    std::vector<std::string> names;
    for (const ParamSpec& known : spec.params) names.emplace_back(known.name);
    return invalid(spec, fmt::format("no parameter '{}' (has {})", name, fmt::join(names, ", ")));
  }
  if (accepts(*param, value)) return {};
  const std::string_view unit = param->unit == "percent" ? " percent" : param->unit == "fraction" ? ", a fraction" : "";
  return invalid(
      spec, fmt::format("{} = {} is not accepted: use {}{}", name, format_double(value), interval_text(*param), unit));
}

/// A percentage needs both ends of its range, in order.
Status check_range(const ConditionSpec& spec, const Params& params) {
  const bool wanted = params.count("range_percentage_lt") > 0 || params.count("range_percentage_gt") > 0;
  if (!wanted || spec.enumerator != 21) return {};
  const auto start = params.find("range_start_inclusive");
  const auto end = params.find("range_end_inclusive");
  if (start == params.end() || end == params.end()) {
    return invalid(spec,
                   fmt::format("a range percentage needs range_start_inclusive and range_end_inclusive, {} is missing",
                               start == params.end() ? "range_start_inclusive" : "range_end_inclusive"));
  }
  if (start->second <= end->second) return {};
  return invalid(spec, fmt::format("range_start_inclusive = {} is above range_end_inclusive = {}: swap them",
                                   format_double(start->second), format_double(end->second)));
}

/// Adds the catalogue's default if no check parameter was given.
Status fill_check(const ConditionSpec& spec, Params& params) {
  const ParamSpec* with_default = nullptr;
  for (const ParamSpec& param : spec.params) {
    if (param.kind != ParamKind::kCheck) continue;
    if (params.count(param.name) > 0) return {};
    if (param.default_value && !with_default) with_default = &param;
  }
  if (spec.params.empty()) return {};
  if (!with_default)
    return invalid(spec, fmt::format("give at least one of {}", fmt::join(names_of(spec, ParamKind::kCheck), ", ")));
  params.emplace(with_default->name, *with_default->default_value);
  return {};
}

}  // namespace

std::optional<double> Condition::param(std::string_view name) const {
  auto it = params.find(name);
  return it == params.end() ? std::nullopt : std::optional(it->second);
}

std::string Condition::text() const {
  std::string text(spec->id);
  bool first = true;
  for (const ParamSpec& known : spec->params) {
    if (const std::optional<double> value = param(known.name)) {
      text += fmt::format("{} {} {}", first ? "" : ",", known.name, format_double(*value));
      first = false;
    }
  }
  return text;
}

Result<Condition> make_condition(std::string_view id_or_abbr, const Params& params) {
  Result<const ConditionSpec*> found = find_condition(id_or_abbr);
  if (!found) return Status(Code::kInvalidArgument, found.status().message());
  Condition condition;
  condition.spec = *found;
  for (const auto& [name, value] : params) {
    if (Status status = check_value(*condition.spec, name, value); !status.ok()) return status;
  }
  condition.params = params;
  if (Status status = fill_check(*condition.spec, condition.params); !status.ok()) return status;
  if (Status status = check_range(*condition.spec, condition.params); !status.ok()) return status;
  return condition;
}

}  // namespace msdbg
