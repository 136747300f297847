// The compiled form of a set of expressions: for each pass a list of instructions on registers, and the accumulators that the pass
// feeds. Private to the module. Immutable, shared by all runs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "expr/dag.h"
#include "expr/expression_data.h"
#include "expr/stats_source.h"
#include "simd/expr_kernels.h"

namespace msdbg::expr {

/// What an accumulator collects; several reductions may use one.
enum class Gather : uint8_t { kCount, kSum, kMagnitudes, kSquares, kMoments, kLeast, kGreatest, kLargest };

struct Accumulator {
  Gather gather = Gather::kCount;
  NodeId arg = kNoNode, mask = kNoNode;
  int pass = 1;
  bool uses_previous = false;
};

/// How a reduction is computed: from the statistics, or from accumulators.
struct Reduction {
  NodeId node = kNoNode;
  std::optional<StatsSource> stats;
  int accumulator = -1;
  int considered = -1;  ///< accumulator that counts the elements of the mask; -1: all elements
};

/// How a limit is rounded to float to make the comparison of float lanes agree with the one in double.
enum class Rounding : uint8_t { kNearest, kNegated, kDown, kUp, kExact };

struct Scalar {
  NodeId node = kNoNode;
  Rounding rounding = Rounding::kNearest;
  bool operator==(const Scalar&) const = default;
};

/// Registers 0 and 1 are x and prev.
inline constexpr int kXRegister = 0, kPrevRegister = 1, kFirstRegister = 2;

struct Instruction {
  enum class Kind : uint8_t { kUnary, kBinary, kSelect, kGather, kCountCompare };
  Kind kind = Kind::kUnary;
  Op op = Op::kX;
  Form form = kRegisters;
  bool magnitude = false;  ///< kCountCompare: of abs(a)
  int to = -1;             ///< register; an accumulator for the last two kinds
  int a = -1, b = -1;      ///< b is the mask for kSelect and moments
  int scalar = -1;         ///< index into Code::scalars
  Prelude prelude = kPlain;  ///< for the last two kinds
  int first = -1;            ///< its scalar
};

struct Code {
  std::vector<Instruction> instructions;
  std::vector<Scalar> scalars;
  std::vector<int> accumulators;  ///< the accumulators it feeds
  int registers = kFirstRegister;
  int result = -1;  ///< register of an element-wise root
  bool uses_x = false, uses_prev = false;
};

class Program {
 public:
  explicit Program(std::span<const Expression> expressions);

  Dag dag;
  std::vector<Root> roots;
  std::vector<std::string> texts;  ///< by root
  std::vector<bool> root_uses_previous, root_is_element;
  std::vector<Reduction> reductions;  ///< by node, ascending
  std::vector<Accumulator> accumulators;
  StatsRequest request;
  uint32_t fields = 0;
  int passes = 0;
  bool needs_previous = false;

  /// By pass, starting at 1; with and without a previous value.
  const Code& code(int pass, bool with_previous) const { return code_[with_previous][static_cast<size_t>(pass - 1)]; }
  const Code& element_code(size_t root) const { return element_code_[root]; }
  const Reduction* reduction(NodeId node) const;
  /// The reductions that a node depends on, including itself.
  std::vector<NodeId> reductions_under(NodeId node) const;
  std::string explain() const;

 private:
  void add_reduction(NodeId node);
  int accumulate(Gather gather, NodeId arg, NodeId mask);

  std::vector<Code> code_[2];
  std::vector<Code> element_code_;
};

/// The instructions that feed `accumulators` (indices into program.accumulators).
Code compile_gathers(const Program& program, const std::vector<int>& accumulators);
/// The instructions that compute an element-wise node.
Code compile_elements(const Program& program, NodeId node);

}  // namespace msdbg::expr
