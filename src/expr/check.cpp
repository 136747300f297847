// Checks types: numbers and truth values, single values and one per element.
#include <fmt/format.h>

#include "expr/syntax.h"

namespace msdbg::expr {
namespace {

std::string_view kind(Type type) { return type.truth ? "a truth value" : "a number"; }

class Checker {
 public:
  std::optional<Problem> run(Tree& tree, bool inside_reduction) {
    const bool reduces = is_reduction(tree.op) || ((tree.op == Op::kMin || tree.op == Op::kMax) && tree.args.size() == 1);
    for (const TreePtr& arg : tree.args) {
      if (std::optional<Problem> problem = run(*arg, inside_reduction || reduces)) return problem;
    }
    for (const TreePtr& arg : tree.args) tree.type.element = tree.type.element || arg->type.element;
    tree.type.truth = gives_truth(tree.op);
    if (tree.op == Op::kX || tree.op == Op::kPrev) tree.type.element = true;
    if (reduces) return reduction(tree);
    if (tree.op == Op::kFinite) return finite(tree, inside_reduction);
    return arguments(tree);
  }

 private:
  using Answer = std::optional<Problem>;

  Answer reduction(Tree& tree) {
    if (tree.op == Op::kMin) tree.op = Op::kMinOf;
    if (tree.op == Op::kMax) tree.op = Op::kMaxOf;
    tree.type.element = false;
    const Tree& arg = *tree.args.front();
    const std::string_view name = op_text(tree.op);
    if (!arg.type.element) {
      const bool function = tree.op == Op::kMinOf || tree.op == Op::kMaxOf;
      return Problem{fmt::format("{} goes over elements, and this is a single value{}", name,
                                 function ? fmt::format(": {0}({1}) over elements or {0}(a, b)", name, "x") : ""),
                     arg.extent};
    }
    if (counts_truth(tree.op) == arg.type.truth) return std::nullopt;
    if (arg.type.truth) {
      return Problem{fmt::format("{} needs numbers, and this is a truth value: count(...) or percent(...)?", name),
                     arg.extent};
    }
    return Problem{fmt::format("{} needs a truth value for each element, and this is a number: compare it, as in {}(x > 0)",
                               name, name),
                   arg.extent};
  }

  Answer finite(Tree& tree, bool inside_reduction) {
    const Tree& arg = *tree.args.front();
    if (!arg.type.element || arg.type.truth) {
      return Problem{fmt::format("finite needs a number for each element, and this is {}",
                                 arg.type.truth ? "a truth value" : "a single value"),
                     arg.extent};
    }
    if (inside_reduction) return std::nullopt;
    return Problem{"finite restricts a reduction, as in mean(finite(x)); outside of one write isfinite(x)", tree.place};
  }

  Answer arguments(Tree& tree) {
    if (tree.args.empty()) return std::nullopt;
    if (tree.op == Op::kEqual || tree.op == Op::kNotEqual) {
      if (tree.args[0]->type.truth == tree.args[1]->type.truth) return std::nullopt;
      return Problem{fmt::format("'{}' compares {} with {}", op_text(tree.op), kind(tree.args[0]->type),
                                 kind(tree.args[1]->type)),
                     tree.place};
    }
    const bool wants_truth = tree.op == Op::kNot || tree.op == Op::kAnd || tree.op == Op::kOr;
    for (const TreePtr& arg : tree.args) {
      if (arg->type.truth == wants_truth) continue;
      return Problem{fmt::format("'{}' needs {}, and this is {}", op_text(tree.op), kind({wants_truth, false}),
                                 kind(arg->type)),
                     arg->extent};
    }
    return std::nullopt;
  }
};

}  // namespace

std::optional<Problem> check(Tree& tree) { return Checker().run(tree, false); }

}  // namespace msdbg::expr
