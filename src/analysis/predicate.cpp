// Parses the user's definition of bad.
#include <fmt/format.h>

#include "analysis/evidence.h"
#include "msdbg/analysis.h"

namespace msdbg {
namespace {

constexpr int kGeneralOverflow = 13, kNanOnly = 0, kInfOnly = 1;

Predicate builtin(Predicate::Builtin which) {
  Predicate predicate;
  predicate.when = which;
  switch (which) {
    case Predicate::Builtin::kNanOrInf:
      predicate.text = "NaN or Inf";
      break;
    case Predicate::Builtin::kNan:
      predicate.text = "NaN";
      break;
    case Predicate::Builtin::kInf:
      predicate.text = "Inf";
      break;
  }
  return predicate;
}

std::string squeezed(std::string_view text) {
  std::string out;
  for (char c : to_lower(trim(text))) {
    if (c == ' ' && !out.empty() && out.back() == ' ') continue;
    out += c;
  }
  return out;
}

}  // namespace

Result<Predicate> parse_predicate(std::string_view text) {
  const std::string word = squeezed(text);
  if (word.empty() || word == "nan or inf" || word == "inf or nan") return builtin(Predicate::Builtin::kNanOrInf);
  if (word == "nan") return builtin(Predicate::Builtin::kNan);
  if (word == "inf") return builtin(Predicate::Builtin::kInf);
  // Bad elements of these predicates can be counted and located, unlike those of a yes-or-no answer.
  if (word == "any(not isfinite(x))" || word == "not all(isfinite(x))") return builtin(Predicate::Builtin::kNanOrInf);
  if (word == "any(isnan(x))") return builtin(Predicate::Builtin::kNan);
  if (word == "any(isinf(x))") return builtin(Predicate::Builtin::kInf);
  Result<When> when = parse_when(text);
  if (!when) {
    return Status(when.status().code(), fmt::format("{}; a predicate is 'nan or inf', 'nan', 'inf', a condition such as "
                                                    "'TL max_gt=1e4', or an expression", when.status().message()));
  }
  if (Expression* expression = std::get_if<Expression>(&*when)) {
    Predicate predicate;
    predicate.text = expression->text();
    predicate.when = std::move(*expression);
    return predicate;
  }
  Condition* condition = &std::get<Condition>(*when);
  // The same predicates under MindInsight's names; in this form the bad elements can be counted and located.
  switch (condition->spec->enumerator) {
    case kGeneralOverflow:
      return builtin(Predicate::Builtin::kNanOrInf);
    case kNanOnly:
      return builtin(Predicate::Builtin::kNan);
    case kInfOnly:
      return builtin(Predicate::Builtin::kInf);
    default:
      break;
  }
  Predicate predicate;
  predicate.text = condition->text();
  predicate.when = std::move(*condition);
  return predicate;
}

bool is_bad_element(Predicate::Builtin which, double value) {
  switch (which) {
    case Predicate::Builtin::kNanOrInf:
      return !(value - value == 0);
    case Predicate::Builtin::kNan:
      return value != value;
    case Predicate::Builtin::kInf:
      return value == value && !(value - value == 0);
  }
  return false;
}

uint64_t bad_elements(Predicate::Builtin which, const Stats& stats) {
  switch (which) {
    case Predicate::Builtin::kNanOrInf:
      return stats.nan_count + stats.inf_count();
    case Predicate::Builtin::kNan:
      return stats.nan_count;
    case Predicate::Builtin::kInf:
      return stats.inf_count();
  }
  return 0;
}

}  // namespace msdbg
