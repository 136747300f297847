// Which collectives reduce the gradients of a weight: its ranks are those of their groups.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/gradient_values.h"
#include "analysis/node_name.h"
#include "analysis/replica_model.h"
#include "msdbg/gradients.h"

namespace msdbg {
namespace {

std::optional<Shape> shape_of(const Graph& graph, const Edge& edge) {
  const Node& node = graph.node(edge.node);
  return edge.slot < node.outputs.size() ? node.outputs[edge.slot].shape : std::nullopt;
}

/// Whether what an operator gives is its input `from`, element by element: scaled, clipped, cast or in another layout.
bool passes_on(const Graph& graph, const Node& node, const Edge& out, const Edge& from) {
  constexpr std::string_view kSums[] = {"MatMul", "Matmul", "Conv", "Dense", "Linear", "Einsum"};
  constexpr std::string_view kLayouts[] = {"Reshape", "Transpose", "TransData", "Squeeze", "ExpandDims", "Flatten", "View"};
  if (has_any_word(node.op, kSums)) return false;
  const std::optional<Shape> made = shape_of(graph, out), taken = shape_of(graph, from);
  if (!has_any_word(node.op, kLayouts) || !made || !taken) return made == taken;
  return element_count(*made) == element_count(*taken);
}

/// The collective that a gradient passes on its way to the optimizer.
std::optional<NodeId> reduced_by(const Graph& graph, Edge at) {
  constexpr int kLongestWay = 64;
  for (int hops = 0; hops < kLongestWay; ++hops) {
    const Node& node = graph.node(at.node);
    if (node.kind != NodeKind::kOperator) return std::nullopt;
    if (collective_kind(node)) return node.id;
    std::optional<Edge> next;
    for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
      const Edge producer = graph.effective_producer(node.id, slot);
      if (producer.node == kNoNode || graph.node(producer.node).kind != NodeKind::kOperator) continue;
      if (!passes_on(graph, node, at, producer)) continue;
      if (next && next->node != producer.node) return std::nullopt;
      next = producer;
    }
    if (!next) return std::nullopt;
    at = *next;
  }
  return std::nullopt;
}

/// The same where a recorded call leaves the sum in the gradient.
std::optional<NodeId> reduced_in_place(const Graph& graph, NodeId parameter) {
  for (const Edge& value : gradient_values(graph, parameter)) {
    if (collective_kind(graph.node(value.node)) == CollectiveKind::kAllReduce) return value.node;
  }
  return std::nullopt;
}

}  // namespace

void ReplicaModel::find_groups() {
  bool any_reduced = false;
  std::set<std::pair<const Graph*, NodeId>> reducers;
  LastParts last;
  for (ReplicaValue& value : values_) {
    std::set<std::vector<int>> parts;
    std::set<std::string> groups;
    std::map<std::vector<int>, std::set<std::string>> groups_of;
    std::vector<int64_t> unreduced;  // ranks whose graph reduces nothing here
    bool assumed = false, scattered = false, trained = false;
    for (const auto& [rank, ref] : value.nodes) {
      std::optional<NodeId> call;
      if (value.collective) {
        call = ref.node;
      } else if (value.what == ReplicaKind::kParameter && ref.graph->node(ref.node).trainable) {
        trained = true;
        const auto gradient = gradient_of(*ref.graph, ref.node);
        if (gradient && gradient->producer.node != kNoNode) call = reduced_by(*ref.graph, gradient->producer);
        if (!call) call = reduced_in_place(*ref.graph, ref.node);
      }
      const auto kind = call ? collective_kind(ref.graph->node(*call)) : std::nullopt;
      if (call && trained) reducers.insert({ref.graph, *call});
      if (!kind || (*kind != CollectiveKind::kAllReduce && *kind != CollectiveKind::kReduceScatter && !value.collective)) {
        unreduced.push_back(rank);
        parts.insert({rank});
        continue;
      }
      scattered = scattered || *kind == CollectiveKind::kReduceScatter;
      std::vector<int> part;
      const Exchange* const exchange = scattered ? nullptr : collectives_.find(*ref.graph, *call);
      if (exchange == nullptr) {
        part.push_back(rank);
      } else {
        for (const NodeRef& member : exchange->members) {
          const auto own = value.nodes.find(member.graph->rank());
          if (own != value.nodes.end() && (!value.collective || own->second.node == member.node)) part.push_back(member.graph->rank());
        }
        assumed = assumed || exchange->assumed;
      }
      const std::string group = collective_group(ref.graph->node(*call));
      groups.insert(group.empty() ? "an unnamed group" : group);
      groups_of[part].insert(group.empty() ? "an unnamed group" : group);
      parts.insert(std::move(part));
    }
    const bool known = unreduced.size() < value.nodes.size();
    value.unreduced = trained && !known;
    value.untrained = value.what == ReplicaKind::kParameter && !trained;
    if (!known) continue;
    if (!unreduced.empty()) {
      note(fmt::format("on {} {} no collective reduces their gradients", unreduced.size() == 1 ? "rank" : "ranks", numbers_text(unreduced)),
           {value.graph, value.name});
    }
    any_reduced = any_reduced || !value.collective;
    value.parts = last.shared(Parts(parts.begin(), parts.end()));
    value.assumed = assumed;
    const auto reason = [&](const std::set<std::string>& of) {
      std::string names;
      for (const std::string& group : of) names += (names.empty() ? "" : ", ") + group;
      return (value.collective ? "of " : std::string(kReducedBy)) + names;
    };
    value.reason = last.shared(scattered ? "sharded: their gradients pass ReduceScatter" : reason(groups));
    if (scattered || groups.size() < 2) continue;
    std::vector<std::pair<std::vector<int>, std::string>> reasons;
    for (const auto& [part, of] : groups_of) reasons.emplace_back(part, reason(of));
    value.reasons = std::move(reasons);
  }
  const bool only_reduced = any_reduced && !has_other_exchange(reducers);
  for (ReplicaValue& value : values_) {
    value.drifts = value.unreduced && only_reduced;
    value.unreduced = (value.unreduced && any_reduced) || (value.is_parameter() && value.untrained);
  }
}

bool ReplicaModel::only_pairs_exchange() const {
  const auto pair = [](const Exchange& exchange) { return exchange.kind == CollectiveKind::kSend; };
  return !collectives_.empty() && std::ranges::all_of(collectives_.all(), pair);
}

std::string ReplicaModel::reason_apart() const {
  return only_pairs_exchange() ? "ranks exchange values in pairs only: nothing keeps all of them equal"
                               : "they belong to weights that each rank has another one of, or are computed from these";
}

bool ReplicaModel::all_exchange_together() const {
  std::set<int> ranks;
  for (const Graph* graph : graphs_) ranks.insert(graph->rank());
  const auto together = [&](const Exchange& exchange) {
    return exchange.kind != CollectiveKind::kSend && exchange.members.size() >= ranks.size();
  };
  return joined_ && std::ranges::all_of(collectives_.all(), together);
}

/// Shards exchange what they compute. Single numbers, such as a mean loss, and what one rank gives to all say nothing about the weights.
bool ReplicaModel::has_other_exchange(const std::set<std::pair<const Graph*, NodeId>>& reducers) const {
  for (const Graph* graph : graphs_) {
    for (const Node& node : graph->nodes()) {
      const auto kind = collective_kind(node);
      if (!kind || *kind == CollectiveKind::kBroadcast || reducers.contains({graph, node.id})) continue;
      const bool number = *kind == CollectiveKind::kAllReduce && !node.outputs.empty() && node.outputs[0].shape &&
                          element_count(*node.outputs[0].shape) == 1;
      if (!number) return true;
    }
  }
  return false;
}

}  // namespace msdbg
