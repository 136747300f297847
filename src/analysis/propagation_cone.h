// Grows the cone of a bad tensor from operator to operator, through collectives also from rank to rank.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "analysis/step_models.h"
#include "msdbg/follow.h"

namespace msdbg {

/// Fill nodes, edges and reached ranks of `result`, whose tensor is bad: what it reached, and what reached it.
void grow_cone_down(StepModels& models, const StepModel& asked, Propagation& result);
void grow_cone_up(StepModels& models, const StepModel& asked, Propagation& result);

/// The nodes and edges of a cone while it grows. A node is an index into Propagation::nodes.
class ConeNodes {
 public:
  ConeNodes(StepModels& models, Propagation& result) : models_(models), result_(result) {}

  /// The node of an execution, or of a parameter or constant. `added`: it is new.
  size_t at(const StepModel& model, const Execution& execution, uint32_t distance, bool* added = nullptr);
  size_t value(const StepModel& model, NodeId id, uint32_t distance, bool* added = nullptr);
  PropagationNode& operator[](size_t index) { return result_.nodes[index]; }
  size_t size() const { return result_.nodes.size(); }
  const StepModel& model(size_t index) const { return *of_[index]; }
  const Node& node(size_t index) const { return of_[index]->graph().node(result_.nodes[index].node); }
  Execution execution(size_t index) const { return {result_.nodes[index].node, result_.nodes[index].execution}; }

  /// Shows a tensor as the node's value, unless it has one. `stats`: known already, maybe of another moment of the step.
  void show(size_t index, const TensorId& tensor, std::optional<Stats> stats = {});
  void edge(size_t from, size_t to, uint32_t output, uint32_t input, bool update, bool bad);
  /// The edge from a call of a collective to that of another rank.
  void edge_between_ranks(size_t from, size_t to, bool bad);
  /// Sorts the nodes for display and renumbers the edges.
  void finish();

 private:
  size_t add(const StepModel& model, const Execution& execution, bool value, uint32_t distance, bool* added);

  StepModels& models_;
  Propagation& result_;
  std::vector<const StepModel*> of_;  ///< by node
  std::map<std::tuple<const StepModel*, Execution, bool>, size_t> places_;
  std::set<std::tuple<size_t, size_t, uint32_t, uint32_t>> edges_;
};

}  // namespace msdbg
