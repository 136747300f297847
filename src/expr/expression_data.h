// What an Expression holds. Private to the module.
#pragma once

#include <memory>
#include <string>

#include "expr/syntax.h"
#include "msdbg/expr.h"

namespace msdbg {

struct Expression::Data {
  std::string source;  ///< what the places of the tree mean
  std::string text;
  std::unique_ptr<const expr::Tree> tree;
  bool needs_previous = false;
};

}  // namespace msdbg
