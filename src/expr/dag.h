// Several expressions as one graph without repetitions: equal subexpressions are one node. Private to the module.
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
  double value = 0;          ///< for constants
  NodeId a = kNoNode, b = kNoNode;
  NodeId mask = kNoNode;     ///< for reductions: the elements to reduce; kNoNode for all
  int passes = 0;            ///< number of passes that must end before it can be computed
  bool uses_previous = false;
};

/// A condition or value as written by the caller.
struct Root {
  NodeId node = kNoNode;
  bool compares = false;  ///< it is a comparison of numbers, with these sides
  NodeId actual = kNoNode, threshold = kNoNode;
};

class Dag {
 public:
  /// `text` is the source of the tree.
  Root add(const Tree& tree, std::string_view text);

  const DagNode& operator[](NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  size_t size() const { return nodes_.size(); }
  bool is(NodeId id, Op op) const { return id != kNoNode && (*this)[id].op == op; }
  bool is_constant(NodeId id) const { return id != kNoNode && expr::is_constant((*this)[id].op); }

  /// A reduction in the words of its first user.
  const std::string& words(NodeId reduction) const { return words_.at(reduction); }

 private:
  /// Adds the operands of finite() to `*masks`.
  NodeId lower(const Tree& tree, std::vector<NodeId>* masks);
  NodeId reduce(Op op, NodeId arg, const std::vector<NodeId>& masks);
  /// The node for an operation on nodes: constant-folded, in canonical order, and created only once.
  NodeId make(Op op, NodeId a, NodeId b = kNoNode);
  NodeId make_power(NodeId base, NodeId exponent);
  NodeId constant(Op op, double value);
  NodeId intern(DagNode node);

  using Key = std::tuple<Op, uint64_t, NodeId, NodeId, NodeId>;
  std::vector<DagNode> nodes_;
  std::map<Key, NodeId> known_;
  std::map<NodeId, std::string> words_;
  std::string_view text_;  // of the tree being added
};

}  // namespace msdbg::expr
