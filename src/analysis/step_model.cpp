#include "analysis/step_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "analysis/parameter_writes.h"
#include "msdbg/in_place.h"

namespace msdbg {
namespace {

constexpr Slot input_slot(uint32_t index) { return {Io::kInput, index}; }
constexpr Slot output_slot(uint32_t index) { return {Io::kOutput, index}; }

/// Edges that only define an order carry no tensor that could be good or bad.
bool orders_only(const Graph& graph, const Edge& edge) {
  if (edge.node == kNoNode) return false;
  const Node& producer = graph.node(edge.node);
  return producer.outputs.empty() || producer.op == "UpdateState";
}

}  // namespace

PreviousStep previous_step(const Session& session, const Graph& graph, int64_t step, std::span<const int64_t> all) {
  const std::vector<int64_t> steps = session.steps(graph.rank(), graph.id());
  const auto at = std::lower_bound(steps.begin(), steps.end(), step);
  if (at == steps.begin()) return {std::nullopt, "no earlier step was dumped"};
  const int64_t previous = *std::prev(at);
  for (int64_t between = previous + 1; between < step; ++between) {
    if (!std::binary_search(all.begin(), all.end(), between)) return {std::nullopt, fmt::format("step {} was not dumped", between)};
  }
  return {previous, ""};
}

PreviousStep previous_step(const Session& session, const Graph& graph, int64_t step) {
  return previous_step(session, graph, step, session.steps());
}

StepModel::StepModel(Evidence& evidence, const Graph& graph, int64_t step, PreviousStep before,
                     std::span<const TensorId> tensors)
    : evidence_(evidence), graph_(graph), step_(step), before_(std::move(before)), tensors_(tensors) {
  for (NodeId node : graph.execution_order()) {
    std::vector<uint32_t> slots = updated_slots(graph, graph.node(node));
    if (slots.empty()) continue;
    for (uint32_t slot : slots) updaters_[updated_parameter(graph, graph.node(node), slot)].push_back(node);
    if (!evidence.session().yet_to_run(id(node, {}))) updated_[node] = std::move(slots);
  }
  for (const TensorId& tensor : tensors) {
    const Node& node = graph.node(tensor.node);
    if (node.kind != NodeKind::kOperator) continue;
    uint32_t& executions = counts_[tensor.node];
    executions = std::max(executions, tensor.execution + 1);
    if (tensor.slot.io != Io::kInput) continue;
    uint32_t& inputs = recorded_inputs_[tensor.node];
    inputs = std::max(inputs, tensor.slot.index + 1);
  }
  for (const auto& [node, executions] : counts_) {
    for (uint32_t index = 0; index < executions; ++index) executions_.push_back({node, index});
  }
  if (graph.recorded_calls()) {
    for (const Node& node : graph.nodes()) {
      if (const NodeId forward = graph.call_links(node.id).forward; forward != kNoNode) backward_.emplace(forward, node.id);
    }
  } else {
    add_unseen();
  }
  std::sort(executions_.begin(), executions_.end(), [&](const Execution& a, const Execution& b) {
    return std::tuple(a.index, graph_.node(a.node).order, a.node) <
           std::tuple(b.index, graph_.node(b.node).order, b.node);
  });
}

/// Adds nodes without files whose bad value is visible at a consumer or in a parameter.
void StepModel::add_unseen() {
  std::set<Execution> unseen;
  for (const TensorId& tensor : tensors_) {
    if (!evidence_.is_bad(tensor)) continue;
    if (tensor.slot.io == Io::kInput && !updates(tensor.node, tensor.slot.index)) {
      const Edge edge = graph_.effective_producer(tensor.node, tensor.slot.index);
      if (edge.node == kNoNode || graph_.node(edge.node).kind != NodeKind::kOperator) continue;
      if (count(edge.node) == 0 && !is_structural(graph_.node(edge.node).op))
        unseen.insert({edge.node, tensor.execution});
    } else if (graph_.node(tensor.node).kind == NodeKind::kParameter) {
      const std::vector<NodeId> nodes = updaters(tensor.node);
      const bool seen = std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) { return count(node) > 0; });
      if (!nodes.empty() && !seen && !updated(nodes.back()).empty()) unseen.insert({nodes.back(), 0});
    }
  }
  executions_.insert(executions_.end(), unseen.begin(), unseen.end());
}

TensorId StepModel::id(NodeId node, Slot slot, uint32_t execution) const {
  TensorId id;
  id.rank = graph_.rank();
  id.graph = graph_.id();
  id.step = step_;
  id.execution = execution;
  id.node = node;
  id.slot = slot;
  return id;
}

uint32_t StepModel::count(NodeId node) const {
  const auto found = counts_.find(node);
  return found == counts_.end() ? 0 : found->second;
}

const std::vector<uint32_t>& StepModel::updated(NodeId node) const {
  static const std::vector<uint32_t> kNone;
  const auto found = updated_.find(node);
  return found == updated_.end() ? kNone : found->second;
}

bool StepModel::updates(NodeId node, uint32_t slot) const {
  const std::vector<uint32_t>& slots = updated(node);
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

std::vector<NodeId> StepModel::updaters(NodeId parameter) const {
  const auto found = updaters_.find(parameter);
  return found == updaters_.end() ? std::vector<NodeId>() : found->second;
}

uint32_t StepModel::first_update(NodeId parameter) const {
  const auto found = updaters_.find(parameter);
  if (found == updaters_.end()) return std::numeric_limits<uint32_t>::max();
  return graph_.node(found->second.front()).order;
}

bool StepModel::is_unwritten(const TensorId& tensor) const {
  return tensor.slot.io == Io::kOutput && !updated(tensor.node).empty() &&
         has_unwritten_outputs(evidence_.session().info(), graph_.node(tensor.node));
}

/// A value as recorded by one of its consumers; in-place consumers recorded something newer.
std::optional<Value> StepModel::seen_by_consumer(NodeId node, std::optional<uint32_t> execution, uint32_t slot,
                                                 uint32_t before_order) const {
  std::optional<Value> seen;
  for (const Use& use : graph_.effective_users(node)) {
    if (use.output_slot != slot || updates(use.node, use.slot) || graph_.node(use.node).order >= before_order) continue;
    const TensorId at = id(use.node, input_slot(use.slot), execution.value_or(0));
    const JudgedTensor* verdict = evidence_.find(at);
    if (!verdict || verdict->state == InputState::kUnknown) continue;
    if (verdict->state == InputState::kBad) return Value{InputState::kBad, "", at};
    if (!seen) seen = Value{InputState::kGood, "", at};
  }
  return seen;
}

Value StepModel::output(NodeId node, uint32_t execution, uint32_t slot) const {
  const uint32_t have = count(node);
  const uint32_t index = have > 0 ? std::min(execution, have - 1) : execution;
  const TensorId own = id(node, output_slot(slot), index);
  const JudgedTensor* verdict = is_unwritten(own) ? nullptr : evidence_.find(own);
  if (verdict && verdict->state != InputState::kUnknown) return {verdict->state, "", own};
  constexpr uint32_t kAnyOrder = std::numeric_limits<uint32_t>::max();
  if (std::optional<Value> seen = seen_by_consumer(node, execution, slot, kAnyOrder)) return *seen;
  if (verdict) return {InputState::kUnknown, verdict->reason, own};
  if (evidence_.session().yet_to_run(own))
    return {InputState::kUnknown, fmt::format("{} has not run yet", graph_.node(node).name), std::nullopt};
  // A training keeps what was watched when the step began.
  const bool dump = !shows_initial_values(evidence_.session().info().kind);
  return {InputState::kUnknown,
          fmt::format("{}:{} was not {}", graph_.node(node).name, slot_name(own.slot), dump ? "dumped" : "kept in this step"),
          std::nullopt};
}

Value StepModel::constant(NodeId node) const {
  const TensorId own = id(node, output_slot(0));
  const JudgedTensor* verdict = evidence_.find(own);
  if (verdict && verdict->state != InputState::kUnknown) return {verdict->state, "", own};
  if (std::optional<Value> seen = seen_by_consumer(node, std::nullopt, 0, std::numeric_limits<uint32_t>::max()))
    return *seen;
  // Flags and axes are stored in the graph; they are not tensors that break.
  if (!graph_.node(node).constant_value.empty()) return {InputState::kGood, "", std::nullopt};
  return {InputState::kUnknown, fmt::format("constant {} was not dumped", graph_.node(node).name), std::nullopt};
}

Value StepModel::at_start(NodeId node) const {
  const auto look = [&] { return graph_.node(node).kind == NodeKind::kConstant ? constant(node) : parameter_at_start(node); };
  // One constant may be an input of most operators, each of which may show its value.
  constexpr size_t kFew = 8;
  if (graph_.users(node).size() <= kFew) return look();
  if (std::exchange(known_until_, evidence_.changes()) != evidence_.changes()) at_start_.clear();
  const auto known = at_start_.find(node);
  return known != at_start_.end() ? known->second : at_start_.emplace(node, look()).first->second;
}

/// Control flow on tensors splits a network into graphs: what another one wrote in this step, before this one used it.
std::optional<Value> StepModel::left_by_other_graph(NodeId node) const {
  Session& session = evidence_.session();
  if (graph_.recorded_calls() || !graph_.from_file()) return std::nullopt;
  const auto ran_too = [&](const GraphPtr& other) {
    const Node* const same = other->rank() == graph_.rank() && other->id() != graph_.id() ? other->find(graph_.node(node).name) : nullptr;
    return same != nullptr && std::ranges::binary_search(session.steps(other->rank(), other->id()), step_);
  };
  if (std::ranges::none_of(session.graphs(), ran_too)) return std::nullopt;
  const std::optional<ParameterWrite> write = ParameterWrites(session).before(graph_, node, step_);
  if (!write || write->step != step_ || write->graph == &graph_) return std::nullopt;
  TensorId left = write->value();
  left.node = write->updater;
  if (has_unwritten_outputs(session.info(), session.node(left))) return std::nullopt;
  const JudgedTensor* const verdict = evidence_.find(left);
  return verdict && verdict->state != InputState::kUnknown ? std::optional(Value{verdict->state, "", left}) : std::nullopt;
}

Value StepModel::parameter_at_start(NodeId node) const {
  const TensorId now = id(node, output_slot(0));
  const JudgedTensor* after = evidence_.find(now);
  if (graph_.recorded_calls() && after) {
    const bool unknown = after->state == InputState::kUnknown;
    return {after->state, after->reason, unknown ? std::nullopt : std::optional(now)};
  }
  const std::vector<NodeId> updating = updaters(node);
  const bool constant_in_step = updating.empty() && graph_.from_file() && !evidence_.session().may_have_changed(now);
  if (constant_in_step && after && after->state != InputState::kUnknown) return {after->state, "", now};

  TensorId old = now;
  const JudgedTensor* before = nullptr;
  if (before_.step) {
    old.step = *before_.step;
    before = evidence_.find(old);
  }
  if (after && after->state != InputState::kUnknown && evidence_.session().at_step_begin(now.rank, now.step)) {
    const bool was_good = before && before->state == InputState::kGood;
    return {after->state, "", now, std::nullopt, was_good ? std::optional(old) : std::nullopt};
  }
  if (std::optional<Value> seen = seen_by_consumer(node, std::nullopt, 0, first_update(node))) {
    // The parameter's own file is closer to the culprit than the input of a reader.
    if (seen->state != InputState::kBad) return *seen;
    if (before && before->state == InputState::kBad) {
      seen->tensor = old;
    } else if (after && after->state == InputState::kBad) {
      seen->shown = std::exchange(seen->tensor, now);
    }
    if (before && before->state == InputState::kGood) seen->before = old;
    return *seen;
  }
  if (const std::optional<Value> left = left_by_other_graph(node)) return *left;
  if (before && before->state != InputState::kUnknown) return {before->state, "", old};

  // Adding to a NaN gives NaN: a value that is finite afterwards was finite before.
  const bool keeps_bad = evidence_.builtin() && !updating.empty() &&
                         std::none_of(updating.begin(), updating.end(),
                                      [&](NodeId updater) { return replaces_old_value(graph_.node(updater)); });
  if (keeps_bad && after && after->state == InputState::kGood) return {InputState::kGood, "", now};

  const std::string& name = graph_.node(node).name;
  if (constant_in_step) {
    return {InputState::kUnknown, after ? after->reason : fmt::format("parameter {} was not dumped", name), std::nullopt};
  }
  const std::string why = before         ? before->reason
                          : before_.step ? fmt::format("step {} did not dump it", *before_.step)
                                         : before_.reason;
  return {InputState::kUnknown, fmt::format("value of parameter {} when the step began: {}", name, why), std::nullopt};
}

std::vector<OriginInput> StepModel::inputs(const Execution& execution) const {
  const Node& node = graph_.node(execution.node);
  const auto recorded = recorded_inputs_.find(execution.node);
  const uint32_t recorded_slots = recorded == recorded_inputs_.end() ? 0 : recorded->second;
  const uint32_t slots = std::max(static_cast<uint32_t>(node.inputs.size()), recorded_slots);
  std::vector<OriginInput> inputs;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    OriginInput input;
    input.slot = slot;
    input.producer = graph_.effective_producer(execution.node, slot);
    if (orders_only(graph_, input.producer)) continue;
    const TensorId own = id(execution.node, input_slot(slot), execution.index);
    const bool updated_here = updates(execution.node, slot);
    const JudgedTensor* verdict = updated_here ? nullptr : evidence_.find(own);
    Value value;
    const Node* producer = input.producer.node == kNoNode ? nullptr : &graph_.node(input.producer.node);
    if (verdict && verdict->state != InputState::kUnknown) {
      value = {verdict->state, "", own};
    } else if (!producer) {
      value.reason = verdict
                         ? verdict->reason
                         : fmt::format("{} was not recorded and its producer is not in the graph", slot_name(own.slot));
    } else if (producer->kind != NodeKind::kOperator) {
      value = at_start(producer->id);
      // Types, strings and None have no file although the tensors next to them do.
      if (producer->kind == NodeKind::kConstant && value.state == InputState::kUnknown && !value.tensor && recorded_slots > 0) continue;
    } else {
      value = output(producer->id, execution.index, input.producer.slot);
    }
    input.state = value.state;
    input.reason = std::move(value.reason);
    input.value = value.tensor;
    inputs.push_back(std::move(input));
  }
  if (inputs.empty() && !graph_.from_file()) {
    OriginInput unknown;
    unknown.reason = "no input was recorded and there is no graph file";
    inputs.push_back(std::move(unknown));
  }
  add_linked(execution, slots, inputs);
  return inputs;
}

/// A backward call uses what its forward call took and gave.
void StepModel::add_linked(const Execution& execution, uint32_t slot, std::vector<OriginInput>& inputs) const {
  const CallLinks links = graph_.call_links(execution.node);
  if (links.took_unknown) {
    OriginInput unknown;
    unknown.slot = slot++;
    unknown.reason = "the dump has no inputs of this call";
    inputs.push_back(std::move(unknown));
  }
  if (links.forward == kNoNode || count(links.forward) == 0) return;
  const Node& forward = graph_.node(links.forward);
  for (const Io io : {Io::kInput, Io::kOutput}) {
    const size_t slots = io == Io::kInput ? forward.inputs.size() : forward.outputs.size();
    for (uint32_t own = 0; own < slots; ++own) {
      const TensorId value = id(links.forward, {io, own});
      const JudgedTensor* verdict = evidence_.find(value);
      if (verdict == nullptr) continue;
      OriginInput input;
      input.slot = slot++;
      if (io == Io::kOutput) input.producer = {links.forward, own, {}};
      else input.producer.name = fmt::format("{}:{}", forward.name, slot_name(value.slot));
      input.state = verdict->state;
      input.reason = verdict->reason;
      if (verdict->state != InputState::kUnknown) input.value = value;
      inputs.push_back(std::move(input));
    }
  }
}

std::vector<WrittenValue> StepModel::written_values(const Execution& execution) const {
  const Node& node = graph_.node(execution.node);
  std::vector<WrittenValue> written_values;
  std::set<uint32_t> slots;
  for (uint32_t slot = 0; slot < node.outputs.size(); ++slot) slots.insert(slot);
  // Without a graph file, only the tensors show which slots exist.
  for (uint32_t slot = static_cast<uint32_t>(node.outputs.size());
       evidence_.find(id(execution.node, output_slot(slot), execution.index)); ++slot) {
    slots.insert(slot);
  }
  for (uint32_t slot : slots) {
    const TensorId own = id(execution.node, output_slot(slot), execution.index);
    if (is_unwritten(own)) continue;
    WrittenValue written;
    written.slot = slot;
    written.value = output(execution.node, execution.index, slot);
    if (evidence_.is_bad(own)) written.copies.push_back(own);
    written_values.push_back(std::move(written));
  }
  for (uint32_t slot : updated(execution.node)) {
    WrittenValue written;
    written.slot = slot;
    written.parameter = updated_parameter(graph_, node, slot);
    const TensorId taken = id(execution.node, input_slot(slot), execution.index);
    const TensorId kept = id(*written.parameter, output_slot(0));
    const bool last =
        updaters(*written.parameter).back() == execution.node && execution.index + 1 >= count(execution.node);
    const JudgedTensor* recorded = evidence_.find(taken);
    const JudgedTensor* file = last ? evidence_.find(kept) : nullptr;
    for (const auto& [verdict, tensor] : {std::pair(file, kept), std::pair(recorded, taken)}) {
      if (!verdict || verdict->state == InputState::kUnknown) continue;
      if (written.value.state == InputState::kUnknown) written.value = {verdict->state, "", tensor};
      if (verdict->state == InputState::kBad) written.copies.push_back(tensor);
    }
    written_values.push_back(std::move(written));
  }
  return written_values;
}

std::vector<Consumer> StepModel::consumers(const Execution& execution, uint32_t slot) const {
  std::vector<Consumer> consumers;
  const uint32_t made = count(execution.node);
  for (const Use& use : graph_.effective_users(execution.node)) {
    if (use.output_slot != slot) continue;
    const uint32_t consumer_runs = count(use.node);
    if (consumer_runs == 0 || made == 0) {
      consumers.push_back({{use.node, execution.index}, use.slot});
      continue;
    }
    // A consumer that ran more often than its producer used the last value repeatedly.
    for (uint32_t index = 0; index < consumer_runs; ++index) {
      if (std::min(index, made - 1) == execution.index) consumers.push_back({{use.node, index}, use.slot});
    }
  }
  add_backward(execution, slot, consumers);
  return consumers;
}

/// The gradient function of a call uses what the call gave. Only one that broke shows that it did.
void StepModel::add_backward(const Execution& execution, uint32_t slot, std::vector<Consumer>& consumers) const {
  const auto [first, last] = backward_.equal_range(execution.node);
  for (auto at = first; at != last; ++at) {
    const Node& backward = graph_.node(at->second);
    bool bad = false;
    for (uint32_t own = 0; own < backward.outputs.size() && !bad; ++own) bad = evidence_.is_bad(id(backward.id, output_slot(own)));
    const size_t before = backward.inputs.size() + graph_.node(execution.node).inputs.size();
    if (bad) consumers.push_back({{backward.id, 0}, static_cast<uint32_t>(before) + slot});
  }
}

std::vector<Consumer> StepModel::consumers_at_start(NodeId node) const {
  std::vector<Consumer> consumers;
  const uint32_t limit = first_update(node);
  for (const Use& use : graph_.effective_users(node)) {
    if (graph_.node(use.node).order > limit) continue;
    for (uint32_t index = 0; index < std::max(1u, count(use.node)); ++index)
      consumers.push_back({{use.node, index}, use.slot});
  }
  return consumers;
}

std::vector<Consumer> StepModel::consumers_after(NodeId parameter, const Execution& execution) const {
  std::vector<Consumer> consumers;
  for (const Use& use : graph_.effective_users(parameter)) {
    if (graph_.node(use.node).order <= graph_.node(execution.node).order) continue;
    for (uint32_t index = 0; index < std::max(1u, count(use.node)); ++index)
      consumers.push_back({{use.node, index}, use.slot});
  }
  return consumers;
}

}  // namespace msdbg
