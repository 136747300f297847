// Values that the program does not leave in place: copies, values elsewhere, parameters that move, another description.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "agent/tensor_store.h"

namespace msdbg::agent {

void TensorStore::publish_copy(NodeIndex node, uint32_t slot, DType dtype, const Shape& shape, std::vector<std::byte> elements) {
  copies_.push_back(std::move(elements));
  publish(node, slot, copies_.back().data(), copies_.back().size(), &shape);
  values_[sources_[node].first + slot].dtype = dtype;
}

void TensorStore::publish_remote(NodeIndex node, uint32_t slot, DType dtype, const Shape& shape, uint64_t bytes, ValueState state,
                                 Fetch fetch) {
  publish(node, slot, nullptr, bytes, &shape);
  Value& value = values_[sources_[node].first + slot];
  value.dtype = dtype;
  value.elsewhere = std::make_unique<Elsewhere>();
  value.elsewhere->fetch = std::move(fetch);
  value.elsewhere->state = state;
}

Status TensorStore::set_parameter(std::string_view name, std::optional<DType> dtype, const Shape& shape, const void* data,
                                  Remote remote) {
  const std::optional<SourceIndex> found = source(name);
  const SourceKind kind = found ? sources_[*found].kind : SourceKind::kOperator;
  if (kind != SourceKind::kParameter && kind != SourceKind::kConstant) {
    return {Code::kNotFound, fmt::format("graph {} has no parameter or constant '{}'", graph_.id, printable(name))};
  }
  Value& value = values_[sources_[*found].first];
  value.dtype = dtype.value_or(value.described_dtype);
  set_shape(value, &shape);
  const bool there = data != nullptr || remote.fetch;
  value.data = static_cast<const std::byte*>(data);
  value.bytes = there ? element_count(shape).value_or(0) * item_size(value.dtype) : 0;
  value.published = there ? kAlways : 0;
  value.elsewhere.reset();
  if (remote.fetch) {
    value.elsewhere = std::make_unique<Elsewhere>();
    value.elsewhere->fetch = std::move(remote.fetch);
    value.elsewhere->ask = std::move(remote.state);
  }
  // A suspension of this step must not read where it was.
  Load& load = loads_[sources_[*found].first];
  if (there || load.generation != generation_) return {};
  load.generation = 0;
  std::erase_if(loaded_, [&](const Loaded& entry) { return entry.flat == sources_[*found].first; });
  return {};
}

bool TensorStore::bring(FlatIndex at) {
  Value& value = values_[at];
  if (!value.elsewhere || value.data != nullptr || value.bytes == 0) return true;
  Elsewhere& elsewhere = *value.elsewhere;
  const bool parameter = value.published == kAlways;
  if (!elsewhere.failed) {
    if (parameter) reached_.push_back(at);
    // Thousands of values are judged one after the other: to touch new memory for each would take longer than to fetch it.
    if (spare_.size >= value.bytes) elsewhere.elements = std::exchange(spare_, {});
    else elsewhere.elements = {std::make_unique_for_overwrite<std::byte[]>(value.bytes), value.bytes};
    elsewhere.failed = !elsewhere.fetch({elsewhere.elements.bytes.get(), value.bytes});
  }
  if (elsewhere.failed) {
    const Source& from = sources_[owner_[at]];
    // The memory of a weight may be lent elsewhere for a while; that is no fault.
    if (!parameter) unfetched_ = fmt::format("{}:{}", from.name, at - from.first);
    elsewhere.elements = {};
    return false;
  }
  value.data = elsewhere.elements.bytes.get();
  return true;
}

bool TensorStore::is_remote_parameter(std::string_view name) const {
  const std::optional<SourceIndex> found = source(name);
  return found && sources_[*found].kind == SourceKind::kParameter && values_[sources_[*found].first].elsewhere != nullptr;
}

ValueState TensorStore::state(FlatIndex flat) {
  const FlatIndex at = loads_[flat].value;
  if (!values_[at].elsewhere) return values_[at].finite.empty() ? 0 : kStateFinite;
  Elsewhere& elsewhere = *values_[at].elsewhere;
  if (elsewhere.ask && !elsewhere.asked) {
    reached_.push_back(at);
    elsewhere.asked = true;
    elsewhere.state = elsewhere.ask();
  }
  return elsewhere.state;
}

std::span<const std::byte> TensorStore::known_finite(NodeIndex node, uint32_t slot, DType dtype, std::span<const std::byte> part) const {
  const Value& value = values_[sources_[node].first + slot];
  const std::span<const std::byte> finite = value.finite;
  if (value.published != generation_ || value.dtype != dtype || finite.empty() || part.empty()) return {};
  const std::less_equal<const std::byte*> before;
  const bool has_all = before(finite.data(), part.data()) && before(part.data() + part.size(), finite.data() + finite.size());
  return has_all ? finite : std::span<const std::byte>();
}

void TensorStore::release_parameters() {
  for (const FlatIndex at : reached_) {
    Value& value = values_[at];
    if (!value.elsewhere) continue;
    Elsewhere& elsewhere = *value.elsewhere;
    elsewhere.elements = {};
    elsewhere.state = 0;
    elsewhere.asked = elsewhere.failed = false;
    value.data = nullptr;
  }
  reached_.clear();
}

void TensorStore::release(FlatIndex flat) {
  Value& value = values_[loads_[flat].value];
  if (!value.elsewhere) return;
  Room& elements = value.elsewhere->elements;
  if (elements.size > spare_.size) spare_ = std::move(elements);
  elements = {};
  value.data = nullptr;
}

void TensorStore::take_over_value(Value& from, FlatIndex to) {
  Value& value = values_[to];
  const SourceKind kind = sources_[owner_[to]].kind;
  // The new description says where a parameter is, unless it does not know.
  if (kind == SourceKind::kTuplePick || (kind != SourceKind::kOperator && value.data != nullptr)) return;
  if (from.published == 0) return;
  value.data = from.data;
  value.bytes = from.bytes;
  value.published = from.published;
  value.dtype = from.dtype;
  value.elsewhere = std::move(from.elsewhere);
  value.finite = from.finite;
  if (from.own) value.own = std::move(from.own);
  else if (*from.described != *value.described) value.own = std::make_unique<Shape>(*from.described);
}

void TensorStore::take_over(TensorStore& old, std::vector<FlatIndex>& moved) {
  moved.assign(old.values_.size(), kNowhere);
  for (const Source& from : old.sources_) {
    const auto found = source(from.name);
    if (!found || sources_[*found].kind != from.kind) continue;
    const Source& to = sources_[*found];
    for (uint32_t slot = 0; slot < std::min(from.slots, to.slots); ++slot) moved[from.first + slot] = to.first + slot;
  }
  generation_ = old.generation_;
  reloaded_ = old.reloaded_;
  copies_ = std::move(old.copies_);
  for (const FlatIndex at : old.reached_) {
    if (moved[at] != kNowhere) reached_.push_back(moved[at]);
  }
  for (FlatIndex flat = 0; flat < moved.size(); ++flat) {
    if (moved[flat] != kNowhere) take_over_value(old.values_[flat], moved[flat]);
  }
  const auto moved_node = [&](NodeIndex node) {
    const auto found = source(old.sources_[node].name);
    return found && *found < node_count() ? found : std::nullopt;
  };
  for (const Loaded& entry : old.loaded_) {
    const FlatIndex to = moved[entry.flat], value = moved[old.loads_[entry.flat].value];
    if (to == kNowhere || value == kNowhere) continue;
    const std::optional<NodeIndex> reader = entry.order == 0 ? std::nullopt : moved_node(entry.order - 1);
    load(to, value, reader ? *reader + 1 : 0);
  }
  for (NodeIndex node = 0; node < old.overflowed_.size(); ++node) {
    const auto to = moved_node(node);
    if (old.overflowed_[node] == generation_ && to) flag_overflow(*to);
  }
  for (size_t i = 0; i < std::min(old.previous_.size(), old.graph_.parameters.size()); ++i) {
    const auto to = source(old.graph_.parameters[i].name);
    if (!to || *to < node_count() || *to - node_count() >= previous_.size()) continue;
    previous_[*to - node_count()] = std::move(old.previous_[i]);
  }
  old.loaded_.clear();
}

}  // namespace msdbg::agent
