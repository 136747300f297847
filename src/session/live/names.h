// Converts node names to the names that the training process uses, and back.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg::live {

/// The name of a node in a list of watched nodes. A parameter needs some scope, or its consumer is not read; the slashes of a
/// constant become `--`. nullopt: the peer cannot watch it (structural nodes, names with a colon).
std::optional<std::string> watch_name(const Graph& graph, const Node& node);

/// Spellings under which a tensor of the node may be fetched, most likely first. Empty: it cannot be fetched.
std::vector<std::string> view_names(const Node& node);

/// Finds the node of a hit: by the name as sent, by full name, or by the part after its folded scope.
class NameTable {
 public:
  /// Graphs must outlive the table. Of equal names, the first graph's is found.
  void rebuild(std::span<const GraphPtr> graphs);
  std::optional<NodeRef> find(std::string_view peer_name) const;

 private:
  std::unordered_map<std::string, NodeRef> nodes_;
  std::unordered_map<std::string, NodeRef> values_;  // parameters and constants by last component
};

}  // namespace msdbg::live
