#include "expr/dag.h"

#include <algorithm>
#include <bit>

namespace msdbg::expr {
namespace {

bool commutes(Op op) {
  return op == Op::kAdd || op == Op::kMul || op == Op::kEqual || op == Op::kNotEqual || op == Op::kAnd || op == Op::kOr;
}

/// The comparison with its sides swapped.
Op flipped(Op op) {
  switch (op) {
    case Op::kLess: return Op::kGreater;
    case Op::kLessEqual: return Op::kGreaterEqual;
    case Op::kGreater: return Op::kLess;
    case Op::kGreaterEqual: return Op::kLessEqual;
    default: return op;
  }
}

/// Without line breaks and repeated blanks.
std::string one_line(std::string_view text) {
  std::string line;
  for (char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!blank) line += c;
    else if (!line.empty() && line.back() != ' ') line += ' ';
  }
  return line;
}

}  // namespace

Root Dag::add(const Tree& tree, std::string_view text) {
  text_ = text;
  Root root;
  std::vector<NodeId> none;
  if (is_comparison(tree.op) && !tree.type.element && !tree.args[0]->type.truth) {
    const NodeId left = lower(*tree.args[0], &none), right = lower(*tree.args[1], &none);
    root.compares = true;
    const bool measured_right = is_constant(left) && !is_constant(right);
    root.actual = measured_right ? right : left;
    root.threshold = measured_right ? left : right;
  }
  root.node = lower(tree, &none);
  return root;
}

NodeId Dag::lower(const Tree& tree, std::vector<NodeId>* masks) {
  if (expr::is_constant(tree.op)) return constant(tree.op, tree.value);
  if (tree.args.empty()) return make(tree.op, kNoNode);
  if (is_reduction(tree.op)) {
    std::vector<NodeId> own;
    const NodeId arg = lower(*tree.args[0], &own);
    const NodeId node = reduce(tree.op, arg, own);
    words_.try_emplace(node, one_line(text_.substr(tree.extent.at, tree.extent.length)));
    return node;
  }
  const NodeId a = lower(*tree.args[0], masks);
  if (tree.op == Op::kFinite) {
    masks->push_back(make(Op::kIsFinite, a));
    return a;
  }
  if (tree.args.size() == 1) return make(tree.op, a);
  const NodeId b = lower(*tree.args[1], masks);
  return tree.op == Op::kPow ? make_power(a, b) : make(tree.op, a, b);
}

NodeId Dag::reduce(Op op, NodeId arg, const std::vector<NodeId>& masks) {
  // Drops operations that do not change a sum of magnitudes: more reductions then turn out to be the same.
  const bool magnitudes = op == Op::kNorm1 || op == Op::kNorm2 || op == Op::kNormInf;
  while (magnitudes && (is(arg, Op::kAbs) || is(arg, Op::kNegate))) arg = (*this)[arg].a;
  if (op == Op::kSum && is(arg, Op::kAbs)) {
    op = Op::kNorm1;
    arg = (*this)[arg].a;
  }
  std::vector<NodeId> sorted = masks;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  NodeId mask = kNoNode;
  for (NodeId one : sorted) mask = mask == kNoNode ? one : make(Op::kAnd, mask, one);

  DagNode node;
  node.op = op;
  node.type = {gives_truth(op), false};
  node.a = arg;
  node.mask = mask;
  return intern(node);
}

NodeId Dag::make(Op op, NodeId a, NodeId b) {
  if (a != kNoNode && is_constant(a) && (b == kNoNode || is_constant(b))) {
    const double value = apply(op, (*this)[a].value, b == kNoNode ? 0 : (*this)[b].value);
    return constant(gives_truth(op) ? Op::kTruth : Op::kNumber, value);
  }
  if ((op == Op::kNegate || op == Op::kNot) && is(a, op)) return (*this)[a].a;
  if (op == Op::kAbs && is(a, Op::kAbs)) return a;
  // The sign does not matter to these.
  if (op == Op::kAbs || between(op, Op::kIsNan, Op::kIsFinite)) {
    while (is(a, Op::kNegate) || (op != Op::kAbs && is(a, Op::kAbs))) a = (*this)[a].a;
  }
  if (commutes(op) || is_comparison(op)) {
    // Elements before scalars, then by number.
    const bool a_scalar = !(*this)[a].type.element, b_scalar = !(*this)[b].type.element;
    if (a_scalar != b_scalar ? a_scalar : b < a) {
      std::swap(a, b);
      op = flipped(op);
    }
  }
  DagNode node;
  node.op = op;
  node.a = a;
  node.b = b;
  node.type.truth = gives_truth(op);
  node.type.element = op == Op::kX || op == Op::kPrev;
  for (NodeId arg : {a, b}) node.type.element = node.type.element || (arg != kNoNode && (*this)[arg].type.element);
  return intern(node);
}

NodeId Dag::make_power(NodeId base, NodeId exponent) {
  const double power = (*this)[exponent].value;
  if (is_constant(base) || !is_constant(exponent) || (power != 2 && power != 3 && power != 4)) {
    return make(Op::kPow, base, exponent);
  }
  const NodeId square = make(Op::kMul, base, base);
  return power == 2 ? square : make(Op::kMul, square, power == 3 ? base : square);
}

NodeId Dag::constant(Op op, double value) {
  DagNode node;
  node.op = op;
  node.type.truth = op == Op::kTruth;
  node.value = value;
  return intern(node);
}

NodeId Dag::intern(DagNode node) {
  const Key key{node.op, std::bit_cast<uint64_t>(node.value), node.a, node.b, node.mask};
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  node.uses_previous = node.op == Op::kPrev;
  for (NodeId arg : {node.a, node.b, node.mask}) {
    if (arg == kNoNode) continue;
    node.passes = std::max(node.passes, (*this)[arg].passes);
    node.uses_previous = node.uses_previous || (*this)[arg].uses_previous;
  }
  if (is_reduction(node.op)) ++node.passes;
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(node);
  known_.emplace(key, id);
  return id;
}

}  // namespace msdbg::expr
