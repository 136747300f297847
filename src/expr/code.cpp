// Compiles nodes to instructions: a register is allocated when a node is computed and freed after its last use.
#include <algorithm>
#include <map>

#include "expr/program.h"

namespace msdbg::expr {
namespace {

/// The direction in which a limit is rounded to float to give float lanes the same result as a comparison in double: x > c holds
/// for the floats above the largest float that is not above c.
Rounding rounding_for(Op op) {
  switch (op) {
    case Op::kGreater:
    case Op::kLessEqual: return Rounding::kDown;
    case Op::kLess:
    case Op::kGreaterEqual: return Rounding::kUp;
    case Op::kEqual:
    case Op::kNotEqual: return Rounding::kExact;
    default: return Rounding::kNearest;
  }
}

class Compiler {
 public:
  explicit Compiler(const Program& program) : program_(program), dag_(program.dag) {}

  Code gathers(const std::vector<int>& accumulators) {
    code_.accumulators = accumulators;
    for (int i : accumulators) {
      const Accumulator& one = program_.accumulators[static_cast<size_t>(i)];
      use(one.arg);
      if (one.mask != kNoNode) use(one.mask);
    }
    for (int i : accumulators) gather(i);
    return std::move(code_);
  }

  Code elements(NodeId node) {
    use(node);
    code_.result = emit(node);
    return std::move(code_);
  }

 private:
  /// Counts the uses of a node and, on the first one, those of its arguments.
  void use(NodeId id) {
    if (!dag_[id].type.element) return;
    if (uses_[id]++ > 0) return;
    if (dag_[id].a != kNoNode) use(dag_[id].a);
    if (dag_[id].b != kNoNode) use(dag_[id].b);
  }

  int new_register() {
    if (!free_.empty()) {
      const int reg = free_.back();
      free_.pop_back();
      return reg;
    }
    return code_.registers++;
  }

  /// Ends one use of the node.
  void release(NodeId id) {
    if (id == kNoNode || !dag_[id].type.element) return;
    if (--uses_[id] > 0) return;
    const auto at = registers_.find(id);
    if (at == registers_.end()) return;
    if (at->second >= kFirstRegister) free_.push_back(at->second);
    registers_.erase(at);
  }

  int scalar(NodeId node, Rounding rounding) {
    const Scalar wanted{node, rounding};
    auto at = std::find(code_.scalars.begin(), code_.scalars.end(), wanted);
    if (at == code_.scalars.end()) at = code_.scalars.insert(at, wanted);
    return static_cast<int>(at - code_.scalars.begin());
  }

  int emit(NodeId id) {
    const DagNode& node = dag_[id];
    if (node.op == Op::kX || node.op == Op::kPrev) {
      (node.op == Op::kX ? code_.uses_x : code_.uses_prev) = true;
      return node.op == Op::kX ? kXRegister : kPrevRegister;
    }
    if (const auto at = registers_.find(id); at != registers_.end()) return at->second;
    Instruction instruction;
    instruction.op = node.op;
    if (node.b == kNoNode) {
      instruction.kind = Instruction::Kind::kUnary;
      instruction.a = emit(node.a);
    } else {
      operands(node, &instruction);
    }
    release(node.a);
    release(node.b);
    // Operations work lane by lane: the result may overwrite an argument.
    instruction.to = new_register();
    code_.instructions.push_back(instruction);
    registers_[id] = instruction.to;
    return instruction.to;
  }

  void operands(const DagNode& node, Instruction* instruction) {
    instruction->kind = Instruction::Kind::kBinary;
    const bool a_element = dag_[node.a].type.element, b_element = dag_[node.b].type.element;
    if (a_element) instruction->a = emit(node.a);
    if (b_element) instruction->b = emit(node.b);
    instruction->form = !b_element ? kRegisterScalar : !a_element ? kScalarRegister : kRegisters;
    if (!b_element) instruction->scalar = scalar(node.b, rounding_for(node.op));
    if (!a_element) instruction->scalar = scalar(node.a, Rounding::kNearest);
  }

  void gather(int index) {
    const Accumulator& one = program_.accumulators[static_cast<size_t>(index)];
    Instruction instruction;
    instruction.kind = Instruction::Kind::kGather;
    instruction.to = index;
    if (one.gather == Gather::kCount && one.mask == kNoNode && count_compare(one.arg, &instruction)) {
      code_.instructions.push_back(instruction);
      return;
    }
    if (one.mask == kNoNode) {
      const bool fuses = one.gather != Gather::kCount && one.gather != Gather::kMoments;
      const NodeId arg = fuses ? prelude(one.arg, &instruction) : one.arg;
      instruction.a = emit(arg);
      code_.instructions.push_back(instruction);
      release(arg);
      return;
    }
    instruction.a = emit(one.arg);
    const int mask = emit(one.mask);
    if (one.gather == Gather::kMoments) {
      instruction.b = mask;
    } else {
      // Excluded elements contribute 0 to a sum; the extremes ignore NaN.
      Instruction select;
      select.kind = Instruction::Kind::kSelect;
      const bool extreme = one.gather == Gather::kLeast || one.gather == Gather::kGreatest;
      select.op = extreme ? Op::kIsNan : Op::kNumber;
      select.a = instruction.a;
      select.b = mask;
      select.to = new_register();
      code_.instructions.push_back(select);
      instruction.a = select.to;
      free_.push_back(select.to);
    }
    code_.instructions.push_back(instruction);
    release(one.arg);
    release(one.mask);
  }

  /// Fuses into the reduction an addition of a scalar, a multiplication by one or a square that only this reduction uses. Returns
  /// the node that remains to be computed.
  NodeId prelude(NodeId id, Instruction* instruction) {
    const DagNode& node = dag_[id];
    if (node.b == kNoNode || !dag_[node.a].type.element || uses_[id] != 1 || registers_.count(id) > 0) return id;
    if (node.op == Op::kMul && node.a == node.b) {
      instruction->prelude = kSquared;
      release(node.a);  // two uses become one
    } else if (dag_[node.b].type.element) {
      return id;
    } else if (node.op == Op::kAdd || node.op == Op::kSub) {
      instruction->prelude = kAdded;
      instruction->first = scalar(node.b, node.op == Op::kAdd ? Rounding::kNearest : Rounding::kNegated);
    } else if (node.op == Op::kMul) {
      instruction->prelude = kMultiplied;
      instruction->first = scalar(node.b, Rounding::kNearest);
    } else {
      return id;
    }
    uses_[id] = 0;
    return node.a;
  }

  /// Counts the results of a comparison without storing them, if only its count is used.
  bool count_compare(NodeId id, Instruction* instruction) {
    const DagNode& node = dag_[id];
    if (!is_comparison(node.op) || uses_[id] != 1 || registers_.count(id) > 0) return false;
    if (!dag_[node.a].type.element) return false;
    NodeId left = node.a;
    instruction->kind = Instruction::Kind::kCountCompare;
    instruction->op = node.op;
    if (dag_.is(left, Op::kAbs) && left != node.b && uses_[left] == 1 && registers_.count(left) == 0) {
      instruction->magnitude = true;
      left = dag_[left].a;
    }
    if (!dag_[node.b].type.element) left = prelude(left, instruction);
    instruction->a = emit(left);
    if (dag_[node.b].type.element) {
      instruction->b = emit(node.b);
    } else {
      instruction->form = kRegisterScalar;
      instruction->scalar = scalar(node.b, rounding_for(node.op));
    }
    uses_[id] = 0;
    if (instruction->magnitude) uses_[node.a] = 0;
    release(left);
    release(node.b);
    return true;
  }

  const Program& program_;
  const Dag& dag_;
  Code code_;
  std::map<NodeId, int> uses_, registers_;
  std::vector<int> free_;
};

}  // namespace

Code compile_gathers(const Program& program, const std::vector<int>& accumulators) {
  return Compiler(program).gathers(accumulators);
}

Code compile_elements(const Program& program, NodeId node) { return Compiler(program).elements(node); }

}  // namespace msdbg::expr
