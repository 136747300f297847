#include "agent/conversation.h"

#include <fmt/format.h>

namespace msdbg::agent {
namespace {

constexpr auto kFarewellTimeout = std::chrono::seconds(10);
// A debugger that leaves another one in its place may cut off the farewell.
constexpr auto kSuccessorTimeout = std::chrono::seconds(1);
constexpr size_t kMostReasonBytes = 1000;
constexpr size_t kMostSkippedBytes = 256 << 10;  // a debugger reads messages of up to a megabyte

}  // namespace

Conversation::Conversation(Options options) : options_(std::move(options)), traits_(traits_for(options_)) {
  open();
}

void Conversation::open() {
  if (!options_.enabled) return;
  const std::lock_guard lock(caller_mutex_);
  // Does not connect before the first call.
  channel_ = open_channel(fmt::format("{}:{}", options_.host, options_.port), options_.retry_unit);
  caller_ = std::make_unique<Caller>(channel_);
}

Conversation::~Conversation() { finish(); }

Status Conversation::add_graph(GraphDescription graph) {
  auto store = TensorStore::create(std::move(graph), traits_);
  if (!store.ok()) return store.status();
  const std::lock_guard lock(conversation_mutex_);
  for (const auto& known : graphs_) {
    if (known->graph().id != (*store)->graph().id) continue;
    return {Code::kInvalidArgument, fmt::format("graph id {} is already used: give each graph its own", known->graph().id)};
  }
  pending_.push_back(graphs_.size());
  graphs_.push_back(std::move(*store));
  return {};
}

Control Conversation::begin_step(int graph) {
  if (!options_.enabled || finished_) return Control::kGo;
  if (terminated_) return Control::kStop;
  const std::lock_guard lock(conversation_mutex_);
  if (finished_) return Control::kGo;  // meanwhile, on another thread
  if (graph < 0 || static_cast<size_t>(graph) >= graphs_.size()) {
    set_problem(fmt::format("step of graph {}: there are {} graphs, numbered from 0", graph, graphs_.size()));
    return Control::kGo;
  }
  const auto next = static_cast<size_t>(graph);
  if (!connected_) connect();
  if (hold_due_) suspend();
  if (step_open_) close_step();
  skipped_.clear();
  cut_short_.clear();
  const bool changed = !ran_ || current_ != next;
  if (changed) unseen_.clear();
  current_ = next;
  ran_ = true;
  store_ = graphs_[next].get();
  if (!pending_.empty()) {  // one upload for all
    pending_.insert(pending_.end(), replaced_.begin(), replaced_.end());
    replaced_.clear();
  }
  if (!terminated_ && (!pending_.empty() || (changed && traits_.handshake_per_run))) present_graphs();
  if (terminated_ && traits_.exits_at_once) return Control::kStop;
  in_step_ = step_open_ = true;
  step_computed_ = false;
  last_node_ = kNone;
  if (traits_.hold == StepHold::kCountedAtStart) ++step_;
  if (may_hold_at_beginning_ && !terminated_ && table_.judges_beginnings(*store_)) {
    judge_beginning();
    if (terminated_) return Control::kStop;
  }
  return Control::kGo;
}

/// A parameter may have been broken between two steps. At the end of this one it holds what the optimizer made of it.
void Conversation::judge_beginning() {
  store_->load_parameters(traits_);
  const std::vector<debugger::WatchpointHit> hits = table_.judge(*store_, JudgeTime::kStepBegin);
  if (!hits.empty()) {
    const std::string* const last = cur_node_.exchange(nullptr);
    begins_ = true;
    send_hits(hits);
    suspend();
    begins_ = false;
    cur_node_.store(last, std::memory_order_release);
  }
  store_->drop();
  table_.clear_judged();
}

void Conversation::publish(NodeIndex node, uint32_t slot, const void* data, size_t bytes, const Shape* shape) {
  if (store_ == nullptr || store_->publish(node, slot, data, bytes, shape)) return;
  set_problem(fmt::format("published output {} of operator {}, which the graph does not have", slot, node));
}

void Conversation::overflowed(NodeIndex node) {
  if (store_ == nullptr || store_->flag_overflow(node)) return;
  set_problem(fmt::format("an overflow of operator {}, which the graph does not have", node));
}

void Conversation::step_computed() {
  if (!in_step_) return;
  step_computed_ = true;
  store_->release_parameters();
  if (terminated_ || replaced_.empty()) return;
  // The debugger has to know new operators before they are reported done: its watchpoints may cover them.
  const std::lock_guard lock(conversation_mutex_);
  if (!finished_) present_replaced();
}

void Conversation::skipped(std::span<const NodeIndex> nodes) {
  if (!in_step_) return;
  skipped_.clear();
  size_t bytes = 0;
  for (const NodeIndex node : nodes) {
    if (node >= store_->node_count()) return set_problem(fmt::format("operator {} was skipped, which the graph does not have", node));
    skipped_.push_back(store_->sources()[node].name);
    bytes += skipped_.back().size();
  }
  if (bytes > kMostSkippedBytes) skipped_.clear();  // the debugger takes them for run, and shows less
}

void Conversation::cut_short(std::string_view why) {
  if (in_step_) cut_short_ = why.empty() ? "without a reason" : why.substr(0, kMostReasonBytes);
}

void Conversation::node_done(NodeIndex node) {
  if (!in_step_ || traits_.ascend || node >= store_->node_count()) return;
  last_node_ = node;
  store_->release_parameters();
  const std::string& name = store_->sources()[node].name;
  const bool stops = !terminated_ && node_level_ && (stop_name_.empty() || stop_name_ == name);
  std::vector<debugger::WatchpointHit> hits;
  if (!terminated_ && (stops || table_.watches(*store_, node))) {
    store_->load_node(node);
    hits = table_.judge(*store_, JudgeTime::kOperator, node);
    note_unfetched();
  }
  if (hits.empty() && !stops) return cur_node_.store(&name, std::memory_order_release);
  const std::lock_guard lock(conversation_mutex_);
  if (finished_) return;
  // A debugger tells the stop at an operator from the end of a step by its name, so this comes under the name of the one before.
  present_replaced();
  cur_node_.store(&name, std::memory_order_release);
  if (finished_ || terminated_) return;
  if (hits.empty()) stopped_at_ = node;
  // Whoever looks at the first bad value sees what became of it.
  if (step_computed_) store_->load_all_nodes();
  send_hits(hits);
  suspend();
}

Control Conversation::end_step() {
  if (!options_.enabled || finished_) return Control::kGo;
  if (!in_step_) return terminated_ ? Control::kStop : Control::kGo;
  const std::lock_guard lock(conversation_mutex_);
  in_step_ = false;
  if (finished_) return Control::kGo;
  store_->release_parameters();
  const bool counts_first = traits_.hold == StepHold::kAfterCounting || traits_.hold == StepHold::kNextStart;
  if (counts_first) ++step_;
  if (!terminated_ && traits_.hold != StepHold::kNever) {
    present_replaced();
    if (finished_) return Control::kGo;
  }
  if (!terminated_ && traits_.hold != StepHold::kNever) {
    if (traits_.ascend) store_->load_all_nodes();
    else if (described_again_) load_watched();
    if (traits_.reloads_parameters || traits_.parameters_alone) store_->load_parameters(traits_);
    const std::vector<debugger::WatchpointHit> hits =
        traits_.end_check ? table_.judge(*store_, JudgeTime::kStepEnd) : std::vector<debugger::WatchpointHit>();
    send_hits(hits);
    if (traits_.hold == StepHold::kBeforeCounting) reports_.step_ended(step_, *store_, traits_);
    note_unfetched();
    if (traits_.hold == StepHold::kNextStart) {
      hold_due_ = !replaces_hold();
      store_->copy_outputs();
    } else if (!cut_short_.empty() || (!replaces_hold() && (!hits.empty() || !reports_.passes()))) {
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

/// A value that could not be fetched is a fault of the program, whether or not somebody asked for it.
void Conversation::note_unfetched() {
  if (const std::string name = store_->take_unfetched(); !name.empty()) {
    set_problem(fmt::format("the elements of {} could not be fetched", printable(name)));
  }
}

/// Operators that the description lacked when they ran are judged now.
void Conversation::load_watched() {
  for (NodeIndex node = 0; node < store_->node_count(); ++node) {
    if (table_.watches(*store_, node)) store_->load_node(node);
  }
}

/// Copies of all parameters cost a step several percent.
bool Conversation::keeps_previous() const {
  if (terminated_) return false;
  if (!looked_at_ || table_.needs_previous()) return true;
  // msdbg asks for previous values where MindSpore has them.
  return traits_.ascend && (*looked_at_ || table_.judges());
}

void Conversation::close_step() {
  described_again_ = false;
  step_open_ = hold_due_ = false;
  stopped_at_ = kNone;
  if (keeps_previous()) store_->keep_previous_parameters();
  else store_->forget_previous_parameters();
  store_->drop();
  table_.clear_judged();
}

void Conversation::finish() {
  if (finished_.exchange(true)) return;
  {
    const std::lock_guard lock(pause_mutex_);
    pause_.notify_all();
  }
  {
    const std::lock_guard lock(caller_mutex_);
    if (caller_) caller_->cancel();
  }
  const std::lock_guard lock(conversation_mutex_);
  if (heartbeat_) heartbeat_->stop();
  if (!connected_ || (terminated_ && traits_.exits_at_once)) return;
  debugger::Metadata farewell = metadata(false);
  farewell.set_training_done(true);
  reports_.tell(farewell);
  caller_->allow();
  caller_->drop_opened();
  Reply reply = caller_->call("SendMetadata", to_buffer(farewell), kFarewellTimeout);
  if (!reply.answered && caller_->wait_until_connected(kSuccessorTimeout))
    reply = caller_->call("SendMetadata", to_buffer(farewell), kFarewellTimeout);
  if (!reply.ok) note("farewell", reply);
  caller_->cancel();
}

void Conversation::set_problem(std::string text, bool waiting) {
  const std::lock_guard lock(problem_mutex_);
  problem_ = std::move(text);
  waiting_ = waiting;
}

void Conversation::note(const char* what, const Reply& reply, bool waiting) {
  set_problem(fmt::format("{} at {}:{}: {}", what, options_.host, options_.port, reply.problem), waiting);
}

/// The debugger answers again: earlier failures are not the reason why the training ends.
void Conversation::clear_waiting_problem() {
  const std::lock_guard lock(problem_mutex_);
  if (std::exchange(waiting_, false)) problem_.clear();
}

}  // namespace msdbg::agent
