// What a program may ask and say beyond its steps: what is wanted, values that do not stay in place, descriptions that change.
#include <fmt/format.h>

#include <algorithm>

#include "agent/conversation.h"
#include "agent/value_layout.h"

namespace msdbg::agent {
namespace {

constexpr int64_t kMaxRetryUnitMs = 60000;

}  // namespace

Wants Conversation::wants() {
  // A debugger that was not there at the start has no graph to ask about.
  if (!active() || !in_step_ || terminated_ || !handshaken_) return Wants::kNothing;
  if (traits_.ascend && looked_at_.value_or(true)) return Wants::kAll;
  if (node_level_ && stop_name_.empty()) return Wants::kAll;
  const Wants covered = table_.coverage(*store_);
  return covered == Wants::kNothing && (node_level_ || !unseen_.empty()) ? Wants::kSome : covered;
}

bool Conversation::wants_node(NodeIndex node) {
  if (!active() || !in_step_ || terminated_ || !handshaken_ || node >= store_->node_count()) return false;
  if (traits_.ascend && looked_at_.value_or(true)) return true;
  if (is_unseen(node) || table_.asks(*store_, node) || table_.feeds(*store_, node)) return true;
  if (!node_level_) return false;
  if (stop_name_.empty() || stop_name_ == store_->sources()[node].name) return true;
  const std::optional<SourceIndex> stop = store_->source(stop_name_);
  return stop && *stop < store_->node_count() && std::ranges::any_of(store_->inputs(*stop), [&](const InputRef& input) {
           return store_->source_of(input.value) == node;
         });
}

bool Conversation::passes() {
  if (!in_step_ || terminated_ || !handshaken_ || traits_.hold != StepHold::kBeforeCounting) return false;
  return !node_level_ && !table_.judges() && unseen_.empty() && reports_.commits();
}

bool Conversation::has_output(NodeIndex node, uint32_t slot) {
  if (store_ == nullptr) return false;
  if (store_->has_output(node, slot)) return true;
  set_problem(fmt::format("published output {} of operator {}, which the graph does not have", slot, node));
  return false;
}

/// The text of a wrong value names its operator.
void Conversation::refuse_value(NodeIndex node, uint32_t slot, const Status& why) {
  set_problem(fmt::format("output {} of {}: {}", slot, printable(store_->sources()[node].name), why.message()));
}

bool Conversation::publish_copy(NodeIndex node, uint32_t slot, std::optional<DType> dtype, const void* data, const Shape& shape,
                                std::span<const int64_t> strides) {
  if (!has_output(node, slot) || !wants_node(node)) return false;
  const DType type = dtype.value_or(store_->described_dtype(node, slot));
  const Result<ValueLayout> layout = ValueLayout::create(type, shape, strides, data);
  if (!layout) {
    refuse_value(node, slot, layout.status());
    return false;
  }
  std::vector<std::byte> elements(layout->bytes);
  layout->gather(elements);
  store_->publish_copy(node, slot, type, shape, std::move(elements));
  return true;
}

void Conversation::publish_strided(Output output, std::optional<DType> dtype, const void* data, const Shape& shape,
                                   std::span<const int64_t> strides, std::optional<Output> of) {
  const auto [node, slot] = output;
  if (!has_output(node, slot)) return;
  const DType described = store_->described_dtype(node, slot), type = dtype.value_or(described);
  Result<ValueLayout> layout = ValueLayout::create(type, shape, strides, data);
  if (!layout) return refuse_value(node, slot, layout.status());
  std::span<const std::byte> finite;
  if (of && has_output(of->node, of->slot)) finite = store_->known_finite(of->node, of->slot, type, layout->extent());
  if (layout->strides.empty() && type == described) {
    store_->publish(node, slot, data, layout->bytes, &shape);
  } else {
    // A finite value, as most are, is never gathered for the conditions that look for NaN and Inf.
    const bool is_finite = !finite.empty() || (is_evaluable(type) && wants_node(node) && layout->is_finite());
    const uint64_t bytes = layout->bytes;
    auto gather = [layout = std::move(*layout)](std::span<std::byte> into) {
      layout.gather(into);
      return true;
    };
    store_->publish_remote(node, slot, type, shape, bytes, is_finite ? kStateFinite : 0, std::move(gather));
  }
  if (!finite.empty()) store_->note_finite(node, slot, finite);
}

void Conversation::publish_remote(NodeIndex node, uint32_t slot, std::optional<DType> dtype, const Shape& shape, ValueState state,
                                  Fetch fetch) {
  if (!has_output(node, slot)) return;
  const DType type = dtype.value_or(store_->described_dtype(node, slot));
  const Result<uint64_t> bytes = checked_bytes(type, shape);
  if (!bytes) return refuse_value(node, slot, bytes.status());
  if (!fetch) return refuse_value(node, slot, {Code::kInvalidArgument, "no function that fetches its elements"});
  if (!is_state(state)) {
    const std::string why = fmt::format("state {} is not 0, finite (1), NaN (2), Inf (4) or both (6)", state);
    return refuse_value(node, slot, {Code::kInvalidArgument, why});
  }
  store_->publish_remote(node, slot, type, shape, *bytes, state, std::move(fetch));
}

Status Conversation::no_graph(int graph) const {
  return {Code::kNotFound, fmt::format("graph {}: there are {}, numbered from 0", graph, graphs_.size())};
}

Status Conversation::set_parameter(int graph, std::string_view name, std::optional<DType> dtype, const Shape& shape, const void* data,
                                   TensorStore::Remote remote) {
  const std::lock_guard lock(conversation_mutex_);
  if (graph < 0 || static_cast<size_t>(graph) >= graphs_.size()) return no_graph(graph);
  if (dtype || data != nullptr || remote.fetch) {
    const Result<uint64_t> bytes = checked_bytes(dtype.value_or(DType::kFloat32), shape);
    if (!bytes) return {bytes.status().code(), fmt::format("parameter '{}': {}", printable(name), bytes.status().message())};
  }
  return graphs_[static_cast<size_t>(graph)]->set_parameter(name, dtype, shape, data, std::move(remote));
}

Status Conversation::replace_graph(int graph, GraphDescription description) {
  const std::lock_guard lock(conversation_mutex_);
  if (graph < 0 || static_cast<size_t>(graph) >= graphs_.size()) return no_graph(graph);
  const auto at = static_cast<size_t>(graph);
  std::unique_ptr<TensorStore>& place = graphs_[at];
  description.id = place->graph().id;
  auto made = TensorStore::create(std::move(description), traits_);
  if (!made.ok()) return made.status();
  const std::unique_ptr<TensorStore> old = std::exchange(place, std::move(*made));
  std::vector<FlatIndex> moved;
  place->take_over(*old, moved);
  if (std::ranges::find(pending_, at) == pending_.end() && std::ranges::find(replaced_, at) == replaced_.end()) replaced_.push_back(at);
  table_.forget_store();
  if (store_ != old.get()) return {};
  store_ = place.get();
  table_.described_again(moved);
  const auto moved_node = [&](NodeIndex node) {
    if (node >= old->node_count()) return node;
    const auto found = store_->source(old->sources()[node].name);
    return found && *found < store_->node_count() ? *found : kGone;
  };
  const std::vector<bool> unseen_before = std::exchange(unseen_, std::vector<bool>(store_->node_count(), true));
  for (NodeIndex node = 0; node < old->node_count(); ++node) {
    const NodeIndex now = moved_node(node);
    if (now != kGone) unseen_[now] = node < unseen_before.size() && unseen_before[node];
  }
  if (std::ranges::find(unseen_, true) == unseen_.end()) unseen_.clear();
  last_node_ = moved_node(last_node_);
  stopped_at_ = moved_node(stopped_at_);
  if (const std::string* name = cur_node_) {
    const auto found = store_->source(*name);
    // `gone_node_` may be the name itself.
    if (!found) gone_node_ = std::string(*name);
    cur_node_ = found ? &store_->sources()[*found].name : &gone_node_;
  }
  return {};
}

Status Conversation::set_option(std::string_view name, std::string_view value) {
  const std::lock_guard lock(conversation_mutex_);
  const std::string shown = printable(value);
  if (connected_) return {Code::kUnsupported, fmt::format("option {}: too late, the first step has begun", printable(name))};
  if (name == "program") {
    options_.program = value;
  } else if (name == "version") {
    options_.program_version = value;
  } else if (name == "profile") {
    if (!value.starts_with("2.2") || release_number(value) != std::pair(2, 2)) {
      return {Code::kInvalidArgument, fmt::format("option profile is '{}': this agent behaves like MindSpore 2.2; use 2.2 or a "
                                                  "patch of it, such as 2.2.14", shown)};
    }
    options_.version = value == "2.2" ? "2.2.0" : std::string(value);
  } else if (name == "retry_unit_ms") {
    const auto number = parse_int(value);
    if (!number || *number < 1 || *number > kMaxRetryUnitMs) {
      return {Code::kInvalidArgument, fmt::format("option retry_unit_ms is '{}': use a number from 1 to {}", shown, kMaxRetryUnitMs)};
    }
    options_.retry_unit = std::chrono::milliseconds(*number);
    open();
  } else {
    return {Code::kInvalidArgument, fmt::format("option '{}': there are program, version, profile and retry_unit_ms", printable(name))};
  }
  return {};
}

}  // namespace msdbg::agent
