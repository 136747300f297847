#include <fmt/format.h>

#include <algorithm>

#include "msdbg/base.h"

namespace msdbg {

IntSet IntSet::of(int64_t value) {
  IntSet set;
  set.ranges_.emplace_back(value, value);
  return set;
}

Result<IntSet> IntSet::parse(std::string_view text) {
  const auto fail = [&](std::string_view part) {
    return Status(Code::kInvalidArgument,
                  fmt::format("'{}' in '{}' is neither a number nor a range; use all, 3, 0:10, 2:, :5 or a list like 0,4,7:9", part, text));
  };
  if (trim(text) == "all" || trim(text) == ":") return IntSet();
  IntSet set;
  for (std::string_view part : split(text, ',')) {
    part = trim(part);
    const size_t colon = part.find(':');
    std::optional<int64_t> low, high;
    if (colon == std::string_view::npos) {
      low = high = parse_int(part);
      if (!low) return fail(part);
    } else {
      const std::string_view left = trim(part.substr(0, colon)), right = trim(part.substr(colon + 1));
      low = left.empty() ? std::optional<int64_t>(0) : parse_int(left);
      high = right.empty() ? std::optional<int64_t>(INT64_MAX) : parse_int(right);
      if (!low || !high || (left.empty() && right.empty())) return fail(part);
    }
    if (*low < 0) return fail(part);
    if (*low > *high) {
      return Status(Code::kInvalidArgument, fmt::format("range '{}' runs backwards; write the smaller end first", part));
    }
    set.ranges_.emplace_back(*low, *high);
  }
  return set;
}

bool IntSet::contains(int64_t value) const {
  if (ranges_.empty()) return true;
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& r) { return r.first <= value && value <= r.second; });
}

std::string IntSet::text() const {
  if (ranges_.empty()) return "all";
  std::string out;
  for (const auto& [low, high] : ranges_) {
    if (!out.empty()) out += ',';
    out += std::to_string(low);
    if (high == low) continue;
    out += ':';
    if (high != INT64_MAX) out += std::to_string(high);
  }
  return out;
}

}  // namespace msdbg
