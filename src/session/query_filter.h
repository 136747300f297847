// Which of a session's tensors a query asks for.
#pragma once

#include <unordered_map>
#include <vector>

#include "msdbg/session.h"

namespace msdbg {

/// The nodes and slots of a TensorQuery; ranks, graphs and steps are for the session, which lists by them.
class QueryFilter {
 public:
  explicit QueryFilter(const TensorQuery& query) : query_(query) {
    if (query.nodes == nullptr) return;
    for (const NodeRef& ref : *query.nodes) {
      std::vector<bool>& wanted = wanted_[ref.graph];
      wanted.resize(ref.graph->nodes().size());
      if (ref.node < wanted.size()) wanted[ref.node] = true;
    }
  }
  bool contains(const Graph& graph) const { return query_.nodes == nullptr || wanted_.count(&graph) > 0; }
  /// Precondition: contains(graph).
  bool contains(const Graph& graph, NodeId node) const { return query_.nodes == nullptr || wanted_.at(&graph)[node]; }
  bool contains(Slot slot) const {
    if (slot.io == Io::kInput ? !query_.inputs : !query_.outputs) return false;
    return !query_.slot || *query_.slot == slot.index;
  }

 private:
  const TensorQuery& query_;
  std::unordered_map<const Graph*, std::vector<bool>> wanted_;
};

}  // namespace msdbg
