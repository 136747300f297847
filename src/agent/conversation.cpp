#include "agent/conversation.h"

#include <fmt/format.h>

namespace msdbg::agent {
namespace {

constexpr auto kFarewellTimeout = std::chrono::seconds(10);

}  // namespace

Conversation::Conversation(Options options) : options_(std::move(options)), traits_(traits_of(options_)) {
  if (!options_.enabled) return;
  // Nothing is connected before the first call.
  channel_ = open_channel(fmt::format("{}:{}", options_.host, options_.port), options_.retry_unit);
  caller_ = std::make_unique<Caller>(channel_);
}

Conversation::~Conversation() { finish(); }

Status Conversation::add_graph(GraphDescription graph) {
  auto store = TensorStore::create(std::move(graph), traits_);
  if (!store.ok()) return store.status();
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
  if (graph < 0 || static_cast<size_t>(graph) >= graphs_.size()) {
    problem_ = fmt::format("step of graph {}: there are {} graphs, numbered from 0", graph, graphs_.size());
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
  if (!terminated_ && (!pending_.empty() || (changed && traits_.handshake_per_run))) introduce();
  if (terminated_ && traits_.exits_at_once) return Control::kStop;
  in_step_ = step_open_ = true;
  last_node_ = kNone;
  if (traits_.hold == StepHold::kCountedAtStart) ++step_;
  return Control::kGo;
}

void Conversation::publish(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape* shape) {
  if (store_ == nullptr || store_->publish(node, slot, data, bytes, shape)) return;
  problem_ = fmt::format("published output {} of operator {}, which the graph does not have", slot, node);
}

void Conversation::overflowed(NodeIndex node) {
  if (store_ == nullptr || store_->flag_overflow(node)) return;
  problem_ = fmt::format("an overflow of operator {}, which the graph does not have", node);
}

void Conversation::node_done(NodeIndex node) {
  if (!in_step_ || traits_.ascend || node >= store_->node_count()) return;
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
  if (hits.empty()) stopped_at_ = node;
  send_hits(hits);
  suspend();
}

Control Conversation::end_step() {
  if (!options_.enabled || finished_) return Control::kGo;
  if (!in_step_) return terminated_ ? Control::kStop : Control::kGo;
  const std::lock_guard talking(talking_);
  in_step_ = false;
  const bool counts_first = traits_.hold == StepHold::kAfterCounting || traits_.hold == StepHold::kNextStart;
  if (counts_first) ++step_;
  if (!terminated_ && traits_.hold != StepHold::kNever) {
    if (traits_.ascend) store_->load_all_nodes();
    if (traits_.reloads_parameters) store_->load_parameters(traits_);
    if (traits_.end_check) send_hits(table_.judge(*store_, Moment::kStepEnd));
    if (traits_.hold == StepHold::kNextStart) {
      hold_due_ = !replaces_hold();
      store_->copy_outputs();
    } else if (!replaces_hold()) {
      suspend();
    }
  }
  if (traits_.hold == StepHold::kBeforeCounting || traits_.hold == StepHold::kNever) ++step_;
  if (traits_.hold != StepHold::kNextStart || terminated_) close_step();
  return terminated_ ? Control::kStop : Control::kGo;
}

bool Conversation::replaces_hold() const {
  if (!node_level_) return false;
  if (traits_.node_level_never_holds) return true;
  if (stopped_at_ == kNone) return false;
  return traits_.replaces_hold == NodeStop::kAny ||
         (traits_.replaces_hold == NodeStop::kLast && stopped_at_ == last_node_);
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
  if (!connected_ || (terminated_ && traits_.exits_at_once)) return;
  debugger::Metadata farewell = metadata(false);
  farewell.set_training_done(true);
  caller_->allow();
  caller_->drop_opened();
  if (const Reply reply = caller_->call("SendMetadata", to_buffer(farewell), kFarewellTimeout); !reply.ok) {
    note("farewell", reply);
  }
}

}  // namespace msdbg::agent
