// The walk over one step: which executions broke a value, and which values were broken before it began.
#include "analysis/origin.h"

#include <algorithm>
#include <limits>
#include <map>
#include <ranges>
#include <set>

#include "analysis/derivative.h"
#include "analysis/elements.h"
#include "analysis/gradient_values.h"
#include "analysis/grown.h"
#include "analysis/put_in.h"
#include "msdbg/in_place.h"

namespace msdbg {
namespace {

/// A value that came into the step broken.
struct Source {
  NodeId node = kNoNode;       ///< parameter or constant; kNoNode when only the recorded input is known
  std::optional<Consumer> consumer;  ///< of a recorded input
  TensorId tensor;
  OriginKind kind = OriginKind::kInput;
  uint32_t first_use = 0;
  std::optional<TensorId> shown = {}, before = {};  ///< as of Value
};

class StepSearch {
 public:
  StepSearch(Evidence& evidence, const StepModel& model, const RankModels& ranks, ParameterWrites& writes)
      : evidence_(evidence), model_(model), ranks_(ranks), writes_(writes), graph_(model.graph()) {
    found_.rank = graph_.rank();
    found_.graph = graph_.id();
    found_.step = model.step();
  }

  StepOrigins run() {
    absolve_put_in();
    for (const TensorId& tensor : model_.tensors()) {
      if (evidence_.is_bad(tensor) && !model_.is_unwritten(tensor)) ++found_.bad_tensors;
    }
    find_sources();
    if (found_.bad_tensors == 0 && sources_.empty()) return std::move(found_);
    find_operators();
    find_changed();
    drop_explained();
    join_split();
    join_derivatives();
    if (!operators_.empty()) operators_.front().origin.grown = grown_parameters(evidence_, model_, ranks_, writes_, operators_.front().execution.node);
    store_all();
    for (const Candidate& candidate : arrivals_) store_arrival(candidate);
    if (found_.origins.empty() && found_.arrivals.empty()) add_fallback();
    found_.follows.assign(follows_.begin(), follows_.end());
    if (found_.origins.empty() && found_.arrivals.empty()) return std::move(found_);
    if (const auto loss = sound_loss(evidence_, model_)) found_.losses = {*loss};
    return std::move(found_);
  }

 private:
  struct Candidate {
    Origin origin;
    Execution execution;
    Spread spread;
    TensorId from = {};  ///< arrivals: the bad input of another rank
  };

  Origin describe(OriginKind kind, const TensorId& tensor) { return describe_origin(evidence_, kind, tensor); }

  void store(Candidate& candidate) {
    for (const TensorId& tensor : candidate.spread.tensors) follows_.try_emplace(tensor, static_cast<uint32_t>(found_.origins.size()));
    found_.origins.push_back(std::move(candidate.origin));
  }

  void store_all() {
    // Where an input is unknown, what came in bad may have reached it in a way that was not recorded.
    const bool sure = operators_.empty() || operators_.front().origin.certain;
    for (Candidate& candidate : sure ? operators_ : sources_) store(candidate);
    for (Candidate& candidate : sure ? sources_ : operators_) store(candidate);
  }

  /// After the origins, which reach some of the same tensors.
  void store_arrival(const Candidate& candidate) {
    const auto index = static_cast<uint32_t>(found_.origins.size() + found_.arrivals.size());
    for (const TensorId& tensor : candidate.spread.tensors) follows_.try_emplace(tensor, index);
    found_.arrivals.push_back({candidate.origin.tensor, candidate.from, std::nullopt});
  }

  static void store_spread(Candidate& candidate) {
    candidate.origin.reached = candidate.spread.tensors.size();
    candidate.origin.chains = std::move(candidate.spread.chains);
  }

  /// A mask before a softmax is no fault, unless its infinities reach what must be finite.
  void absolve_put_in() {
    const PutInValues values(evidence_, model_, model_.executions());
    std::set<TensorId> harmful;
    for (const auto& [tensor, root] : values.tensors()) {
      if (values.matters(tensor)) harmful.insert(values.root(tensor).tensor);
    }
    for (PutIn& each : values.all()) {
      if (harmful.contains(each.tensor)) continue;
      for (const TensorId& tensor : each.held_by) evidence_.absolve(tensor);
      found_.put_in.push_back(std::move(each));
    }
  }

  void find_operators() {
    for (const Execution& execution : model_.executions()) {
      const WrittenValue* broken = nullptr;
      const std::vector<WrittenValue> written_values = model_.written_values(execution);
      for (const WrittenValue& written : written_values) {
        if (written.value.state == InputState::kBad && !broken) broken = &written;
      }
      if (!broken) continue;
      std::vector<OriginInput> inputs = model_.inputs(execution);
      auto is = [&](InputState state) {
        return std::any_of(inputs.begin(), inputs.end(), [&](const OriginInput& in) { return in.state == state; });
      };
      if (is(InputState::kBad)) continue;
      Candidate candidate;
      candidate.execution = execution;
      std::vector<OriginInput> remote = ranks_.remote_inputs(model_, execution);
      if (const auto bad = std::ranges::find(remote, InputState::kBad, &OriginInput::state); bad != remote.end() && bad->value) {
        candidate.origin.tensor = *broken->value.tensor;
        candidate.from = *bad->value;
        candidate.spread = spread_from(evidence_, model_, execution, candidate.origin.tensor);
        arrivals_.push_back(std::move(candidate));
        continue;
      }
      // What all ranks get and one got well cannot have had a bad input on any rank.
      std::vector<int> good_on = ranks_.good_outputs(model_, execution);
      const auto explained = [&](const OriginInput& in) { return in.state != InputState::kUnknown || !good_on.empty(); };
      std::erase_if(remote, explained);
      inputs.insert(inputs.end(), std::make_move_iterator(remote.begin()), std::make_move_iterator(remote.end()));
      candidate.origin = describe(OriginKind::kOperator, *broken->value.tensor);
      if (!is(InputState::kUnknown) && good_on.empty() && cannot_have_made(evidence_, graph_.node(execution.node), candidate.origin)) {
        OriginInput unseen;
        unseen.reason = "one that is not in this session, or whose graph does not say that it takes part";
        inputs.push_back(std::move(unseen));
      }
      candidate.origin.certain = !is(InputState::kUnknown);
      candidate.origin.good_on = std::move(good_on);
      for (OriginInput& input : inputs) {
        if (input.value) input.stats = evidence_.stats(*input.value);
      }
      candidate.origin.inputs = std::move(inputs);
      if (evidence_.builtin()) compare_zeros(evidence_.session(), *evidence_.builtin(), candidate.origin);
      candidate.spread = spread_from(evidence_, model_, execution, candidate.origin.tensor);
      store_spread(candidate);
      operators_.push_back(std::move(candidate));
    }
  }

  // ---- what was bad before ----

  void find_sources() {
    std::vector<Source> sources;
    for (const Node& node : graph_.nodes()) {
      if (node.kind == NodeKind::kOperator) continue;
      const Value value = model_.at_start(node.id);
      if (value.state != InputState::kBad || !value.tensor) continue;
      sources.push_back({node.id, std::nullopt, *value.tensor, kind_of(node), first_use(node.id), value.shown, value.before});
    }
    for (const TensorId& tensor : model_.tensors()) {
      if (tensor.slot.io != Io::kInput || !evidence_.is_bad(tensor)) continue;
      if (graph_.effective_producer(tensor.node, tensor.slot.index).node != kNoNode) continue;
      const Consumer consumer{{tensor.node, tensor.execution}, tensor.slot.index};
      sources.push_back({kNoNode, consumer, tensor, OriginKind::kInput, graph_.node(tensor.node).order});
    }
    std::stable_sort(sources.begin(), sources.end(),
                     [](const Source& a, const Source& b) { return a.first_use < b.first_use; });
    for (const Source& source : sources) {
      if (!belongs_to_weight(source, sources)) add_source(source);
    }
  }

  OriginKind kind_of(const Node& node) const {
    const bool kept = node.trainable || node.optimizer_state || !model_.updaters(node.id).empty() ||
                      in_category(node, Category::kWeight) || write_before(node.id);
    return node.kind == NodeKind::kParameter && kept ? OriginKind::kParameter : OriginKind::kInput;
  }

  uint32_t first_use(NodeId node) const {
    uint32_t order = std::numeric_limits<uint32_t>::max();
    for (const Use& use : graph_.effective_users(node)) order = std::min(order, graph_.node(use.node).order);
    return order;
  }

  /// The momentum of a broken weight broke with it, in the same update; it is not an origin of its own.
  bool belongs_to_weight(const Source& source, const std::vector<Source>& all) const {
    if (source.node == kNoNode || !graph_.node(source.node).optimizer_state) return false;
    const std::vector<NodeId> updaters = model_.updaters(source.node);
    return std::any_of(all.begin(), all.end(), [&](const Source& other) {
      if (other.node == kNoNode || !graph_.node(other.node).trainable) return false;
      const std::vector<NodeId> others = model_.updaters(other.node);
      return std::find_first_of(updaters.begin(), updaters.end(), others.begin(), others.end()) != updaters.end();
    });
  }

  void add_source(const Source& source) {
    Candidate candidate;
    if (source.tensor.graph != graph_.id()) {
      candidate.origin.tensor = model_.id(source.node, {});
      candidate.from = source.tensor;
      candidate.spread = spread_from_start(evidence_, model_, source.node, source.tensor);
      candidate.spread.tensors.erase(source.tensor);
      arrivals_.push_back(std::move(candidate));
      return;
    }
    // Its own file may show what the update made of it.
    candidate.origin = describe(source.kind, source.shown.value_or(source.tensor));
    candidate.origin.tensor = candidate.origin.info.id = source.tensor;
    candidate.origin.shown = source.shown;
    if (source.kind == OriginKind::kParameter) candidate.origin.sound_before = source.before;
    candidate.spread = source.consumer ? spread_from_input(evidence_, model_, *source.consumer, source.tensor)
                                    : spread_from_start(evidence_, model_, source.node, source.tensor);
    // What another graph has made of it since.
    const bool kept = !source.consumer && model_.updaters(source.node).empty();
    if (const TensorId now = model_.id(source.node, {}); kept && evidence_.is_bad(now)) candidate.spread.tensors.insert(now);
    store_spread(candidate);
    if (source.kind == OriginKind::kParameter) candidate.origin.update = update_of(evidence_, writes_, graph_, source.node, model_.step());
    sources_.push_back(std::move(candidate));
  }

  /// Parameters whose files show what another graph made of them later in this step.
  void find_changed() {
    for (const Node& node : graph_.nodes()) {
      const TensorId now = model_.id(node.id, {});
      if (node.kind != NodeKind::kParameter || !evidence_.is_bad(now) || !model_.updaters(node.id).empty()) continue;
      if (!evidence_.session().may_have_changed(now) || model_.at_start(node.id).state == InputState::kBad) continue;
      const std::optional<TensorId> from = bad_update_elsewhere(node.name);
      if (!from) continue;
      Candidate candidate;
      candidate.origin.tensor = now;
      candidate.from = *from;
      candidate.spread.tensors.insert(now);
      arrivals_.push_back(std::move(candidate));
    }
  }

  /// Something bad that another graph's update of the parameter took or gave in this step.
  std::optional<TensorId> bad_update_elsewhere(const std::string& name) const {
    for (const GraphPtr& other : evidence_.session().graphs()) {
      const Node* const same = other->rank() == graph_.rank() && other->id() != graph_.id() ? other->find(name) : nullptr;
      if (same == nullptr || same->kind != NodeKind::kParameter) continue;
      for (const Use& use : other->effective_users(same->id)) {
        const Node& updater = other->node(use.node);
        if (std::ranges::count(updated_slots(*other, updater), use.slot) == 0) continue;
        TensorId id{other->rank(), other->id(), model_.step(), 0, updater.id, {}};
        if (!has_unwritten_outputs(evidence_.session().info(), updater) && evidence_.is_bad(id)) return id;
        for (uint32_t slot = 0; slot < updater.inputs.size(); ++slot) {
          id.slot = {Io::kInput, slot};
          if (evidence_.is_bad(id)) return id;
          const Edge producer = other->effective_producer(updater.id, slot);
          if (producer.node == kNoNode) continue;
          const TensorId made{id.rank, id.graph, id.step, 0, producer.node, {Io::kOutput, producer.slot}};
          if (evidence_.is_bad(made)) return made;
        }
      }
    }
    return std::nullopt;
  }

  std::optional<ParameterWrite> write_before(NodeId parameter) const {
    return writes_.before(graph_, parameter, model_.step());
  }

  // ---- what remains ----

  /// A node with unknown inputs behind another origin counts as its consequence.
  void drop_explained() {
    auto explained = [&](const Candidate& candidate, const Candidate& by) {
      return &candidate != &by && by.spread.executions.count(candidate.execution) > 0;
    };
    std::erase_if(operators_, [&](const Candidate& candidate) {
      if (candidate.origin.certain) return false;
      auto by = [&](const Candidate& other) { return explained(candidate, other) || passes_to_next_execution(other, candidate); };
      return std::any_of(operators_.begin(), operators_.end(), by) || std::any_of(sources_.begin(), sources_.end(), by) ||
             std::any_of(arrivals_.begin(), arrivals_.end(), by);
    });
  }

  /// What broke on a value that another graph has handed over is a consequence of what broke first.
  void join_split() {
    std::erase_if(operators_, [&](const Candidate& each) {
      if (&each == &operators_.front() || !is_behind_another_graph(graph_, each.origin)) return false;
      join(operators_.front(), each);
      return true;
    });
  }

  /// An operator and its derivative break on the same input: one fault.
  void join_derivatives() {
    if (!evidence_.builtin()) return;
    std::multimap<std::pair<std::string_view, std::string_view>, Candidate*> wholes;
    for (Candidate& candidate : operators_) {
      const Node& node = graph_.node(candidate.execution.node);
      wholes.insert({{node.scope.get(), node.op.get()}, &candidate});
    }
    std::set<Execution> joined;
    // The last one first: it may be a part of what is a part itself.
    for (Candidate& part : std::views::reverse(operators_)) {
      const auto key = differentiated(graph_.node(part.execution.node));
      if (key.second.empty()) continue;
      const auto [from, to] = wholes.equal_range(key);
      const auto whole = std::find_if(
          from, to, [&](const auto& each) { return share_input(graph_, part.execution.node, each.second->execution.node); });
      if (whole == to || whole->second == &part) continue;
      join(*whole->second, part);
      joined.insert(part.execution);
    }
    std::erase_if(operators_, [&](const Candidate& candidate) { return joined.contains(candidate.execution); });
  }

  static void join(Candidate& whole, const Candidate& part) {
    whole.spread.tensors.insert(part.spread.tensors.begin(), part.spread.tensors.end());
    whole.origin.reached = whole.spread.tensors.size();
    for (const std::vector<ChainLink>& chain : part.origin.chains) {
      if (whole.origin.chains.size() < kMostChains) whole.origin.chains.push_back(chain);
    }
  }

  /// Values pass from one run of a loop body to the next outside its graph, and arrive as parameters.
  bool passes_to_next_execution(const Candidate& earlier, const Candidate& later) const {
    if (later.execution.index == 0 || earlier.execution.node == kNoNode ||
        earlier.execution.index >= later.execution.index)
      return false;
    return std::ranges::all_of(later.origin.inputs, [&](const OriginInput& input) {
      return input.state != InputState::kUnknown || is_outside(graph_, input);
    });
  }

  /// If every bad value has a bad one before it (an operator changed its input unseen), the first one counts.
  void add_fallback() {
    for (const TensorId& tensor : model_.tensors()) {
      if (!evidence_.is_bad(tensor) || model_.is_unwritten(tensor)) continue;
      Candidate candidate;
      const Edge producer = tensor.slot.io == Io::kInput ? graph_.effective_producer(tensor.node, tensor.slot.index)
                                                         : Edge{tensor.node, 0, ""};
      const bool inside = producer.node != kNoNode && graph_.node(producer.node).kind == NodeKind::kOperator;
      candidate.origin = describe(inside ? OriginKind::kOperator : OriginKind::kInput, tensor);
      candidate.origin.certain = !inside;
      candidate.execution = {tensor.node, tensor.execution};
      candidate.spread = spread_from(evidence_, model_, candidate.execution, tensor);
      store_spread(candidate);
      store(candidate);
      return;
    }
  }

  Evidence& evidence_;
  const StepModel& model_;
  const RankModels& ranks_;
  ParameterWrites& writes_;
  const Graph& graph_;
  StepOrigins found_;
  std::map<TensorId, uint32_t> follows_;
  std::vector<Candidate> operators_, sources_, arrivals_;
};

}  // namespace

Origin describe_origin(Evidence& evidence, OriginKind kind, const TensorId& tensor) {
  Origin origin;
  origin.kind = kind;
  origin.tensor = tensor;
  if (Result<TensorInfo> info = evidence.session().describe(tensor))
    origin.info = std::move(*info);
  else
    origin.info.id = tensor;
  if (std::optional<Stats> stats = evidence.stats(tensor)) origin.stats = std::move(*stats);
  if (const Predicate::Builtin* which = evidence.builtin()) {
    origin.bad_count = bad_elements(*which, origin.stats);
    locate_bad_elements(evidence.session(), *which, origin);
  }
  return origin;
}

bool cannot_have_made(const Evidence& evidence, const Node& node, const Origin& origin) {
  const auto kind = collective_kind(node);
  if (!kind || *kind == CollectiveKind::kSend || evidence.builtin() == nullptr) return false;
  const bool sums = *kind == CollectiveKind::kAllReduce || *kind == CollectiveKind::kReduceScatter || *kind == CollectiveKind::kReduce;
  return !sums || origin.stats.nan_count > 0;
}

namespace {

/// Of a fused update, which returns nothing: the first bad value that it took, such as a gradient.
std::optional<TensorId> bad_input(Evidence& evidence, const Node& node, TensorId id) {
  const Predicate::Builtin* which = evidence.builtin();
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    id.slot = {Io::kInput, slot};
    if (evidence.is_bad(id)) return id;
    if (which == nullptr || evidence.find(id) != nullptr) continue;
    // A step that was not asked about.
    const std::optional<Stats> stats = evidence.stats(id);
    if (stats && bad_elements(*which, *stats) > 0) return id;
  }
  return std::nullopt;
}

}  // namespace

// The verdicts of an earlier step may be forgotten.
bool was_bad(Evidence& evidence, const TensorId& id) {
  if (evidence.is_bad(id)) return true;
  const Predicate::Builtin* const which = evidence.builtin();
  const std::optional<Stats> stats = which && !evidence.find(id) ? evidence.stats(id) : std::nullopt;
  return stats && bad_elements(*which, *stats) > 0;
}

namespace {

/// Where nothing that writes the parameter was recorded: its gradient in the step before, if that is bad.
std::optional<TensorId> gradient_before(Evidence& evidence, const Graph& graph, NodeId parameter, int64_t step) {
  const std::vector<int64_t> steps = evidence.session().steps(graph.rank(), graph.id());
  const auto after = std::ranges::lower_bound(steps, step);
  if (after == steps.begin()) return std::nullopt;
  const std::vector<Edge> values = gradient_values(graph, parameter);
  for (const Edge& value : std::views::reverse(values)) {
    const TensorId id{graph.rank(), graph.id(), *std::prev(after), 0, value.node, {Io::kOutput, value.slot}};
    if (was_bad(evidence, id)) return id;
  }
  return std::nullopt;
}

}  // namespace

bool is_outside(const Graph& graph, const OriginInput& input) {
  return input.producer.node == kNoNode || graph.node(input.producer.node).kind != NodeKind::kOperator;
}

bool is_behind_another_graph(const Graph& graph, const Origin& origin) {
  if (origin.certain || origin.kind != OriginKind::kOperator) return false;
  bool handed_over = false;
  for (const OriginInput& input : origin.inputs) {
    if (input.state != InputState::kUnknown) continue;
    if (!is_outside(graph, input)) return false;
    handed_over = handed_over || (input.producer.node != kNoNode && is_handed_over(graph.node(input.producer.node)));
  }
  return handed_over;
}

std::optional<TensorId> update_of(Evidence& evidence, ParameterWrites& writes, const Graph& graph, NodeId parameter, int64_t step) {
  Session& session = evidence.session();
  const std::optional<ParameterWrite> write = writes.before(graph, parameter, step);
  if (!write) return gradient_before(evidence, graph, parameter, step);
  TensorId id = write->value();
  id.node = write->updater;
  if (const uint32_t executions = session.executions(id.rank, id.graph, id.step, id.node)) id.execution = executions - 1;
  if (session.node(id).outputs.empty()) return bad_input(evidence, session.node(id), id);
  const bool unwritten = has_unwritten_outputs(session.info(), session.node(id));
  // The file of the parameter may be that of the graph that uses it.
  const bool shown = session.exists(write->value()) || write->graph == &graph;
  const TensorId file = shown ? write->value() : TensorId{graph.rank(), graph.id(), write->step, 0, parameter, {}};
  return was_bad(evidence, unwritten ? file : id) ? std::optional(id) : std::nullopt;
}

std::optional<TensorId> state_update_of(Evidence& evidence, const Graph& graph, NodeId call, int64_t step) {
  const std::optional<TensorId> left = state_before(evidence.session(), graph, call, step);
  return left && was_bad(evidence, *left) ? left : std::nullopt;
}

StepOrigins search_step(Evidence& evidence, const StepModel& model, const RankModels& ranks, ParameterWrites& writes) {
  if (model.graph().recorded_calls()) return search_calls(evidence, model, ranks, writes);
  return StepSearch(evidence, model, ranks, writes).run();
}

}  // namespace msdbg
