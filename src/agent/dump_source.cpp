#include "agent/dump_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "agent/value_layout.h"

namespace msdbg::agent {
namespace {

constexpr uint64_t kElementsPerRead = uint64_t{1} << 20;

/// False if the file is not what it was when it was listed.
bool read_dumped(const StepValue& value, DType dtype, std::span<std::byte> into) {
  const TensorFile file = open_tensor_file(value.path, value.hints);
  const size_t item = item_size(dtype);
  if (!file.reader || file.reader->dtype() != dtype || file.reader->count() * item != into.size()) return false;
  for (uint64_t first = 0; first < file.reader->count(); first += kElementsPerRead) {
    const uint64_t count = std::min(kElementsPerRead, file.reader->count() - first);
    if (!file.reader->read(first, into.subspan(first * item, count * item)).ok()) return false;
  }
  return true;
}

/// Adds the nodes of a graph to a description, which may hold other graphs of the same network.
class Describer {
 public:
  Describer(const Graph& graph, GraphDescription& out) : graph_(graph), out_(out) {
    for (const auto& each : out.parameters) names_.insert(each.name);
    for (const auto& each : out.constants) names_.insert(each.name);
    for (const auto& each : out.nodes) names_.insert(each.full_name);
  }

  void run() {
    for (const Node& node : graph_.nodes()) {
      if (node.kind == NodeKind::kParameter) add_parameter(node);
    }
    for (const NodeId id : graph_.execution_order()) {
      const Node& node = graph_.node(id);
      if (!is_structural(node.op) && names_.insert(node.name).second) add_operator(node);
    }
  }

 private:
  static OutputType type_of(const Node& node) { return node.outputs.empty() ? OutputType() : node.outputs[0]; }

  /// All graphs of a network mean the same parameter by a name.
  void add_parameter(const Node& node) {
    const OutputType type = type_of(node);
    slots_[node.id] = 1;
    if (!names_.insert(node.name).second) return;
    out_.parameters.push_back({node.name, type.dtype, type.shape.value_or(Shape())});
  }

  void add_operator(const Node& node) {
    NodeDescription added;
    added.full_name = node.name;
    added.op = node.op;
    for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) add_input(node.id, slot, added);
    added.outputs = node.outputs.get();
    added.attributes = node.attributes.get();
    added.stack = node.stack.get();
    slots_[node.id] = node.outputs.size();
    out_.nodes.push_back(std::move(added));
  }

  /// Producers that are not described, such as the end of a loop, are left out: they run later, or hold no tensor.
  void add_input(NodeId id, uint32_t slot, NodeDescription& to) {
    const Edge edge = graph_.effective_producer(id, slot);
    if (edge.node == kNoNode || !carries_value(graph_, edge)) return;
    const Node& from = graph_.node(edge.node);
    if (from.kind == NodeKind::kConstant && slots_.try_emplace(from.id, 1).second) add_constant(from);
    const auto known = slots_.find(edge.node);
    if (known == slots_.end() || edge.slot >= known->second) return;
    const auto renamed = renamed_.find(edge.node);
    to.inputs.push_back({renamed == renamed_.end() ? from.name : renamed->second, edge.slot});
  }

  /// Each graph counts its constants from 1.
  void add_constant(const Node& node) {
    std::string name = node.name;
    for (int number = 2; !names_.insert(name).second; ++number) name = fmt::format("{}_{}", node.name, number);
    if (name != node.name) renamed_[node.id] = name;
    const OutputType type = type_of(node);
    out_.constants.push_back({std::move(name), type.dtype, type.shape.value_or(Shape())});
  }

  const Graph& graph_;
  GraphDescription& out_;
  std::set<std::string> names_;
  std::unordered_map<NodeId, size_t> slots_;         // of the nodes described so far
  std::unordered_map<NodeId, std::string> renamed_;  // constants
};

}  // namespace

const DumpSource::Part* DumpSource::part_of(const std::string& directory) const {
  if (parts.size() == 1) return parts.data();
  const std::string number = std::filesystem::path(directory).parent_path().filename();
  const auto found = std::ranges::find_if(parts, [&](const Part& part) { return std::to_string(part.graph) == number; });
  return found == parts.end() ? nullptr : &*found;
}

Status add_dumped_graph(GraphDescription& to, const std::string& rank_directory, int graph) {
  Result<std::unique_ptr<StepReader>> reader = StepReader::open(rank_directory, graph);
  if (!reader) return reader.status();
  if (!to.dump) to.dump = std::make_shared<DumpSource>();
  const auto first = static_cast<NodeIndex>(to.nodes.size());
  Describer((*reader)->graph(), to).run();
  to.dump->parts.push_back({graph, first, static_cast<NodeIndex>(to.nodes.size()), std::move(*reader)});
  return {};
}

Result<GraphDescription> graph_from_dump(const std::string& rank_directory, int graph, int id) {
  GraphDescription description;
  description.id = id;
  if (Status status = add_dumped_graph(description, rank_directory, graph); !status.ok()) return status;
  return description;
}

Result<DumpedValue> open_dumped(const StepValue& value) {
  const TensorFile file = open_tensor_file(value.path, value.hints);
  if (!file.reader) return Status(file.content.problem.code(), fmt::format("{}: {}", value.path, file.content.problem.message()));
  DumpedValue out;
  out.dtype = file.content.dtype;
  out.shape = file.content.shape;
  out.fetch = [value, dtype = out.dtype](std::span<std::byte> into) { return read_dumped(value, dtype, into); };
  return out;
}

}  // namespace msdbg::agent
