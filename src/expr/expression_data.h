// The contents of an Expression. Private to the module.
#pragma once

#include <memory>
#include <string>

#include "expr/syntax.h"
#include "msdbg/expr.h"

namespace msdbg {

struct Expression::Data {
  std::string source;  ///< the text that the positions in the tree refer to
  std::string text;
  std::unique_ptr<const expr::Tree> tree;
  bool needs_previous = false, asks_about_nan = false;
};

}  // namespace msdbg
