// The tensors of one graph: which were published in this step, and which of them a debugger may read.
//
// Nothing is copied, except the previous values of parameters if the release keeps them.
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
  SourceIndex source;  ///< the client's name for it: a tuple pick if the producer has several outputs
  FlatIndex value;     ///< location of its elements
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
  /// Error: kInvalidArgument for an empty or duplicate name, or an input that does not name an earlier node.
  static Result<std::unique_ptr<TensorStore>> create(GraphDescription graph, const ReleaseTraits& traits);

  const GraphDescription& graph() const { return graph_; }
  std::span<const Source> sources() const { return sources_; }
  SourceIndex node_count() const { return static_cast<SourceIndex>(graph_.nodes.size()); }
  std::span<const InputRef> inputs(NodeIndex node) const {
    return {inputs_.data() + input_begin_[node], input_begin_[node + 1] - input_begin_[node]};
  }
  SourceIndex source_of(FlatIndex flat) const { return owner_[flat]; }
  /// Position of the key `name:slot` in the order of all keys, which is the order in which the client searches its tensors.
  uint32_t rank(FlatIndex flat) const { return rank_[flat]; }
  FlatIndex flat_count() const { return static_cast<FlatIndex>(values_.size()); }

  /// False if the operator has no such output.
  bool publish(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape* shape) {
    if (node >= node_count() || slot >= sources_[node].slots) return false;
    Value& value = values_[sources_[node].first + slot];
    value.data = static_cast<const std::byte*>(data);
    value.bytes = bytes;
    value.published = generation_;
    if (shape != nullptr || value.own) set_shape(value, shape);
    return true;
  }

  /// For this step. False if the operator does not exist.
  bool flag_overflow(NodeIndex node) {
    if (node >= node_count()) return false;
    overflowed_.resize(node_count());
    overflowed_[node] = generation_;
    return true;
  }
  bool has_overflowed(SourceIndex source) const { return source < overflowed_.size() && overflowed_[source] == generation_; }

  // These make tensors readable. A tensor that is already readable keeps its position.
  void load_parameters(const ReleaseTraits& traits);
  void load_node(NodeIndex node);
  void load_all_nodes();
  /// Forgets everything published and readable.
  void drop();
  /// Copies operator outputs that are still to be read, because the program may now overwrite them.
  void copy_outputs();
  /// Remembers the current parameters: they become `prev` when parameters are loaded the next time.
  void keep_previous_parameters();

  struct Loaded {
    FlatIndex flat;
    uint32_t order;  ///< index of the operator it was read for, 0 for parameters and constants
  };
  std::span<const Loaded> loaded() const { return loaded_; }
  bool is_loaded(FlatIndex flat) const { return loads_[flat].generation == generation_; }
  uint32_t order(FlatIndex flat) const { return loads_[flat].order; }
  /// Precondition: is_loaded(flat).
  StoredTensor tensor(FlatIndex flat) const { return stored(values_[loads_[flat].value]); }
  std::optional<StoredTensor> previous(FlatIndex flat) const;
  /// Finds the tensor for a debugger's key; nullopt if it does not exist or is not readable.
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
  std::vector<uint64_t> overflowed_;    // per operator: generation in which the device flagged it; empty until the first flag
  std::vector<std::vector<std::byte>> copies_;
  uint64_t generation_ = 1;
  bool reloaded_ = false;  // parameters were reloaded in this step: the remembered ones are the previous values
};

}  // namespace msdbg::agent
