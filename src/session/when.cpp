#include <fmt/format.h>

#include <cctype>

#include "msdbg/check.h"

namespace msdbg {

Result<When> parse_when(std::string_view text) {
  const std::string_view trimmed = trim(text);
  size_t end = 0;
  while (end < trimmed.size() && (std::isalnum(static_cast<unsigned char>(trimmed[end])) || trimmed[end] == '_')) ++end;
  const std::string_view name = trimmed.substr(0, end);
  // A function may have the name of an old condition; a parenthesis distinguishes them.
  const bool called = trimmed.substr(end).find_first_not_of(' ') != std::string_view::npos &&
                      trim(trimmed.substr(end)).front() == '(';
  if (condition_named(name) != nullptr && !called) {
    Result<Condition> condition = parse_condition(trimmed);
    if (!condition) return condition.status();
    return When(std::move(*condition));
  }
  if (!trimmed.empty() && trimmed.find_first_of("()<>=+*/^") == std::string_view::npos && end == trimmed.size()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{}; an expression compares something, such as mean(abs(x)) > 10", find_condition(name).status().message()));
  }
  Result<Expression> expression = Expression::parse(trimmed, ExpressionKind::kCondition);
  if (!expression) return expression.status();
  return When(std::move(*expression));
}

}  // namespace msdbg
