// The tree of one expression with positions in the text, the parser and the type check. Private to the module.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "expr/ops.h"
#include "msdbg/base.h"

namespace msdbg::expr {

/// A range of bytes in the text.
struct Place {
  size_t at = 0, length = 0;
};

struct Type {
  bool truth = false;    ///< otherwise a number
  bool element = false;  ///< one value per element; otherwise a single value
};

struct Tree {
  Op op = Op::kNumber;
  double value = 0;  ///< for constants
  Place place;       ///< where to report a mistake in this operation: its sign or name
  Place extent;      ///< its whole text
  Type type;         ///< set by check()
  std::vector<std::unique_ptr<Tree>> args;
};
using TreePtr = std::unique_ptr<Tree>;

/// A problem in an expression, and its position.
struct Problem {
  std::string text;
  Place place;
};

/// The reason, the expression, and a caret below the position:
///
///   unknown name 'mena': mean?
///     mena(x) > 3
///     ^~~~
Status describe(const Problem& problem, std::string_view expression);

/// The tree without types; nullptr and `*problem` if the text is not a valid expression.
TreePtr parse(std::string_view text, Problem* problem);

/// Sets the types and turns min and max with one argument into reductions. nullopt without problems.
std::optional<Problem> check(Tree& tree);

}  // namespace msdbg::expr
