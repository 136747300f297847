// What a graph says about consequences: which nodes come after others, which optimizer moves a weight, and at what rate.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "msdbg/session.h"

namespace msdbg {

/// A learning rate as an optimizer took it.
struct LearningRate {
  double value = 0;
  TensorId source;        ///< the parameter, constant or operator that it came from
  bool normalised = false;  ///< the optimizer divides by the size of the gradient: an element moves by about the rate
};

class CauseGraph {
 public:
  explicit CauseGraph(const Graph& graph);

  /// One flag for each node: `start` and everything that the operators compute from it.
  std::vector<bool> after(std::span<const NodeId> start) const;
  /// `end` and everything that it is computed from.
  std::vector<bool> before(NodeId end) const;
  /// Operators that update a parameter in place.
  const std::vector<NodeId>& updaters(NodeId parameter) const;
  /// True for a node that `reached` holds, and for a parameter that such an operator updates.
  bool holds(const std::vector<bool>& reached, NodeId node) const;
  /// Weights of two and more dimensions with an optimizer: those that the rules on updates look at.
  std::vector<NodeId> matrices() const;
  /// The weight before its update: of the step before, or as the forward part of the first step took it.
  std::optional<TensorId> before_update(Session& session, const TensorId& weight) const;
  /// nullopt: not an optimizer that is known, or the rate was not dumped.
  std::optional<LearningRate> rate(Session& session, NodeId updater, int64_t step) const;
  const Graph& graph() const { return graph_; }

 private:
  const Graph& graph_;
  std::map<NodeId, std::vector<NodeId>> updaters_;
};

}  // namespace msdbg
