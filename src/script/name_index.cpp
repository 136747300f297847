#include "script/name_index.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <unordered_map>

namespace msdbg::script {
namespace {

bool equal_nocase(std::string_view a, std::string_view b) { return a.size() == b.size() && starts_with_nocase(a, b); }

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Natural order: op2 before op10.
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

// Inserts names into the tree. The first Tab waits for this: names of one scope mostly follow each other, so their common path is
// walked once, and the table needs no allocation per entry.
class NameIndex::Builder {
 public:
  Builder(std::vector<Place>* places, size_t names) : places_(*places), slots_(std::bit_ceil(2 * names + 2), 0) {
    places_.push_back({{}, 0});
  }

  void add(std::string_view name) {
    const size_t slash = name.rfind('/');
    const std::string_view scope = slash == std::string_view::npos ? std::string_view() : name.substr(0, slash + 1);
    if (scope != scope_) {
      scope_place_ = 0;
      for (size_t begin = 0; begin < scope.size();) {
        const size_t end = scope.find('/', begin);
        scope_place_ = child_of(scope_place_, scope.substr(begin, end - begin));
        begin = end + 1;
      }
      scope_ = scope;
    }
    places_[child_of(scope_place_, name.substr(scope.size()))].is_node = true;
  }

 private:
  static size_t hash(uint32_t parent, std::string_view component) {
    return std::hash<std::string_view>()(component) ^ (parent * size_t{0x9E3779B97F4A7C15});
  }

  uint32_t child_of(uint32_t parent, std::string_view component) {
    if (2 * places_.size() > slots_.size()) grow();
    uint32_t& slot = slot_of(parent, component);
    if (slot == 0) {
      slot = static_cast<uint32_t>(places_.size());
      places_.push_back({component, parent, 0, places_[parent].child, false});
      places_[parent].child = slot;
    }
    return slot;
  }

  uint32_t& slot_of(uint32_t parent, std::string_view component) {
    size_t at = hash(parent, component) & (slots_.size() - 1);
    while (slots_[at] != 0 && !(places_[slots_[at]].parent == parent && places_[slots_[at]].component == component)) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return slots_[at];
  }

  void grow() {
    slots_.assign(2 * slots_.size(), 0);
    for (uint32_t place = 1; place < places_.size(); ++place) slot_of(places_[place].parent, places_[place].component) = place;
  }

  std::vector<Place>& places_;
  std::vector<uint32_t> slots_;  // open addressing with masked hashes; 0 is free, because the root is never a child
  std::string_view scope_;       // of the previous name, with its last slash
  uint32_t scope_place_ = 0;
};

NameIndex::NameIndex(std::vector<GraphPtr> graphs) : graphs_(std::move(graphs)) {
  size_t count = 0;
  for (const GraphPtr& graph : graphs_) count += graph->nodes().size();
  places_.reserve(count + count / 8 + 1);
  Builder builder(&places_, count);
  std::unordered_map<std::string_view, bool> types;  // whether the operator is structural
  for (const GraphPtr& graph : graphs_) {
    for (const Node& node : graph->nodes()) {
      auto type = types.find(node.op);
      if (type == types.end()) type = types.emplace(node.op, is_structural(node.op)).first;
      if (!type->second && !node.name.empty()) builder.add(node.name);
    }
  }
  for (const auto& [type, structural] : types) op_types_.emplace_back(type);
  std::sort(op_types_.begin(), op_types_.end());
}

bool NameIndex::is_of(std::span<const GraphPtr> graphs) const { return std::ranges::equal(graphs, graphs_); }

// Whether the path of `place` ends with the components of `path`, or equals it if `whole`.
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

// Scopes with that path; otherwise those whose path ends with it.
std::vector<uint32_t> NameIndex::below(std::string_view path) const {
  for (const bool whole : {true, false}) {
    std::vector<uint32_t> found;
    for (uint32_t place = 1; place < places_.size(); ++place) {
      if (places_[place].child != 0 && ends_with(place, path, whole)) found.push_back(place);
    }
    if (!found.empty()) return found;
  }
  return {};
}

std::vector<std::string> NameIndex::complete(std::string_view word, size_t limit) const {
  const size_t slash = word.rfind('/');
  const std::string_view head = slash == std::string_view::npos ? std::string_view() : word.substr(0, slash);
  const std::string_view tail = slash == std::string_view::npos ? word : word.substr(slash + 1);

  // Component -> whether it occurs as a node (1), a scope (2), or both.
  std::unordered_map<std::string_view, int> found;
  const auto add = [&](const Place& place) {
    found[place.component] |= (place.is_node ? 1 : 0) | (place.child == 0 ? 0 : 2);
  };
  const auto add_matching = [&](auto&& matches) {
    if (slash != std::string_view::npos) {
      for (const uint32_t scope : below(head)) {
        for (uint32_t child = places_[scope].child; child != 0; child = places_[child].sibling) {
          if (matches(places_[child].component)) add(places_[child]);
        }
      }
    } else if (word.empty()) {
      for (uint32_t child = places_[0].child; child != 0; child = places_[child].sibling) add(places_[child]);
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
