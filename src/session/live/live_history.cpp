// The history that a live session keeps by itself: statistics of loss, learning rate and weights at each step. Also the watchpoint
// that keeps tensors of the training readable.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "msdbg/node_names.h"
#include "session/live/live_session.h"

namespace msdbg::live {
namespace {

// The training reduces this many bytes in each step.
constexpr uint64_t kMostEach = uint64_t{1} << 20, kMostTogether = uint64_t{16} << 20;
constexpr int kSearches = 3;  ///< steps in which missing tensors are searched for

std::optional<uint64_t> declared_bytes(const Node& node) {
  if (node.outputs.empty() || !node.outputs[0].shape) return std::nullopt;
  const auto count = element_count(*node.outputs[0].shape);
  if (!count) return std::nullopt;
  return *count * item_size(node.outputs[0].dtype);
}

bool is_learning_rate(const Node& node) {
  const std::string name = to_lower(last_component(node.name));
  return node.kind == NodeKind::kParameter && (name.ends_with("learning_rate") || name == "lr" || name.ends_with(".lr"));
}

}  // namespace

/// Selects the nodes of the history, within its limits.
void LiveSessionImpl::choose_history() {
  history_nodes_.clear();
  recurring_.clear();
  reports_all_ = false;
  searches_ = 0;
  all_weights_ = 0;
  if (options_.history_tensors == 0) return watch_kept();
  uint64_t bytes = 0;
  const auto add = [&](const NodeRef& ref) {
    const Node& node = ref.graph->node(ref.node);
    const uint64_t size = declared_bytes(node).value_or(0);
    if (history_nodes_.size() >= options_.history_tensors || size > kMostEach || bytes + size > kMostTogether) return;
    if (view_names(node).empty() || std::find(history_nodes_.begin(), history_nodes_.end(), ref) != history_nodes_.end()) return;
    bytes += size;
    history_nodes_.push_back(ref);
  };
  // The last operators of a loss produce its value; many precede them.
  std::vector<NodeRef> losses = Selector::parse("@loss")->resolve(graphs_);
  for (auto loss = losses.rbegin(); loss != losses.rend(); ++loss) {
    if (declared_bytes(loss->graph->node(loss->node)).value_or(0) <= sizeof(double)) add(*loss);
  }
  for (const GraphPtr& graph : graphs_) {
    for (const Node& node : graph->nodes()) {
      if (is_learning_rate(node)) add({graph.get(), node.id});
    }
  }
  const std::vector<NodeRef> weights = Selector::parse("@weight")->resolve(graphs_);
  all_weights_ = weights.size();
  for (const NodeRef& weight : weights) add(weight);
  watch_kept();
}

/// Sets the nodes that the keeper watches. The next flush() sends them to the training.
void LiveSessionImpl::watch_kept() {
  keeper_.local = true;
  keeper_.nodes = options_.recorded ? std::vector<NodeRef>() : history_nodes_;
  for (const std::string& name : readable_) {
    for (const GraphPtr& graph : graphs_) {
      if (const Node* node = graph->find(name)) keeper_.nodes.push_back({graph.get(), node->id});
    }
  }
  stale_ = stale_ || !keeper_.nodes.empty();
}

bool LiveSessionImpl::keeps_history() const {
  return !history_nodes_.empty() && profile_.levels && !history_failed_ && (searches_ < kSearches || !recurring_.empty());
}

LiveHistory LiveSessionImpl::history() {
  process_events();
  LiveHistory out;
  if (!keeps_history()) return out;
  out.steps = std::max(1, options_.history_steps);
  out.tensors = history_nodes_.size();
  out.all_weights = all_weights_;
  for (const NodeRef& ref : history_nodes_) {
    const Node& node = ref.graph->node(ref.node);
    out.weights += node.kind == NodeKind::kParameter && !is_learning_rate(node) ? 1 : 0;
  }
  return out;
}

/// Whether tensors of the history are still missing that may appear after a step.
bool LiveSessionImpl::searches(bool looked_at) const {
  if (searches_ >= kSearches || recurring_.size() == history_nodes_.size()) return false;
  // A program may leave operators out of a step that nobody looks at: their absence says nothing, and what is known suffices.
  return looked_at || !profile_.peer.named || recurring_.empty();
}

/// Finds the training's names for the tensors. A missing tensor may appear after the keeper was active for a step.
void LiveSessionImpl::find_recurring() {
  if (!searches(looked_at_)) return;
  if (looked_at_ || !profile_.peer.named) ++searches_;
  std::vector<TensorId> ids;
  for (const NodeRef& ref : history_nodes_) ids.push_back({options_.rank, ref.graph->id(), step_, 0, ref.node, {Io::kOutput, 0}});
  ask_bases(ids);
  std::lock_guard lock(cache_mutex_);
  recurring_.clear();
  reports_all_ = false;
  for (const TensorId& id : ids) {
    const Key key{id.rank, id.graph, id.node, 0};
    const auto known = known_.find(key);
    if (known == known_.end() || !known->second.exists || known->second.info.bytes > kMostEach) continue;
    recurring_.push_back({key, known->second.name, known->second.info});
  }
}

/// Whether the training tells the statistics of the history with the end of each step.
bool LiveSessionImpl::is_told() const { return profile_.reports && !options_.recording; }

void LiveSessionImpl::add_report(debugger::RunCMD& command) {
  if (!keeps_history() || recurring_.empty()) return;
  if (!std::exchange(reports_all_, true)) {
    ++report_number_;
    reported_ = recurring_;
  }
  debugger::Report& report = *command.mutable_report();
  report.set_number(report_number_);
  report.set_keep(static_cast<uint32_t>(std::max(1, options_.history_steps)));
  for (const Recurring& each : reported_) {
    debugger::TensorProto& tensor = *report.add_tensors();
    tensor.set_node_name(each.name);
    tensor.set_slot(std::to_string(each.key.slot));
  }
}

/// The history goes on under other numbers of nodes.
void LiveSessionImpl::renumber_history(const Graph& old, const Graph& graph) {
  const auto number_now = [&](NodeId node) {
    const Node* now = graph.find(old.node(node).name);
    return now == nullptr ? kNoNode : now->id;
  };
  const auto moves = [&](int id, NodeId node) { return id == old.id() && node < old.nodes().size() && number_now(node) != node; };
  forget_statistics([&](const TensorId& id) { return moves(id.graph, id.node); });
  std::lock_guard lock(cache_mutex_);
  std::erase_if(before_, [&](const auto& before) { return moves(before.first.graph, before.first.node); });
  std::erase_if(keep_, [&](const Key& key) { return moves(key.graph, key.node); });
  for (Recurring& each : reported_) {
    if (moves(each.key.graph, each.key.node)) each.key.node = number_now(each.key.node);
  }
  std::map<TensorId, PastValue> past;
  for (auto& [id, value] : past_) {
    TensorId now = id;
    if (moves(id.graph, id.node)) now.node = number_now(id.node);
    value.info.id = now;
    if (now.node != kNoNode) past.emplace(now, std::move(value));
  }
  past_ = std::move(past);
}

void LiveSessionImpl::take_in_ended() {
  const int64_t oldest = step_ - std::max(1, options_.history_steps) + 1;
  for (const debugger::EndedStep& ended : talk_.take_ended()) {
    if (ended.number() != report_number_ || static_cast<size_t>(ended.statistics_size()) != reported_.size()) continue;
    if (ended.step() < oldest || ended.step() > step_) continue;
    keep(reported_, ended.step(), ended.statistics());
    told_step_ = ended.step();
  }
}

/// `statistics` has one for each of the tensors.
template <typename Summaries>
void LiveSessionImpl::keep(std::span<const Recurring> tensors, int64_t step, const Summaries& statistics) {
  std::lock_guard lock(cache_mutex_);
  auto next = statistics.begin();
  for (const auto& [key, name, described] : tensors) {
    if (key.node == kNoNode) {  // the graph lacks it now
      ++next;
      continue;
    }
    const TensorId id{key.rank, key.graph, step, 0, key.node, {Io::kOutput, key.slot}};
    std::optional<Stats> stats = stats_from(*next++);
    if (!stats) continue;
    TensorInfo info = described;
    info.id = id;
    past_.insert_or_assign(id, PastValue{std::move(info), std::move(*stats)});
  }
}

/// Called at the end of a step.
void LiveSessionImpl::keep_step() {
  if (!keeps_history()) return;
  find_recurring();
  if (recurring_.empty() || (told_step_ == step_ && reports_all_)) return;
  std::vector<ViewItem> items;
  for (const Recurring& each : recurring_) items.push_back({each.name, each.key.slot, false});
  const Result<std::vector<debugger::TensorSummary>> answer = talk_.summaries(items);
  if (answer) return keep(recurring_, step_, *answer);
  if (answer.status().code() == Code::kInterrupted || talk_.state() != LiveState::kHeld) return;
  history_failed_ = true;  // do not retry in every step
  report(Severity::kWarning, fmt::format("the history ends here: {}", answer.status().message()));
}

Result<bool> LiveSessionImpl::keep_readable(const TensorId& id) {
  process_events();
  if (options_.recorded) return Status(Code::kUnsupported, "a recording contains only what was read when it was made");
  if (profile_.ascend) return false;
  const Result<Source> source = source_of(id);
  if (!source) return source.status();
  const Node& node = *source->node;
  if (node.kind == NodeKind::kConstant || !watch_name(*source->graph, node))
    return Status(Code::kUnsupported, fmt::format("{} cannot be watched", node.name));
  const NodeRef ref{source->graph, node.id};
  const auto has = [&](const Wanted& wanted) { return std::find(wanted.nodes.begin(), wanted.nodes.end(), ref) != wanted.nodes.end(); };
  if (has(keeper_) || std::any_of(wanted_.begin(), wanted_.end(), has)) return false;
  readable_.push_back(node.name);
  watch_kept();
  if (talk_.state() == LiveState::kHeld) {
    if (Status status = flush(); !status.ok()) return status;
  }
  return true;
}

}  // namespace msdbg::live
