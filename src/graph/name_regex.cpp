#include "graph/name_regex.h"

#include <fmt/format.h>

#include <regex>

namespace msdbg {
namespace {

constexpr size_t kMaxPattern = 1000;
constexpr size_t kMaxName = 4096;

constexpr size_t kMaxCountDigits = 4;

/// Detects a repetition or group number that would overflow the library's integers.
bool has_huge_number(std::string_view pattern) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    const bool escaped = pattern[i] == '\\';
    if (!escaped && pattern[i] != '{') continue;
    size_t digits = 0;
    while (++i < pattern.size() && ((pattern[i] >= '0' && pattern[i] <= '9') || (pattern[i] == ',' && !escaped))) {
      digits = pattern[i] == ',' ? 0 : digits + 1;
      if (digits > kMaxCountDigits) return true;
    }
    if (!escaped || digits > 0) --i;
  }
  return false;
}

class StdRegex : public NameRegex {
 public:
  StdRegex(const std::string& pattern, std::regex::flag_type flags) : regex_(pattern, flags) {}

  bool occurs_in(const std::string& name) const override {
    if (name.size() > kMaxName) return false;
    try {
      return std::regex_search(name, regex_);
    } catch (const std::regex_error&) {
      return false;  // too complex for the engine on this name
    }
  }

 private:
  std::regex regex_;
};

}  // namespace

Result<std::shared_ptr<const NameRegex>> NameRegex::compile(const std::string& pattern, bool ignore_case) {
  if (pattern.empty()) return Status(Code::kInvalidArgument, "empty regular expression");
  if (pattern.size() > kMaxPattern) {
    return Status(Code::kInvalidArgument, fmt::format("regular expression longer than {} characters", kMaxPattern));
  }
  if (has_huge_number(pattern)) {
    return Status(Code::kInvalidArgument, fmt::format("a number of more than {} digits in a regular expression", kMaxCountDigits));
  }
  auto flags = std::regex::ECMAScript | std::regex::optimize;
  if (ignore_case) flags |= std::regex::icase;
#ifdef __GLIBCXX__
  flags |= std::regex_constants::__polynomial;  // `(a*)*b` must not hang the prompt; this disables back-references
#endif
  try {
    return std::shared_ptr<const NameRegex>(std::make_shared<StdRegex>(pattern, flags));
  } catch (const std::regex_error& problem) {
    return Status(Code::kInvalidArgument, fmt::format("not a valid regular expression: {}", problem.what()));
  }
}

}  // namespace msdbg
