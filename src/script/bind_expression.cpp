// Expressions on one tensor: t:eval, t:where, and the cost of an expression.
#include <fmt/format.h>

#include "msdbg/expr.h"
#include "script/objects.h"

namespace msdbg::script {
namespace {

// The tensor of a call and the other inputs that its expression may use.
struct Operands {
  TensorPtr current, previous;
  ExpressionPlace place;
  TensorView view, previous_view;

  const TensorView* before() const { return previous ? &previous_view : nullptr; }
};

Operands operands_of(lua_State* L, const Expression& expression, std::string_view call) {
  TensorBox& tensor = current_tensor(L);
  Operands operands;
  operands.current = numbers_of(L, call);
  operands.view = operands.current->view();
  operands.place = {static_cast<double>(tensor.info.id.step), static_cast<double>(tensor.info.id.rank)};
  if (!expression.needs_previous() || tensor.memory) return operands;
  Session& session = tensor.session->open();
  bool history_missing = false;
  if (const auto id = session.previous(tensor.info.id, &history_missing)) {
    operands.previous = value_or_throw(session.load(*id, tensor.session->defaults.mem_limit_bytes));
    operands.previous_view = operands.previous->view();
  }
  return operands;
}

// Shorthands for the most common conditions.
std::string spelled_out(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"nan", "isnan(x)"}, {"inf", "isinf(x)"}, {"bad", "not isfinite(x)"}, {"finite", "isfinite(x)"}, {"zero", "x == 0"}};
  for (const auto& [word, expression] : kWords) {
    if (trim(text) == word) return std::string(expression);
  }
  return text;
}

// t:where(text, { limit = n }) -> places, total number
int where_holds(lua_State* L) {
  const std::string text = spelled_out(text_argument(L, 2, "where: predicate"));
  OptionTable options(L, 3, "where");
  const auto limit = options.integer("limit", 0, INT64_MAX);
  options.finish();
  const Expression expression = value_or_throw(Expression::parse(text, ExpressionKind::kElementTruth));
  const Expression count = value_or_throw(Expression::parse("count(" + text + ")", ExpressionKind::kAny));
  const Operands operands = operands_of(L, expression, "where");
  const auto total = static_cast<uint64_t>(
      value_or_throw(evaluate(count, operands.view, operands.before(), operands.place)).number);
  if (!limit && total > kMostPlaces) {
    throw ScriptError("out_of_memory",
                      fmt::format("where: {} elements satisfy it; give {{ limit = n }} to get the first n (the second "
                                  "result is their number)",
                                  total),
                      true);
  }
  const uint64_t keep = limit ? static_cast<uint64_t>(*limit) : kMostPlaces;
  const std::vector<uint64_t> found =
      value_or_throw(msdbg::where(expression, operands.view, keep, operands.before(), operands.place));
  push_list(L, found, [&](uint64_t at) { push_place(L, at, operands.view.at(at), operands.current->shape()); });
  set_result_class(L, "places");
  push(L, total);
  return 2;
}

// t:eval(text) -> a number or a boolean; for an element-wise expression a list of them in row-major order
int eval_expression(lua_State* L) {
  const Expression expression = value_or_throw(Expression::parse(text_argument(L, 2, "eval: expression"), ExpressionKind::kAny));
  const Operands operands = operands_of(L, expression, "eval");
  const auto push_value = [L, truth = expression.is_truth()](double value) {
    if (truth) push(L, value != 0);
    else push(L, value);
  };
  if (expression.is_scalar()) {
    push_value(value_or_throw(evaluate(expression, operands.view, operands.before(), operands.place)).number);
    return 1;
  }
  const std::vector<double> values =
      value_or_throw(evaluate_elements(expression, operands.view, operands.before(), operands.place));
  push_list(L, values, push_value);
  return 1;
}

// core.explain(text) -> passes over the tensor, statistics reused, cost
int explain_expression(lua_State* L) {
  return give(L, value_or_throw(Expression::parse(text_argument(L, 1, "explain: expression"), ExpressionKind::kAny)).explain());
}

// core.expression_names() -> every name of the language
int list_names(lua_State* L) {
  return give(L, expression_names());
}

}  // namespace

void bind_expression(lua_State* L) {
  add_methods<TensorBox>(L, {{"where", guard<where_holds>}, {"eval", guard<eval_expression>}});
  add_functions(L, {{"explain", guard<explain_expression>}, {"expression_names", guard<list_names>}});
}

}  // namespace msdbg::script
