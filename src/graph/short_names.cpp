#include "msdbg/short_names.h"

#include <algorithm>

#include "msdbg/hash.h"
#include "msdbg/node_names.h"
#include "msdbg/terminal.h"

namespace msdbg {
namespace {

constexpr std::string_view kMark = "\u2026";
constexpr size_t kLongName = 32, kElided = 28, kLonger = 8, kLeastComponent = 7;
constexpr size_t kMostForms = 32;   // lists of forms, 4 bytes a name each
constexpr int kFewQuestions = 4;    // sorting costs about as much as eight scans

// Compares from the end; a slash sorts before everything else, which groups names with the same last components.
bool less_from_the_end(std::string_view a, std::string_view b) {
  const size_t least = std::min(a.size(), b.size());
  for (size_t i = 1; i <= least; ++i) {
    const char x = a[a.size() - i], y = b[b.size() - i];
    if (x != y) return x == '/' || (y != '/' && x < y);
  }
  return a.size() < b.size();
}

// The length of the last components that two names share; a whole name counts as a component.
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

// The start and the end that stay of a component which is wider than `width`.
struct Ends {
  std::string_view begin, end;
};

Ends ends_of(std::string_view component, size_t columns, size_t width) {
  const size_t behind = (width - 1) / 2;
  return {head(component, width - 1 - behind), component.substr(head(component, columns - behind).size())};
}

std::string elided_component(std::string_view component, size_t width) {
  const size_t columns = display_width(component);
  if (columns <= width) return std::string(component);
  const Ends ends = ends_of(component, columns, width);
  return std::string(ends.begin) + std::string(kMark) + std::string(ends.end);
}

// The same for all names that could be meant by the form of one of them; nullopt: the name has fewer components.
std::optional<uint32_t> form_hash(std::string_view name, size_t components, size_t each) {
  uint64_t hash = 0;
  for (size_t i = 0; i < components; ++i) {
    const std::string_view component = last_component(name);
    const size_t columns = display_width(component);
    if (columns + 1 < each) {
      hash = hash_of(component, hash);
    } else {  // as wide as the two ends: the form of a longer component may fit it
      const Ends ends = ends_of(component, columns, each);
      hash = hash_of(ends.end, hash_of(ends.begin, hash));
    }
    if (component.size() == name.size()) return i + 1 == components ? std::optional(static_cast<uint32_t>(hash)) : std::nullopt;
    name.remove_suffix(component.size() + 1);
  }
  return static_cast<uint32_t>(hash);
}

}  // namespace

bool is_elided_form(std::string_view word, std::string_view name) {
  if (word.find(kMark) == std::string_view::npos) return false;
  while (true) {
    const std::string_view pattern = last_component(word), component = last_component(name);
    const size_t mark = pattern.find(kMark);
    const std::string_view begin = pattern.substr(0, mark);
    const std::string_view end = mark == std::string_view::npos ? "" : pattern.substr(mark + kMark.size());
    const bool matches = mark == std::string_view::npos ? pattern == component
                                                        : component.size() >= begin.size() + end.size() && component.starts_with(begin) &&
                                                              component.ends_with(end);
    if (!matches) return false;
    if (pattern.size() == word.size()) return true;
    if (component.size() == name.size()) return false;
    word.remove_suffix(pattern.size() + 1);
    name.remove_suffix(component.size() + 1);
  }
}

/// Whether no other name has this elided form, whose components are at most `each` wide.
bool ShortNames::unique_form(std::string_view word, size_t components, size_t each, std::string_view full_name) {
  if (!sorted_) {
    return std::none_of(names_.begin(), names_.end(), [&](auto name) { return name != full_name && is_elided_form(word, name); });
  }
  if (forms_.size() == kMostForms && !forms_.contains({components, each})) forms_.clear();
  const auto [at, is_new] = forms_.try_emplace({components, each});
  std::vector<uint32_t>& hashes = at->second;
  if (is_new) {
    for (const std::string_view name : names_) {
      if (const auto hash = form_hash(name, components, each)) hashes.push_back(*hash);
    }
    std::sort(hashes.begin(), hashes.end());
  }
  const auto hash = form_hash(full_name, components, each);
  MSDBG_CHECK(hash.has_value());
  const auto [first, last] = std::equal_range(hashes.begin(), hashes.end(), *hash);
  return last - first <= 1;
}

std::string ShortNames::elided(std::string_view full_name) {
  const std::string name = of(full_name);
  const size_t columns = display_width(name);
  if (columns <= kLongName) return name;
  const std::vector<std::string_view> components = split(name, '/');
  for (size_t width = kElided; width < columns; width += kLonger) {
    const size_t each = std::max(kLeastComponent, (width - components.size() + 1) / components.size());
    std::string word;
    for (const std::string_view component : components) word += (word.empty() ? "" : "/") + elided_component(component, each);
    if (unique_form(word, components.size(), each, full_name)) return word;
  }
  return name;
}

ShortNames::ShortNames(std::span<const GraphPtr> graphs) : graphs_(graphs.begin(), graphs.end()) {
  for (const GraphPtr& graph : graphs) {
    for (const Node& node : graph->nodes()) names_.push_back(node.name);
  }
}

ShortNames::ShortNames(std::span<const std::string> names) : names_(names.begin(), names.end()) {}

void ShortNames::prepare() {
  if (sorted_ || ++questions_ <= kFewQuestions) return;
  std::sort(names_.begin(), names_.end(), less_from_the_end);
  names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
  sorted_ = true;
}

bool ShortNames::is_of(std::span<const GraphPtr> graphs) const {
  // An object with a live weak pointer cannot be replaced by another one at the same address.
  return std::equal(graphs_.begin(), graphs_.end(), graphs.begin(), graphs.end(),
                    [](const auto& own, const GraphPtr& graph) { return !own.owner_before(graph) && !graph.owner_before(own); });
}

/// The length of the longest ending that the name shares with another one.
size_t ShortNames::longest_common_ending(std::string_view full_name) const {
  size_t common = 0;
  if (!sorted_) {
    for (const std::string_view name : names_) {
      if (name != full_name) common = std::max(common, common_ending(full_name, name));
    }
    return common;
  }
  const auto at = std::lower_bound(names_.begin(), names_.end(), full_name, less_from_the_end);
  if (at != names_.begin()) common = common_ending(full_name, *std::prev(at));
  for (auto next = at; next != names_.end(); ++next) {
    if (*next == full_name) continue;
    return std::max(common, common_ending(full_name, *next));
  }
  return common;
}

std::string ShortNames::of(std::string_view full_name) {
  prepare();
  const size_t common = longest_common_ending(full_name);
  for (size_t slash = full_name.rfind('/'); slash != std::string_view::npos && slash > 0; slash = full_name.rfind('/', slash - 1)) {
    if (full_name.size() - slash - 1 > common) return std::string(full_name.substr(slash + 1));
  }
  return std::string(full_name);
}

}  // namespace msdbg
