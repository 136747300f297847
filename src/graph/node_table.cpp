// Sets of nodes for selectors: those of a script may list every node of a graph.
#include <algorithm>

#include "graph/node_bits.h"
#include "graph/selector_term.h"

namespace msdbg {

const NodeTable::Part* NodeTable::part_of(int rank, int graph) const {
  const auto found = std::ranges::find_if(parts_, [&](const Part& part) { return part.rank == rank && part.graph == graph; });
  return found == parts_.end() ? nullptr : &*found;
}

void NodeTable::add(const NodeRef& ref) {
  const Graph& graph = *ref.graph;
  const auto is_of = [&](const Part& part) { return part.rank == graph.rank() && part.graph == graph.id(); };
  if (parts_.empty() || !is_of(parts_.back())) {  // nodes of one graph follow one another
    if (const auto known = std::ranges::find_if(parts_, is_of); known != parts_.end()) {
      std::swap(*known, parts_.back());
    } else {
      Part& fresh = parts_.emplace_back();
      fresh.rank = graph.rank();
      fresh.graph = graph.id();
    }
  }
  Part& part = parts_.back();
  const std::string& name = graph.node(ref.node).name;
  auto* list = part.by_name.find(name);
  if (list == nullptr) list = &part.by_name.add(names_.add(name)).first;
  part.ids.add(*list, ref.node);
}

bool NodeTable::contains(int rank, int graph, std::string_view name) const {
  const Part* const part = part_of(rank, graph);
  return part != nullptr && part->by_name.find(name) != nullptr;
}

bool NodeTable::contains(const Graph& graph, const Node& node) const {
  const Part* const part = part_of(graph.rank(), graph.id());
  const auto* const list = part ? part->by_name.find(node.name) : nullptr;
  if (list == nullptr) return false;
  for (const NodeId id : part->ids.of(*list)) {
    if (id == node.id || id >= graph.nodes().size() || graph.node(id).name != node.name) return true;
  }
  return false;
}

NodeBits NodeTable::nodes_of(const Graph& graph) const {
  NodeBits found = node_bits(graph);
  const Part* const part = part_of(graph.rank(), graph.id());
  if (part == nullptr) return found;
  for (const auto& [name, list] : part->by_name) {
    for (const NodeId id : part->ids.of(list)) {
      if (id < graph.nodes().size() && graph.node(id).name == name) {
        msdbg::add(found, id);
        continue;
      }
      for (const Node& node : graph.nodes()) {
        if (contains(graph, node)) msdbg::add(found, node.id);
      }
      return found;
    }
  }
  return found;
}

}  // namespace msdbg
