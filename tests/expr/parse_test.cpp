// Parsing: what is accepted, with which type, and how mistakes are reported.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "msdbg/expr.h"

namespace msdbg {
namespace {

std::string error(std::string_view text, ExpressionKind wanted = ExpressionKind::kCondition) {
  Result<Expression> expression = Expression::parse(text, wanted);
  if (expression.ok()) return "accepted";
  EXPECT_EQ(expression.status().code(), Code::kInvalidArgument);
  return expression.status().message();
}

TEST(Parse, AcceptsTheConditionsOfTheGuide) {
  for (const char* text :
       {"mean(abs(x)) > 10 * mean(abs(prev))", "any(not isfinite(x))", "percent(abs(x) > 3 * std(x)) > 5",
        "all(x == 0) and size > 1", "count(x > 1e-3) >= 3 or rank == 0", "norm2(x - prev) / norm2(prev) < dtype_eps",
        "max(abs(finite(x))) >= dtype_max", "min(max(x), -min(x)) > 2 ^ -3 ^ 2", "sum(max(x, 0, prev)) != 0",
        "mean(finite(x)) ~= nan", "true", "not (step > 3) == false", "std(x)\n  > .5E+1"}) {
    EXPECT_EQ(error(text), "accepted") << text;
  }
}

TEST(Parse, DistinguishesScalarsFromElementsAndTruthFromNumbers) {
  const auto parse = [](const char* text) { return *Expression::parse(text, ExpressionKind::kAny); };
  EXPECT_TRUE(parse("any(x > 0)").is_scalar());
  EXPECT_TRUE(parse("any(x > 0)").is_truth());
  EXPECT_FALSE(parse("x > 0").is_scalar());
  EXPECT_TRUE(parse("x > mean(x)").is_truth());
  EXPECT_FALSE(parse("x * 2").is_truth());
  EXPECT_TRUE(parse("max(x)").is_scalar());
  EXPECT_FALSE(parse("max(x, 0)").is_scalar());
  EXPECT_TRUE(parse("max(size, 0)").is_scalar());
  EXPECT_TRUE(parse("any(prev > 0)").needs_previous());
  EXPECT_FALSE(parse("any(x > 0)").needs_previous());
  EXPECT_EQ(parse("  x + 1 ").text(), "x + 1");
}

TEST(Parse, UnknownNamesComeWithTheNearestOne) {
  EXPECT_EQ(error("mena(x) > 3"),
            "unknown function 'mena': mean?\n"
            "  mena(x) > 3\n"
            "  ^~~~");
  EXPECT_EQ(error("any(x > dtype_maks)"),
            "unknown name 'dtype_maks': dtype_max?\n"
            "  any(x > dtype_maks)\n"
            "          ^~~~~~~~~~");
  EXPECT_EQ(error("any(x > qqqqqqqqq)"),
            "unknown name 'qqqqqqqqq'\n"
            "  any(x > qqqqqqqqq)\n"
            "          ^~~~~~~~~");
  EXPECT_EQ(error("any(x > prev(1))"),
            "'prev' is not a function\n"
            "  any(x > prev(1))\n"
            "          ^~~~");
  EXPECT_EQ(error("mean > 3"),
            "'mean' is a function: write mean(...)\n"
            "  mean > 3\n"
            "  ^~~~");
}

TEST(Parse, SyntaxErrorsPointAtThePlace) {
  EXPECT_EQ(error(""),
            "empty expression\n"
            "  \n"
            "  ^");
  EXPECT_EQ(error("mean(x) >"),
            "the expression ends too early\n"
            "  mean(x) >\n"
            "           ^");
  EXPECT_EQ(error("any((x > 1) and (x < 3)"),
            "'(' is never closed\n"
            "  any((x > 1) and (x < 3)\n"
            "     ^");
  EXPECT_EQ(error("any(x > 1))"),
            "')' without '('\n"
            "  any(x > 1))\n"
            "            ^");
  EXPECT_EQ(error("mean(x) 3"),
            "unexpected '3': an operator is missing before it\n"
            "  mean(x) 3\n"
            "          ^");
  EXPECT_EQ(error("mean(x) > * 3"),
            "expected a value before '*'\n"
            "  mean(x) > * 3\n"
            "            ^");
  EXPECT_EQ(error("mean(x) > 1e"),
            "'1e' is not a number (numbers look like 3, 0.5 or 1e-3)\n"
            "  mean(x) > 1e\n"
            "            ^~");
  EXPECT_EQ(error("mean(x) > 1e999"),
            "'1e999' is larger than a double holds: write inf\n"
            "  mean(x) > 1e999\n"
            "            ^~~~~");
  EXPECT_EQ(error("mean() > 1"),
            "mean needs an argument\n"
            "  mean() > 1\n"
            "  ^~~~");
  EXPECT_EQ(error("mean(x, prev) > 1"),
            "mean takes one argument\n"
            "  mean(x, prev) > 1\n"
            "          ^~~~");
  EXPECT_EQ(error("(1, 2) > 1"),
            "a comma belongs between the arguments of a function only\n"
            "  (1, 2) > 1\n"
            "    ^");
  EXPECT_EQ(error("1 == not true"),
            "'not' binds weaker than the operator before it: put (not ...) in parentheses\n"
            "  1 == not true\n"
            "       ^~~");
}

TEST(Parse, SignsOfOtherLanguagesAreNamed) {
  EXPECT_EQ(error("any(x > 1 && x < 2)"),
            "'&&' is not part of the language: write and\n"
            "  any(x > 1 && x < 2)\n"
            "            ^~");
  EXPECT_EQ(error("mean(x)**2 > 1").substr(0, 43), "'**' is not part of the language: write ^\n ");
  EXPECT_EQ(error("mean(x) = 1").substr(0, 43), "'=' is not part of the language: write ==\n ");
  EXPECT_EQ(error("any(!isnan(x))").substr(0, 44), "'!' is not part of the language: write not\n ");
  EXPECT_EQ(error("any(x % 2 == 0)"),
            "unexpected character '%'\n"
            "  any(x % 2 == 0)\n"
            "        ^");
  EXPECT_EQ(error("any(0 < x <= 2)"),
            "comparisons do not chain: write ... < x and x <= ...\n"
            "  any(0 < x <= 2)\n"
            "            ^~");
}

TEST(Parse, TypeErrorsPointAtTheArgument) {
  EXPECT_EQ(error("mean(x > 1) > 3"),
            "mean needs numbers, and this is a truth value: count(...) or percent(...)?\n"
            "  mean(x > 1) > 3\n"
            "       ^~~~~");
  EXPECT_EQ(error("any(abs(x))"),
            "any needs a truth value for each element, and this is a number: compare it, as in any(x > 0)\n"
            "  any(abs(x))\n"
            "      ^~~~~~");
  EXPECT_EQ(error("any(mean(x) > 3)"),
            "any goes over elements, and this is a single value\n"
            "  any(mean(x) > 3)\n"
            "      ^~~~~~~~~~~");
  EXPECT_EQ(error("max(3) > 1"),
            "max goes over elements, and this is a single value: max(x) over elements or max(a, b)\n"
            "  max(3) > 1\n"
            "      ^");
  EXPECT_EQ(error("mean(x) > 1 and 3"),
            "'and' needs a truth value, and this is a number\n"
            "  mean(x) > 1 and 3\n"
            "                  ^");
  EXPECT_EQ(error("any(x + (x > 1) > 2)"),
            "'+' needs a number, and this is a truth value\n"
            "  any(x + (x > 1) > 2)\n"
            "          ^~~~~~~");
  EXPECT_EQ(error("mean(x) == true"),
            "'==' compares a number with a truth value\n"
            "  mean(x) == true\n"
            "          ^~");
  EXPECT_EQ(error("any(finite(max(x)) > x)"),
            "finite needs a number for each element, and this is a single value\n"
            "  any(finite(max(x)) > x)\n"
            "             ^~~~~~");
  EXPECT_EQ(error("finite(x) > 3", ExpressionKind::kElementTruth),
            "finite restricts a reduction, as in mean(finite(x)); outside of one write isfinite(x)\n"
            "  finite(x) > 3\n"
            "  ^~~~~~");
}

TEST(Parse, TheWholeMustBeWhatIsWanted) {
  EXPECT_EQ(error("x > 3"),
            "this is a truth value for each element; a condition is a single one: any(...), all(...) or percent(...) > 5\n"
            "  x > 3\n"
            "  ^~~~~");
  EXPECT_EQ(error("mean(x)").substr(0, 60), "this is a number; a condition is a truth value: compare it\n ");
  EXPECT_EQ(error("x + 1").substr(0, 33), "this is a number for each element");
  EXPECT_EQ(error("any(x > 1)", ExpressionKind::kElementTruth).substr(0, 22), "this is a single value");
  EXPECT_EQ(error("x", ExpressionKind::kElementTruth).substr(0, 16), "this is a number");
  EXPECT_EQ(error("x", ExpressionKind::kAny), "accepted");
}

TEST(Parse, TheCaretStandsUnderTheCharacterWhateverComesBefore) {
  EXPECT_EQ(error("any(x >\n\tmax(x) § 1)"),
            "unexpected character '§'\n"
            "  any(x >  max(x) § 1)\n"
            "                  ^");
  const std::string deep = std::string(100, '(') + "x" + std::string(100, ')') + " > nothing_like_it";
  const std::string message = error(deep);
  const size_t second = message.find('\n'), third = message.rfind('\n');
  const std::string shown = message.substr(second + 1, third - second - 1), caret = message.substr(third + 1);
  EXPECT_EQ(shown.substr(caret.find('^'), 15), "nothing_like_it");
  EXPECT_EQ(shown.substr(0, 5), "  ...");
}

TEST(Parse, NestingAndLengthHaveALimit) {
  EXPECT_NE(error(std::string(5000, '(') + "x").find("nested deeper than 200 levels"), std::string::npos);
  EXPECT_NE(error(std::string(5000, '-') + "size > 1").find("nested deeper"), std::string::npos);
  std::string power = "2", negation, sum = "1";
  for (int i = 0; i < 5000; ++i) {
    power += "^2";
    negation += "not ";
    sum += "+1";
  }
  EXPECT_NE(error(power + " > 1").find("nested deeper"), std::string::npos);
  EXPECT_NE(error(negation + "true").find("nested deeper"), std::string::npos);
  EXPECT_NE(error(sum + " > 1").find("more than 4000 operations"), std::string::npos);
  EXPECT_NE(error(std::string(70000, ' ') + "true").find("longer than"), std::string::npos);
}

TEST(Parse, AnyTextIsAnExpressionOrAnErrorWithAPlace) {
  constexpr const char* kPieces[] = {
      "x",    "prev",    "mean(", ")",    "(",    " ",  "> ", "1e",  ".5",     "and ",           "not ", "^", "-", ",",
      "max(", "finite(", "any(",  "\xc3", "\x01", "==", "3",  "nan", "std(x)", "percent(x > 1)", "<",    "*", "\n"};
  std::mt19937 random(5);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t length = random() % 12; length > 0; --length) text += kPieces[random() % std::size(kPieces)];
    const Result<Expression> expression = Expression::parse(text, ExpressionKind::kAny);
    if (expression.ok()) {
      ++accepted;
      EXPECT_FALSE(expression->explain().empty());
    } else {
      const std::string message = expression.status().message();
      EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 2) << message;
      EXPECT_NE(message.rfind('^'), std::string::npos) << message;
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace msdbg
