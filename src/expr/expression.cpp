// From text to a checked expression.
#include <algorithm>

#include "expr/expression_data.h"

namespace msdbg {
namespace {

using expr::Problem;
using expr::Tree;

bool uses_previous(const Tree& tree) {
  if (tree.op == expr::Op::kPrev) return true;
  for (const auto& arg : tree.args) {
    if (uses_previous(*arg)) return true;
  }
  return false;
}

/// True where the text says what NaN means: isnan, isinf, isfinite, finite, or x != x.
bool tests_for_nan(const Tree& tree) {
  using expr::Op;
  switch (tree.op) {
    case Op::kIsNan:
    case Op::kIsInf:
    case Op::kIsFinite:
    case Op::kFinite: return true;
    case Op::kEqual:
    case Op::kNotEqual:
      if (tree.args[0]->op == tree.args[1]->op && (tree.args[0]->op == Op::kX || tree.args[0]->op == Op::kPrev)) return true;
      break;
    default: break;
  }
  return std::any_of(tree.args.begin(), tree.args.end(), [](const auto& arg) { return tests_for_nan(*arg); });
}

std::optional<Problem> fits(const Tree& tree, ExpressionKind wanted) {
  const bool truth = tree.type.truth, element = tree.type.element;
  switch (wanted) {
    case ExpressionKind::kCondition:
      if (truth && !element) return std::nullopt;
      if (truth) {
        return Problem{"this is a truth value for each element; a condition is a single one: any(...), all(...) or "
                       "percent(...) > 5",
                       tree.extent};
      }
      if (element) return Problem{"this is a number for each element; a condition is a truth value, such as any(x > 1)", tree.extent};
      return Problem{"this is a number; a condition is a truth value: compare it", tree.extent};
    case ExpressionKind::kElementTruth:
      if (truth && element) return std::nullopt;
      return Problem{element ? "this is a number; compare it, as in x > 1"
                             : "this is a single value; a truth value for each element is needed, as in x > 1",
                     tree.extent};
    case ExpressionKind::kAny: break;
  }
  return std::nullopt;
}

}  // namespace

Result<Expression> Expression::parse(std::string_view text, ExpressionKind wanted) {
  Problem problem;
  std::unique_ptr<Tree> tree = expr::parse(text, &problem);
  if (!tree) return describe(problem, text);
  if (std::optional<Problem> wrong = check(*tree)) return describe(*wrong, text);
  if (std::optional<Problem> wrong = fits(*tree, wanted)) return describe(*wrong, text);
  auto data = std::make_shared<Data>();
  data->source = std::string(text);
  data->text = std::string(trim(text));
  data->needs_previous = uses_previous(*tree);
  data->asks_about_nan = tests_for_nan(*tree);
  data->tree = std::move(tree);
  return Expression(std::move(data));
}

const std::string& Expression::text() const { return data_->text; }
bool Expression::needs_previous() const { return data_->needs_previous; }
bool Expression::asks_about_nan() const { return data_->asks_about_nan; }
bool Expression::is_scalar() const { return !data_->tree->type.element; }
bool Expression::is_truth() const { return data_->tree->type.truth; }

const std::vector<std::string>& expression_names() { return expr::all_names(); }

}  // namespace msdbg
