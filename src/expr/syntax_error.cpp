// Formats a syntax error.
#include <fmt/format.h>

#include <algorithm>

#include "expr/syntax.h"

namespace msdbg::expr {
namespace {

/// Longer expressions are shortened.
constexpr size_t kShownBefore = 90, kShownAfter = 60;

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

size_t columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

std::string without_breaks(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  return printable(line);
}

}  // namespace

Status describe(const Problem& problem, std::string_view expression) {
  const size_t at = std::min(problem.place.at, expression.size());
  size_t first = at > kShownBefore ? at - kShownBefore : 0;
  while (first > 0 && !starts_character(expression[first])) --first;
  size_t last = std::min(expression.size(), at + std::max(kShownAfter, std::min(problem.place.length, 2 * kShownAfter)));
  while (last < expression.size() && !starts_character(expression[last])) ++last;

  const std::string before = (first > 0 ? "..." : "") + without_breaks(expression.substr(first, at - first));
  const std::string after = without_breaks(expression.substr(at, last - at));
  const std::string_view marked = expression.substr(at, std::min(problem.place.length, last - at));
  const size_t length = std::max<size_t>(1, columns(marked));
  return Status(msdbg::Code::kInvalidArgument,
                fmt::format("{}\n  {}{}{}\n  {}^{}", problem.text, before, after, last < expression.size() ? "..." : "",
                            std::string(columns(before), ' '), std::string(length - 1, '~')));
}

}  // namespace msdbg::expr
