#include "msdbg/agent.h"

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

Control Agent::begin_step(int graph) {
  const Control control = state_->conversation.begin_step(graph);
  active_ = state_->conversation.active();
  return control;
}

void Agent::publish_slow(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape* shape) {
  state_->conversation.publish(node, slot, data, bytes, shape);
}

void Agent::overflowed_slow(NodeIndex node) { state_->conversation.overflowed(node); }

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
