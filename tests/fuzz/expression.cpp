// An expression, on every target compared with the plain interpreter of tests/expr. The first two bytes are the types of the tensor
// and of its previous value, the first line is the text, and the elements follow.
#include <cmath>

#include "expr/interpreter.h"
#include "expr/syntax.h"
#include "fuzz/input.h"
#include "msdbg/simd.h"

using namespace msdbg;

namespace {

/// Converts the parser's tree for the interpreter.
test::FormulaPtr formula_of(const expr::Tree& tree) {
  auto formula = std::make_unique<test::Formula>();
  switch (tree.op) {
    case expr::Op::kNumber: formula->name = "number"; break;
    case expr::Op::kTruth: formula->name = tree.value != 0 ? "true" : "false"; break;
    case expr::Op::kNegate: formula->name = "neg"; break;
    default: formula->name = expr::op_text(tree.op); break;
  }
  formula->constant = tree.value;
  for (const expr::TreePtr& arg : tree.args) formula->args.push_back(formula_of(*arg));
  return formula;
}

DType type_of(uint8_t byte) {
  constexpr auto kFirst = static_cast<uint8_t>(DType::kBool), kLast = static_cast<uint8_t>(DType::kFloat64);
  return static_cast<DType>(kFirst + byte % (kLast - kFirst + 1));
}

bool is_narrow(DType dtype) { return item_size(dtype) <= 2 || dtype == DType::kFloat32; }

void compare(double got, test::Number want, std::string_view target, std::string_view text) {
  if (std::isinf(want.error) || (std::isnan(got) && std::isnan(want.value)) || got == want.value) return;
  if (std::isfinite(want.value) && std::fabs(got - want.value) <= want.error) return;
  fuzz::finding(std::string(target) + " gives " + format_double(got) + ", the interpreter " + format_double(want.value) +
                " with an error of " + format_double(want.error) + ": " + std::string(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const DType dtype = type_of(input.byte()), prev_dtype = type_of(input.byte());
  const std::string_view text = input.line(), elements = input.rest();
  using enum ExpressionKind;
  for (const ExpressionKind kind : {kCondition, kElementTruth}) (void)fuzz::good(Expression::parse(text, kind));
  const Result<Expression> expression = Expression::parse(text, ExpressionKind::kAny);
  if (!fuzz::good(expression)) return 0;
  (void)expression->explain();
  expr::Problem problem;
  const expr::TreePtr tree = expr::parse(text, &problem);
  fuzz::require(tree && !expr::check(*tree), "an expression whose tree is refused");
  const test::FormulaPtr formula = formula_of(*tree);

  const uint64_t count = elements.size() / (item_size(dtype) + item_size(prev_dtype));
  const Shape shape = {static_cast<int64_t>(count)};
  const TensorView x = {dtype, shape, fuzz::bytes_of(elements).data(), count};
  const TensorView prev = {prev_dtype, shape, x.data + count * item_size(dtype), count};
  const bool narrow = is_narrow(dtype) && (!expression->needs_previous() || is_narrow(prev_dtype));
  test::Interpreter interpreter(x, &prev, 7, 1, narrow);
  std::vector<test::Number> wanted;
  if (expression->is_scalar()) wanted.push_back(interpreter.scalar(*formula));
  else
    for (uint64_t i = 0; i < count; ++i) wanted.push_back(interpreter.element(*formula, i));

  for (const std::string_view target : simd_targets()) {
    fuzz::require(set_simd_target(target).ok(), "an instruction set that cannot be chosen");
    if (expression->is_scalar()) {
      const Result<ExpressionValue> value = evaluate(*expression, x, &prev, {7, 1});
      fuzz::require(fuzz::good(value), "an expression without a value");
      compare(value->number, wanted[0], target, text);
      continue;
    }
    const Result<std::vector<double>> values = evaluate_elements(*expression, x, &prev, {7, 1});
    fuzz::require(fuzz::good(values) && values->size() == count, "an expression without a value for each element");
    for (uint64_t i = 0; i < count; ++i) compare((*values)[i], wanted[i], target, text);
    if (!expression->is_truth()) continue;
    const Result<std::vector<uint64_t>> places = where(*expression, x, count, &prev, {7, 1});
    fuzz::require(fuzz::good(places), "where() without an answer");
    std::vector<uint64_t> expected;
    for (uint64_t i = 0; i < count; ++i) {
      if ((*values)[i] != 0) expected.push_back(i);
    }
    fuzz::require(*places == expected, "where() and the elements disagree");
  }
  return 0;
}
