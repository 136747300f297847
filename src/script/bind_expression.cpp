// Expressions on one tensor: t:eval, t:where, and what an expression costs.
#include <fmt/format.h>

#include "msdbg/expr.h"
#include "script/objects.h"

namespace msdbg::script {
namespace {

// The tensor of a call with what its expression may look at.
struct Operands {
  TensorPtr current, previous;
  ExpressionPlace place;
  TensorView view, previous_view;

  const TensorView* before() const { return previous ? &previous_view : nullptr; }
};

Operands operands_of(lua_State* L, const Expression& expression, std::string_view call) {
  TensorBox& tensor = self<TensorBox>(L);
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

// Short words for what is asked most.
std::string spelled_out(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"nan", "isnan(x)"}, {"inf", "isinf(x)"}, {"bad", "not isfinite(x)"}, {"finite", "isfinite(x)"}, {"zero", "x == 0"}};
  for (const auto& [word, expression] : kWords) {
    if (trim(text) == word) return std::string(expression);
  }
  return text;
}

// t:where(text, { limit = n }) -> places, how many there are
int where_holds(lua_State* L) {
  const std::string text = spelled_out(text_argument(L, 2, "where: predicate"));
  OptionTable options(L, 3, "where");
  const auto limit = options.integer("limit");
  options.finish();
  if (limit && *limit < 0) misuse(fmt::format("where: option 'limit': 0 or more is expected, not {}", *limit));
  const Expression expression = value_or_throw(Expression::parse(text, Wanted::kElementTruth));
  const Expression count = value_or_throw(Expression::parse("count(" + text + ")", Wanted::kAny));
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
  lua_createtable(L, static_cast<int>(found.size()), 0);
  for (size_t i = 0; i < found.size(); ++i) {
    push_place(L, found[i], operands.view.at(found[i]), operands.current->shape());
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  set_record_class(L, "places");
  lua_pushnumber(L, static_cast<double>(total));
  return 2;
}

// t:eval(text) -> a number or a truth value; of an element-wise expression a list of them in row-major order
int eval_expression(lua_State* L) {
  const Expression expression = value_or_throw(Expression::parse(text_argument(L, 2, "eval: expression"), Wanted::kAny));
  const Operands operands = operands_of(L, expression, "eval");
  const auto push = [L, truth = expression.is_truth()](double value) {
    if (truth) lua_pushboolean(L, value != 0);
    else lua_pushnumber(L, value);
  };
  if (expression.is_scalar()) {
    push(value_or_throw(evaluate(expression, operands.view, operands.before(), operands.place)).number);
    return 1;
  }
  const std::vector<double> values =
      value_or_throw(evaluate_elements(expression, operands.view, operands.before(), operands.place));
  lua_createtable(L, static_cast<int>(values.size()), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    push(values[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

// core.explain(text) -> passes over the tensor, statistics reused, cost
int explain_expression(lua_State* L) {
  push_text(L, value_or_throw(Expression::parse(text_argument(L, 1, "explain: expression"), Wanted::kAny)).explain());
  return 1;
}

// core.expression_names() -> every name of the language
int list_names(lua_State* L) {
  lua_newtable(L);
  int i = 0;
  for (const std::string& name : expression_names()) {
    push_text(L, name);
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

}  // namespace

void bind_expression(lua_State* L) {
  luaL_getmetatable(L, ClassName<TensorBox>::registry);
  lua_getfield(L, -1, "methods");
  for (const Member& member : {Member{"where", guard<where_holds>}, Member{"eval", guard<eval_expression>}}) {
    lua_pushcfunction(L, member.function);
    lua_setfield(L, -2, member.name);
  }
  lua_pop(L, 2);
  lua_pushcfunction(L, guard<explain_expression>);
  lua_setfield(L, -2, "explain");
  lua_pushcfunction(L, guard<list_names>);
  lua_setfield(L, -2, "expression_names");
}

}  // namespace msdbg::script
