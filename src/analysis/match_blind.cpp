#include "analysis/match_blind.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "analysis/node_name.h"

namespace msdbg {
namespace {

/// File names have `_` for scope separators and, since 2.3, also for the dots of parameters.
std::string folded(std::string_view name) {
  std::string out(name);
  std::replace_if(out.begin(), out.end(), [](char c) { return c == '/' || c == '\\' || c == '.' || c == ' '; }, '_');
  return out;
}

std::set<std::string> operator_names(const Graph& graph) {
  std::set<std::string> names;
  for (NodeId id : graph.execution_order()) names.insert(folded(graph.node(id).name));
  return names;
}

class BlindMatcher {
 public:
  BlindMatcher(const Graph& a, const Graph& b, const DumpedShapes& shapes_a, const DumpedShapes& shapes_b)
      : a_(a), b_(b), shapes_a_(shapes_a), shapes_b_(shapes_b), same_numbers_(operator_names(a) == operator_names(b)) {}

  std::vector<std::pair<NodeId, NodeId>> run(const std::vector<NodeId>& taken_a, const std::vector<NodeId>& taken_b) {
    std::map<std::pair<bool, std::string>, Group> groups;
    collect(a_, taken_a, groups, &Group::a);
    collect(b_, taken_b, groups, &Group::b);
    for (auto& [key, group] : groups) {
      if (!group.a.empty() && !group.b.empty()) match(group);
    }
    return std::move(pairs_);
  }

 private:
  struct Group {
    std::vector<NodeId> a, b;
  };
  enum class Fit : uint8_t { kNo, kUnknown, kYes };

  static void collect(const Graph& graph, const std::vector<NodeId>& taken, std::map<std::pair<bool, std::string>, Group>& groups,
                      std::vector<NodeId> Group::* side) {
    for (const Node& node : graph.nodes()) {
      if (taken[node.id] != kNoNode) continue;
      const bool is_operator = node.kind == NodeKind::kOperator;
      (groups[{is_operator, folded(is_operator ? without_number(node.name) : node.name)}].*side).push_back(node.id);
    }
  }

  bool same_kind(NodeId x, NodeId y) const { return a_.node(x).kind == b_.node(y).kind && a_.node(x).op == b_.node(y).op; }

  /// Compares the slots that were dumped on both sides; other slots say nothing.
  Fit fit(NodeId x, NodeId y) const {
    if (!same_kind(x, y)) return Fit::kNo;
    const auto left = shapes_a_.find(x), right = shapes_b_.find(y);
    if (left == shapes_a_.end() || right == shapes_b_.end()) return Fit::kUnknown;
    Fit found = Fit::kUnknown;
    for (const auto& [slot, shape] : left->second) {
      const auto other = right->second.find(slot);
      if (other == right->second.end()) continue;
      if (other->second != shape) return Fit::kNo;
      found = Fit::kYes;
    }
    return found;
  }

  void match(const Group& group) {
    const NodeKind kind = a_.node(group.a[0]).kind;
    // Constants are numbered as in the file, in an order that changes with every release.
    if (kind == NodeKind::kConstant && !same_numbers_) return;
    std::map<std::string, NodeId> names_a, names_b;
    for (NodeId id : group.a) names_a[folded(a_.node(id).name)] = id;
    for (NodeId id : group.b) names_b[folded(b_.node(id).name)] = id;
    const bool same_names = std::equal(names_a.begin(), names_a.end(), names_b.begin(), names_b.end(),
                                       [](const auto& x, const auto& y) { return x.first == y.first; });
    if (same_names) {
      // Parameters have no numbers, and identical nodes are numbered identically; otherwise a number proves nothing without the
      // shapes.
      const bool trusted = same_numbers_ || kind == NodeKind::kParameter;
      for (const auto& [name, x] : names_a) {
        const NodeId y = names_b[name];
        if (trusted ? same_kind(x, y) : fit(x, y) == Fit::kYes) pairs_.emplace_back(x, y);
      }
      return;
    }
    // Match nodes that fit only each other; with two candidates the match is ambiguous.
    for (NodeId x : group.a) {
      const NodeId y = only_fit(group.b, [&](NodeId id) { return fit(x, id); });
      if (y == kNoNode || only_fit(group.a, [&](NodeId id) { return fit(id, y); }) != x) continue;
      pairs_.emplace_back(x, y);
    }
  }

  template <typename Test>
  static NodeId only_fit(const std::vector<NodeId>& nodes, const Test& test) {
    NodeId found = kNoNode;
    for (NodeId id : nodes) {
      const Fit fit = test(id);
      if (fit == Fit::kNo) continue;
      if (fit == Fit::kUnknown || found != kNoNode) return kNoNode;
      found = id;
    }
    return found;
  }

  const Graph &a_, &b_;
  const DumpedShapes &shapes_a_, &shapes_b_;
  bool same_numbers_;
  std::vector<std::pair<NodeId, NodeId>> pairs_;
};

}  // namespace

std::vector<std::pair<NodeId, NodeId>> match_without_edges(const Graph& a, const Graph& b, const DumpedShapes& shapes_a,
                                                           const DumpedShapes& shapes_b, const std::vector<NodeId>& taken_a,
                                                           const std::vector<NodeId>& taken_b) {
  return BlindMatcher(a, b, shapes_a, shapes_b).run(taken_a, taken_b);
}

}  // namespace msdbg
