// The tensors of one graph: which were published in this step, and which of them a debugger may read.
//
// Nothing is copied, except the previous values of parameters if the release keeps them, and what the program asks to copy.
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

/// Whether a number from outside is a ValueState.
inline bool is_state(int state) {
  constexpr int kBad = kStateNan | kStateInf;
  return state == kStateFinite || (state & ~kBad) == 0;
}

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
  std::span<const std::byte> bytes;  ///< of a value elsewhere: without address until TensorStore::fetch()

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

  bool has_output(NodeIndex node, uint32_t slot) const { return node < node_count() && slot < sources_[node].slots; }
  /// False if the operator has no such output.
  bool publish(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape* shape) {
    if (!has_output(node, slot)) return false;
    Value& value = values_[sources_[node].first + slot];
    value.data = static_cast<const std::byte*>(data);
    value.bytes = bytes;
    value.published = generation_;
    value.dtype = value.described_dtype;
    value.finite = {};
    if (value.elsewhere) value.elsewhere.reset();
    if (shape != nullptr || value.own) set_shape(value, shape);
    return true;
  }
  /// The type with which output `slot` is published unless another one is given. Precondition: has_output().
  DType described_dtype(NodeIndex node, uint32_t slot) const { return values_[sources_[node].first + slot].described_dtype; }
  // Like publish(), with a type. The elements are kept here, or fetched when they are needed. Precondition: has_output().
  void publish_copy(NodeIndex node, uint32_t slot, DType dtype, const Shape& shape, std::vector<std::byte> elements);
  void publish_remote(NodeIndex node, uint32_t slot, DType dtype, const Shape& shape, uint64_t bytes, ValueState state, Fetch fetch);
  /// How to reach a value that is elsewhere; without `fetch` it is not.
  struct Remote {
    Fetch fetch;
    StateQuery state;
  };
  /// Error: kNotFound for a name that is no parameter or constant.
  Status set_parameter(std::string_view name, std::optional<DType> dtype, const Shape& shape, const void* data, Remote remote);

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
  /// Brings the elements of a readable value that is elsewhere. False if they cannot be had: it is not readable any more.
  bool fetch(FlatIndex flat) { return bring(loads_[flat].value); }
  /// Whether the elements of a readable value must be fetched.
  bool is_elsewhere(FlatIndex flat) const { return values_[loads_[flat].value].elsewhere != nullptr; }
  /// What is known of a readable value without looking at its elements; 0: nothing.
  ValueState state(FlatIndex flat);
  /// All elements in this memory, of which the output of this step is a part, are finite numbers. Precondition: has_output().
  void note_finite(NodeIndex node, uint32_t slot, std::span<const std::byte> memory) {
    values_[sources_[node].first + slot].finite = memory;
  }
  /// The memory that is known to be finite and has all of `part`, from an output of this step; empty if there is none.
  /// Precondition: has_output().
  std::span<const std::byte> known_finite(NodeIndex node, uint32_t slot, DType dtype, std::span<const std::byte> part) const;
  /// The last value that could not be fetched, `name:slot`; "" after it was asked for.
  std::string take_unfetched() { return std::exchange(unfetched_, {}); }
  /// Forgets fetched elements; they can be fetched again.
  void release(FlatIndex flat);
  /// The program may have changed its parameters: what was fetched and known of those that are elsewhere is old.
  void release_parameters();
  /// Takes over what `old` knows of this step and of parameters, by name and slot. `moved` receives the new place of each old
  /// value, kNowhere if there is none. `old` is empty afterwards.
  void take_over(TensorStore& old, std::vector<FlatIndex>& moved);
  static constexpr FlatIndex kNowhere = UINT32_MAX;
  std::optional<SourceIndex> source(std::string_view name) const;
  /// A parameter whose elements must be fetched.
  bool is_remote_parameter(std::string_view name) const;
  /// Remembers the current parameters: they become `prev` when parameters are loaded the next time.
  void keep_previous_parameters();
  void forget_previous_parameters();

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
  /// Finds the tensor for a debugger's key; nullopt if it does not exist or is not readable. `elements`: fetches them.
  std::optional<StoredTensor> find(std::string_view name, std::string_view slot, bool previous, bool elements);

 private:
  /// Memory for elements that were fetched.
  struct Room {
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;
  };
  struct Elsewhere {
    Fetch fetch;
    StateQuery ask;  ///< of a parameter
    ValueState state = 0;
    bool asked = false, failed = false;
    Room elements;
  };
  struct Value {
    const std::byte* data = nullptr;
    size_t bytes = 0;
    uint64_t published = 0;  ///< generation; kAlways for parameters and constants
    DType dtype = DType::kUnknown, described_dtype = DType::kUnknown;
    const Shape* described = nullptr;
    std::unique_ptr<Shape> own;
    std::unique_ptr<Elsewhere> elsewhere;
    std::span<const std::byte> finite;  ///< memory, of which this is all or a part, without NaN and Inf
  };
  struct Load {
    uint64_t generation = 0;
    FlatIndex value = 0;
    uint32_t order = 0;
  };
  struct PreviousValue {
    bool valid = false;
    DType dtype = DType::kUnknown;
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
  bool bring(FlatIndex value);
  void take_over_value(Value& from, FlatIndex to);

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
  std::vector<FlatIndex> reached_;  // parameters elsewhere that were fetched or asked about
  Room spare_;                      // for the next value that is fetched
  std::string unfetched_;
  uint64_t generation_ = 1;
  bool reloaded_ = false;  // parameters were reloaded in this step: the remembered ones are the previous values
};

}  // namespace msdbg::agent
