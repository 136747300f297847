// Completes node names level by level: the names of a session as a tree of components.
//
// Built once for the graphs of a session, then read on the thread that owns the Script.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg::script {

class NameIndex {
 public:
  explicit NameIndex(std::vector<GraphPtr> graphs);

  /// True while the session still has the graphs of this index.
  bool is_of(std::span<const GraphPtr> graphs) const;

  /// At most `limit` completions of `word`, one level further: `Default/` for `De`, `Default/net/` for `Default/n`. A word may
  /// start at any component, because the end of a name is also a name; if no component starts with it, those that contain it are
  /// returned. Scopes end in a slash. Case is ignored.
  std::vector<std::string> complete(std::string_view word, size_t limit) const;

  /// The operator types that occur, ascending.
  const std::vector<std::string>& op_types() const { return op_types_; }

 private:
  struct Place {
    std::string_view component;  // points into a node name of graphs_
    uint32_t parent;
    uint32_t child = 0;    // the last child; 0 for a leaf
    uint32_t sibling = 0;  // the previous sibling; 0 after the last
    bool is_node = false;
  };
  class Builder;
  bool ends_with(uint32_t place, std::string_view path, bool whole) const;
  std::vector<uint32_t> below(std::string_view path) const;

  std::vector<GraphPtr> graphs_;
  std::vector<Place> places_;  // [0] is the root
  std::vector<std::string> op_types_;
};

}  // namespace msdbg::script
