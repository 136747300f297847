// The tensors of one graph: what was published in this step, and which of it a debugger may read.
//
// Nothing is copied, except the previous values of parameters where the release keeps them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/release_traits.h"

namespace msdbg::agent {

using SourceIndex = uint32_t;  ///< operators in execution order, then parameters, constants, tuple picks
using FlatIndex = uint32_t;    ///< one output of one source

enum class SourceKind : uint8_t { kOperator, kParameter, kConstant, kTuplePick };
struct Source {
  std::string name;
  SourceKind kind = SourceKind::kOperator;
  FlatIndex first = 0;
  uint32_t slots = 0;
  bool weight = false;
  bool batch_norm = false;  ///< only the outputs 0, 3 and 4 are real
};

struct InputRef {
  SourceIndex source;  ///< what the client calls it: a tuple pick where the producer has several outputs
  FlatIndex value;     ///< where its elements are
};

/// A readable tensor.
struct StoredTensor {
  DType dtype = DType::kUnknown;
  const Shape* shape = nullptr;
  std::span<const std::byte> bytes;

  uint64_t count() const { return item_size(dtype) == 0 ? 0 : bytes.size() / item_size(dtype); }
  TensorView view() const { return {dtype, *shape, bytes.data(), count()}; }
};

class TensorStore {
 public:
  /// Error: kInvalidArgument for a name that is empty or occurs twice, or an input that names nothing before it.
  static Result<std::unique_ptr<TensorStore>> create(GraphDescription graph, const ReleaseTraits& traits);

  const GraphDescription& graph() const { return graph_; }
  std::span<const Source> sources() const { return sources_; }
  SourceIndex node_count() const { return static_cast<SourceIndex>(graph_.nodes.size()); }
  std::span<const InputRef> inputs(NodeIndex node) const {
    return {inputs_.data() + input_begin_[node], input_begin_[node + 1] - input_begin_[node]};
  }
  SourceIndex source_of(FlatIndex flat) const { return owner_[flat]; }
  /// Place of the key `name:slot` in the order of all keys: the order in which the client looks through its tensors.
  uint32_t rank(FlatIndex flat) const { return rank_[flat]; }
  FlatIndex flat_count() const { return static_cast<FlatIndex>(values_.size()); }

  /// False when the operator has no such output.
  bool publish(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape* shape) {
    if (node >= node_count() || slot >= sources_[node].slots) return false;
    Value& value = values_[sources_[node].first + slot];
    value.data = static_cast<const std::byte*>(data);
    value.bytes = bytes;
    value.published = generation_;
    if (shape != nullptr || value.own) set_shape(value, shape);
    return true;
  }

  /// In this step. False when there is no such operator.
  bool flag_overflow(NodeIndex node) {
    if (node >= node_count()) return false;
    overflowed_.resize(node_count());
    overflowed_[node] = generation_;
    return true;
  }
  bool has_overflowed(SourceIndex source) const { return source < overflowed_.size() && overflowed_[source] == generation_; }

  // What becomes readable. A tensor that is readable already keeps its place in the order.
  void load_parameters(const ReleaseTraits& traits);
  void load_node(NodeIndex node);
  void load_all_nodes();
  /// Everything published and readable is forgotten.
  void drop();
  /// The program may overwrite its operators' outputs now, and they are still to be read.
  void copy_outputs();
  /// Parameters as they are now become what `prev` means when they are loaded the next time.
  void keep_previous_parameters();

  struct Loaded {
    FlatIndex flat;
    uint32_t order;  ///< number of the operator it was read for, 0 for parameters and constants
  };
  std::span<const Loaded> loaded() const { return loaded_; }
  bool is_loaded(FlatIndex flat) const { return loads_[flat].generation == generation_; }
  uint32_t order(FlatIndex flat) const { return loads_[flat].order; }
  /// Precondition: is_loaded(flat).
  StoredTensor tensor(FlatIndex flat) const { return stored(values_[loads_[flat].value]); }
  std::optional<StoredTensor> previous(FlatIndex flat) const;
  /// By the key a debugger sends; nullopt when there is no such tensor or it is not readable.
  std::optional<StoredTensor> find(std::string_view name, std::string_view slot, bool previous) const;

 private:
  struct Value {
    const std::byte* data = nullptr;
    size_t bytes = 0;
    uint64_t published = 0;  ///< generation; kAlways for parameters and constants
    DType dtype = DType::kUnknown;
    const Shape* described = nullptr;
    std::unique_ptr<Shape> own;
  };
  struct Load {
    uint64_t generation = 0;
    FlatIndex value = 0;
    uint32_t order = 0;
  };
  struct PreviousValue {
    bool valid = false;
    std::vector<std::byte> bytes;
  };
  static constexpr uint64_t kAlways = UINT64_MAX;

  explicit TensorStore(GraphDescription graph) : graph_(std::move(graph)) {}
  Status add_sources();
  Status add_source(const std::string& name, SourceKind kind);
  void add_value(DType dtype, const Shape* shape, const void* data);
  Status connect();
  void rank_keys();
  static void set_shape(Value& value, const Shape* shape);
  StoredTensor stored(const Value& value) const;
  void load(FlatIndex key, FlatIndex value, uint32_t order);

  GraphDescription graph_;
  std::vector<Source> sources_;
  std::unordered_map<std::string, SourceIndex> by_name_;
  std::vector<Value> values_;
  std::vector<SourceIndex> owner_;
  std::vector<Load> loads_;
  std::vector<uint32_t> rank_;
  std::map<std::pair<NodeIndex, uint32_t>, SourceIndex> picks_;
  std::vector<InputRef> inputs_;
  std::vector<uint32_t> input_begin_;
  std::vector<Loaded> loaded_;
  std::vector<PreviousValue> previous_;  // per parameter
  std::vector<uint64_t> overflowed_;    // per operator: generation in which the device flagged it; empty before the first flag
  std::vector<std::vector<std::byte>> copies_;
  uint64_t generation_ = 1;
  bool reloaded_ = false;  // parameters were loaded once more in this step: the remembered ones are the previous ones
};

}  // namespace msdbg::agent
