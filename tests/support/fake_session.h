// A session in memory for tests: graphs from literals, tensors by (node, step, slot, execution), failures on demand.
//
//   FakeSession s(fake_graph({{"Default/w", "Parameter"}, {"Default/MatMul-op0", "MatMul", {"Default/w"}}}));
//   s.put("Default/MatMul-op0", 0, f32({1, 2, NAN}));
//
// `previous` follows the contract of Session: the last earlier step with the same value. Counts accesses to tensors and reads,
// which lets a test prove that a recheck reads nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "msdbg/session.h"

namespace msdbg::testing {

// ---- tensors from literals -----------------------------------------------------------------------------------------

/// `values` rounded to `dtype`; 64-bit integers beyond 2^53 need raw bytes instead.
inline TensorPtr make_tensor(DType dtype, Shape shape, std::span<const double> values) {
  std::vector<std::byte> bytes(values.size() * item_size(dtype));
  auto store = [&](size_t i, auto element) {
    std::memcpy(bytes.data() + i * sizeof element, &element, sizeof element);
  };
  for (size_t i = 0; i < values.size(); ++i) {
    const double v = values[i];
    switch (dtype) {
      case DType::kBool:
        store(i, static_cast<uint8_t>(v != 0));
        break;
      case DType::kInt8:
        store(i, static_cast<int8_t>(v));
        break;
      case DType::kInt16:
        store(i, static_cast<int16_t>(v));
        break;
      case DType::kInt32:
        store(i, static_cast<int32_t>(v));
        break;
      case DType::kInt64:
        store(i, static_cast<int64_t>(v));
        break;
      case DType::kUInt8:
        store(i, static_cast<uint8_t>(v));
        break;
      case DType::kUInt16:
        store(i, static_cast<uint16_t>(v));
        break;
      case DType::kUInt32:
        store(i, static_cast<uint32_t>(v));
        break;
      case DType::kUInt64:
        store(i, static_cast<uint64_t>(v));
        break;
      case DType::kFloat16:
        store(i, float_to_half(v));
        break;
      case DType::kBFloat16:
        store(i, float_to_bfloat16(v));
        break;
      case DType::kFloat32:
        store(i, static_cast<float>(v));
        break;
      case DType::kFloat64:
        store(i, v);
        break;
      default:
        break;
    }
  }
  return TensorBuffer::create(dtype, std::move(shape), std::move(bytes)).value();
}

inline TensorPtr f32(std::initializer_list<double> values) {
  return make_tensor(DType::kFloat32, {static_cast<int64_t>(values.size())}, std::span(values.begin(), values.size()));
}
inline TensorPtr f32(Shape shape, std::span<const double> values) {
  return make_tensor(DType::kFloat32, std::move(shape), values);
}

// ---- graphs from literals ------------------------------------------------------------------------------------------

struct FakeNode {
  std::string name;
  std::string op;                     ///< "Parameter" and "Const" create those kinds
  std::vector<std::string> inputs{};  ///< `NAME` or `NAME:slot`, of an earlier or later node
  uint32_t outputs = 1;
  std::vector<StackFrame> stack{};
  std::vector<Attribute> attributes{};
};

/// Operators run in the order given.
inline GraphPtr fake_graph(const std::vector<FakeNode>& nodes, int rank = 0, int id = 0) {
  GraphBuilder builder(rank, id);
  builder.set_name("kernel_graph" + std::to_string(id));
  std::map<std::string, NodeId> ids;
  for (const FakeNode& from : nodes) {
    Node node;
    node.name = from.name;
    node.op = from.op;
    const size_t slash = from.name.rfind('/');
    node.scope = slash == std::string::npos ? "" : from.name.substr(0, slash);
    node.kind = from.op == "Parameter" ? NodeKind::kParameter
                : from.op == "Const"   ? NodeKind::kConstant
                                       : NodeKind::kOperator;
    node.outputs = std::vector<OutputType>(from.outputs);
    node.stack = from.stack;
    node.attributes = from.attributes;
    ids[from.name] = builder.add(std::move(node));
  }
  std::vector<std::string> order;
  for (const FakeNode& from : nodes) {
    Node& node = builder.node(ids[from.name]);
    if (node.kind == NodeKind::kOperator) order.push_back(from.name);
    for (const std::string& input : from.inputs) {
      const size_t colon = input.rfind(':');
      Edge edge;
      edge.name = input.substr(0, colon);
      if (colon != std::string::npos) edge.slot = static_cast<uint32_t>(std::stoul(input.substr(colon + 1)));
      if (auto it = ids.find(edge.name.get()); it != ids.end()) edge.node = it->second;
      node.inputs.push_back(std::move(edge));
    }
  }
  builder.set_execution_order(order);
  return builder.build();
}

// ---- the session ---------------------------------------------------------------------------------------------------

class FakeSession : public Session {
 public:
  explicit FakeSession(GraphPtr graph, size_t kept_stats = kKeptStats)
      : FakeSession(std::vector<GraphPtr>{std::move(graph)}, kept_stats) {}
  explicit FakeSession(std::vector<GraphPtr> graphs, size_t kept_stats = kKeptStats)
      : Session(kept_stats), graphs_(std::move(graphs)) {
    std::set<int> ranks;
    for (const GraphPtr& graph : graphs_) ranks.insert(graph->rank());
    ranks_.assign(ranks.begin(), ranks.end());
    info_.kind = SessionKind::kDump;
    info_.source = "fake";
    info_.short_name = "fake";
    info_.framework_version = "2.7.1";
  }

  /// As if its configuration said that.
  void all_operators() { info_.all_operators = true; }

  /// The id of a value; `name` is a full node name of that graph.
  TensorId id(const std::string& name, int64_t step, Slot slot = {}, uint32_t execution = 0, int rank = 0,
              int graph_id = 0) const {
    TensorId id;
    id.rank = rank;
    id.graph = graph_id;
    id.step = step;
    id.execution = execution;
    id.slot = slot;
    const Graph* owner = graph(rank, graph_id);
    const Node* node = owner ? owner->find(name) : nullptr;
    id.node = node ? node->id : kNoNode;
    return id;
  }

  TensorId put(const std::string& name, int64_t step, TensorPtr tensor, Slot slot = {}, uint32_t execution = 0) {
    return put(id(name, step, slot, execution), std::move(tensor));
  }
  TensorId put(const TensorId& id, TensorPtr tensor) {
    Entry& entry = entries_[key(id)];
    entry.tensor = std::move(tensor);
    forget_stats([&](const TensorId& known) { return known == id; });
    return id;
  }

  /// As if it was never put.
  void erase(const TensorId& id) { entries_.erase(key(id)); }
  /// Listed, but its description reports `problem`.
  void set_problem(const TensorId& id, Status problem) { entries_[key(id)].problem = std::move(problem); }
  /// It cannot even be described, like a file that vanished.
  void set_open_error(const TensorId& id, Status error) { entries_[key(id)].open_error = std::move(error); }
  /// The reader fails from element `after` on.
  void set_read_error(const TensorId& id, Status error, uint64_t after = 0) {
    entries_[key(id)].read_error = std::move(error);
    entries_[key(id)].fails_after = after;
  }
  /// A row of statistics without elements.
  void set_statistics_only(const TensorId& id, Stats stats, Shape shape) {
    Entry& entry = entries_[key(id)];
    entry.tensor = nullptr;
    entry.given = std::move(stats);
    entry.given_shape = std::move(shape);
  }
  /// Nothing is known about the runs of a graph: previous() fails and reports that.
  void set_history_missing(int rank, int graph) { no_history_.insert({rank, graph}); }
  void set_overflow(const TensorId& id, bool flagged) { entries_[key(id)].overflow = flagged; }
  /// Runs at the start of every ElementReader::read, on the thread that reads.
  void set_read_hook(std::function<void(const TensorId&)> hook) { read_hook_ = std::move(hook); }
  /// When it was written, for written_at().
  void set_time(const TensorId& id, uint64_t time) { times_[key(id)] = time; }
  SessionInfo& mutable_info() { return info_; }

  /// Opened with elements.
  uint64_t reads() const { return reads_; }
  uint64_t bytes_read() const { return bytes_read_; }
  /// number of tensors opened or described
  uint64_t looks() const { return looks_; }
  void reset_counters() { reads_ = looks_ = bytes_read_ = 0; }

  // Session:
  const SessionInfo& info() const override { return info_; }
  std::span<const int> ranks() const override { return ranks_; }
  std::span<const GraphPtr> graphs() const override { return graphs_; }

  std::vector<int64_t> steps() const override {
    std::set<int64_t> steps;
    for (const auto& [id, entry] : entries_) {
      if (!is_constant(id)) steps.insert(id.step);
    }
    return {steps.begin(), steps.end()};
  }
  std::vector<int64_t> steps(int rank, int graph) const override {
    std::set<int64_t> steps;
    for (const auto& [id, entry] : entries_) {
      if (!is_constant(id) && id.rank == rank && id.graph == graph) steps.insert(id.step);
    }
    return {steps.begin(), steps.end()};
  }

  std::vector<TensorId> tensors(const TensorQuery& query) override {
    std::vector<TensorId> found;
    for (const auto& [stored, entry] : entries_) {
      TensorId id = stored;
      if (is_constant(id)) {
        const std::vector<int64_t> own = steps(id.rank, id.graph);
        auto first = std::find_if(own.begin(), own.end(), [&](int64_t step) { return query.steps.contains(step); });
        if (first == own.end()) continue;
        id.step = *first;
      }
      if (!query.ranks.contains(id.rank) || !query.steps.contains(id.step)) continue;
      if (query.graph && *query.graph != id.graph) continue;
      if (id.slot.io == Io::kInput ? !query.inputs : !query.outputs) continue;
      if (query.slot && *query.slot != id.slot.index) continue;
      const NodeRef ref{graph(id.rank, id.graph), id.node};
      if (query.nodes && std::find(query.nodes->begin(), query.nodes->end(), ref) == query.nodes->end()) continue;
      found.push_back(id);
    }
    std::sort(found.begin(), found.end(), [this](const TensorId& a, const TensorId& b) { return place(a) < place(b); });
    return found;
  }

  uint32_t executions(int rank, int graph, int64_t step, NodeId node) override {
    uint32_t count = 0;
    for (const auto& [id, entry] : entries_) {
      if (id.rank == rank && id.graph == graph && id.node == node && (is_constant(id) || id.step == step)) {
        count = std::max(count, id.execution + 1);
      }
    }
    return count;
  }

  Result<OpenTensor> open(const TensorId& id) override {
    Result<OpenTensor> opened = look(id);
    if (opened && opened->reader) ++reads_;
    return opened;
  }

  Result<TensorInfo> describe(const TensorId& id) override {
    Result<OpenTensor> opened = look(id);
    if (!opened) return opened.status();
    return std::move(opened->info);
  }

  std::optional<Stats> given_statistics(const TensorId& id) override {
    auto it = entries_.find(key(id));
    return it == entries_.end() ? std::nullopt : it->second.given;
  }

  Result<TensorId> previous(const TensorId& id, bool* history_missing) override {
    const bool missing = no_history_.count({id.rank, id.graph}) > 0;
    if (history_missing) *history_missing = missing;
    if (missing) return Status(Code::kNotFound, "the execution history of the graph is missing");
    std::optional<TensorId> best;
    for (const auto& [other, entry] : entries_) {
      TensorId same = other;
      same.step = id.step;
      if (same == id && other.step < id.step && (!best || best->step < other.step)) best = other;
    }
    if (!best) return Status(Code::kNotFound, "no previous step");
    return *best;
  }

  std::optional<uint64_t> written_at(const TensorId& id) override {
    const auto found = times_.find(key(id));
    return found == times_.end() ? std::nullopt : std::optional(found->second);
  }

  Result<bool> operator_overflow(const TensorId& id) override {
    auto it = entries_.find(key(id));
    if (it == entries_.end() || !it->second.overflow) {
      return Status(Code::kUnsupported, "the run did not record overflow flags");
    }
    return *it->second.overflow;
  }

  SessionReport inspect() override {
    SessionReport report;
    for (const GraphPtr& graph : graphs_) report.steps_by_graph[graph->id()] = steps(graph->rank(), graph->id());
    report.tensor_files = entries_.size();
    return report;
  }

 private:
  struct Entry {
    TensorPtr tensor;
    std::optional<Stats> given;
    Shape given_shape;
    Status problem, open_error, read_error;
    uint64_t fails_after = UINT64_MAX;
    std::optional<bool> overflow;
  };

  class Reader : public ElementReader {
   public:
    Reader(const FakeSession* session, const TensorId& id, const Entry& entry)
        : ElementReader(entry.tensor->dtype(), entry.tensor->count()), session_(session), id_(id), entry_(entry) {}

   private:
    Status fill(uint64_t first, std::span<std::byte> out) override {
      if (session_->read_hook_) session_->read_hook_(id_);
      const size_t size = item_size(dtype());
      if (first + out.size() / size > entry_.fails_after && !entry_.read_error.ok()) return entry_.read_error;
      std::memcpy(out.data(), entry_.tensor->bytes().data() + first * size, out.size());
      session_->bytes_read_ += out.size();
      return {};
    }

    const FakeSession* session_;
    TensorId id_;
    const Entry& entry_;
  };

  Result<OpenTensor> look(const TensorId& id) {
    ++looks_;
    auto it = entries_.find(key(id));
    if (it == entries_.end()) return not_dumped(id);
    const Entry& entry = it->second;
    if (!entry.open_error.ok()) return entry.open_error;
    TensorInfo info;
    info.id = id;
    info.problem = entry.problem;
    info.source = "fake/" + tensor_name(id);
    if (entry.tensor) {
      OpenTensor opened = OpenTensor::in_memory(std::move(info), entry.tensor);
      if (opened.reader) opened.reader = std::make_unique<Reader>(this, id, entry);
      return opened;
    }
    if (!entry.problem.ok()) info.availability = Availability::kUnreadable;
    if (entry.given) {
      info.availability = Availability::kStatisticsOnly;
      info.dtype = entry.given->dtype;
      info.shape = entry.given_shape;
      info.count = entry.given->count;
    }
    return OpenTensor(std::move(info), nullptr);
  }

  bool is_constant(const TensorId& id) const {
    const Graph* owner = graph(id.rank, id.graph);
    return owner && id.node < owner->nodes().size() && owner->node(id.node).kind == NodeKind::kConstant;
  }
  /// Constants do not belong to a step.
  TensorId key(TensorId id) const {
    if (is_constant(id)) id.step = 0;
    return id;
  }
  using Place = std::tuple<int, int64_t, int, uint32_t, uint32_t, NodeId, Slot>;
  Place place(const TensorId& id) const {
    return Place(id.rank, id.step, id.graph, id.execution, node(id).order, id.node, id.slot);
  }
  Status not_dumped(const TensorId& id) const { return Status(Code::kNotFound, "not dumped: " + tensor_name(id)); }

  SessionInfo info_;
  std::vector<int> ranks_;
  std::vector<GraphPtr> graphs_;
  std::map<TensorId, Entry> entries_;
  std::map<TensorId, uint64_t> times_;
  std::set<std::pair<int, int>> no_history_;
  std::function<void(const TensorId&)> read_hook_;
  std::atomic<uint64_t> reads_{0}, looks_{0};
  mutable std::atomic<uint64_t> bytes_read_{0};
};

}  // namespace msdbg::testing
