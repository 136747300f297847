// Several expressions as one graph without repetitions: equal parts are one node. Private to the module.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "expr/syntax.h"

namespace msdbg::expr {

using NodeId = int32_t;
inline constexpr NodeId kNoNode = -1;

/// Arguments have smaller numbers than the node itself.
struct DagNode {
  Op op = Op::kNumber;
  Type type;
  double value = 0;          ///< of a constant
  NodeId a = kNoNode, b = kNoNode;
  NodeId mask = kNoNode;     ///< of a reduction: which elements it goes over; kNoNode for all
  int passes = 0;            ///< passes that must have ended before it can be computed
  bool uses_previous = false;
};

/// A condition or value as a caller wrote it.
struct Root {
  NodeId node = kNoNode;
  bool compares = false;  ///< a comparison of numbers at the top, with these sides
  NodeId actual = kNoNode, threshold = kNoNode;
};

class Dag {
 public:
  /// `text` is what the tree was read from.
  Root add(const Tree& tree, std::string_view text);

  const DagNode& operator[](NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  size_t size() const { return nodes_.size(); }
  bool is(NodeId id, Op op) const { return id != kNoNode && (*this)[id].op == op; }
  bool is_constant(NodeId id) const { return id != kNoNode && expr::is_constant((*this)[id].op); }

  /// A reduction as its first user wrote it.
  const std::string& words(NodeId reduction) const { return words_.at(reduction); }

 private:
  /// Adds what finite() marks to `*masks`.
  NodeId lower(const Tree& tree, std::vector<NodeId>* masks);
  NodeId reduce(Op op, NodeId arg, const std::vector<NodeId>& masks);
  /// The node for an operation on nodes: folded, in one order, and made only once.
  NodeId make(Op op, NodeId a, NodeId b = kNoNode);
  NodeId make_power(NodeId base, NodeId exponent);
  NodeId constant(Op op, double value);
  NodeId intern(DagNode node);

  using Key = std::tuple<Op, uint64_t, NodeId, NodeId, NodeId>;
  std::vector<DagNode> nodes_;
  std::map<Key, NodeId> known_;
  std::map<NodeId, std::string> words_;
  std::string_view text_;  // of the tree that is being added
};

}  // namespace msdbg::expr
