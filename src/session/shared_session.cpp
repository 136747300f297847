#include <limits>

#include "msdbg/shared.h"

namespace msdbg {
namespace {

constexpr uint64_t kMostDimensions = 256;

}  // namespace

std::vector<uint64_t> expected_bytes(const Session& session, std::span<const TensorId> tensors) {
  std::vector<uint64_t> out(tensors.size());
  std::vector<size_t> unknown;
  const Graph* graph = nullptr;
  double sum = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorId& id = tensors[i];
    if (graph == nullptr || graph->rank() != id.rank || graph->id() != id.graph) graph = session.graph(id.rank, id.graph);
    const OutputType* type = nullptr;
    if (graph != nullptr && id.node < graph->nodes().size()) {
      Edge source{id.node, id.slot.index, ""};
      if (id.slot.io == Io::kInput) source = graph->effective_producer(id.node, id.slot.index);
      if (source.node != kNoNode && source.slot < graph->node(source.node).outputs.size())
        type = &graph->node(source.node).outputs[source.slot];
    }
    const std::optional<uint64_t> count = type != nullptr && type->shape ? element_count(*type->shape) : std::nullopt;
    if (!count || *count > std::numeric_limits<uint32_t>::max() * uint64_t{1024}) {
      unknown.push_back(i);
      continue;
    }
    out[i] = *count * item_size(type->dtype);
    sum += static_cast<double>(out[i]);
  }
  const size_t known = tensors.size() - unknown.size();
  const uint64_t mean = known == 0 ? 0 : static_cast<uint64_t>(sum / static_cast<double>(known));
  for (const size_t i : unknown) out[i] = mean;
  return out;
}

std::string location_of(Session& session, const TensorId& id) {
  auto* files = dynamic_cast<SharedFiles*>(&session);
  return files == nullptr ? "" : files->location(id);
}

Result<OpenTensor> LocatedSession::open(const TensorId& id) {
  const auto found = locations_.find(id);
  if (found == locations_.end()) return Status(Code::kCorrupt, "a tensor that process 0 has not located");
  return open_(id, found->second);
}

Result<TensorId> LocatedSession::previous(const TensorId&, bool* history_missing) {
  if (previous_) return *previous_;
  if (history_missing != nullptr) *history_missing = history_missing_;
  return Status(Code::kNotFound, "no earlier value");
}

void write_target(ByteWriter& out) { out.text(simd_target()); }

Status use_target(ByteReader& in) {
  const std::string_view target = in.text();
  if (target == simd_target()) return {};
  const Status status = set_simd_target(target);
  if (status.ok()) return {};
  return Status(status.code(), status.message() + "; MSDBG_SIMD=avx2 before mpirun makes all processes use that");
}

void write(ByteWriter& out, const TensorId& id) {
  out.whole(id.rank);
  out.whole(id.graph);
  out.whole(id.step);
  out.number(id.execution);
  out.number(id.node);
  out.flag(id.slot.io == Io::kOutput);
  out.number(id.slot.index);
}

TensorId read_tensor_id(ByteReader& in) {
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  TensorId id;
  id.rank = in.small();
  id.graph = in.small();
  id.step = in.whole();
  id.execution = static_cast<uint32_t>(in.number(kMost));
  id.node = static_cast<NodeId>(in.number(kMost));
  id.slot.io = in.flag() ? Io::kOutput : Io::kInput;
  id.slot.index = static_cast<uint32_t>(in.number(kMost));
  return id;
}

void write(ByteWriter& out, const Shape& shape) {
  out.number(shape.size());
  for (const int64_t length : shape) out.whole(length);
}

Shape read_shape(ByteReader& in) {
  Shape shape;
  for (size_t left = in.items(kMostDimensions); left > 0 && in.good(); --left) shape.push_back(in.whole());
  return shape;
}

void write(ByteWriter& out, DType dtype) { out.number(static_cast<uint64_t>(dtype)); }

DType read_dtype(ByteReader& in) {
  return static_cast<DType>(in.number(kDTypeCount - 1));
}

}  // namespace msdbg
