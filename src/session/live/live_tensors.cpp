// The tensors of a held training with their types and shapes.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "session/live/limits.h"
#include "session/live/live_session.h"

namespace msdbg::live {

Result<LiveSessionImpl::Source> LiveSessionImpl::source_of(const TensorId& id) const {
  const Graph* graph = this->graph(id.rank, id.graph);
  if (graph == nullptr || id.node >= graph->nodes().size())
    return Status(Code::kNotFound, "the graph of this tensor was replaced by another");
  const Node& node = graph->node(id.node);
  if (id.slot.io == Io::kOutput) return Source{graph, &node, id.slot.index};
  if (id.slot.index >= node.inputs.size())
    return Status(Code::kNotFound, fmt::format("{} has {} inputs", node.name, node.inputs.size()));
  const Edge edge = graph->effective_producer(id.node, id.slot.index);
  if (edge.node == kNoNode)
    return Status(Code::kNotFound, fmt::format("the producer of input {} of {} is unknown", id.slot.index, node.name));
  const Source source{graph, &graph->node(edge.node), edge.slot};
  const Node* writer = id.step == step_ ? last_writer(*graph, edge.node) : nullptr;
  const bool writes_it = writer == &node;  // its own input is the changed value, as in a dump
  if (id.step == step_ && writer == nullptr && source.node->kind == NodeKind::kParameter &&
      may_have_changed({id.rank, id.graph, id.step, 0, edge.node, {}})) {
    return Status(Code::kNotFound, fmt::format("not available: the step may have changed {} since {} read it", source.node->name, node.name));
  }
  if (writer == nullptr || writes_it || node.order >= writer->order) return source;
  const auto current = names_.find(suspension_.cur_node);
  const bool is_past = current && current->graph == graph && graph->node(current->node).order >= writer->order;
  if (!suspension_.computed && hold_ != HoldKind::kStepEnd && (hold_ != HoldKind::kNode || !is_past)) return source;
  return Status(Code::kNotFound,
                fmt::format("not available: {} has changed {} since {} read it", writer->name, source.node->name, node.name));
}

/// In the current step.
const Node* LiveSessionImpl::last_writer(const Graph& graph, NodeId parameter) const {
  const auto found = writers_.find({graph.id(), parameter});
  if (found == writers_.end()) return nullptr;
  for (const NodeId writer : found->second | std::views::reverse) {
    if (!skipped_.contains({graph.id(), writer})) return &graph.node(writer);
  }
  return nullptr;
}

bool LiveSessionImpl::yet_to_run(const TensorId& id) const {
  if (id.step != step_ || hold_ != HoldKind::kNode || suspension_.computed) return false;
  const Graph* const graph = this->graph(id.rank, id.graph);
  const auto current = names_.find(suspension_.cur_node);
  if (graph == nullptr) return false;
  const Node& node = graph->node(id.node);
  if (suspension_.begins) return node.kind == NodeKind::kOperator;
  if (!current || current->graph != graph) return false;
  return node.kind == NodeKind::kOperator && node.order > graph->node(current->node).order;
}

bool LiveSessionImpl::at_step_begin(int, int64_t step) const { return suspension_.begins && step == step_; }

// An agent's graph may show the operators of no step yet, or only some.
bool LiveSessionImpl::may_have_changed(const TensorId& id) const {
  const Graph* const graph = this->graph(id.rank, id.graph);
  if (graph == nullptr || !profile_.peer.named) return false;
  if (id.step == step_ && hold_ != HoldKind::kStepEnd && !suspension_.computed) return false;
  const auto written = writers_.lower_bound({id.graph, 0});
  if (written != writers_.end() && written->first.first == id.graph) return false;
  const Node& node = graph->node(id.node);
  return in_category(node, Category::kWeight) || node.name.starts_with("moments.");
}

bool LiveSessionImpl::is_watched(const Node& node) const {
  const auto names = [&](const NodeRef& ref) { return &ref.graph->node(ref.node) == &node; };
  return std::ranges::any_of(keeper_.nodes, names) ||
         std::ranges::any_of(wanted_, [&](const Wanted& wanted) { return std::ranges::any_of(wanted.nodes, names); });
}

Status LiveSessionImpl::unavailable(const TensorId& id) const {
  const Node& node = this->node(id);
  std::string why = "the training does not have it now";
  if (options_.recorded) why = "not in the recording: it was not read in this suspension";
  else if (talk_.state() != LiveState::kHeld)
    why = fmt::format("the training is {}, tensors can be read while it is held", live_state_name(talk_.state()));
  else if (node.kind == NodeKind::kConstant)
    why = profile_.named_constants ? "the training does not keep this constant" : "constants of this release are in the graph only";
  else if (hold_ == HoldKind::kInitial) {
    why = !profile_.initial_values                 ? "nothing has run yet, and MindSpore 1.0 has no values before its first step"
          : node.kind == NodeKind::kParameter ? "nothing has run yet, and this parameter is not loaded: the inputs of the network come "
                                                "with the first step that reads them"
          : is_watched(node)                  ? "nothing has run yet; it is watched: step, and ask again"
                                              : "nothing has run yet: weights and constants can be read";
  }
  else if (!profile_.ascend) {
    why = profile_.peer.named ? profile_.peer.program + " shows only what was watched or stepped to in this step"
                              : "a GPU training keeps only what was watched in this step";
    why += is_watched(node) ? "; it is watched: step, and ask again" : ": watch the operator, step, and ask again";
  }
  else if (profile_.peer.named && !looked_at_)
    why = "nobody was going to look at this step when it began, so the program may have left its operators out: step, and ask again";
  return {Code::kNotFound, fmt::format("not available: {}: {}", tensor_name(id), why)};
}

LiveSessionImpl::Known LiveSessionImpl::declared(const Source& source, const TensorId& id) const {
  // Releases without the base level: the shape comes from the graph; only a request shows whether a value exists.
  Known known;
  const std::vector<std::string> names = view_names(*source.node);
  known.exists = !names.empty();
  if (!names.empty()) known.name = names.front();
  known.info.id = id;
  known.info.source = profile_.peer.address;
  if (source.slot < source.node->outputs.size()) {
    const OutputType& output = source.node->outputs[source.slot];
    known.info.dtype = output.dtype;
    if (output.shape) known.info.shape = *output.shape;
    known.info.count = element_count(known.info.shape).value_or(0);
    known.info.bytes = known.info.count * item_size(known.info.dtype);
    known.info.note = "type and shape as the graph declares them";
  }
  return known;
}

LiveSessionImpl::Known LiveSessionImpl::known_from(const Source& source, const TensorId& id, const debugger::TensorBase& base) const {
  Known known = declared(source, id);
  known.info.note.clear();
  known.exists = base.data_type() != 0;
  if (!known.exists) return known;
  known.info.dtype = dtype_from_mindspore(base.data_type());
  known.info.shape.assign(base.shape().begin(), base.shape().end());
  known.info.bytes = static_cast<uint64_t>(std::max<int64_t>(0, base.data_size()));
  const size_t size = is_evaluable(known.info.dtype) ? item_size(known.info.dtype) : 0;
  const std::optional<uint64_t> count = element_count(known.info.shape);
  known.info.count = count.value_or(0);
  if (size == 0) {
    known.info.problem = {Code::kUnsupported, fmt::format("data type {} of the training cannot be evaluated", base.data_type())};
  } else if (!count || *count != known.info.bytes / size || known.info.bytes % size != 0) {
    known.info.problem = {Code::kCorrupt, fmt::format("the training says shape {} and {} bytes, which do not fit",
                                                      shape_text(known.info.shape), base.data_size())};
  } else if (known.info.bytes > limits::kValueBytes) {
    known.info.problem = {Code::kUnsupported,
                          fmt::format("{}: a training cannot send more than 2 GiB, it would end; its statistics can be read",
                                      format_bytes(known.info.bytes))};
  }
  return known;
}

// One query for many tensors, and a second one for those with another spelling.
void LiveSessionImpl::ask_bases(std::span<const TensorId> ids) {
  const LiveState state = talk_.state();
  if (state == LiveState::kWaiting || state == LiveState::kEnded || state == LiveState::kLost) return;
  struct Open { TensorId id; Source source; std::vector<std::string> names; };
  std::vector<Open> open;
  {
    std::lock_guard lock(cache_mutex_);
    std::set<Key> seen;
    for (const TensorId& id : ids) {
      Result<Source> source = source_of(id);
      if (!source) continue;
      const Key key{id.rank, id.graph, source->node->id, source->slot};
      if (known_.count(key) > 0 || !seen.insert(key).second) continue;
      TensorId own = id;
      own.node = source->node->id;
      own.slot = {Io::kOutput, source->slot};
      if (!profile_.levels) {
        known_[key] = declared(*source, own);
        continue;
      }
      std::vector<std::string> names = view_names(*source->node);
      if (names.empty()) known_[key] = {};
      else open.push_back({own, *source, std::move(names)});
    }
  }
  for (size_t spelling = 0; !open.empty(); ++spelling) {
    std::vector<ViewItem> items;
    for (const Open& entry : open) items.push_back({entry.names[spelling], entry.source.slot, false});
    Result<std::vector<debugger::TensorBase>> bases = talk_.bases(items);
    if (!bases) {
      if (bases.status().code() != Code::kInterrupted) report(Severity::kWarning, bases.status().message());
      return;
    }
    std::vector<Open> left;
    std::lock_guard lock(cache_mutex_);
    for (size_t i = 0; i < open.size(); ++i) {
      Known known = known_from(open[i].source, open[i].id, (*bases)[i]);
      known.name = items[i].name;
      if (!known.exists && spelling + 1 < open[i].names.size()) left.push_back(open[i]);
      else known_[{open[i].id.rank, open[i].id.graph, open[i].id.node, open[i].id.slot.index}] = std::move(known);
    }
    open = std::move(left);
  }
}

std::vector<TensorId> LiveSessionImpl::tensors(const TensorQuery& query) {
  process_events();
  std::vector<TensorId> found;
  const auto wants = [&](const TensorId& id) {
    if (id.slot.io == Io::kInput ? !query.inputs : !query.outputs) return false;
    return query.ranks.contains(id.rank) && query.steps.contains(id.step) && (!query.slot || *query.slot == id.slot.index) &&
           (!query.graph || *query.graph == id.graph);
  };
  std::set<std::pair<int, NodeId>> nodes;
  if (query.nodes != nullptr) {
    for (const NodeRef& ref : *query.nodes) {
      if (ref.graph->rank() == options_.rank) nodes.emplace(ref.graph->id(), ref.node);
    }
  }
  const auto is_named = [&](int graph, NodeId node) { return query.nodes == nullptr || nodes.count({graph, node}) > 0; };

  if (query.steps.contains(step_) && talk_.state() == LiveState::kHeld) {
    std::vector<TensorId> candidates;
    for (const GraphPtr& graph : graphs_) {
      if (!runs_now(*graph)) continue;
      for (const Node& node : graph->nodes()) {
        if (!is_named(graph->id(), node.id) || view_names(node).empty()) continue;
        auto add = [&](Io io, size_t count) {
          for (uint32_t slot = 0; slot < count; ++slot) {
            const TensorId id{options_.rank, graph->id(), step_, 0, node.id, {io, slot}};
            if (wants(id)) candidates.push_back(id);
          }
        };
        if (!yet_to_run({options_.rank, graph->id(), step_, 0, node.id, {}})) add(Io::kInput, node.inputs.size());
        add(Io::kOutput, node.outputs.size());
      }
    }
    ask_bases(candidates);
    std::lock_guard lock(cache_mutex_);
    for (const TensorId& id : candidates) {
      Result<Source> source = source_of(id);
      if (!source) continue;
      const auto known = known_.find({id.rank, id.graph, source->node->id, source->slot});
      if (known != known_.end() && known->second.exists) found.push_back(id);
    }
  }
  for (const TensorId& id : tensors_of_before()) {
    if (wants(id) && is_named(id.graph, id.node)) found.push_back(id);
  }
  const auto key = [&](const TensorId& id) {
    const Graph* graph = this->graph(id.rank, id.graph);
    return std::tuple(id.step, id.graph, graph == nullptr ? 0 : graph->node(id.node).order, id.node, id.slot);
  };
  std::sort(found.begin(), found.end(), [&](const TensorId& a, const TensorId& b) { return key(a) < key(b); });
  return found;
}

Result<TensorInfo> LiveSessionImpl::describe(const TensorId& id) {
  Result<Source> source = source_of(id);
  if (!source) return source.status();
  const Key key{id.rank, id.graph, source->node->id, source->slot};
  if (is_past(id)) {
    std::lock_guard lock(cache_mutex_);
    const auto before = before_.find(key);
    const auto now = known_.find(key);
    TensorInfo info;
    if (before != before_.end() && before->second.step == id.step) {
      info.dtype = before->second.tensor->dtype();
      info.shape = before->second.tensor->shape();
      info.count = before->second.tensor->count();
      info.bytes = before->second.tensor->bytes().size();
    } else if (id.step == step_ - 1 && profile_.keeps_previous && source->node->kind == NodeKind::kParameter && now != known_.end()) {
      info = now->second.info;
    } else if (std::optional<TensorInfo> kept = all_ranks_ != nullptr ? all_ranks_->kept_info(id) : info_of_kept(id)) {
      info = *kept;
      info.availability = Availability::kStatisticsOnly;
      info.note = "of this step only the statistics are kept";
    } else if (const auto past = past_.find({id.rank, id.graph, id.step, 0, source->node->id, {Io::kOutput, source->slot}});
               past != past_.end()) {
      info = past->second.info;
      info.availability = Availability::kStatisticsOnly;
      info.note = "of this step only the statistics are kept, as the training computed them";
    } else {
      return Status(Code::kNotFound, fmt::format("not available: {} of step {}: a training keeps the values of its current step ({})",
                                                 tensor_name(id), id.step, step_));
    }
    info.id = id;
    info.source = profile_.peer.address;
    return info;
  }
  const auto is_known = [&] {
    std::lock_guard lock(cache_mutex_);
    return known_.count(key) > 0;
  };
  if (!is_known()) ask_bases({&id, 1});  // may wait while another value is fetched
  std::lock_guard lock(cache_mutex_);
  const auto known = known_.find(key);
  if (known == known_.end() || !known->second.exists) return unavailable(id);
  TensorInfo info = known->second.info;
  info.id = id;
  if (statistics_only_) info.availability = Availability::kStatisticsOnly;
  return info;
}

}  // namespace msdbg::live
