#include "agent/tensor_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "agent/tuple_picks.h"
#include "msdbg/node_names.h"

namespace msdbg::agent {
namespace {

// Source: MindSpore skips the other outputs of these kernels; they hold no values during training.
bool is_real_output(const Source& source, uint32_t slot) {
  return !source.batch_norm || slot == 0 || slot == 3 || slot == 4;
}

const Shape& unknown_shape() {
  static const Shape kEmpty;
  return kEmpty;
}

}  // namespace

Result<std::unique_ptr<TensorStore>> TensorStore::create(GraphDescription graph, const ReleaseTraits& traits) {
  std::unique_ptr<TensorStore> store(new TensorStore(std::move(graph)));
  if (Status status = store->add_sources(); !status.ok()) return status;
  if (Status status = store->connect(); !status.ok()) return status;
  store->rank_keys();
  store->loads_.resize(store->values_.size());
  const bool keeps_previous = traits.reloads_parameters;
  if (keeps_previous) store->previous_.resize(store->graph_.parameters.size());
  return store;
}

Status TensorStore::add_source(const std::string& name, SourceKind kind) {
  const auto index = static_cast<SourceIndex>(sources_.size());
  const std::string_view word = kind == SourceKind::kOperator    ? "operator"
                                : kind == SourceKind::kParameter ? "parameter"
                                : kind == SourceKind::kConstant  ? "constant"
                                                                 : "TupleGetItem";
  if (name.empty()) {
    return {Code::kInvalidArgument, fmt::format("graph {}: {} {} has no name", graph_.id, word, index)};
  }
  if (!by_name_.try_emplace(name, index).second) {
    return {Code::kInvalidArgument, fmt::format("graph {}: {} '{}' has a name that is used twice: rename it",
                                                graph_.id, word, printable(name))};
  }
  sources_.push_back({name, kind, static_cast<FlatIndex>(values_.size())});
  return {};
}

void TensorStore::add_value(DType dtype, const Shape* shape, const void* data) {
  Value value;
  value.dtype = value.described_dtype = dtype;
  value.described = shape;
  value.data = static_cast<const std::byte*>(data);
  if (data != nullptr) {
    value.bytes = element_count(*shape).value_or(0) * item_size(dtype);
    value.published = kAlways;
  }
  values_.push_back(std::move(value));
  owner_.push_back(static_cast<SourceIndex>(sources_.size() - 1));
  ++sources_.back().slots;
}

Status TensorStore::add_sources() {
  const size_t count = graph_.nodes.size() + graph_.parameters.size() + graph_.constants.size();
  sources_.reserve(count);
  by_name_.reserve(count);
  values_.reserve(count);
  for (const NodeDescription& node : graph_.nodes) {
    if (Status status = add_source(node.full_name, SourceKind::kOperator); !status.ok()) return status;
    sources_.back().batch_norm = node.op == "BatchNorm" && node.outputs.size() == 5;
    for (const OutputType& output : node.outputs) {
      add_value(output.dtype, output.shape ? &*output.shape : &unknown_shape(), nullptr);
    }
  }
  for (const ParameterDescription& parameter : graph_.parameters) {
    if (Status status = add_source(parameter.name, SourceKind::kParameter); !status.ok()) return status;
    sources_.back().weight = parameter.is_weight;
    add_value(parameter.dtype, &parameter.shape, parameter.data);
  }
  for (const ConstantDescription& constant : graph_.constants) {
    if (Status status = add_source(constant.name, SourceKind::kConstant); !status.ok()) return status;
    add_value(constant.dtype, &constant.shape, constant.data);
  }
  for (const TuplePick& pick : tuple_picks(graph_)) {
    if (Status status = add_source(pick.name, SourceKind::kTuplePick); !status.ok()) return status;
    add_value(DType::kUnknown, &unknown_shape(), nullptr);  // it has the elements that it selects
    picks_[{pick.producer, pick.slot}] = static_cast<SourceIndex>(sources_.size() - 1);
  }
  return {};
}

Status TensorStore::connect() {
  input_begin_.push_back(0);
  for (SourceIndex node = 0; node < node_count(); ++node) {
    for (const InputDescription& input : graph_.nodes[node].inputs) {
      const auto found = by_name_.find(input.name);
      const auto set_problem = [&](std::string_view what) {
        return Status(Code::kInvalidArgument, fmt::format("graph {}: input '{}' of {} {}", graph_.id,
                                                          printable(input.name), printable(sources_[node].name), what));
      };
      if (found == by_name_.end()) return set_problem("names no operator, parameter or constant");
      const Source& source = sources_[found->second];
      if (source.kind == SourceKind::kOperator && found->second >= node) {
        return set_problem("names an operator that does not run before: list them in execution order");
      }
      if (source.slots == 0) continue;  // only defines the order
      if (input.slot >= source.slots) {
        return set_problem(fmt::format("takes output {}, there are {}", input.slot, source.slots));
      }
      const auto pick = picks_.find({found->second, input.slot});
      inputs_.push_back({pick == picks_.end() ? found->second : pick->second, source.first + input.slot});
    }
    input_begin_.push_back(static_cast<uint32_t>(inputs_.size()));
  }
  // A parameter is also known by the form of its name for files.
  for (SourceIndex i = node_count(); i < sources_.size(); ++i) by_name_.try_emplace(with_dashes(sources_[i].name), i);
  return {};
}

void TensorStore::rank_keys() {
  std::vector<std::string> keys(values_.size());
  std::vector<FlatIndex> order(values_.size());
  for (FlatIndex flat = 0; flat < values_.size(); ++flat) {
    const Source& source = sources_[owner_[flat]];
    keys[flat] = fmt::format("{}:{}", source.name, flat - source.first);
  }
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](FlatIndex a, FlatIndex b) { return keys[a] < keys[b]; });
  rank_.resize(values_.size());
  for (uint32_t place = 0; place < order.size(); ++place) rank_[order[place]] = place;
}

void TensorStore::set_shape(Value& value, const Shape* shape) {
  if (shape == nullptr) return value.own.reset();
  if (!value.own) value.own = std::make_unique<Shape>();
  *value.own = *shape;
}

StoredTensor TensorStore::stored(const Value& value) const {
  return {value.dtype, value.own ? value.own.get() : value.described, {value.data, value.bytes}};
}

void TensorStore::load(FlatIndex key, FlatIndex value, uint32_t order) {
  const Value& from = values_[value];
  const bool there = from.published == kAlways || from.published == generation_;
  const bool has_data = from.elsewhere ? !from.elsewhere->failed : from.data != nullptr || from.bytes == 0;
  const bool readable = is_evaluable(from.dtype) && has_data;
  if (!there || !readable || is_loaded(key)) return;
  loads_[key] = {generation_, value, order};
  loaded_.push_back({key, order});
}

void TensorStore::load_parameters(const ReleaseTraits& traits) {
  for (SourceIndex i = node_count(); i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    const bool readable =
        source.kind == SourceKind::kConstant ? traits.named_constants : source.weight || traits.data_inputs;
    if (readable) load(source.first, source.first, 0);
  }
  reloaded_ = true;
}

void TensorStore::load_node(NodeIndex node) {
  // An input is output 0 of its source operator.
  for (const InputRef& input : inputs(node)) load(sources_[input.source].first, input.value, node + 1);
  const Source& source = sources_[node];
  for (uint32_t slot = 0; slot < source.slots; ++slot) {
    if (is_real_output(source, slot)) load(source.first + slot, source.first + slot, node + 1);
  }
}

void TensorStore::load_all_nodes() {
  for (NodeIndex node = 0; node < node_count(); ++node) {
    const Source& source = sources_[node];
    for (uint32_t slot = 0; slot < source.slots; ++slot) {
      if (is_real_output(source, slot)) load(source.first + slot, source.first + slot, node + 1);
    }
  }
}

void TensorStore::drop() {
  for (const Loaded& entry : loaded_) release(entry.flat);
  release_parameters();
  ++generation_;
  loaded_.clear();
  copies_.clear();
  constexpr size_t kMostSpare = 16 << 20;
  if (spare_.size > kMostSpare) spare_ = {};
  reloaded_ = false;
}

void TensorStore::copy_outputs() {
  for (const Loaded& entry : loaded_) {
    Value& value = values_[loads_[entry.flat].value];
    if (value.published != generation_ || value.bytes == 0 || !fetch(entry.flat)) continue;
    copies_.emplace_back(value.data, value.data + value.bytes);
    value.data = copies_.back().data();
  }
}

void TensorStore::keep_previous_parameters() {
  for (size_t i = 0; i < previous_.size(); ++i) {
    const FlatIndex at = sources_[node_count() + i].first;
    const Value& value = values_[at];
    previous_[i].valid = false;
    if (value.published != kAlways || !bring(at)) continue;
    previous_[i].bytes.assign(value.data, value.data + value.bytes);
    previous_[i].dtype = value.dtype;
    previous_[i].valid = true;
  }
}

void TensorStore::forget_previous_parameters() {
  for (PreviousValue& previous : previous_) previous.valid = false;
}

std::optional<StoredTensor> TensorStore::previous(FlatIndex flat) const {
  const SourceIndex parameter = owner_[flat] - node_count();
  if (!reloaded_ || owner_[flat] < node_count() || parameter >= previous_.size()) return std::nullopt;
  if (!previous_[parameter].valid || !is_loaded(flat)) return std::nullopt;
  StoredTensor tensor = stored(values_[flat]);
  tensor.dtype = previous_[parameter].dtype;
  tensor.bytes = previous_[parameter].bytes;
  return tensor;
}

std::optional<SourceIndex> TensorStore::source(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<StoredTensor> TensorStore::find(std::string_view name, std::string_view slot, bool want_previous, bool elements) {
  const auto found = by_name_.find(std::string(name));
  const auto number = parse_int(slot);
  // The client compares text: `01` is not slot 1.
  if (found == by_name_.end() || !number || std::to_string(*number) != slot || *number < 0) return std::nullopt;
  const Source& source = sources_[found->second];
  if (static_cast<uint64_t>(*number) >= source.slots) return std::nullopt;
  const auto flat = static_cast<FlatIndex>(source.first + *number);
  if (want_previous) return previous(flat);
  if (!is_loaded(flat) || (elements && !fetch(flat))) return std::nullopt;
  return tensor(flat);
}

}  // namespace msdbg::agent
