// Recursive descent, one function for each level of binding:
//
//   or: and { "or" and }                       sum:     product { ("+"|"-") product }
//   and: not { "and" not }                     product: unary { ("*"|"/") unary }
//   not: "not" not | comparison                unary:   "-" unary | power
//   comparison: sum [ ("<"|"<="|...) sum ]     power:   primary [ "^" unary ]
#include <fmt/format.h>

#include <algorithm>

#include "expr/lexer.h"
#include "expr/syntax.h"

namespace msdbg::expr {
namespace {

constexpr int kMaxDepth = 200;  // nesting limit: far beyond practical use, and safe for the stack
constexpr size_t kMaxText = size_t{64} << 10, kMaxNodes = 4000;

std::string suggestion(std::string_view name) {
  const std::vector<std::string> near = nearest(name, all_names(), 1);
  return near.empty() ? std::string() : fmt::format(": {}?", near.front());
}

class Parser {
 public:
  Parser(std::string_view text, Problem* problem) : lexer_(text), text_(text), problem_(problem) {}

  TreePtr whole() {
    if (text_.size() > kMaxText) return fail({0, 1}, fmt::format("longer than {} bytes", kMaxText));
    if (!advance()) return nullptr;
    if (token_.kind == TokenKind::kEnd) return fail(token_.place, "empty expression");
    TreePtr tree = either();
    if (tree && token_.kind != TokenKind::kEnd) return unexpected();
    return tree;
  }

 private:
  TreePtr fail(Place place, std::string text) {
    *problem_ = {std::move(text), place};
    return nullptr;
  }

  TreePtr unexpected() {
    if (token_.kind == TokenKind::kEnd) return fail(token_.place, "the expression ends too early");
    if (token_.text == ")") return fail(token_.place, "')' without '('");
    return fail(token_.place, fmt::format("unexpected '{}': an operator is missing before it", token_.text));
  }

  bool advance() {
    if (std::optional<Problem> problem = lexer_.next(&token_)) {
      *problem_ = std::move(*problem);
      return false;
    }
    return true;
  }

  bool is(std::string_view word) const { return token_.kind != TokenKind::kNumber && token_.text == word; }

  /// Counts the nesting: a line of ten thousand parentheses is an error, not a crash.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Level() { --parser_.depth_; }
    bool too_deep() const { return parser_.depth_ > kMaxDepth; }

   private:
    Parser& parser_;
  };

  TreePtr make(Op op, Place place, Place extent) {
    if (++nodes_ > kMaxNodes) return fail(place, fmt::format("more than {} operations", kMaxNodes));
    auto tree = std::make_unique<Tree>();
    tree->op = op;
    tree->place = place;
    tree->extent = extent;
    return tree;
  }

  static Place join(Place a, Place b) { return {a.at, b.at + b.length - a.at}; }

  TreePtr binary(Op op, Place place, TreePtr left, TreePtr right) {
    TreePtr tree = make(op, place, join(left->extent, right->extent));
    if (!tree) return nullptr;
    tree->args.push_back(std::move(left));
    tree->args.push_back(std::move(right));
    return tree;
  }

  TreePtr unary(Op op, Place place, TreePtr arg) {
    if (!arg) return nullptr;
    TreePtr tree = make(op, place, join(place, arg->extent));
    if (tree) tree->args.push_back(std::move(arg));
    return tree;
  }

  using Rule = TreePtr (Parser::*)();

  /// One level of left-associative operators from `first` to `last`.
  TreePtr chain(Op first, Op last, Rule next) {
    TreePtr left = (this->*next)();
    while (left) {
      Op op = first;
      while (op <= last && !is(op_text(op))) op = static_cast<Op>(static_cast<int>(op) + 1);
      if (op > last) break;
      const Place place = token_.place;
      if (!advance()) return nullptr;
      TreePtr right = (this->*next)();
      if (!right) return nullptr;
      left = binary(op, place, std::move(left), std::move(right));
    }
    return left;
  }

  TreePtr either() {
    const Level level(*this);
    if (level.too_deep()) return fail(token_.place, fmt::format("nested deeper than {} levels", kMaxDepth));
    return chain(Op::kOr, Op::kOr, &Parser::both);
  }
  TreePtr both() { return chain(Op::kAnd, Op::kAnd, &Parser::negation); }

  TreePtr negation() {
    if (!is("not")) return comparison();
    const Level level(*this);
    if (level.too_deep()) return fail(token_.place, fmt::format("nested deeper than {} levels", kMaxDepth));
    const Place place = token_.place;
    if (!advance()) return nullptr;
    return unary(Op::kNot, place, negation());
  }

  bool comparison_sign(Op* op) const {
    if (is("~=")) {
      *op = Op::kNotEqual;
      return true;
    }
    for (Op candidate : {Op::kLess, Op::kLessEqual, Op::kGreater, Op::kGreaterEqual, Op::kEqual, Op::kNotEqual}) {
      if (!is(op_text(candidate))) continue;
      *op = candidate;
      return true;
    }
    return false;
  }

  TreePtr comparison() {
    TreePtr left = sum();
    Op op = Op::kLess;
    if (!left || !comparison_sign(&op)) return left;
    const Place place = token_.place;
    if (!advance()) return nullptr;
    TreePtr right = sum();
    if (!right) return nullptr;
    if (Op second = op; comparison_sign(&second)) {
      const std::string_view middle = text_.substr(right->extent.at, right->extent.length);
      return fail(token_.place, fmt::format("comparisons do not chain: write ... {0} {1} and {1} {2} ...", op_text(op),
                                            middle, op_text(second)));
    }
    return binary(op, place, std::move(left), std::move(right));
  }

  TreePtr sum() { return chain(Op::kAdd, Op::kSub, &Parser::product); }
  TreePtr product() { return chain(Op::kMul, Op::kDiv, &Parser::minus); }

  TreePtr minus() {
    if (!is("-")) return power();
    const Level level(*this);
    if (level.too_deep()) return fail(token_.place, fmt::format("nested deeper than {} levels", kMaxDepth));
    const Place place = token_.place;
    if (!advance()) return nullptr;
    return unary(Op::kNegate, place, minus());
  }

  TreePtr power() {
    TreePtr base = primary();
    if (!base || !is("^")) return base;
    const Level level(*this);
    if (level.too_deep()) return fail(token_.place, fmt::format("nested deeper than {} levels", kMaxDepth));
    const Place place = token_.place;
    if (!advance()) return nullptr;
    TreePtr exponent = minus();
    return exponent ? binary(Op::kPow, place, std::move(base), std::move(exponent)) : nullptr;
  }

  TreePtr primary() {
    const Token first = token_;
    if (first.kind == TokenKind::kNumber) {
      TreePtr tree = make(Op::kNumber, first.place, first.place);
      if (!tree || !advance()) return nullptr;
      tree->value = first.value;
      return tree;
    }
    if (is("(")) {
      if (!advance()) return nullptr;
      TreePtr tree = either();
      if (!tree) return nullptr;
      tree->extent = join(first.place, token_.place);
      return close(first) ? std::move(tree) : nullptr;
    }
    if (first.kind == TokenKind::kName && first.text != "and" && first.text != "or" && first.text != "not") {
      return name(first);
    }
    if (first.kind == TokenKind::kEnd) return fail(first.place, "the expression ends too early");
    if (is("not")) return fail(first.place, "'not' binds weaker than the operator before it: put (not ...) in parentheses");
    return fail(first.place, fmt::format("expected a value before '{}'", first.text));
  }

  /// Expects the ')' for `open`.
  bool close(const Token& open) {
    if (is(")")) return advance();
    if (token_.kind == TokenKind::kEnd) fail(open.place, "'(' is never closed");
    else if (is(",")) fail(token_.place, "a comma belongs between the arguments of a function only");
    else unexpected();
    return false;
  }

  TreePtr name(const Token& word) {
    if (!advance()) return nullptr;
    Op op = Op::kX;
    if (is("(")) {
      if (find_function(word.text, &op)) return call(op, word);
      double ignored = 0;
      if (find_variable(word.text, &op, &ignored)) {
        return fail(word.place, fmt::format("'{}' is not a function", word.text));
      }
      return fail(word.place, fmt::format("unknown function '{}'{}", word.text, suggestion(word.text)));
    }
    double value = 0;
    if (find_variable(word.text, &op, &value)) {
      TreePtr tree = make(op, word.place, word.place);
      if (tree) tree->value = value;
      return tree;
    }
    if (find_function(word.text, &op)) {
      return fail(word.place, fmt::format("'{0}' is a function: write {0}(...)", word.text));
    }
    return fail(word.place, fmt::format("unknown name '{}'{}", word.text, suggestion(word.text)));
  }

  TreePtr call(Op op, const Token& word) {
    const Token open = token_;
    if (!advance()) return nullptr;
    TreePtr tree = make(op, word.place, word.place);
    if (!tree) return nullptr;
    if (is(")")) return fail(word.place, fmt::format("{} needs an argument", word.text));
    while (true) {
      TreePtr arg = either();
      if (!arg) return nullptr;
      tree->args.push_back(std::move(arg));
      if (!is(",")) break;
      if (!advance()) return nullptr;
    }
    tree->extent = join(word.place, token_.place);
    if (!close(open)) return nullptr;
    if (tree->args.size() > 1 && op != Op::kMin && op != Op::kMax) {
      return fail(tree->args[1]->extent, fmt::format("{} takes one argument", word.text));
    }
    return tree->args.size() > 2 ? fold_left(op, *tree) : std::move(tree);
  }

  /// max(a, b, c) is max(max(a, b), c).
  TreePtr fold_left(Op op, Tree& call) {
    TreePtr folded = std::move(call.args[0]);
    for (size_t i = 1; i < call.args.size(); ++i) {
      TreePtr outer = make(op, call.place, call.extent);
      if (!outer) return nullptr;
      outer->args.push_back(std::move(folded));
      outer->args.push_back(std::move(call.args[i]));
      folded = std::move(outer);
    }
    return folded;
  }

  Lexer lexer_;
  std::string_view text_;
  Problem* problem_;
  Token token_;
  int depth_ = 0;
  size_t nodes_ = 0;
};

}  // namespace

TreePtr parse(std::string_view text, Problem* problem) { return Parser(text, problem).whole(); }

}  // namespace msdbg::expr
