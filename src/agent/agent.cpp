#include "msdbg/agent.h"

#include <algorithm>

#include "agent/conversation.h"

namespace msdbg::agent {

struct Agent::State {
  explicit State(Options options) : conversation(std::move(options)) {}
  Conversation conversation;
};

Agent::Agent(Options options) : state_(std::make_unique<State>(std::move(options))) {
  active_ = state_->conversation.active();
}

Agent::~Agent() = default;

Status Agent::add_graph(GraphDescription graph) { return state_->conversation.add_graph(std::move(graph)); }

Status Agent::replace_graph(int graph, GraphDescription description) {
  return state_->conversation.replace_graph(graph, std::move(description));
}

Status Agent::set_parameter(int graph, std::string_view name, std::optional<DType> dtype, const Shape& shape, const void* data) {
  return state_->conversation.set_parameter(graph, name, dtype, shape, data);
}

Status Agent::set_parameter_remote(int graph, std::string_view name, std::optional<DType> dtype, const Shape& shape, StateQuery state,
                                   Fetch fetch) {
  if (!fetch) return {Code::kInvalidArgument, "parameter '" + printable(name) + "': no function that fetches its elements"};
  return state_->conversation.set_parameter(graph, name, dtype, shape, nullptr, {std::move(fetch), std::move(state)});
}

Status Agent::set_option(std::string_view name, std::string_view value) { return state_->conversation.set_option(name, value); }

Result<size_t> Agent::publish_dump(const std::string& iteration_directory) {
  return attached() ? state_->conversation.publish_dump(iteration_directory) : Result<size_t>(size_t{0});
}

Wants Agent::wants() const { return attached() ? state_->conversation.wants() : Wants::kNothing; }

bool Agent::wants_node(NodeIndex node) { return attached() && state_->conversation.wants_node(node); }

bool Agent::wants_any(std::span<const NodeIndex> nodes) {
  return attached() && std::ranges::any_of(nodes, [this](NodeIndex node) { return state_->conversation.wants_node(node); });
}

bool Agent::passes() { return attached() && state_->conversation.passes(); }

bool Agent::publish_copy(NodeIndex node, uint32_t slot, std::optional<DType> dtype, const void* data, const Shape& shape,
                         std::span<const int64_t> strides) {
  return attached() && state_->conversation.publish_copy(node, slot, dtype, data, shape, strides);
}

void Agent::publish_strided(NodeIndex node, uint32_t slot, std::optional<DType> dtype, const void* data, const Shape& shape,
                            std::span<const int64_t> strides) {
  if (attached()) state_->conversation.publish_strided({node, slot}, dtype, data, shape, strides);
}

void Agent::publish_view(NodeIndex node, uint32_t slot, NodeIndex of, uint32_t of_slot, std::optional<DType> dtype, const void* data,
                         const Shape& shape, std::span<const int64_t> strides) {
  if (attached()) state_->conversation.publish_strided({node, slot}, dtype, data, shape, strides, Conversation::Output{of, of_slot});
}

void Agent::publish_remote(NodeIndex node, uint32_t slot, std::optional<DType> dtype, const Shape& shape, ValueState state, Fetch fetch) {
  if (attached()) state_->conversation.publish_remote(node, slot, dtype, shape, state, std::move(fetch));
}

Control Agent::begin_step(int graph) {
  const Control control = state_->conversation.begin_step(graph);
  active_ = state_->conversation.active();
  return control;
}

void Agent::publish_slow(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape* shape) {
  state_->conversation.publish(node, slot, data, bytes, shape);
}

void Agent::overflowed_slow(NodeIndex node) { state_->conversation.overflowed(node); }

void Agent::step_computed_slow() { state_->conversation.step_computed(); }
void Agent::skipped_slow(std::span<const NodeIndex> nodes) { state_->conversation.skipped(nodes); }
void Agent::cut_short_slow(std::string_view why) { state_->conversation.cut_short(why); }

void Agent::node_done_slow(NodeIndex node) { state_->conversation.node_done(node); }

Control Agent::end_step() {
  const Control control = state_->conversation.end_step();
  active_ = state_->conversation.active();
  return control;
}

void Agent::finish() {
  state_->conversation.finish();
  active_ = false;
}

std::string Agent::problem() const { return state_->conversation.problem(); }

}  // namespace msdbg::agent
