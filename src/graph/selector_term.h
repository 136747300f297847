// The parsed form of a selector. Private to the graph module.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/glob.h"
#include "graph/name_regex.h"
#include "msdbg/graph.h"

namespace msdbg {

struct Selector::Term {
  enum class Kind : uint8_t {
    kAnd,
    kOr,
    kNot,
    kGlob,
    kSubstring,
    kExact,
    kRegex,
    kCategory,
    kOp,
    kScope,
    kStack,
    kRank,
    kGraph,
  };

  Kind kind = Kind::kSubstring;
  std::string text;                                ///< what was typed, without prefix and quotes
  std::vector<std::shared_ptr<const Term>> parts;  ///< kAnd, kOr: two or more; kNot: one
  Glob glob;                                       ///< kGlob, kOp, kScope, kStack, kGraph
  bool has_glob = false;
  Category category = Category::kAll;
  std::shared_ptr<const NameRegex> regex;
  IntSet ranks;
  int line = 0;  ///< kStack: 0 means any

  bool matches(const Graph& graph, const Node& node) const;
};

/// Error: kInvalidArgument with the position.
Result<std::shared_ptr<const Selector::Term>> parse_selector(std::string_view text);

}  // namespace msdbg
