// The parsed form of a selector. Private to the graph module.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/glob.h"
#include "graph/name_regex.h"
#include "msdbg/chains.h"
#include "msdbg/graph.h"
#include "msdbg/text_arena.h"
#include "msdbg/text_table.h"

namespace msdbg {

/// Chosen nodes by rank, graph and name. It may outlive the graphs.
class NodeTable {
 public:
  void add(const NodeRef& ref);
  bool contains(int rank, int graph, std::string_view name) const;
  /// Ids distinguish nodes that share a name. In a rebuilt graph ids are meaningless, and the name decides.
  bool contains(const Graph& graph, const Node& node) const;
  /// contains() for each node of the graph, by id.
  NodeBits nodes_of(const Graph& graph) const;

 private:
  struct Part {
    int rank = 0, graph = 0;
    TextTable<Chains<NodeId>::List> by_name;
    Chains<NodeId> ids;
  };
  const Part* part_of(int rank, int graph) const;

  std::vector<Part> parts_;  // a session has few graphs
  TextArena names_;
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
  bool asks_for_constant(const Graph& graph, const Node& node) const;
  /// Removes the nodes that do not match.
  void narrow(const Graph& graph, NodeBits& kept) const;

 private:
  bool compares_names() const;
};

/// `.../MatMul-op0`, a common way to write a shortened name, without the dots.
std::string_view without_mark(std::string_view name);

/// The full name of the one node whose name, or unique suffix of whole components, is `word`; nullptr if there is none.
const std::string* named_node(std::span<const GraphPtr> graphs, std::string_view word);

/// Error: kInvalidArgument with the position.
Result<std::shared_ptr<const Selector::Term>> parse_selector(std::string_view text);

}  // namespace msdbg
