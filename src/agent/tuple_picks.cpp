#include "agent/tuple_picks.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace msdbg::agent {
namespace {

/// Picks are numbered after all described nodes.
int64_t highest_number(const GraphDescription& graph) {
  int64_t highest = 0;
  for (const NodeDescription& node : graph.nodes) {
    const size_t at = node.full_name.rfind("-op");
    if (at == std::string::npos) continue;
    if (const auto number = parse_int(std::string_view(node.full_name).substr(at + 3))) {
      highest = std::max(highest, *number);
    }
  }
  return highest;
}

}  // namespace

std::vector<TuplePick> tuple_picks(const GraphDescription& graph) {
  std::vector<TuplePick> picks;
  std::unordered_map<std::string_view, NodeIndex> tuples;
  std::set<std::pair<NodeIndex, uint32_t>> known;
  int64_t number = -1;
  for (NodeIndex i = 0; i < graph.nodes.size(); ++i) {
    for (const InputDescription& input : graph.nodes[i].inputs) {
      const auto tuple = tuples.find(input.name);
      if (tuple == tuples.end() || !known.emplace(tuple->second, input.slot).second) continue;
      if (number < 0) number = highest_number(graph);
      picks.push_back({tuple->second, input.slot, fmt::format("Default/TupleGetItem-op{}", ++number)});
    }
    if (graph.nodes[i].outputs.size() > 1) tuples.emplace(graph.nodes[i].full_name, i);
  }
  return picks;
}

}  // namespace msdbg::agent
