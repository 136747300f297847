#include "session/live/live_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "msdbg/in_place.h"
#include "msdbg/wire.h"
#include "msdbg/wire_fields.h"
#include "session/live/limits.h"

namespace msdbg::live {
namespace {

/// Watchpoint numbers that a previous debugger may have used.
constexpr int kForeignIds = 128;

/// Estimates the memory of a graph before it is parsed.
uint64_t expected_memory(const std::string& bytes, uint64_t* nodes) {
  WireReader reader(std::as_bytes(std::span(bytes)));
  *nodes = 0;
  for (WireField field; reader.next(field);) *nodes += field.type == WireType::kBytes ? 1 : 0;
  return *nodes * limits::kGraphBytesPerNode + bytes.size() * limits::kGraphBytesPerByte;
}

}  // namespace

LiveSessionImpl::LiveSessionImpl(std::unique_ptr<Transport> transport, SessionOptions options)
    : options_(std::move(options)), talk_(std::move(transport), options_.view_deadline, options_.who), ranks_{options_.rank} {
  info_.kind = options_.kind;
  info_.source = options_.source.empty() ? talk_.address() : options_.source;
  info_.short_name = "training";
  if (const auto before = options_.graph_from) {
    talk_.recall([before](const debugger::Metadata& wait) {
      return before->may_be(wait) ? std::optional<debugger::Metadata>(before->handshake) : std::nullopt;
    });
  }
}

LiveSessionImpl::~LiveSessionImpl() {
  // Without answers, a held training would retry for a while and then fail.
  if (!detached_ && talk_.state() == LiveState::kHeld) (void)talk_.release(make_exit(), "exit");
}

LiveState LiveSessionImpl::state() {
  process_events();
  return talk_.state();
}

std::vector<LiveRank> LiveSessionImpl::live_ranks() {
  const LiveState now = state();
  return {{options_.rank, now, step_, completed_, suspension_.cur_node, profile_.peer}};
}

void LiveSessionImpl::process_events() {
  if (checks_ > 0) return;
  talk_.drain();
  if (const uint64_t processes = talk_.processes(); processes != processes_) {
    processes_ = processes;
    detached_ = false;
  }
  if (const uint64_t handshakes = talk_.handshakes(); handshakes != handshakes_) {
    const bool other_process = handshakes_ == 0 || talk_.profile().peer.address != profile_.peer.address || talk_.orphan();
    handshakes_ = handshakes;
    profile_ = talk_.profile();
    info_.framework_version = mindspore_version(profile_.peer);
    info_.device_target = profile_.peer.backend;
    stale_ = true;
    delete_ids_.clear();
    ignored_ids_.clear();
    for (Wanted& wanted : wanted_) {
      wanted.sent.clear();
      wanted.peer_ids.clear();
    }
    keeper_.sent.clear();
    keeper_.peer_ids.clear();
    if (talk_.orphan()) {
      for (int id = 1; id <= kForeignIds; ++id) delete_ids_.push_back(id);
      next_peer_id_ = std::max(next_peer_id_, kForeignIds + 1);
    }
    if (other_process) {
      retired_.insert(retired_.end(), graphs_.begin(), graphs_.end());
      graphs_.clear();
      rebuild_names();
      find_writers();
      for (Wanted& wanted : wanted_) wanted.nodes.clear();
      forget_statistics([](const TensorId&) { return true; });
      readable_.clear();
      history_failed_ = false;
      reported_.clear();
      choose_history();
      std::lock_guard lock(cache_mutex_);
      past_.clear();
      before_.clear();
      forget_values();
    }
  }
  for (const std::string& bytes : talk_.take_graphs()) add_graph(bytes);
  if (graphs_.empty() && talk_.recalled()) {
    for (const std::string& bytes : options_.graph_from->graphs) add_graph(bytes);
  }
  if (const Suspension suspension = talk_.suspension(); suspension.number != suspension_.number) arrive(suspension);
  take_in_ended();
  completed_ = std::max(completed_, talk_.goodbye_steps());  // including those without a suspension
}

void LiveSessionImpl::add_graph(const std::string& bytes) {
  uint64_t nodes = 0;
  const uint64_t memory = expected_memory(bytes, &nodes), most = limits::graph_bytes(options_.mem_limit_bytes);
  if (memory > most - std::min(most, graph_bytes_)) {
    return report(Severity::kError,
                  fmt::format("a graph of about {} nodes and {} is left out: all graphs of the session may take {}; a higher "
                              "memory limit lets in more. The training can be run, continued and ended",
                              nodes, format_bytes(bytes.size()), format_bytes(most)));
  }
  std::vector<std::string> notes;
  const auto data = std::as_bytes(std::span(bytes));
  Result<GraphBuilder> builder = parse_graph(data, options_.rank, -1, &notes);
  if (!builder) {
    report(Severity::kError, fmt::format("a graph of {} bytes cannot be read: {}; it can be run, continued and ended",
                                         bytes.size(), builder.status().message()));
    return;
  }
  graph_bytes_ += memory;
  GraphPtr graph = builder->build();
  const auto same_id = [](int id) { return [id](const GraphPtr& other) { return other->id() == id; }; };
  auto old = std::find_if(graphs_.begin(), graphs_.end(), [&](const GraphPtr& g) { return g->name() == graph->name(); });
  if (old == graphs_.end() && std::any_of(graphs_.begin(), graphs_.end(), same_id(graph->id()))) {
    int id = 0;
    while (std::any_of(graphs_.begin(), graphs_.end(), same_id(id))) ++id;
    if (Result<GraphBuilder> again = parse_graph(data, options_.rank, id, nullptr); again) graph = again->build();
  }
  for (const std::string& note : notes) report(Severity::kWarning, fmt::format("graph {}: {}", printable(graph->name()), note));
  // A program with branches describes its graph often.
  if (old == graphs_.end() || (*old)->nodes().size() != graph->nodes().size())
    report(Severity::kInfo, fmt::format("graph {}: {} nodes", printable(graph->name()), graph->nodes().size()));
  if (old != graphs_.end()) {
    renumber_history(**old, *graph);
    retired_.push_back(*old);
    *old = graph;
  } else {
    graphs_.push_back(graph);
  }
  std::sort(graphs_.begin(), graphs_.end(), [](const GraphPtr& a, const GraphPtr& b) { return a->id() < b->id(); });
  rebuild_names();
  find_writers();
  // Selectors may match more now, and nodes of a replaced graph no longer exist.
  for (Wanted& wanted : wanted_) wanted.nodes.clear();
  stale_ = true;
  choose_history();
  std::lock_guard lock(cache_mutex_);
  known_.clear();
}

/// Graphs share names of parameters; a hit means the graph that runs.
void LiveSessionImpl::rebuild_names() {
  std::vector<GraphPtr> order = graphs_;
  std::ranges::stable_partition(order, [this](const GraphPtr& graph) { return runs_now(*graph); });
  names_.rebuild(order);
  named_first_ = order.empty() ? nullptr : order.front().get();
}

void LiveSessionImpl::find_writers() {
  writers_.clear();
  for (const GraphPtr& graph : graphs_) {
    for (const Node& node : graph->nodes()) {
      for (const uint32_t slot : updated_slots(*graph, node)) {
        writers_[{graph->id(), updated_parameter(*graph, node, slot)}].push_back(node.id);
      }
    }
  }
  for (auto& [parameter, writers] : writers_)
    std::ranges::sort(writers, {}, [this, &parameter](NodeId id) { return graph(options_.rank, parameter.first)->node(id).order; });
}

void LiveSessionImpl::arrive(const Suspension& suspension) {
  const int64_t last_completed = completed_;
  const int64_t last_step = step_;
  const HoldKind last_hold = hold_;
  suspension_ = suspension;
  told_step_ = -1;
  raw_hits_ = talk_.take_hits();
  HoldFacts facts;
  facts.initial = suspension.initial;
  facts.begins = suspension.begins;
  facts.cur_step = suspension.cur_step;
  facts.last_step = suspension.last_step;
  facts.cur_node = suspension.cur_node;
  facts.last_node = suspension.last_node;
  facts.node_level = suspension.node_level;
  facts.asked_node = suspension.asked_node;
  facts.hits = !raw_hits_.empty() && talk_.state() == LiveState::kHeld;
  facts.hit_at_node = hit_at_current_node(raw_hits_);
  hold_ = suspension.cut_short.empty() ? hold_kind(profile_, facts) : HoldKind::kStepEnd;
  if (!suspension.cut_short.empty()) {
    report(Severity::kWarning, fmt::format("step {} was cut short: {}", suspension.cur_step, printable(suspension.cut_short)));
  }
  if (named_first_ != nullptr && !runs_now(*named_first_)) rebuild_names();
  skipped_.clear();
  for (const std::string& name : suspension.skipped) {
    if (const auto known = names_.find(name)) skipped_.emplace(known->graph->id(), known->node);
  }
  step_ = suspension.cur_step;
  completed_ = live::completed_steps(profile_, hold_, suspension.cur_step);
  if (hold_ == HoldKind::kNode && suspension.node_level) node_stop_step_ = step_;

  // The same number does not mean the same values: both the first suspension and the end of the first step may report 0.
  const int64_t oldest = step_ - std::max(1, options_.history_steps) + 1;
  const auto stale = [&](const TensorId& id) { return id.step == step_ || id.step < oldest || id.step > step_; };
  forget_statistics(stale);
  std::lock_guard lock(cache_mutex_);
  std::erase_if(past_, [&](const auto& past) { return stale(past.first); });
  // Values at the end of a step become previous values as soon as the next step runs, even if that is held after an operator first.
  const bool other_step = completed_ != last_completed;
  const bool next_step_runs = last_hold != HoldKind::kNode && (other_step || hold_ == HoldKind::kNode);
  const bool end_was_passed = last_hold == HoldKind::kNode && hold_ == HoldKind::kNode && other_step;
  if (next_step_runs || end_was_passed) before_.clear();
  for (const Key& key : keep_) {
    if (!next_step_runs) break;
    if (TensorPtr tensor = values_.find(key)) before_.insert_or_assign(key, Before{last_step, std::move(tensor)});
  }
  forget_values();
}

void LiveSessionImpl::forget_values() {
  known_.clear();
  values_.clear();
  lost_.clear();
}

void LiveSessionImpl::forget_statistics(const std::function<bool(const TensorId&)>& stale) {
  forget_stats(stale);
  if (all_ranks_ != nullptr) all_ranks_->forget_kept([&](const TensorId& id) { return id.rank == options_.rank && stale(id); });
}

bool LiveSessionImpl::is_over() const {
  const LiveState now = talk_.state();
  return now == LiveState::kEnded || now == LiveState::kLost;
}

/// A tensor of an earlier step, or of the last step of a training that is over if its history has it.
bool LiveSessionImpl::is_past(const TensorId& id) const {
  if (id.step != step_) return true;
  if (!is_over()) return false;
  std::lock_guard lock(cache_mutex_);
  return past_.contains(id);
}

/// Tensors of earlier steps with cached statistics, including the history; each once.
std::vector<TensorId> LiveSessionImpl::tensors_of_before() const {
  std::set<TensorId> ids;
  std::vector<TensorId> kept = tensors_with_stats();
  if (all_ranks_ != nullptr) std::ranges::copy(all_ranks_->kept_tensors(), std::back_inserter(kept));
  for (const TensorId& id : kept) {
    if (id.rank == options_.rank && id.step != step_) ids.insert(id);
  }
  const bool over = is_over();
  std::lock_guard lock(cache_mutex_);
  for (const auto& [id, past] : past_) {
    if (id.step != step_ || over) ids.insert(id);
  }
  return {ids.begin(), ids.end()};
}

std::vector<int64_t> LiveSessionImpl::steps() const {
  std::set<int64_t> steps;
  for (const TensorId& id : tensors_of_before()) steps.insert(id.step);
  if (suspension_.number > 0) steps.insert(step_);
  return {steps.begin(), steps.end()};
}

std::vector<int64_t> LiveSessionImpl::steps(int rank, int graph) const {
  const Graph* known = this->graph(rank, graph);
  if (known == nullptr) return {};
  std::vector<int64_t> found = steps();
  if (!runs_now(*known)) std::erase(found, step_);
  return found;
}

/// Whether this step runs the graph. Our agent runs one graph in each step and names it; in MindSpore a step may run several. Graphs
/// share parameters: what holds for a step would otherwise be said of each of them.
bool LiveSessionImpl::runs_now(const Graph& graph) const {
  if (!profile_.peer.named || hold_ == HoldKind::kInitial || graphs_.size() < 2) return true;
  const size_t colon = suspension_.device.find(':');
  const std::string running = colon == std::string::npos ? "" : "kernel_graph_" + suspension_.device.substr(colon + 1);
  const bool known = std::ranges::any_of(graphs_, [&](const GraphPtr& each) { return each->name() == running; });
  return !known || graph.name() == running;
}

uint32_t LiveSessionImpl::executions(int, int, int64_t step, NodeId) { return step == step_ ? 1 : 0; }

Result<bool> LiveSessionImpl::operator_overflow(const TensorId&) {
  return Status(Code::kUnsupported, profile_.ascend ? "the overflow flag stays on the training side: watch operator_overflow there"
                          : profile_.peer.named ? "operator_overflow needs the flag of an Ascend device, which this training lacks"
                                                : "operator_overflow needs Ascend; this training runs on GPU");
}

SessionReport LiveSessionImpl::inspect() {
  SessionReport report;
  for (const GraphPtr& graph : graphs_) report.steps_by_graph[graph->id()] = steps();
  for (const std::string& note : profile_.peer.notes) report.problems.push_back({Severity::kInfo, profile_.peer.address, note});
  return report;
}

Status LiveSessionImpl::wait_until_held(std::optional<std::chrono::milliseconds> timeout) {
  const Clock::time_point deadline = timeout ? Clock::now() + *timeout : Clock::time_point::max();
  if (talk_.wait_held(deadline, true)) {
    process_events();
    return {};
  }
  if (interrupt_requested()) return {Code::kInterrupted, "interrupted while waiting for a training"};
  if (options_.recorded) return {Code::kPeerLost, "the recording is at its end: it holds no more suspensions"};
  if (talk_.refused()) return {Code::kUnsupported, "the only training that came was refused: its version is not served"};
  return {Code::kNotFound, fmt::format("no training came to {} in time: are the three variables exported there?", address())};
}

Status LiveSessionImpl::wait_until_ended(std::optional<std::chrono::milliseconds> timeout) {
  const Clock::time_point deadline = timeout ? Clock::now() + *timeout : Clock::time_point::max();
  while (talk_.wait_settled(deadline, true)) {
    const LiveState now = talk_.state();  // before process_events(): the next training may have connected already
    process_events();
    if (now == LiveState::kEnded) return {};
    if (now == LiveState::kLost) return {Code::kPeerLost, "the training went away without a goodbye"};
    if (now == LiveState::kHeld) return {Code::kInvalidArgument, "the training is held: continue, detach or terminate it first"};
  }
  if (interrupt_requested()) return {Code::kInterrupted, "interrupted while the training runs"};
  return {Code::kPeerLost, "the training has not ended in time"};
}

std::vector<LiveEvent> LiveSessionImpl::take_events() {
  process_events();
  return talk_.take_events();
}

}  // namespace msdbg::live
