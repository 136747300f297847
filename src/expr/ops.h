// The operations of the expression language and their names. Private to the module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msdbg::expr {

enum class Op : uint8_t {
  kNumber, kTruth,  // constants
  kX, kPrev,
  kSize, kStep, kRank, kDtypeMax, kDtypeMinNormal, kDtypeEps,
  kNegate, kAbs, kSqrt, kExp, kLog, kLog2, kSign, kFloor, kIsNan, kIsInf, kIsFinite, kNot,
  kFinite,  // x itself, as a marker: the enclosing reduction skips elements that are not finite here
  kAdd, kSub, kMul, kDiv, kPow, kMin, kMax,
  kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kNotEqual, kAnd, kOr,
  kAny, kAll, kCount, kPercent, kSum, kMean, kMinOf, kMaxOf, kStd, kNorm1, kNorm2, kNormInf,
};
inline constexpr size_t kOpCount = static_cast<size_t>(Op::kNormInf) + 1;

constexpr bool between(Op op, Op first, Op last) { return op >= first && op <= last; }
constexpr bool is_constant(Op op) { return op <= Op::kTruth; }
constexpr bool is_scalar_name(Op op) { return between(op, Op::kSize, Op::kDtypeEps); }
constexpr bool is_unary(Op op) { return between(op, Op::kNegate, Op::kFinite); }
constexpr bool is_binary(Op op) { return between(op, Op::kAdd, Op::kOr); }
constexpr bool is_comparison(Op op) { return between(op, Op::kLess, Op::kNotEqual); }
constexpr bool is_reduction(Op op) { return op >= Op::kAny; }
constexpr bool counts_truth(Op op) { return between(op, Op::kAny, Op::kPercent); }
/// True if the result is a truth value.
constexpr bool gives_truth(Op op) {
  return op == Op::kTruth || between(op, Op::kIsNan, Op::kNot) || between(op, Op::kLess, Op::kOr) || op == Op::kAny ||
         op == Op::kAll;
}

/// As written in an expression: "abs", "+", "percent", ...
std::string_view op_text(Op op);

/// Finds functions and reductions; min and max are found as functions and become reductions when they have one argument.
bool find_function(std::string_view name, Op* op);
/// Finds x, prev, size, ..., and the constants (sets `*value`).
bool find_variable(std::string_view name, Op* op, double* value);
/// All names of the language, for "did you mean".
const std::vector<std::string>& all_names();

/// Evaluates a scalar operation in double. Unary operations ignore `b`; truth values are 0 and 1.
double apply(Op op, double a, double b);

}  // namespace msdbg::expr
