#include "agent/dump_source.h"

#include <fmt/format.h>

#include <algorithm>
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

class Describer {
 public:
  explicit Describer(const Graph& graph) : graph_(graph) {}

  GraphDescription run() {
    for (const Node& node : graph_.nodes()) {
      if (node.kind == NodeKind::kParameter && names_.insert(node.name).second) add_parameter(node);
    }
    for (const NodeId id : graph_.execution_order()) {
      const Node& node = graph_.node(id);
      if (!is_structural(node.op) && names_.insert(node.name).second) add_operator(node);
    }
    return std::move(out_);
  }

 private:
  static OutputType type_of(const Node& node) { return node.outputs.empty() ? OutputType() : node.outputs[0]; }

  void add_parameter(const Node& node) {
    const OutputType type = type_of(node);
    out_.parameters.push_back({node.name, type.dtype, type.shape.value_or(Shape())});
    slots_[node.id] = 1;
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
    if (from.kind == NodeKind::kConstant && names_.insert(from.name).second) {
      const OutputType type = type_of(from);
      out_.constants.push_back({from.name, type.dtype, type.shape.value_or(Shape())});
      slots_[from.id] = 1;
    }
    const auto known = slots_.find(edge.node);
    if (known != slots_.end() && edge.slot < known->second) to.inputs.push_back({from.name, edge.slot});
  }

  const Graph& graph_;
  GraphDescription out_;
  std::set<std::string> names_;
  std::unordered_map<NodeId, size_t> slots_;  // of the nodes described so far
};

}  // namespace

Result<GraphDescription> graph_from_dump(const std::string& rank_directory, int graph, int id) {
  Result<std::unique_ptr<StepReader>> reader = StepReader::open(rank_directory, graph);
  if (!reader) return reader.status();
  GraphDescription description = Describer((*reader)->graph()).run();
  description.id = id;
  description.dump = std::make_shared<DumpSource>(DumpSource{std::move(*reader)});
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
