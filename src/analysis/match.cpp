// Matches the nodes of one graph with those of another. Names come first; where they differ, the position relative to nodes that
// are matched already decides. See docs/diff.md.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "analysis/match_blind.h"
#include "analysis/match_calls.h"
#include "analysis/node_name.h"
#include "msdbg/diff.h"

namespace msdbg {
namespace {

/// Larger cross products of users say nothing about which node is which.
constexpr size_t kMostUsers = 16;

/// Releases write the scopes of the same place differently: `Grad_MatMul`, `gradMatMul-expand`.
std::string plain_scope(std::string_view scope) {
  std::string out;
  for (std::string_view part : split(scope, '/')) {
    std::string word = to_lower(part);
    for (std::string_view tail : {"-expand", "-meta"}) {
      if (word.ends_with(tail)) word.resize(word.size() - tail.size());
    }
    if (word.starts_with("grad_")) word.erase(4, 1);
    out += word + '/';
  }
  return out;
}

class Matcher {
 public:
  Matcher(const Graph& a, const Graph& b) : a_(a), b_(b), of_a_(a.nodes().size(), kNoNode), of_b_(b.nodes().size(), kNoNode) {}

  void apply(const NameMap& map, std::vector<std::string>* problems);
  void match_names();
  void match_structure();
  void match_blind(const DumpedShapes& shapes_a, const DumpedShapes& shapes_b) {
    for (const auto& [x, y] : match_without_edges(a_, b_, shapes_a, shapes_b, of_a_, of_b_)) add(x, y, MatchMethod::kName);
  }
  void match_calls() {
    for (const auto& [x, y] : match_recorded_calls(a_, b_, of_a_, of_b_)) add(x, y, MatchMethod::kName);
  }
  GraphMatch take();

 private:
  using Pair = std::pair<NodeId, NodeId>;
  /// Most evidence first, then the order of execution.
  using Ranked = std::tuple<int, uint32_t, uint32_t, Pair>;
  struct Evidence {
    int points = 0;
    std::optional<int> similarity;  ///< computed once
  };

  bool is_free(NodeId x, NodeId y) const { return of_a_[x] == kNoNode && of_b_[y] == kNoNode; }
  void add(NodeId x, NodeId y, MatchMethod how, uint32_t slot_a = 0, uint32_t slot_b = 0) {
    of_a_[x] = y;
    of_b_[y] = x;
    found_.push_back({x, y, how, slot_a, slot_b});
    fresh_.emplace_back(x, y);
  }
  bool same_kind(NodeId x, NodeId y) const {
    return a_.node(x).kind == b_.node(y).kind && a_.node(x).op == b_.node(y).op;
  }
  int similarity(NodeId x, NodeId y) const;
  void match_group(std::vector<NodeId> left, std::vector<NodeId> right);
  void note_inputs(NodeId x, NodeId y);
  bool fit(NodeId x, uint32_t slot_a, NodeId y, uint32_t slot_b) const;
  void note_users(NodeId x, NodeId y);
  void note(const Pair& pair);
  bool accept_best();
  bool accept_values();
  std::map<Pair, int> shared_inputs(const std::vector<NodeId>& left, const std::vector<NodeId>& right) const;

  const Graph &a_, &b_;
  std::vector<NodeId> of_a_, of_b_;
  std::vector<NodeMatch> found_;
  std::vector<Pair> fresh_;           // matched, but their neighbours have not been examined
  std::map<Pair, Evidence> evidence_;  // matched neighbours that support the pair
  std::set<Ranked> ranked_;            // the pairs with any evidence; matched ones are removed when they reach the front
  // Other operators at the same input, with their output slots; the last in execution order first, because later ones are nearer to
  // the matched consumers.
  std::map<std::tuple<int64_t, int64_t, Pair>, std::pair<uint32_t, uint32_t>> values_;
};

void Matcher::apply(const NameMap& map, std::vector<std::string>* problems) {
  const std::vector<GraphPtr> left = {GraphPtr(GraphPtr(), &a_)}, right = {GraphPtr(GraphPtr(), &b_)};
  for (const NameMap::Entry& entry : map.entries) {
    const auto x = find_node(left, entry.a);
    const auto y = find_node(right, entry.b);
    const auto complain = [&](const std::string& why) {
      if (problems) problems->push_back(fmt::format("{}:{}: {}", map.source, entry.line, why));
    };
    if (!x) {
      complain("left: " + x.status().message());
    } else if (!y) {
      complain("right: " + y.status().message());
    } else if (!is_free(x->node, y->node)) {
      complain("one of the two nodes is in another line already");
    } else {
      add(x->node, y->node, MatchMethod::kMap);
    }
  }
}

void Matcher::match_names() {
  // Without the numbers, which differ between releases and between a graph and the same graph with one more node. Old releases give
  // the operator that loads a parameter the parameter's name: these are separate groups. Parameters come first, because they
  // distinguish the operators of a group.
  std::map<std::pair<bool, std::string_view>, std::pair<std::vector<NodeId>, std::vector<NodeId>>> groups;
  const auto collect = [&](const Graph& graph, bool first) {
    for (const Node& node : graph.nodes()) {
      if (node.kind == NodeKind::kOperator) continue;
      auto& group = groups[{false, node.name}];
      (first ? group.first : group.second).push_back(node.id);
    }
    for (NodeId id : graph.execution_order()) {
      auto& group = groups[{true, without_number(graph.node(id).name)}];
      (first ? group.first : group.second).push_back(id);
    }
  };
  collect(a_, true);
  collect(b_, false);
  const auto unmatched = [](std::vector<NodeId> nodes, const std::vector<NodeId>& taken) {
    std::erase_if(nodes, [&](NodeId id) { return taken[id] != kNoNode; });
    return nodes;
  };
  for (auto& [name, group] : groups) {
    auto left = unmatched(group.first, of_a_), right = unmatched(group.second, of_b_);
    if (!left.empty() && !right.empty()) match_group(std::move(left), std::move(right));
  }
}

void Matcher::match_group(std::vector<NodeId> left, std::vector<NodeId> right) {
  // Identical names on both sides mean identical nodes.
  std::set<std::string_view> names_a, names_b;
  for (NodeId id : left) names_a.insert(a_.node(id).name);
  for (NodeId id : right) names_b.insert(b_.node(id).name);
  if (names_a == names_b && names_a.size() == left.size() && names_b.size() == right.size()) {
    std::map<std::string_view, NodeId> of_name;
    for (NodeId id : right) of_name.emplace(b_.node(id).name, id);
    for (NodeId x : left) {
      const NodeId y = of_name.at(a_.node(x).name);
      if (is_free(x, y) && same_kind(x, y)) add(x, y, MatchMethod::kName);
    }
    return;
  }
  if (left.size() == 1 && right.size() == 1) {
    if (is_free(left[0], right[0]) && same_kind(left[0], right[0])) add(left[0], right[0], MatchMethod::kName);
    return;
  }
  // Otherwise by the parameters they share, as for optimizers; the remaining nodes by order, if their numbers agree.
  std::vector<std::pair<int, Pair>> ranked;
  for (const auto& [pair, points] : shared_inputs(left, right)) ranked.emplace_back(-points, pair);
  std::sort(ranked.begin(), ranked.end());
  for (const auto& [points, pair] : ranked) {
    if (is_free(pair.first, pair.second) && same_kind(pair.first, pair.second)) add(pair.first, pair.second, MatchMethod::kName);
  }
  std::erase_if(left, [&](NodeId id) { return of_a_[id] != kNoNode; });
  std::erase_if(right, [&](NodeId id) { return of_b_[id] != kNoNode; });
  if (left.size() != right.size()) return;  // left to the structural match
  for (size_t i = 0; i < left.size(); ++i) {
    if (same_kind(left[i], right[i])) add(left[i], right[i], MatchMethod::kName);
  }
}

std::map<Matcher::Pair, int> Matcher::shared_inputs(const std::vector<NodeId>& left, const std::vector<NodeId>& right) const {
  std::map<std::pair<NodeId, uint32_t>, std::vector<NodeId>> consumers;  // of b: input node and slot -> nodes of the group
  for (NodeId y : right) {
    for (uint32_t slot = 0; slot < b_.node(y).inputs.size(); ++slot) {
      const Edge edge = b_.effective_producer(y, slot);
      if (edge.node != kNoNode && b_.node(edge.node).kind == NodeKind::kParameter) consumers[{edge.node, slot}].push_back(y);
    }
  }
  std::map<Pair, int> points;
  for (NodeId x : left) {
    for (uint32_t slot = 0; slot < a_.node(x).inputs.size(); ++slot) {
      const Edge edge = a_.effective_producer(x, slot);
      if (edge.node == kNoNode || of_a_[edge.node] == kNoNode) continue;
      const auto found = consumers.find({of_a_[edge.node], slot});
      // An input shared by the whole group (a learning rate) distinguishes nothing.
      if (found == consumers.end() || found->second.size() > 1) continue;
      points[{x, found->second[0]}] += 1;
    }
  }
  return points;
}

// ---- structure -----------------------------------------------------------------------------------------------------

/// Points for what two nodes of the same operator type have in common apart from their neighbours.
int Matcher::similarity(NodeId x, NodeId y) const {
  const Node &left = a_.node(x), &right = b_.node(y);
  int points = 0;
  if (plain_scope(left.scope) == plain_scope(right.scope)) points += 2;
  if (left.inputs.size() == right.inputs.size()) points += 1;
  if (!left.outputs.empty() && !right.outputs.empty()) {
    const OutputType &p = left.outputs[0], &q = right.outputs[0];
    if (p.shape && q.shape) points += *p.shape == *q.shape ? 2 : p.shape->size() == q.shape->size() ? 0 : -3;
    if (p.dtype == q.dtype) points += 1;
  }
  return points;
}

/// False if both graphs know the shapes of the two outputs and they differ.
bool Matcher::fit(NodeId x, uint32_t slot_a, NodeId y, uint32_t slot_b) const {
  const auto &left = a_.node(x).outputs, &right = b_.node(y).outputs;
  if (slot_a >= left.size() || slot_b >= right.size()) return false;
  return !left[slot_a].shape || !right[slot_b].shape || *left[slot_a].shape == *right[slot_b].shape;
}

void Matcher::note_inputs(NodeId x, NodeId y) {
  const size_t inputs = std::min(a_.node(x).inputs.size(), b_.node(y).inputs.size());
  for (uint32_t slot = 0; slot < inputs; ++slot) {
    const Edge p = a_.effective_producer(x, slot), q = b_.effective_producer(y, slot);
    if (p.node == kNoNode || q.node == kNoNode || !is_free(p.node, q.node)) continue;
    if (a_.node(p.node).kind != b_.node(q.node).kind) continue;
    if (a_.node(p.node).kind == NodeKind::kParameter && a_.node(p.node).trainable) continue;  // these are matched by name
    if (same_kind(p.node, q.node)) {
      if (p.slot == q.slot) note({p.node, q.node});
    } else if (fit(p.node, p.slot, q.node, q.slot)) {
      const int64_t last_b = -static_cast<int64_t>(b_.node(q.node).order), last_a = -static_cast<int64_t>(a_.node(p.node).order);
      values_.emplace(std::tuple(last_b, last_a, Pair{p.node, q.node}), std::pair(p.slot, q.slot));
    }
  }
}

void Matcher::note_users(NodeId x, NodeId y) {
  using Key = std::tuple<std::string_view, uint32_t, uint32_t>;
  std::map<Key, std::pair<std::vector<NodeId>, std::vector<NodeId>>> users;
  for (const Use& use : a_.effective_users(x)) {
    if (of_a_[use.node] == kNoNode) users[{a_.node(use.node).op, use.slot, use.output_slot}].first.push_back(use.node);
  }
  for (const Use& use : b_.effective_users(y)) {
    if (of_b_[use.node] == kNoNode) users[{b_.node(use.node).op, use.slot, use.output_slot}].second.push_back(use.node);
  }
  for (const auto& [key, sides] : users) {
    if (sides.first.size() * sides.second.size() > kMostUsers) continue;
    for (NodeId p : sides.first) {
      for (NodeId q : sides.second) note({p, q});
    }
  }
}

/// Adds the evidence of one more matched neighbour.
void Matcher::note(const Pair& pair) {
  Evidence& found = evidence_[pair];
  const auto ranked = [&] {
    return Ranked(-(found.points + *found.similarity), b_.node(pair.second).order, a_.node(pair.first).order, pair);
  };
  if (found.similarity) ranked_.erase(ranked());
  else found.similarity = similarity(pair.first, pair.second);
  found.points += 2;
  if (found.points + *found.similarity > 0) ranked_.insert(ranked());
}

/// Matches the pairs with the most evidence; each round changes the evidence for the next. False: nothing left to match.
bool Matcher::accept_best() {
  std::optional<int> best;
  while (!ranked_.empty() && (!best || std::get<0>(*ranked_.begin()) == *best)) {
    const auto [points, order_b, order_a, pair] = *ranked_.begin();
    ranked_.erase(ranked_.begin());
    if (!is_free(pair.first, pair.second)) continue;
    best = points;
    add(pair.first, pair.second, MatchMethod::kStructure);
  }
  return best.has_value();
}

/// Matches a fused kernel with the last of the operators that it replaces.
bool Matcher::accept_values() {
  while (!values_.empty()) {
    const auto [key, slots] = *values_.begin();
    values_.erase(values_.begin());
    const Pair& pair = std::get<2>(key);
    if (!is_free(pair.first, pair.second)) continue;
    add(pair.first, pair.second, MatchMethod::kValue, slots.first, slots.second);
    return true;
  }
  return false;
}

void Matcher::match_structure() {
  for (;;) {
    while (!fresh_.empty()) {
      const std::vector<Pair> pairs = std::move(fresh_);
      fresh_.clear();
      for (const auto& [x, y] : pairs) {
        // The inputs of a fused kernel are not those of the last operator that it replaces.
        if (same_kind(x, y)) note_inputs(x, y);
        note_users(x, y);
      }
    }
    if (!accept_best() && !accept_values()) return;
  }
}

GraphMatch Matcher::take() {
  GraphMatch match;
  std::sort(found_.begin(), found_.end(), [&](const NodeMatch& x, const NodeMatch& y) {
    return std::tuple(b_.node(x.b).order, x.b) < std::tuple(b_.node(y.b).order, y.b);
  });
  match.nodes = std::move(found_);
  const auto rest = [](const Graph& graph, const std::vector<NodeId>& taken) {
    std::vector<NodeId> out;
    for (const Node& node : graph.nodes()) {
      if (taken[node.id] == kNoNode) out.push_back(node.id);
    }
    std::sort(out.begin(), out.end(),
              [&](NodeId x, NodeId y) { return std::tuple(graph.node(x).order, x) < std::tuple(graph.node(y).order, y); });
    return out;
  };
  match.only_a = rest(a_, of_a_);
  match.only_b = rest(b_, of_b_);
  return match;
}

}  // namespace

GraphMatch match_graphs(const Graph& a, const Graph& b, const NameMap& map, std::vector<std::string>* problems,
                        const DumpedShapes& shapes_a, const DumpedShapes& shapes_b) {
  Matcher matcher(a, b);
  matcher.apply(map, problems);
  if (a.recorded_calls() && b.recorded_calls()) {
    matcher.match_calls();
  } else if (knows_edges(a) && knows_edges(b)) {
    matcher.match_names();
    matcher.match_structure();
  } else {
    matcher.match_blind(shapes_a, shapes_b);
  }
  return matcher.take();
}

}  // namespace msdbg
