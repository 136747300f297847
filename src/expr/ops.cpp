#include "expr/ops.h"

#include <cmath>
#include <iterator>
#include <limits>

namespace msdbg::expr {
namespace {

constexpr std::string_view kTexts[] = {
    "",     "",      "x",     "prev",  "size", "step",  "rank",  "dtype_max", "dtype_min_normal", "dtype_eps",
    "-",    "abs",   "sqrt",  "exp",   "log",  "log2",  "sign",  "floor",     "isnan",            "isinf",
    "isfinite", "not", "finite", "+",  "-",    "*",     "/",     "^",         "min",              "max",
    "<",    "<=",    ">",     ">=",    "==",   "!=",    "and",   "or",        "any",              "all",
    "count", "percent", "sum", "mean", "min",  "max",   "std",   "norm1",     "norm2",            "norminf",
};
static_assert(std::size(kTexts) == kOpCount);

struct Constant {
  std::string_view name;
  Op op;
  double value;
};
constexpr Constant kConstants[] = {
    {"inf", Op::kNumber, std::numeric_limits<double>::infinity()},
    {"nan", Op::kNumber, std::numeric_limits<double>::quiet_NaN()},
    {"true", Op::kTruth, 1},
    {"false", Op::kTruth, 0},
};

bool is_function(Op op) {
  return (is_unary(op) && op != Op::kNegate && op != Op::kNot) || op == Op::kMin || op == Op::kMax || is_reduction(op);
}

double sign(double a) { return a > 0 ? 1 : a < 0 ? -1 : a; }

}  // namespace

std::string_view op_text(Op op) { return kTexts[static_cast<size_t>(op)]; }

bool find_function(std::string_view name, Op* op) {
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op candidate = static_cast<Op>(i);
    if (!is_function(candidate) || kTexts[i] != name) continue;
    *op = candidate;
    return true;
  }
  return false;
}

bool find_variable(std::string_view name, Op* op, double* value) {
  for (const Constant& constant : kConstants) {
    if (constant.name != name) continue;
    *op = constant.op;
    *value = constant.value;
    return true;
  }
  for (Op candidate = Op::kX; candidate <= Op::kDtypeEps; candidate = static_cast<Op>(static_cast<int>(candidate) + 1)) {
    if (op_text(candidate) != name) continue;
    *op = candidate;
    return true;
  }
  return false;
}

const std::vector<std::string>& all_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"and", "or", "not"};
    for (const Constant& constant : kConstants) all.emplace_back(constant.name);
    for (size_t i = 0; i < kOpCount; ++i) {
      const Op op = static_cast<Op>(i);
      if (op == Op::kMinOf || op == Op::kMaxOf) continue;  // the functions have the same names
      if (between(op, Op::kX, Op::kDtypeEps) || is_function(op)) all.emplace_back(op_text(op));
    }
    return all;
  }();
  return names;
}

double apply(Op op, double a, double b) {
  switch (op) {
    case Op::kNegate: return -a;
    case Op::kAbs: return std::fabs(a);
    case Op::kSqrt: return std::sqrt(a);
    case Op::kExp: return std::exp(a);
    case Op::kLog: return std::log(a);
    case Op::kLog2: return std::log2(a);
    case Op::kSign: return sign(a);
    case Op::kFloor: return std::floor(a);
    case Op::kIsNan: return std::isnan(a);
    case Op::kIsInf: return std::isinf(a);
    case Op::kIsFinite: return std::isfinite(a);
    case Op::kNot: return a == 0;
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kDiv: return a / b;
    case Op::kPow: return std::pow(a, b);
    case Op::kMin: return b < a || std::isnan(b) ? b : a;
    case Op::kMax: return a < b || std::isnan(b) ? b : a;
    case Op::kLess: return a < b;
    case Op::kLessEqual: return a <= b;
    case Op::kGreater: return a > b;
    case Op::kGreaterEqual: return a >= b;
    case Op::kEqual: return a == b;
    case Op::kNotEqual: return a != b;
    case Op::kAnd: return a != 0 && b != 0;
    case Op::kOr: return a != 0 || b != 0;
    default: return a;
  }
}

}  // namespace msdbg::expr
