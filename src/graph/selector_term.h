// The parsed form of a selector. Private to the graph module.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/glob.h"
#include "graph/name_regex.h"
#include "msdbg/graph.h"

namespace msdbg {

/// Nodes by rank, graph and name: which of the nodes with that name. It may outlive the graphs.
struct NodeTable {
  struct Place {
    int rank = 0, graph = 0;
    std::string_view name;
    bool operator==(const Place&) const = default;
  };
  struct Hash {
    size_t operator()(const Place& place) const noexcept {
      return std::hash<std::string_view>()(place.name) ^ static_cast<size_t>(place.rank) << 32 ^ static_cast<size_t>(place.graph);
    }
  };
  std::deque<std::string> names;  // of the places
  std::unordered_map<Place, std::vector<NodeId>, Hash> places;
};

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
    kDtype,
    kScope,
    kStack,
    kRank,
    kGraph,
    kNodes,
  };

  Kind kind = Kind::kSubstring;
  std::string text;                                ///< as typed, without prefix and quotes
  std::vector<std::shared_ptr<const Term>> parts;  ///< kAnd, kOr: two or more; kNot: one
  Glob glob;                                       ///< kGlob, kOp, kDtype, kScope, kStack, kGraph
  bool has_glob = false;
  Category category = Category::kAll;
  std::shared_ptr<const NameRegex> regex;
  IntSet ranks;
  int line = 0;  ///< kStack: 0 means any
  std::shared_ptr<const NodeTable> nodes;          ///< kNodes

  bool matches(const Graph& graph, const Node& node) const;
};

/// `.../MatMul-op0`, a common way to write a shortened name, without the dots.
std::string_view without_mark(std::string_view name);

/// The full name of the one node whose name, or unique suffix of whole components, is `word`; nullptr if there is none.
const std::string* named_node(std::span<const GraphPtr> graphs, std::string_view word);

/// Error: kInvalidArgument with the position.
Result<std::shared_ptr<const Selector::Term>> parse_selector(std::string_view text);

}  // namespace msdbg
