// The history that a live session keeps by itself: statistics of loss, learning rate and weights at each step. Also the watchpoint
// that keeps tensors of the training readable.
#include <fmt/format.h>

#include <algorithm>

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

/// Finds the training's names for the tensors. A missing tensor may appear after the keeper was active for a step.
Status LiveSessionImpl::find_recurring() {
  // A program may leave operators out of a step that nobody looks at: their absence says nothing, and what is known suffices.
  const bool partial = profile_.peer.named && !looked_at_;
  if (searches_ >= kSearches || recurring_.size() == history_nodes_.size() || (partial && !recurring_.empty())) return {};
  if (!partial) ++searches_;
  std::vector<TensorId> ids;
  for (const NodeRef& ref : history_nodes_) ids.push_back({options_.rank, ref.graph->id(), step_, 0, ref.node, {Io::kOutput, 0}});
  ask_bases(ids);
  std::lock_guard lock(cache_mutex_);
  recurring_.clear();
  for (const TensorId& id : ids) {
    const Key key{id.rank, id.graph, id.node, 0};
    const auto known = known_.find(key);
    if (known == known_.end() || !known->second.exists || known->second.info.bytes > kMostEach) continue;
    recurring_.push_back({key, known->second.name, known->second.info});
  }
  return {};
}

/// Called at the end of a step.
void LiveSessionImpl::keep_step() {
  if (!keeps_history()) return;
  (void)find_recurring();
  if (recurring_.empty()) return;
  std::vector<ViewItem> items;
  for (const Recurring& each : recurring_) items.push_back({each.name, each.key.slot, false});
  const Result<std::vector<debugger::TensorSummary>> answer = talk_.summaries(items);
  if (!answer) {
    if (answer.status().code() == Code::kInterrupted || talk_.state() != LiveState::kHeld) return;
    history_failed_ = true;  // do not retry in every step
    return report(Severity::kWarning, fmt::format("the history ends here: {}", answer.status().message()));
  }
  std::lock_guard lock(cache_mutex_);
  for (size_t i = 0; i < recurring_.size(); ++i) {
    const Key& key = recurring_[i].key;
    const TensorId id{key.rank, key.graph, step_, 0, key.node, {Io::kOutput, key.slot}};
    std::optional<Stats> stats = stats_from((*answer)[i]);
    if (!stats) continue;
    TensorInfo info = recurring_[i].info;
    info.id = id;
    past_.insert_or_assign(id, PastValue{std::move(info), std::move(*stats)});
  }
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
