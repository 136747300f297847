#include "script/memory_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace msdbg::script {
namespace {

NodeKind kind_of(const std::string& op) {
  return op == "Parameter" ? NodeKind::kParameter : op == "Const" ? NodeKind::kConstant : NodeKind::kOperator;
}

GraphPtr graph_of(const std::vector<MemoryTensor>& tensors, int rank) {
  GraphBuilder builder(rank, 0);
  builder.set_name("case");
  std::map<std::string, NodeId> ids;
  std::vector<std::string> order;
  for (const MemoryTensor& tensor : tensors) {
    if (tensor.rank != rank) continue;
    if (ids.count(tensor.node) == 0) {
      Node node;
      node.name = tensor.node;
      node.op = tensor.op;
      const size_t slash = node.name.rfind('/');
      node.scope = slash == std::string::npos ? "" : node.name.substr(0, slash);
      node.kind = kind_of(tensor.op);
      node.trainable = tensor.trainable;
      if (node.kind == NodeKind::kOperator) order.push_back(node.name);
      ids.emplace(tensor.node, builder.add(std::move(node)));
    }
    Node& node = builder.node(ids.at(tensor.node));
    const size_t slots = tensor.slot.index + 1;
    if (tensor.slot.io == Io::kOutput && node.outputs.size() < slots) node.outputs = std::vector<OutputType>(slots);
    if (tensor.slot.io == Io::kInput && node.inputs.size() < slots) node.inputs.resize(slots);
  }
  for (const MemoryTensor& tensor : tensors) {
    if (tensor.rank != rank) continue;
    Node& node = builder.node(ids.at(tensor.node));
    for (size_t k = 0; k < tensor.inputs.size(); ++k) {
      if (node.inputs.size() <= k) node.inputs.resize(k + 1);
      node.inputs[k].name = tensor.inputs[k];
      if (const auto it = ids.find(tensor.inputs[k]); it != ids.end()) node.inputs[k].node = it->second;
    }
  }
  builder.set_execution_order(order);
  return builder.build();
}

template <typename T>
void store_integer(double value, std::byte* to) {
  const double low = static_cast<double>(std::numeric_limits<T>::min()), high = static_cast<double>(std::numeric_limits<T>::max());
  // The largest 64-bit integer is not a double; values that round up to 2^63 or 2^64 would overflow the cast.
  const T element = std::isnan(value) ? T{0}
                    : value >= high   ? std::numeric_limits<T>::max()
                    : value <= low    ? std::numeric_limits<T>::min()
                                      : static_cast<T>(value);
  std::memcpy(to, &element, sizeof element);
}

template <typename T>
void store_plain(T element, std::byte* to) {
  std::memcpy(to, &element, sizeof element);
}

void store(DType dtype, double value, std::byte* to) {
  switch (dtype) {
    case DType::kBool: return store_plain<uint8_t>(value != 0, to);
    case DType::kInt8: return store_integer<int8_t>(value, to);
    case DType::kInt16: return store_integer<int16_t>(value, to);
    case DType::kInt32: return store_integer<int32_t>(value, to);
    case DType::kInt64: return store_integer<int64_t>(value, to);
    case DType::kUInt8: return store_integer<uint8_t>(value, to);
    case DType::kUInt16: return store_integer<uint16_t>(value, to);
    case DType::kUInt32: return store_integer<uint32_t>(value, to);
    case DType::kUInt64: return store_integer<uint64_t>(value, to);
    case DType::kFloat16: return store_plain(float_to_half(value), to);
    case DType::kBFloat16: return store_plain(float_to_bfloat16(value), to);
    case DType::kFloat32: {
      // Narrowing a double beyond float's range is undefined behaviour; rounding gives infinity there.
      const double limit = std::ldexp(1.0 - std::ldexp(1.0, -25), 128);
      const float narrow = std::abs(value) >= limit
                               ? std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(value < 0 ? -1 : 1))
                               : static_cast<float>(value);
      return store_plain(narrow, to);
    }
    case DType::kFloat64: return store_plain(value, to);
    default: return;
  }
}

}  // namespace

Result<TensorPtr> tensor_of(DType dtype, Shape shape, std::span<const double> values) {
  if (!is_evaluable(dtype)) return Status(Code::kInvalidArgument, fmt::format("no tensor of {} can be written down", dtype_name(dtype)));
  const auto count = element_count(shape);
  if (!count || *count != values.size()) {
    return Status(Code::kInvalidArgument, fmt::format("{} values do not fill the shape {}", values.size(), shape_text(shape)));
  }
  std::vector<std::byte> bytes(values.size() * item_size(dtype));
  for (size_t i = 0; i < values.size(); ++i) store(dtype, values[i], bytes.data() + i * item_size(dtype));
  return TensorBuffer::create(dtype, std::move(shape), std::move(bytes));
}

MemorySession::MemorySession(const std::vector<MemoryTensor>& tensors, SessionKind kind) {
  info_.kind = kind;
  info_.source = info_.short_name = "case";
  std::set<int> ranks{0};
  for (const MemoryTensor& tensor : tensors) ranks.insert(tensor.rank);
  ranks_.assign(ranks.begin(), ranks.end());
  for (const int rank : ranks_) graphs_.push_back(graph_of(tensors, rank));
  for (const MemoryTensor& tensor : tensors) {
    const Node* node = graph(tensor.rank, 0)->find(tensor.node);
    const TensorId id{tensor.rank, 0, tensor.step, 0, node->id, tensor.slot};
    values_[id] = {tensor.value, tensor.overflow};
    const Node* const made = tensor.equals.empty() ? nullptr : graph(tensor.rank, 0)->find(tensor.equals);
    if (made != nullptr) overwritten_.push_back({{tensor.rank, 0, tensor.step, 0, made->id, Slot{}}, id, "the case says so"});
    steps_.insert(tensor.step);
  }
}

std::vector<int64_t> MemorySession::steps(int rank, int graph) const {
  if (graph != 0 || std::find(ranks_.begin(), ranks_.end(), rank) == ranks_.end()) return {};
  return steps();
}

std::vector<TensorId> MemorySession::tensors(const TensorQuery& query) {
  std::vector<TensorId> found;
  if (query.graph && *query.graph != 0) return found;
  for (const auto& [id, value] : values_) {
    if (!query.ranks.contains(id.rank) || !query.steps.contains(id.step)) continue;
    if (id.slot.io == Io::kInput ? !query.inputs : !query.outputs) continue;
    if (query.slot && *query.slot != id.slot.index) continue;
    const NodeRef ref{graph(id.rank, id.graph), id.node};
    if (query.nodes && std::find(query.nodes->begin(), query.nodes->end(), ref) == query.nodes->end()) continue;
    found.push_back(id);
  }
  const auto place = [this](const TensorId& id) { return std::tuple(id.rank, id.step, node(id).order, id.node, id.slot); };
  std::sort(found.begin(), found.end(), [&](const TensorId& a, const TensorId& b) { return place(a) < place(b); });
  return found;
}

uint32_t MemorySession::executions(int rank, int graph, int64_t step, NodeId node) {
  const bool there = std::any_of(values_.begin(), values_.end(), [&](const auto& entry) {
    return entry.first.rank == rank && entry.first.graph == graph && entry.first.step == step && entry.first.node == node;
  });
  return there ? 1 : 0;
}

Result<OpenTensor> MemorySession::open(const TensorId& id) {
  const auto it = values_.find(id);
  if (it == values_.end()) return Status(Code::kNotFound, fmt::format("the case has no {} in step {}", tensor_name(id), id.step));
  TensorInfo info;
  info.id = id;
  info.source = "case";
  return OpenTensor::in_memory(std::move(info), it->second.tensor);
}

Result<TensorId> MemorySession::previous(const TensorId& id, bool* history_missing) {
  if (history_missing) *history_missing = false;
  TensorId before = id;
  for (auto step = steps_.lower_bound(id.step); step != steps_.begin();) {
    before.step = *--step;
    if (values_.count(before) > 0) return before;
  }
  return Status(Code::kNotFound, "no previous step");
}

std::vector<Overwritten> MemorySession::overwritten(int rank, int64_t step) {
  std::vector<Overwritten> found;
  std::copy_if(overwritten_.begin(), overwritten_.end(), std::back_inserter(found),
               [&](const Overwritten& each) { return each.after.rank == rank && each.after.step == step; });
  return found;
}

Result<bool> MemorySession::operator_overflow(const TensorId& id) {
  const auto it = values_.find(id);
  if (it == values_.end() || !it->second.overflow) return Status(Code::kUnsupported, "the case says nothing of overflow flags");
  return *it->second.overflow;
}

SessionReport MemorySession::inspect() {
  SessionReport report;
  report.steps_by_graph[0] = steps();
  report.tensor_files = values_.size();
  return report;
}

}  // namespace msdbg::script
