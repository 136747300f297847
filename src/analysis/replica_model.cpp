// What several ranks may have to share: weights, optimizer states, outputs of collectives, and what is computed from these alone.
#include "analysis/replica_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/diff_parts.h"
#include "analysis/node_name.h"
#include "msdbg/in_place.h"

namespace msdbg {
namespace {

/// Attributes that name the rank or its group, or number the call: they may differ between ranks that compute the same.
bool is_of_the_rank(const std::string& name) {
  constexpr std::string_view kOwn[] = {"group", "group_rank_ids", "group_ranks", "rank_list", "rank_id", "index", "stream_id"};
  return std::ranges::find(kOwn, name) != std::end(kOwn);
}

/// What the graph file says about an operator besides its inputs: equal texts compute the same.
std::string settings_of(const Graph& graph, const Node& node) {
  std::vector<std::string> parts;
  for (const Attribute& each : node.attributes) {
    if (!is_of_the_rank(each.name)) parts.push_back(each.name + "=" + each.value);
  }
  std::ranges::sort(parts);
  std::string out = node.op;
  for (const std::string& part : parts) out += '\n' + part;
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    const NodeId producer = graph.effective_producer(node.id, slot).node;
    if (producer == kNoNode || graph.node(producer).kind != NodeKind::kConstant) continue;
    out += fmt::format("\n{}: {}", slot, graph.node(producer).constant_value);
  }
  return out;
}

/// Arguments of the program's call have Python names, without a dot; Parameter_12 and similar ones connect parts of a graph.
bool is_call_argument(const Node& node) { return node.name.find_first_of("./") == std::string::npos; }

/// The only sign of a weight or its state without a graph file; file names have underscores for dots.
bool is_named_like_weight(const Node& node) {
  constexpr std::string_view kEndings[] = {"_weight", "_bias", "_gamma", "_beta", "_embedding_table"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return node.name.ends_with(ending); });
}

/// Whether this input of a recorded call is a weight, as its name tells. Masks and other data may be equal on all ranks for some steps.
bool takes_weight(const Node& call, uint32_t slot) {
  constexpr std::string_view kCalls[] = {"linear", "Linear", "dense", "Dense", "conv", "Conv", "matmul", "MatMul", "mm",
                                         "embedding", "Embedding", "norm", "Norm", "prelu", "PReLU"};
  const bool statistics = call.op.get() == "batch_norm" && slot < 3;  // each rank may have its own
  return slot > 0 && !statistics && has_any_word(call.op, kCalls);
}

/// Whether two calls take outputs and parameters of the same names.
template <typename NameOf>
bool takes_same(const NodeRef& a, const NodeRef& b, const NameOf& name_of) {
  const auto producer = [&](const NodeRef& ref, uint32_t slot) {
    const Edge edge = slot < ref.graph->node(ref.node).inputs.size() ? ref.graph->effective_producer(ref.node, slot) : Edge{};
    const std::string_view name = edge.node == kNoNode ? std::string_view() : name_of(*ref.graph, edge.node);
    return std::pair(name, name.empty() ? 0 : edge.slot);
  };
  const size_t slots = std::max(a.graph->node(a.node).inputs.size(), b.graph->node(b.node).inputs.size());
  for (uint32_t slot = 0; slot < slots; ++slot) {
    if (producer(a, slot) != producer(b, slot)) return false;
  }
  return true;
}

}  // namespace

SharedList<std::vector<int>> LastParts::shared(Parts parts) {
  if (parts_.get() != parts) parts_ = std::move(parts);
  return parts_;
}

SharedText LastParts::shared(std::string reason) {
  if (reason_ != reason) reason_ = std::move(reason);
  return reason_;
}

const std::vector<int>* ReplicaValue::part_of(int rank) const {
  for (const std::vector<int>& part : parts) {
    if (part.size() > 1 && std::ranges::find(part, rank) != part.end()) return &part;
  }
  return nullptr;
}

ReplicaModel::ReplicaModel(const Session& session, const IntSet& ranks) : session_(session), collectives_(session.graphs()) {
  for (const GraphPtr& graph : session.graphs()) {
    if (!ranks.contains(graph->rank())) continue;
    graphs_.push_back(graph.get());
    const auto is_parameter = [](const Node& node) { return node.kind == NodeKind::kParameter; };
    if (std::ranges::any_of(graph->nodes(), is_parameter)) has_parameters_.insert(graph.get());
  }
  find_rank_specific();
  for (const Graph* graph : graphs_) add_graph(*graph);
  connect();
  find_groups();
}

std::optional<size_t> ReplicaModel::find(const Graph& graph, NodeId node) const {
  if (const auto met = met_.find({&graph, node}); met != met_.end()) return met->second;
  const std::optional<size_t> at = find(graph.id(), graph.node(node).name);
  if (!at) return std::nullopt;
  const auto own = values_[*at].nodes.find(graph.rank());
  return own != values_[*at].nodes.end() && own->second.node == node ? at : std::nullopt;
}

std::optional<size_t> ReplicaModel::find(int graph, std::string_view name) const {
  const auto names = by_name_.find(graph);
  const uint32_t* const at = names == by_name_.end() ? nullptr : names->second.find(name);
  return at == nullptr ? std::nullopt : std::optional<size_t>(*at);
}

void ReplicaModel::note(const std::string& reason, Key key) { left_out_[reason].insert(key); }

void ReplicaModel::find_rank_specific() {
  std::map<int, TextTable<uint64_t>> first;  // by graph id and name: a hash of the settings
  for (const Graph* graph : graphs_) {
    for (const NodeId id : graph->execution_order()) {
      const Node& node = graph->node(id);
      if (is_structural(node.op)) continue;
      const std::optional<CollectiveKind> kind = collective_kind(node);
      joined_ = joined_ || kind.has_value();
      sends_ = sends_ || kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
      const uint64_t settings = hash_of(settings_of(*graph, node));
      const auto [known, fresh] = first[graph->id()].add(node.name, settings);
      if (!fresh && known != settings) note_other_settings(*graph, node);
    }
  }
}

void ReplicaModel::note_other_settings(const Graph& graph, const Node& node) {
  if (!rank_specific_.insert({graph.id(), node.name}).second || is_nameless_update(graph, node)) return;
  for (const Graph* first : graphs_) {
    const Node* const usual = first->id() == graph.id() ? first->find(node.name) : nullptr;
    if (usual == nullptr) continue;
    std::string names;
    for (const Attribute& each : node.attributes) {
      const auto same = std::ranges::find(usual->attributes, each.name, &Attribute::name);
      if (is_of_the_rank(each.name) || (same != usual->attributes.end() && same->value == each.value)) continue;
      names += (names.empty() ? "" : ", ") + printable(each.name.get());
    }
    if (!names.empty()) note(fmt::format("other {} on another rank", names), {graph.id(), node.name});
    return;
  }
}

bool ReplicaModel::takes_only_shared(const Graph& graph, const Node& node, const std::vector<Role>& roles, bool* any) const {
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    if (!carries_value(graph, node.inputs[slot])) continue;
    const Edge producer = graph.effective_producer(node.id, slot);
    if (producer.node == kNoNode || roles[producer.node] == Role::kNone) return false;
    if (roles[producer.node] == Role::kShared && any != nullptr) *any = true;
  }
  if (node.role == CallRole::kModuleBackward || node.role == CallRole::kParameterGradients) return false;
  if (node.role != CallRole::kBackward) return true;
  // It takes what its forward call kept, too, and that is not recorded again. Of a module, nobody knows what its calls kept.
  const NodeId forward = graph.call_links(node.id).forward;
  return forward != kNoNode && takes_only_shared(graph, graph.node(forward), roles, nullptr);
}

/// In execution order; parameters and constants have their roles already.
void ReplicaModel::compute_roles(const Graph& graph, std::vector<Role>& roles) const {
  for (const NodeId id : graph.execution_order()) {
    const Node& node = graph.node(id);
    roles[id] = Role::kNone;
    if (is_structural(node.op)) continue;
    if (const auto kind = collective_kind(node)) {
      if (gives_all_the_same(*kind)) roles[id] = Role::kShared;
      continue;
    }
    if (is_nameless_update(graph, node)) {
      roles[id] = Role::kShared;
      continue;
    }
    bool any = false;
    if (draws_random_numbers(node.op) || !takes_only_shared(graph, node, roles, &any) || !any) continue;
    // A setting that differs between ranks is what an optimizer must not have; elsewhere it makes the value one of the rank.
    const bool own = rank_specific_.contains({graph.id(), node.name}) && !in_category(node, Category::kOptimizer);
    if (!own) roles[id] = Role::kShared;
  }
}

void ReplicaModel::add_graph(const Graph& graph) {
  for (const NodeId id : graph.execution_order()) {
    const Node& node = graph.node(id);
    for (const uint32_t slot : updated_slots(graph, node)) updaters_[{&graph, updated_parameter(graph, node, slot)}].push_back(id);
  }
  std::vector<Role> roles(graph.nodes().size(), Role::kNone);
  std::set<NodeId> conditional;  // parameters that the network itself writes: replicas if what it writes is one
  for (const Node& node : graph.nodes()) {
    if (node.kind == NodeKind::kConstant) roles[node.id] = Role::kNeutral;
    if (node.kind != NodeKind::kParameter) continue;
    const bool steers = node.optimizer_state || is_loss_scale(node);
    if (in_category(node, Category::kWeight) || steers) {
      roles[node.id] = Role::kShared;
    } else if (updaters_.contains({&graph, node.id})) {
      roles[node.id] = Role::kShared;
      conditional.insert(node.id);
    } else if (graph.from_file() ? !is_call_argument(node) : is_named_like_weight(node)) {
      roles[node.id] = Role::kShared;
    } else if (!graph.from_file()) {
      note("data of the rank, as far as their names tell: there is no graph file", {graph.id(), node.name});
    } else {
      note("data of the rank", {graph.id(), node.name});
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    compute_roles(graph, roles);
    std::erase_if(conditional, [&](NodeId id) {
      const std::vector<NodeId>& updaters = updaters_[{&graph, id}];
      const auto shared = [&](NodeId updater) { return takes_only_shared(graph, graph.node(updater), roles, nullptr); };
      if (std::ranges::all_of(updaters, shared)) return false;
      roles[id] = Role::kNone;
      note("written from data of the rank", {graph.id(), graph.node(id).name});
      changed = true;
      return true;
    });
  }
  for (const Node& node : graph.nodes()) {
    if (roles[node.id] != Role::kShared) continue;
    if (node.kind == NodeKind::kParameter) {
      add_node(graph, node, node.optimizer_state || is_loss_scale(node) ? ReplicaKind::kOptimizerState : ReplicaKind::kParameter);
    } else if (collective_kind(node)) {
      if (is_asynchronous(node)) note("recorded while it may still have run (async_op)", {graph.id(), node.name});
      else add_collective(graph, node);
    } else if (!has_unwritten_outputs(session_.info(), node)) {
      add_node(graph, node, in_category(node, Category::kOptimizer) ? ReplicaKind::kUpdate : ReplicaKind::kComputed);
    }
  }
  add_nameless_inputs(graph);
}

/// If the optimizer was not recorded either: weights are inputs of calls such as `linear` that no recorded call made.
void ReplicaModel::add_nameless_inputs(const Graph& graph) {
  const auto is_update = [&](const Node& node) { return is_nameless_update(graph, node); };
  if (!graph.recorded_calls() || has_parameters_.contains(&graph) || std::ranges::any_of(graph.nodes(), is_update)) return;
  for (const NodeId id : graph.execution_order()) {
    const Node& node = graph.node(id);
    for (uint32_t slot = 0; node.role == CallRole::kForward && slot < node.inputs.size(); ++slot) {
      if (!takes_weight(node, slot) || graph.effective_producer(id, slot).node != kNoNode) continue;
      const std::string& name = *names_.insert(fmt::format("{}:{}", node.name, slot_name({Io::kInput, slot}))).first;
      const size_t at = add_value(graph, name, id, ReplicaKind::kParameter);
      values_[at].nameless = true;
      nameless_inputs_[{&graph, id, slot}] = at;
    }
  }
}

void ReplicaModel::add_node(const Graph& graph, const Node& node, ReplicaKind what) {
  const size_t at = add_value(graph, node.name, node.id, what);
  values_[at].nameless = what == ReplicaKind::kUpdate && is_nameless_update(graph, node);
}

/// Calls are numbered as they came: on the stages of a pipeline, those that meet may have other numbers, and those of one number need not
/// meet.
void ReplicaModel::add_collective(const Graph& graph, const Node& node) {
  const Exchange* const exchange = collectives_.find(graph, node.id);
  const auto other = [&](const NodeRef& member) { return member.graph->node(member.node).name != node.name; };
  const auto here = [&](const NodeRef& member) { return member.graph->id() == graph.id(); };
  const bool met = exchange != nullptr && !exchange->assumed && graph.recorded_calls() && std::ranges::all_of(exchange->members, here);
  if (!met || std::ranges::none_of(exchange->members, other)) return add_node(graph, node, ReplicaKind::kCollectiveOutput);
  const NodeRef& first = exchange->members.front();
  const std::string& name = *names_.insert(fmt::format("{} of {}", first.graph->node(first.node).name, exchange->group)).first;
  met_[{&graph, node.id}] = add_value(graph, name, node.id, ReplicaKind::kCollectiveOutput);
}

size_t ReplicaModel::add_value(const Graph& graph, std::string_view name, NodeId node, ReplicaKind what) {
  const auto [at, fresh] = by_name_[graph.id()].add(name, static_cast<uint32_t>(values_.size()));
  if (fresh) {
    ReplicaValue value;
    value.graph = graph.id();
    value.name = name;
    value.what = what;
    value.collective = what == ReplicaKind::kCollectiveOutput;
    values_.push_back(std::move(value));
  }
  ReplicaValue& value = values_[at];
  if (!value.nodes.contains(graph.rank())) value.nodes[graph.rank()] = {&graph, node};
  value.updated = value.updated || updaters_.contains({&graph, node});
  value.guessed = value.guessed || !graph.from_file();
  return at;
}

/// Where calls are recorded without parameters, the output of the optimizer's call stands for the weight.
bool ReplicaModel::is_nameless_update(const Graph& graph, const Node& node) const {
  if (!graph.recorded_calls() || has_parameters_.contains(&graph)) return false;
  return in_category(node, Category::kOptimizer) && !draws_random_numbers(node.op);
}

/// What each value is computed from, in the graph of the first rank that has it.
void ReplicaModel::connect() {
  LastParts last;
  for (ReplicaValue& value : values_) {
    const auto& [rank, ref] = *value.nodes.begin();
    const Graph& graph = *ref.graph;
    const auto add_value = [&](NodeId node) {
      const auto at = find(graph, node);
      if (at && &values_[*at] != &value && std::ranges::find(value.from, *at) == value.from.end()) value.from.push_back(*at);
    };
    const auto add_inputs = [&](NodeId id) {
      for (uint32_t slot = 0; slot < graph.node(id).inputs.size(); ++slot) {
        const NodeId producer = graph.effective_producer(id, slot).node;
        if (producer == kNoNode) continue;
        add_value(producer);
        // What an operator writes in place may be recorded as the parameter alone.
        const Node& writer = graph.node(producer);
        if (writer.kind != NodeKind::kOperator) continue;
        for (const uint32_t written : updated_slots(graph, writer)) add_value(updated_parameter(graph, writer, written));
      }
    };
    if (!value.is_parameter()) {
      if (!value.collective) add_inputs(ref.node);
      const NodeId forward = graph.node(ref.node).role == CallRole::kBackward ? graph.call_links(ref.node).forward : kNoNode;
      if (forward != kNoNode) add_inputs(forward);
      if (!value.collective && !value.nameless && graph.recorded_calls()) part_by_inputs(value, last);
      continue;
    }
    const auto updaters = updaters_.find({&graph, ref.node});
    if (updaters == updaters_.end()) continue;
    for (const NodeId updater : updaters->second) {
      if (const auto at = find(graph, updater)) {
        value.from.push_back(*at);
        value.updates.push_back(*at);
      }
      add_inputs(updater);
    }
    if (value.what != ReplicaKind::kOptimizerState) continue;
    for (const size_t other : value.from) {
      const ReplicaValue& weight = values_[other];
      const auto own = weight.nodes.find(rank);
      if (own == weight.nodes.end() || !graph.node(own->second.node).trainable) continue;
      const auto weight_updaters = updaters_.find({&graph, own->second.node});
      if (weight_updaters == updaters_.end()) continue;
      if (std::ranges::find_first_of(weight_updaters->second, updaters->second) == weight_updaters->second.end()) continue;
      value.like = value.like ? std::optional<size_t>(SIZE_MAX) : std::optional(other);
    }
    if (value.like == SIZE_MAX) value.like.reset();  // several weights share it
  }
}

/// Calls are numbered as they came: on another rank, the call of this name may take something else, such as another weight of another
/// stage of a pipeline. What the value is computed from is known of the first rank.
void ReplicaModel::part_by_inputs(ReplicaValue& value, LastParts& last) const {
  const NodeRef& first = value.nodes.begin()->second;
  const auto name_of = [&](const Graph& graph, NodeId node) -> std::string_view {
    const auto met = met_.find({&graph, node});
    return met == met_.end() ? std::string_view(graph.node(node).name) : values_[met->second].name;
  };
  Parts parts{{}};
  for (const auto& [rank, ref] : value.nodes) {
    if (takes_same(first, ref, name_of)) parts.front().push_back(rank);
    else parts.push_back({rank});
  }
  if (parts.size() > 1) value.same_inputs = last.shared(std::move(parts));
}

/// By its edges, or by its name: that of `2.bias` ends with it.
std::optional<size_t> ReplicaModel::weight_of(const ReplicaValue& state) const {
  if (state.what != ReplicaKind::kOptimizerState) return std::nullopt;
  if (state.like) return state.like;
  for (size_t dot = state.name.find('.'); dot != std::string_view::npos; dot = state.name.find('.', dot + 1)) {
    const std::optional<size_t> weight = find(state.graph, state.name.substr(dot + 1));
    if (weight && values_[*weight].what == ReplicaKind::kParameter) return weight;
  }
  return std::nullopt;
}

std::vector<ReplicaModel::Taken> ReplicaModel::inputs() const {
  std::vector<Taken> out;
  for (const Graph* graph : graphs_) {
    for (const NodeId id : graph->execution_order()) {
      const Node& node = graph->node(id);
      if (is_structural(node.op)) continue;
      const std::vector<uint32_t> updated = updated_slots(*graph, node);
      for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
        const Edge producer = graph->effective_producer(id, slot);
        if (const auto own = nameless_inputs_.find({graph, id, slot}); own != nameless_inputs_.end())
          out.push_back({{graph, id}, slot, own->second, false});
        if (producer.node == kNoNode || producer.slot != 0) continue;
        const auto value = find(*graph, producer.node);
        if (value) out.push_back({{graph, id}, slot, *value, std::ranges::find(updated, slot) != updated.end()});
      }
    }
  }
  return out;
}

bool ReplicaModel::nothing_exchanged() const {
  if (joined_) return false;
  std::map<int, std::vector<std::string_view>> first;  // by graph id: the names of its operators
  for (const Graph* graph : graphs_) {
    std::vector<std::string_view> names;
    bool shown = false;
    for (const NodeId id : graph->execution_order()) {
      const Node& node = graph->node(id);
      names.push_back(node.name);
      shown = shown || node.role == CallRole::kForward || (node.role == CallRole::kNone && !is_structural(node.op));
    }
    if (!graph->from_file() || !shown) return false;
    // The last stage of a pipeline alone has a loss.
    const auto [known, fresh] = first.try_emplace(graph->id(), names);
    if (!fresh && known->second != names) return false;
  }
  return true;
}

void ReplicaModel::set_alone(size_t value) {
  ReplicaValue& given = values_[value];
  Parts alone;
  for (const auto& [rank, ref] : given.nodes) alone.push_back({rank});
  given.parts = std::move(alone);
}

void ReplicaModel::leave_out(size_t value, const std::string& reason) {
  set_alone(value);
  note(reason, {values_[value].graph, values_[value].name});
}

std::vector<NotReplicated> ReplicaModel::left_out() const {
  std::vector<NotReplicated> out;
  for (const auto& [reason, keys] : left_out_) {
    NotReplicated entry{reason, keys.size(), {}};
    for (const auto& [graph, name] : keys) {
      if (entry.examples.size() < 3) entry.examples.emplace_back(name);
    }
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace msdbg
