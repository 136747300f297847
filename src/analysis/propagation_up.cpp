// What a bad tensor came from.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "analysis/propagation_cone.h"

namespace msdbg {
namespace {

class Up {
 public:
  Up(StepModels& models, const StepModel& asked, Propagation& result)
      : models_(models), asked_(asked), result_(result), nodes_(models, result) {}

  void run() {
    const TensorId& asked = result_.tensor;
    if (asked_.graph().node(asked.node).kind == NodeKind::kOperator) {
      const size_t index = nodes_.at(asked_, {asked.node, asked.execution}, 0);
      nodes_.show(index, asked);
      queue_.push_back(index);
    } else {
      const size_t index = nodes_.value(asked_, asked.node, 0);
      nodes_.show(index, asked, result_.stats);
      visit_updates(index);
    }
    while (!queue_.empty()) {
      const size_t index = queue_.front();
      queue_.pop_front();
      visit(index);
    }
    nodes_.finish();
  }

 private:
  /// The role of a node that is not known to be bad.
  static PropagationRole role_of_good(InputState state) {
    return state == InputState::kGood ? PropagationRole::kClean : PropagationRole::kUnknown;
  }

  void visit(size_t index) {
    const StepModel& model = nodes_.model(index);
    const Execution execution = nodes_.execution(index);
    bool any_bad = false, any_unknown = false;
    for (const OriginInput& input : model.inputs(execution)) {
      any_bad = any_bad || input.state == InputState::kBad;
      if (input.state == InputState::kUnknown) {
        any_unknown = true;
        nodes_[index].reason = input.reason;
      }
      add_source(index, execution, input);
    }
    if (!across_.contains(index)) {
      std::string unknown = models_.collectives().unknown_sources(model.graph(), execution.node);
      for (const NodeRef& ref : models_.collectives().sources(model.graph(), execution.node)) {
        const StepModel* const other = models_.find(ref.graph->rank(), ref.graph->id(), model.step());
        if (other != nullptr) any_bad = add_rank(index, *other, {ref.node, execution.index}, &unknown) || any_bad;
      }
      if (!unknown.empty()) {
        any_unknown = true;
        nodes_[index].reason = unknown;
      }
    }
    PropagationNode& node = nodes_[index];
    node.role = any_bad ? PropagationRole::kPassed : any_unknown ? PropagationRole::kUnknown : PropagationRole::kOrigin;
  }

  /// The call of another rank, if what it took was bad.
  bool add_rank(size_t index, const StepModel& other, const Execution& call, std::string* unknown) {
    const std::vector<OriginInput> inputs = other.inputs(call);
    const auto bad = std::ranges::find(inputs, InputState::kBad, &OriginInput::state);
    if (bad == inputs.end()) {
      const auto open = std::ranges::find(inputs, InputState::kUnknown, &OriginInput::state);
      if (open != inputs.end() && unknown->empty()) *unknown = fmt::format("rank {}: {}", other.graph().rank(), open->reason);
      return false;
    }
    bool added = false;
    const size_t from = nodes_.at(other, call, nodes_[index].distance + 1, &added);
    nodes_.edge_between_ranks(from, index, true);
    if (!added) return true;
    // The other inputs of the collective are those of the first call.
    across_.insert(from);
    queue_.push_back(from);
    for (const WrittenValue& written : other.written_values(call)) {
      if (written.value.state == InputState::kBad && written.value.tensor) nodes_.show(from, *written.value.tensor);
    }
    if (bad->value) nodes_.show(from, *bad->value);
    return true;
  }

  void add_source(size_t index, const Execution& execution, const OriginInput& input) {
    if (input.producer.node == kNoNode) return;
    const StepModel& model = nodes_.model(index);
    const Node& producer = model.graph().node(input.producer.node);
    const bool bad = input.state == InputState::kBad;
    const uint32_t distance = nodes_[index].distance + 1;
    bool added = false;
    if (producer.kind == NodeKind::kOperator) {
      const size_t from = nodes_.at(model, made_by(model, producer.id, execution.index), distance, &added);
      if (input.value) nodes_.show(from, *input.value);
      nodes_.edge(from, index, input.producer.slot, input.slot, false, bad);
      if (bad && (added || nodes_[from].role == PropagationRole::kClean || across_.erase(from) > 0)) queue_.push_back(from);
      else if (!bad && added) nodes_[from].role = role_of_good(input.state);
      return;
    }
    const size_t from = nodes_.value(model, producer.id, distance, &added);
    if (input.value) nodes_.show(from, *input.value);
    nodes_.edge(from, index, 0, input.slot, false, bad);
    if (added) nodes_[from].role = bad ? PropagationRole::kOrigin : role_of_good(input.state);
    if (input.state == InputState::kUnknown) nodes_[from].reason = input.reason;
  }

  /// A consumer that ran more often than its producer used the last value repeatedly.
  Execution made_by(const StepModel& model, NodeId producer, uint32_t execution) {
    std::map<NodeId, uint32_t>& last = last_[&model];
    if (last.empty()) {
      for (const Execution& each : model.executions()) last[each.node] = std::max(last[each.node], each.index);
    }
    const auto found = last.find(producer);
    return {producer, found != last.end() ? std::min(execution, found->second) : execution};
  }

  /// A bad parameter was updated by an operator in this step, or was bad before.
  void visit_updates(size_t index) {
    const NodeId parameter = nodes_[index].node;
    nodes_[index].role = PropagationRole::kOrigin;
    if (asked_.at_start(parameter).state == InputState::kBad) return;
    for (const NodeId updater : asked_.updaters(parameter)) {
      for (const Execution& execution : asked_.executions()) {
        if (execution.node != updater) continue;
        bool added = false;
        const size_t from = nodes_.at(asked_, execution, 1, &added);
        nodes_.edge(from, index, 0, 0, true, true);
        nodes_[index].role = PropagationRole::kPassed;
        if (added) queue_.push_back(from);
      }
    }
  }

  StepModels& models_;
  const StepModel& asked_;
  Propagation& result_;
  ConeNodes nodes_;
  std::map<const StepModel*, std::map<NodeId, uint32_t>> last_;  ///< of an operator: its last execution
  std::set<size_t> across_;  ///< reached from another rank only
  std::deque<size_t> queue_;
};

}  // namespace

void grow_cone_up(StepModels& models, const StepModel& asked, Propagation& result) { Up(models, asked, result).run(); }

}  // namespace msdbg
