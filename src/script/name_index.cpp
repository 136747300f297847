#include "script/name_index.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>

namespace msdbg::script {
namespace {

bool equal_nocase(std::string_view a, std::string_view b) { return a.size() == b.size() && starts_with_nocase(a, b); }

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// op2 before op10.
bool naturally_less(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      size_t i_end = i, j_end = j;
      while (i_end < a.size() && is_digit(a[i_end])) ++i_end;
      while (j_end < b.size() && is_digit(b[j_end])) ++j_end;
      if (i_end - i != j_end - j) return i_end - i < j_end - j;
      if (const int order = a.substr(i, i_end - i).compare(b.substr(j, j_end - j)); order != 0) return order < 0;
      i = i_end;
      j = j_end;
      continue;
    }
    if (a[i] != b[j]) return a[i] < b[j];
    ++i;
    ++j;
  }
  return a.size() - i < b.size() - j;
}

}  // namespace

NameIndex::NameIndex(std::vector<GraphPtr> graphs) : graphs_(std::move(graphs)) {
  size_t count = 0;
  for (const GraphPtr& graph : graphs_) count += graph->nodes().size();
  places_.reserve(count + count / 8 + 1);
  by_path_.reserve(count + count / 8 + 1);
  places_.push_back({{}, 0, false, {}});
  std::unordered_set<std::string_view> types;
  for (const GraphPtr& graph : graphs_) {
    for (const Node& node : graph->nodes()) {
      types.insert(node.op);
      if (!is_structural(node.op) && !node.name.empty()) places_[place_of(node.name)].is_node = true;
    }
  }
  op_types_.assign(types.begin(), types.end());
  std::sort(op_types_.begin(), op_types_.end());
}

bool NameIndex::is_of(std::span<const GraphPtr> graphs) const { return std::ranges::equal(graphs, graphs_); }

uint32_t NameIndex::place_of(std::string_view path) {
  if (const auto found = by_path_.find(path); found != by_path_.end()) return found->second;
  const size_t slash = path.rfind('/');
  const uint32_t parent = slash == std::string_view::npos ? 0 : place_of(path.substr(0, slash));
  const auto place = static_cast<uint32_t>(places_.size());
  places_.push_back({slash == std::string_view::npos ? path : path.substr(slash + 1), parent, false, {}});
  places_[parent].children.push_back(place);
  by_path_.emplace(path, place);
  return place;
}

// Whether the path of `place` ends with the components of `path`; `whole`: is that path.
bool NameIndex::ends_with(uint32_t place, std::string_view path, bool whole) const {
  while (place != 0) {
    const size_t slash = path.rfind('/');
    const bool last = slash == std::string_view::npos;
    if (!equal_nocase(places_[place].component, last ? path : path.substr(slash + 1))) return false;
    place = places_[place].parent;
    if (last) return !whole || place == 0;
    path = path.substr(0, slash);
  }
  return false;
}

// Scopes of that path; when there is none, those whose path ends so.
std::vector<uint32_t> NameIndex::below(std::string_view path) const {
  for (const bool whole : {true, false}) {
    std::vector<uint32_t> found;
    for (uint32_t place = 1; place < places_.size(); ++place) {
      if (!places_[place].children.empty() && ends_with(place, path, whole)) found.push_back(place);
    }
    if (!found.empty()) return found;
  }
  return {};
}

std::vector<std::string> NameIndex::complete(std::string_view word, size_t limit) const {
  const size_t slash = word.rfind('/');
  const std::string_view head = slash == std::string_view::npos ? std::string_view() : word.substr(0, slash);
  const std::string_view tail = slash == std::string_view::npos ? word : word.substr(slash + 1);

  // Component -> whether it is a node (1), a scope (2), or both, somewhere.
  std::unordered_map<std::string_view, int> found;
  const auto add = [&](const Place& place) {
    found[place.component] |= (place.is_node ? 1 : 0) | (place.children.empty() ? 0 : 2);
  };
  const auto add_matching = [&](auto&& matches) {
    if (slash != std::string_view::npos) {
      for (const uint32_t scope : below(head)) {
        for (const uint32_t child : places_[scope].children) {
          if (matches(places_[child].component)) add(places_[child]);
        }
      }
    } else if (word.empty()) {
      for (const uint32_t child : places_[0].children) add(places_[child]);
    } else {
      for (size_t place = 1; place < places_.size(); ++place) {
        if (matches(places_[place].component)) add(places_[place]);
      }
    }
  };
  add_matching([&](std::string_view component) { return starts_with_nocase(component, tail); });
  if (found.empty()) add_matching([&](std::string_view component) { return contains_nocase(component, tail); });

  std::vector<std::string_view> names;
  names.reserve(found.size());
  for (const auto& [name, kind] : found) names.push_back(name);
  const size_t shown = std::min(limit, names.size());
  std::partial_sort(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), names.end(), naturally_less);

  std::vector<std::string> out;
  for (size_t i = 0; i < shown && out.size() < limit; ++i) {
    const std::string text = (slash == std::string_view::npos ? std::string() : std::string(head) + "/") + std::string(names[i]);
    const int kind = found[names[i]];
    if ((kind & 1) != 0) out.push_back(text);
    if ((kind & 2) != 0 && out.size() < limit) out.push_back(text + "/");
  }
  return out;
}

}  // namespace msdbg::script
