#include "msdbg/short_names.h"

#include <algorithm>

namespace msdbg {
namespace {

// From the end; a slash sorts before everything else, so names with the same last components are together.
bool less_from_the_end(std::string_view a, std::string_view b) {
  const size_t least = std::min(a.size(), b.size());
  for (size_t i = 1; i <= least; ++i) {
    const char x = a[a.size() - i], y = b[b.size() - i];
    if (x != y) return x == '/' || (y != '/' && x < y);
  }
  return a.size() < b.size();
}

// The length of the last components that two names have in common; a whole name counts as one.
size_t common_ending(std::string_view a, std::string_view b) {
  const size_t least = std::min(a.size(), b.size());
  size_t length = 0, whole = 0;
  while (length < least && a[a.size() - length - 1] == b[b.size() - length - 1]) {
    if (a[a.size() - length - 1] == '/') whole = length;
    ++length;
  }
  const auto ends_here = [length](std::string_view name) { return length == name.size() || name[name.size() - length - 1] == '/'; };
  return ends_here(a) && ends_here(b) ? length : whole;
}

}  // namespace

ShortNames::ShortNames(std::span<const GraphPtr> graphs) : graphs_(graphs.begin(), graphs.end()) {
  for (const GraphPtr& graph : graphs) {
    for (const Node& node : graph->nodes()) names_.push_back(node.name);
  }
  std::sort(names_.begin(), names_.end(), less_from_the_end);
  names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
}

bool ShortNames::is_of(std::span<const GraphPtr> graphs) const {
  // The owner of a weak pointer is not replaced by another at the same address.
  return std::equal(graphs_.begin(), graphs_.end(), graphs.begin(), graphs.end(),
                    [](const auto& own, const GraphPtr& graph) { return !own.owner_before(graph) && !graph.owner_before(own); });
}

std::string ShortNames::of(std::string_view full_name) const {
  const auto at = std::lower_bound(names_.begin(), names_.end(), full_name, less_from_the_end);
  size_t common = 0;
  if (at != names_.begin()) common = common_ending(full_name, *std::prev(at));
  for (auto next = at; next != names_.end(); ++next) {
    if (*next == full_name) continue;
    common = std::max(common, common_ending(full_name, *next));
    break;
  }
  for (size_t slash = full_name.rfind('/'); slash != std::string_view::npos && slash > 0; slash = full_name.rfind('/', slash - 1)) {
    if (full_name.size() - slash - 1 > common) return std::string(full_name.substr(slash + 1));
  }
  return std::string(full_name);
}

}  // namespace msdbg
