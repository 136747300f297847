#include "agent/conversation.h"

#include <fmt/format.h>

namespace msdbg::agent {
namespace {

constexpr auto kFarewellTimeout = std::chrono::seconds(10);

}  // namespace

Conversation::Conversation(Options options) : options_(std::move(options)), habits_(habits_for(options_)) {
  if (!options_.enabled) return;
  // Nothing is connected before the first call.
  channel_ = open_channel(fmt::format("{}:{}", options_.host, options_.port), options_.retry_unit);
  caller_ = std::make_unique<Caller>(channel_);
}

Conversation::~Conversation() { finish(); }

Status Conversation::add_graph(GraphDescription graph) {
  auto store = TensorStore::create(std::move(graph), habits_);
  if (!store.ok()) return store.status();
  const std::lock_guard talking(talking_);
  for (const auto& known : graphs_) {
    if (known->graph().id != (*store)->graph().id) continue;
    return {Code::kInvalidArgument, fmt::format("graph id {} is taken: give every graph its own", known->graph().id)};
  }
  pending_.push_back(graphs_.size());
  graphs_.push_back(std::move(*store));
  return {};
}

Control Conversation::begin_step(int graph) {
  if (!options_.enabled || finished_) return Control::kGo;
  if (terminated_) return Control::kStop;
  const std::lock_guard talking(talking_);
  if (finished_) return Control::kGo;  // meanwhile, by another thread
  if (graph < 0 || static_cast<size_t>(graph) >= graphs_.size()) {
    complain(fmt::format("step of graph {}: there are {} graphs, numbered from 0", graph, graphs_.size()));
    return Control::kGo;
  }
  const auto next = static_cast<size_t>(graph);
  if (!connected_) connect();
  if (hold_due_) suspend();
  if (step_open_) close_step();
  const bool changed = !ran_ || current_ != next;
  current_ = next;
  ran_ = true;
  store_ = graphs_[next].get();
  if (!terminated_ && (!pending_.empty() || (changed && habits_.handshake_per_run))) introduce();
  if (terminated_ && habits_.exits_at_once) return Control::kStop;
  in_step_ = step_open_ = true;
  last_node_ = kNone;
  if (habits_.hold == StepHold::kCountedAtStart) ++step_;
  return Control::kGo;
}

void Conversation::publish(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape* shape) {
  if (store_ == nullptr || store_->publish(node, slot, data, bytes, shape)) return;
  complain(fmt::format("published output {} of operator {}, which the graph does not have", slot, node));
}

void Conversation::overflowed(NodeIndex node) {
  if (store_ == nullptr || store_->flag_overflow(node)) return;
  complain(fmt::format("an overflow of operator {}, which the graph does not have", node));
}

void Conversation::node_done(NodeIndex node) {
  if (!in_step_ || habits_.ascend || node >= store_->node_count()) return;
  last_node_ = node;
  const std::string& name = store_->sources()[node].name;
  cur_node_.store(&name, std::memory_order_release);
  if (terminated_) return;
  const bool stops = node_level_ && (stop_name_.empty() || stop_name_ == name);
  if (!stops && !table_.wants(*store_, node)) return;
  store_->load_node(node);
  const std::vector<debugger::WatchpointHit> hits = table_.judge(*store_, Moment::kOperator, node);
  if (hits.empty() && !stops) return;
  const std::lock_guard talking(talking_);
  if (finished_) return;
  if (hits.empty()) stopped_at_ = node;
  send_hits(hits);
  suspend();
}

Control Conversation::end_step() {
  if (!options_.enabled || finished_) return Control::kGo;
  if (!in_step_) return terminated_ ? Control::kStop : Control::kGo;
  const std::lock_guard talking(talking_);
  in_step_ = false;
  if (finished_) return Control::kGo;
  const bool counts_first = habits_.hold == StepHold::kAfterCounting || habits_.hold == StepHold::kNextStart;
  if (counts_first) ++step_;
  if (!terminated_ && habits_.hold != StepHold::kNever) {
    if (habits_.ascend) store_->load_all_nodes();
    if (habits_.reloads_parameters) store_->load_parameters(habits_);
    if (habits_.end_check) send_hits(table_.judge(*store_, Moment::kStepEnd));
    if (habits_.hold == StepHold::kNextStart) {
      hold_due_ = !replaces_hold();
      store_->copy_outputs();
    } else if (!replaces_hold()) {
      suspend();
    }
  }
  if (habits_.hold == StepHold::kBeforeCounting || habits_.hold == StepHold::kNever) ++step_;
  if (habits_.hold != StepHold::kNextStart || terminated_) close_step();
  return terminated_ ? Control::kStop : Control::kGo;
}

bool Conversation::replaces_hold() const {
  if (!node_level_) return false;
  if (habits_.node_level_never_holds) return true;
  if (stopped_at_ == kNone) return false;
  return habits_.replaces_hold == NodeStop::kAny ||
         (habits_.replaces_hold == NodeStop::kLast && stopped_at_ == last_node_);
}

void Conversation::close_step() {
  step_open_ = hold_due_ = false;
  stopped_at_ = kNone;
  if (!terminated_) store_->remember_parameters();
  store_->drop();
  table_.clear_marks();
}

void Conversation::finish() {
  if (finished_.exchange(true)) return;
  {
    const std::lock_guard lock(pause_mutex_);
    pause_.notify_all();
  }
  if (caller_) caller_->cancel();
  const std::lock_guard talking(talking_);
  if (heartbeat_) heartbeat_->stop();
  if (!connected_ || (terminated_ && habits_.exits_at_once)) return;
  debugger::Metadata farewell = metadata(false);
  farewell.set_training_done(true);
  caller_->allow();
  caller_->drop_opened();
  if (const Reply reply = caller_->call("SendMetadata", to_buffer(farewell), kFarewellTimeout); !reply.ok) {
    note("farewell", reply);
  }
  caller_->cancel();
}

void Conversation::complain(std::string text, bool waiting) {
  const std::lock_guard lock(problem_mutex_);
  problem_ = std::move(text);
  waiting_ = waiting;
}

void Conversation::note(const char* what, const Reply& reply, bool waiting) {
  complain(fmt::format("{} at {}:{}: {}", what, options_.host, options_.port, reply.problem), waiting);
}

/// The debugger answers again: what failed before is not why the training ends.
void Conversation::overcome() {
  const std::lock_guard lock(problem_mutex_);
  if (std::exchange(waiting_, false)) problem_.clear();
}

}  // namespace msdbg::agent
