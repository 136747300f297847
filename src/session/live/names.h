// Names of nodes as the training process knows them, and back.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg::live {

/// Of a node in a list of watched nodes. A parameter must carry some scope, or its consumer is not read; a constant's
/// slashes travel as `--`. nullopt: the peer cannot watch it (structural nodes, names with a colon).
std::optional<std::string> watch_name(const Graph& graph, const Node& node);

/// Spellings under which a tensor of the node may be fetched, the likeliest first. Empty: it cannot be fetched.
std::vector<std::string> view_names(const Node& node);

/// Finds the node that a hit names: as it was sent, by full name, or by the part after its folded scope.
class NameTable {
 public:
  /// Graphs must outlive the table.
  void rebuild(std::span<const GraphPtr> graphs);
  std::optional<NodeRef> find(std::string_view peer_name) const;

 private:
  std::unordered_map<std::string, NodeRef> nodes_;
  std::unordered_map<std::string, NodeRef> values_;  // parameters and constants by last component
};

}  // namespace msdbg::live
