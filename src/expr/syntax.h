// The tree of one expression with its places in the text, the parser and the type check. Private to the module.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "expr/ops.h"
#include "msdbg/base.h"

namespace msdbg::expr {

/// Bytes of the text.
struct Place {
  size_t at = 0, length = 0;
};

struct Type {
  bool truth = false;    ///< else a number
  bool element = false;  ///< one for each element; else a single value
};

struct Tree {
  Op op = Op::kNumber;
  double value = 0;  ///< of a constant
  Place place;       ///< where a mistake in this operation is shown: its sign or name
  Place extent;      ///< all of its text
  Type type;         ///< set by check()
  std::vector<std::unique_ptr<Tree>> args;
};
using TreePtr = std::unique_ptr<Tree>;

/// What is wrong with an expression, and where.
struct Problem {
  std::string text;
  Place place;
};

/// The reason, the expression, and a caret under the place:
///
///   unknown name 'mena': mean?
///     mena(x) > 3
///     ^~~~
Status describe(const Problem& problem, std::string_view expression);

/// The tree without types; nullptr and `*problem` when the text is not an expression.
TreePtr parse(std::string_view text, Problem* problem);

/// Sets the types and turns min and max with one argument into reductions. nullopt when all is well.
std::optional<Problem> check(Tree& tree);

}  // namespace msdbg::expr
