#include <fmt/format.h>

#include <algorithm>

#include "msdbg/session.h"

namespace msdbg {
namespace {

struct Named {
  std::string_view node;
  Slot slot;
};

/// Splits the slot off the end: `NODE:output:0`, `NODE:0`; names may contain colons.
Named split_slot(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {text, Slot{}};
  const size_t before = colon == 0 ? std::string_view::npos : text.rfind(':', colon - 1);
  if (before != std::string_view::npos) {
    if (std::optional<Slot> slot = parse_slot(text.substr(before + 1))) return {text.substr(0, before), *slot};
  }
  if (std::optional<Slot> slot = parse_slot(text.substr(colon + 1))) return {text.substr(0, colon), *slot};
  return {text, Slot{}};
}

bool has_step(const Session& session, const Graph& graph, int64_t step) {
  const std::vector<int64_t> steps = session.steps(graph.rank(), graph.id());
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

Status check_slot(const Graph& graph, const Node& node, Slot slot) {
  const size_t have = slot.io == Io::kInput ? node.inputs.size() : node.outputs.size();
  // Without a graph file, a node's known slots are only the dumped ones; describe() decides.
  if (!graph.from_file() || have == 0 || slot.index < have) return {};
  const char* what = slot.io == Io::kInput ? "input" : "output";
  const std::string range =
      have == 1 ? fmt::format("only {}:0", what) : fmt::format("{}:0 to {}:{}", what, what, have - 1);
  return Status(Code::kNotFound, fmt::format("{} has no {} (it has {})", node.name, slot_name(slot), range));
}

}  // namespace

Result<TensorId> resolve_tensor(const Session& session, std::string_view text, int64_t step, std::optional<int> rank,
                                std::optional<int> graph, uint32_t execution) {
  const Named named = split_slot(trim(text));
  if (named.node.empty()) {
    return Status(Code::kInvalidArgument, fmt::format("'{}' names no node: write NODE, NODE:0 or NODE:input:1", text));
  }
  Result<NodeRef> found = find_node(session.graphs(), named.node, rank, graph);
  if (!found) return found.status();
  const Graph* owner = found->graph;
  NodeId node = found->node;
  if (!graph && !has_step(session, *owner, step)) {
    // A network that was compiled twice has the same names in two graphs; prefer the graph that ran in this step.
    for (const GraphPtr& other : session.graphs()) {
      if (rank && other->rank() != *rank) continue;
      const Node* same = other->find(owner->node(node).name);
      if (same && has_step(session, *other, step)) {
        node = same->id;
        owner = other.get();
        break;
      }
    }
  }
  if (Status status = check_slot(*owner, owner->node(node), named.slot); !status.ok()) return status;
  TensorId id;
  id.rank = owner->rank();
  id.graph = owner->id();
  id.step = step;
  id.execution = execution;
  id.node = node;
  id.slot = named.slot;
  return id;
}

}  // namespace msdbg
