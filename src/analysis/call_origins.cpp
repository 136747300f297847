// The origins of one step of a graph with recorded calls. What a call took is recorded, so a call whose inputs are good and whose output
// is bad needs no edge. A bad input needs one: if no call made it, it is a parameter, data, or the work of a call that was not recorded.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/elements.h"
#include "analysis/gathered.h"
#include "analysis/grown.h"
#include "analysis/origin.h"
#include "analysis/put_in.h"

namespace msdbg {
namespace {

constexpr int kMostCallers = 64;  // a file may name a module as its own caller
/// If every parameter is NaN, the way from each of them says no more than that from the first ones.
constexpr size_t kMostWalks = 64;

/// What a value has left when it is NaN and can be compared with nothing.
using Kind = std::pair<DType, uint64_t>;
/// The type and how many elements are NaN, Inf and -Inf. Calls that only move elements, such as a concatenation, keep it.
using BadElements = std::tuple<DType, uint64_t, uint64_t, uint64_t>;

class CallSearch {
 public:
  CallSearch(Evidence& evidence, const StepModel& model, const RankModels& ranks, ParameterWrites& writes)
      : evidence_(evidence), model_(model), ranks_(ranks), writes_(writes), graph_(model.graph()),
        put_in_(evidence, model, model.executions()), weights_(evidence, model) {
    found_.rank = graph_.rank();
    found_.graph = graph_.id();
    found_.step = model.step();
  }

  StepOrigins run() {
    for (const Execution& call : model_.executions()) {
      const CallRole role = graph_.node(call.node).role;
      has_apis_ = has_apis_ || role == CallRole::kForward || role == CallRole::kBackward || role == CallRole::kOptimizer;
      has_modules_ = has_modules_ || role == CallRole::kModule;
    }
    for (const TensorId& tensor : model_.tensors()) {
      if (!evidence_.is_bad(tensor)) continue;
      ++found_.bad_tensors;
      bad_[tensor.node].push_back(tensor);
    }
    find_parameters();
    for (const Execution& call : model_.executions()) look_at(call);
    add_unabsorbed();
    if (faults_.empty()) faults_ = std::move(whole_faults_);
    share_rest();
    finish();
    return std::move(found_);
  }

 private:
  struct Fault {
    Origin origin;
    Execution call;
    uint32_t order = 0;  ///< in which it is told, parameters first
    Spread spread;
    TensorId from = {};  ///< of what arrived from another rank
    bool arrived = false;
  };

  struct BadValue {
    Kind kind{DType::kUnknown, 0};
    std::optional<BadElements> elements;  ///< nullopt if the numbers are unknown, or a single one: that is equal by chance
  };

  BadValue bad_value(const TensorId& id) {
    const std::optional<Stats> stats = evidence_.stats(id);
    if (!stats) return {};
    BadValue out{{stats->dtype, stats->count}, {}};
    const bool several = stats->knows(kStatNan | kStatPosInf | kStatNegInf) && stats->nan_count + stats->inf_count() > 1;
    if (several) out.elements = {stats->dtype, stats->nan_count, stats->pos_inf_count, stats->neg_inf_count};
    return out;
  }

  bool counts(const TensorId& id) const { return !put_in_.contains(id); }

  /// The bad inputs or outputs of a call that nobody put in on purpose.
  std::vector<TensorId> bad_of(NodeId node, Io io) const {
    std::vector<TensorId> out;
    const auto found = bad_.find(node);
    if (found == bad_.end()) return out;
    std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(out),
                 [&](const TensorId& id) { return id.slot.io == io && counts(id); });
    return out;
  }

  bool is_module(const Node& node) const { return node.role == CallRole::kModule || node.role == CallRole::kModuleBackward; }

  // ---- parameters ----

  void find_parameters() {
    for (const Node& node : graph_.nodes()) {
      if (node.kind != NodeKind::kParameter) continue;
      const Value value = model_.at_start(node.id);
      if (value.state != InputState::kBad || !value.tensor) continue;
      const Kind kind = bad_value(*value.tensor).kind;
      bad_parameters_[kind].push_back(node.id);
      Fault fault;
      fault.origin = describe_origin(evidence_, OriginKind::kParameter, *value.tensor);
      fault.origin.update = update_of(evidence_, writes_, graph_, node.id, model_.step());
      if (faults_.size() + whole_faults_.size() < kMostWalks) fault.spread = spread_from_start(evidence_, model_, node.id, *value.tensor);
      fault.spread.tensors.insert(*value.tensor);
      if (const auto call = weights_.call_of(node.id)) {
        gathered_.emplace(*call, *value.tensor);
        whole_.emplace_back(node.scope, kind);
        whole_faults_.push_back(std::move(fault));
      } else {
        faults_.push_back(std::move(fault));
      }
    }
  }

  bool is_bad_parameter(const TensorId& input, const Kind& kind) const {
    const Edge maker = graph_.effective_producer(input.node, input.slot.index);
    if (maker.node != kNoNode && graph_.node(maker.node).kind == NodeKind::kParameter)
      return evidence_.is_bad(model_.id(maker.node, Slot{}));
    return bad_parameters_.count(kind) > 0;
  }

  // ---- calls ----

  void look_at(const Execution& call) {
    const Node& node = graph_.node(call.node);
    backward_began_ = backward_began_ || node.role == CallRole::kBackward || node.role == CallRole::kModuleBackward;
    if (has_apis_ && is_module(node)) return;
    const std::vector<TensorId> inputs = takes_from_another(call.node) ? std::vector<TensorId>() : bad_of(call.node, Io::kInput);
    const std::vector<TensorId> outputs = bad_of(call.node, Io::kOutput);
    if (inputs.empty() && outputs.empty()) {
      note_sound(node);
      return;
    }
    for (const TensorId& input : inputs) look_at_input(call, input);
    if (!outputs.empty()) look_at_output(call, outputs.front());
    for (const std::vector<TensorId>& values : {inputs, outputs}) {
      for (const TensorId& id : values) {
        const BadValue value = bad_value(id);
        made_.insert(value.kind);
        if (value.elements) made_elements_.insert(*value.elements);
      }
    }
    if (node.role == CallRole::kForward) note_unread(call.node, outputs);
    mark_callers(call.node);
  }

  /// A broadcast from another rank: whatever the tensor held before is no value of the training.
  bool takes_from_another(NodeId node) const {
    if (collective_kind(graph_.node(node)) != CollectiveKind::kBroadcast) return false;
    const auto sources = ranks_.sources(model_, node);
    const auto is_own = [&](const auto& source) { return source.first->graph().rank() == graph_.rank(); };
    return !sources.empty() && std::ranges::none_of(sources, is_own);
  }

  /// Indexing and views are not recorded. They may read what no recorded call reads.
  void note_unread(NodeId node, const std::vector<TensorId>& outputs) {
    const std::vector<Use> users = graph_.effective_users(node);
    for (const TensorId& output : outputs) {
      const auto reads = [&](const Use& use) {
        return use.output_slot == output.slot.index && graph_.node(use.node).role == CallRole::kForward;
      };
      if (std::ranges::any_of(users, reads)) continue;
      const auto& [type, count] = bad_value(output).kind;
      uint64_t& most = unread_[graph_.node(node).scope][type];
      most = std::max({most, count, elements_together(graph_.node(node), type)});
    }
  }

  /// What an unrecorded call may make of several outputs of one call, as of those of an AllGather.
  static uint64_t elements_together(const Node& node, DType type) {
    uint64_t count = 0;
    for (const OutputType& each : node.outputs) {
      if (each.dtype == type && each.shape) count += element_count(*each.shape).value_or(0);
    }
    return count;
  }

  /// Whether an unrecorded call may have taken it from a bad value of the same module, or from a gathered weight of a module around it.
  bool may_be_part(const Node& node, const Kind& kind) const {
    const auto holds = [&](const Kind& whole) { return whole.first == kind.first && whole.second >= kind.second; };
    const auto found = unread_.find(node.scope);
    if (found != unread_.end() && std::ranges::any_of(found->second, holds)) return true;
    return std::ranges::any_of(whole_, [&](const auto& weight) { return node.scope->starts_with(weight.first) && holds(weight.second); });
  }

  /// For the next bad input in this scope that no call made.
  void note_sound(const Node& node) {
    const TensorId output = model_.id(node.id, Slot{});
    const JudgedTensor* verdict = evidence_.find(output);
    if (verdict != nullptr && verdict->state == InputState::kGood) last_sound_.insert_or_assign(node.scope, output);
  }

  /// A module is no origin behind a fault inside.
  void mark_callers(NodeId node) {
    for (int hop = 0; hop < kMostCallers && node != kNoNode; ++hop) {
      node = graph_.call_links(node).caller;
      if (node == kNoNode || !broken_inside_.insert(node).second) return;
    }
  }

  void look_at_input(const Execution& call, const TensorId& input) {
    const Node& node = graph_.node(call.node);
    const auto& [kind, elements] = bad_value(input);
    const Edge maker = graph_.effective_producer(call.node, input.slot.index);
    const bool made = maker.node != kNoNode && graph_.node(maker.node).kind == NodeKind::kOperator &&
                      evidence_.is_bad(model_.id(maker.node, {Io::kOutput, maker.slot}));
    const bool moved = elements && made_elements_.contains(*elements);  // by a call that was not recorded
    if (made || made_.count(kind) > 0 || is_bad_parameter(input, kind) || moved || may_be_part(node, kind)) return;
    // Behind a fault, gradients and the state of optimizers are its consequence; between modules, so is what other calls made of it.
    if (is_about_gradients(node) && !faults_.empty()) return;
    Fault fault;
    fault.origin = describe_origin(evidence_, OriginKind::kInput, input);
    fault.origin.certain = false;
    if (const auto whole = gathered_.find(call.node); whole != gathered_.end()) {
      fault.origin.part_of = whole->second;
      fault.origin.certain = true;
      const std::optional<TensorId> left = weights_.update_of_part(input);
      (left && !was_bad(evidence_, *left) ? fault.origin.sound_before : fault.origin.update) = left;
    } else if (const std::optional<TensorId> outer = sound_around(call.node)) {
      fault.origin.kind = OriginKind::kUnrecorded;
      fault.origin.sound_before = outer;
    } else if (const auto left = input.slot.index == 0 ? state_update_of(evidence_, graph_, call.node, model_.step()) : std::nullopt) {
      fault.origin.update = left;
    } else if (const auto left = weights_.update_of_part(input); left && was_bad(evidence_, *left)) {
      fault.origin.update = left;  // a weight, where no module tells its name
    } else {
      if (const auto last = last_sound_.find(node.scope); last != last_sound_.end()) fault.origin.sound_before = last->second;
    }
    fault.call = call;
    fault.order = node.order;
    if (faults_.size() < kMostWalks) fault.spread = spread_from_input(evidence_, model_, {call, input.slot.index}, input);
    fault.spread.tensors.insert(input);
    faults_.push_back(std::move(fault));
  }

  /// Also a call outside of any module during the backward pass, such as one in a hook of DistributedDataParallel.
  bool is_about_gradients(const Node& node) const {
    return node.role != CallRole::kForward || (backward_began_ && has_modules_ && graph_.call_links(node.id).caller == kNoNode);
  }

  /// An input of the innermost module around a call, if it has inputs and all are good.
  std::optional<TensorId> sound_around(NodeId node) const {
    for (int hop = 0; hop < kMostCallers; ++hop) {
      node = graph_.call_links(node).caller;
      if (node == kNoNode) return std::nullopt;
      const TensorId first = model_.id(node, {Io::kInput, 0});
      const JudgedTensor* verdict = evidence_.find(first);
      if (verdict == nullptr) continue;
      if (verdict->state == InputState::kGood && bad_of(node, Io::kInput).empty()) return first;
    }
    return std::nullopt;
  }

  void look_at_output(const Execution& call, const TensorId& output) {
    const Node& node = graph_.node(call.node);
    if (broken_inside_.count(call.node) > 0) return;
    std::vector<OriginInput> inputs = model_.inputs(call);
    for (OriginInput& input : inputs) {
      const bool harmless = input.state == InputState::kBad && input.value && !counts(*input.value);
      if (harmless) input.state = InputState::kGood;
    }
    const auto is = [&](InputState state) { return std::ranges::any_of(inputs, [&](const OriginInput& in) { return in.state == state; }); };
    if (is(InputState::kBad)) return;
    std::vector<OriginInput> remote = ranks_.remote_inputs(model_, call);
    if (const auto bad = std::ranges::find(remote, InputState::kBad, &OriginInput::state); bad != remote.end() && bad->value) {
      Fault fault;
      fault.origin.tensor = output;
      fault.from = *bad->value;
      fault.arrived = true;
      add(std::move(fault), call);
      return;
    }
    std::erase_if(remote, [](const OriginInput& in) { return in.state != InputState::kUnknown; });
    inputs.insert(inputs.end(), std::make_move_iterator(remote.begin()), std::make_move_iterator(remote.end()));
    // What the gradients of parameters come from is not recorded.
    const bool from_nowhere = node.role == CallRole::kParameterGradients && inputs.empty();
    const bool unsure = is(InputState::kUnknown) || from_nowhere;
    if (unsure && (!faults_.empty() || !made_.empty())) return;
    add_operator(call, output, std::move(inputs), !unsure);
  }

  void add_operator(const Execution& call, const TensorId& output, std::vector<OriginInput> inputs, bool certain) {
    Fault fault;
    fault.origin = describe_origin(evidence_, OriginKind::kOperator, output);
    if (certain && cannot_have_made(evidence_, graph_.node(call.node), fault.origin)) {
      OriginInput unseen;
      unseen.reason = "one that is not in this session, or whose graph does not say that it takes part";
      inputs.push_back(std::move(unseen));
      certain = false;
    }
    fault.origin.certain = certain;
    for (OriginInput& input : inputs) {
      if (input.value) input.stats = evidence_.stats(*input.value);
    }
    fault.origin.inputs = std::move(inputs);
    if (evidence_.builtin()) compare_zeros(evidence_.session(), *evidence_.builtin(), fault.origin);
    add(std::move(fault), call);
  }

  void add(Fault fault, const Execution& call) {
    fault.call = call;
    fault.order = graph_.node(call.node).order;
    if (faults_.size() < kMostWalks) fault.spread = spread_from(evidence_, model_, call, fault.origin.tensor);
    fault.spread.tensors.insert(fault.origin.tensor);
    faults_.push_back(std::move(fault));
  }

  // ---- what was put in ----

  /// An infinity that reaches the loss, a gradient or a parameter was not absorbed.
  void add_unabsorbed() {
    found_.put_in = put_in_.all();
    std::set<TensorId> told;
    for (const auto& [tensor, index] : put_in_.tensors()) {
      const PutIn& root = put_in_.root(tensor);
      if (!put_in_.matters(tensor) || !told.insert(root.tensor).second) continue;
      const Execution call{root.tensor.node, root.tensor.execution};
      Fault fault;
      const OriginKind kind = root.tensor.slot.io == Io::kOutput ? OriginKind::kOperator : OriginKind::kInput;
      fault.origin = describe_origin(evidence_, kind, root.tensor);
      fault.origin.put_in = root.argument;
      add(std::move(fault), call);
    }
    std::erase_if(found_.put_in, [&](const PutIn& each) { return told.count(each.tensor) > 0; });
  }

  // ---- results ----

  /// In a step with NaN, equal values join few calls: what no path explains follows from the fault before it.
  void share_rest() {
    std::stable_sort(faults_.begin(), faults_.end(), [](const Fault& a, const Fault& b) { return a.order < b.order; });
    if (faults_.empty()) return;
    std::set<TensorId> explained;
    for (const Fault& fault : faults_) explained.insert(fault.spread.tensors.begin(), fault.spread.tensors.end());
    for (const auto& [node, tensors] : bad_) {
      const uint32_t order = graph_.node(node).order;
      for (const TensorId& tensor : tensors) {
        if (explained.count(tensor) > 0 || !counts(tensor)) continue;
        auto before = std::find_if(faults_.begin(), faults_.end(), [&](const Fault& fault) { return fault.order <= order; });
        if (before == faults_.end()) before = faults_.begin();
        before->spread.tensors.insert(tensor);
      }
    }
  }

  void finish() {
    std::vector<const Fault*> arrived;
    std::map<TensorId, uint32_t> follows;
    bool first = true;  // of the operators
    for (Fault& fault : faults_) {
      if (!fault.arrived && fault.origin.kind == OriginKind::kOperator && std::exchange(first, false))
        fault.origin.grown = grown_parameters(evidence_, model_, ranks_, writes_, fault.call.node);
      if (fault.arrived) {
        arrived.push_back(&fault);
        continue;
      }
      fault.origin.reached = fault.spread.tensors.size();
      fault.origin.chains = std::move(fault.spread.chains);
      for (const TensorId& tensor : fault.spread.tensors) follows.try_emplace(tensor, static_cast<uint32_t>(found_.origins.size()));
      found_.origins.push_back(std::move(fault.origin));
    }
    for (const Fault* fault : arrived) {
      const auto index = static_cast<uint32_t>(found_.origins.size() + found_.arrivals.size());
      for (const TensorId& tensor : fault->spread.tensors) follows.try_emplace(tensor, index);
      found_.arrivals.push_back({fault->origin.tensor, fault->from, std::nullopt});
    }
    found_.follows.assign(follows.begin(), follows.end());
    if (found_.origins.empty() && found_.arrivals.empty()) return;
    if (const auto loss = sound_loss(evidence_, model_)) found_.losses = {*loss};
  }

  Evidence& evidence_;
  const StepModel& model_;
  const RankModels& ranks_;
  ParameterWrites& writes_;
  const Graph& graph_;
  PutInValues put_in_;
  GatheredWeights weights_;
  StepOrigins found_;
  bool has_apis_ = false, has_modules_ = false, backward_began_ = false;
  std::map<NodeId, std::vector<TensorId>> bad_;
  std::map<Kind, std::vector<NodeId>> bad_parameters_;
  std::map<std::string, TensorId, std::less<>> last_sound_;  // by scope: the output of the last call without anything bad
  std::map<NodeId, TensorId> gathered_;  // by the call that gathered it: a bad parameter of which each rank holds a part
  std::vector<std::pair<std::string, Kind>> whole_;  // scopes and kinds of these parameters
  std::vector<Fault> whole_faults_;  // theirs, told only if nothing else is
  std::map<std::string, std::map<DType, uint64_t>, std::less<>> unread_;  // by scope: the largest bad outputs that no recorded call reads
  std::set<Kind> made_;            // kinds of the bad values that a call before took or gave
  std::set<BadElements> made_elements_;  // of the same values
  std::set<NodeId> broken_inside_; // modules with a bad value in one of their calls
  std::vector<Fault> faults_;
};

}  // namespace

StepOrigins search_calls(Evidence& evidence, const StepModel& model, const RankModels& ranks, ParameterWrites& writes) {
  return CallSearch(evidence, model, ranks, writes).run();
}

}  // namespace msdbg
