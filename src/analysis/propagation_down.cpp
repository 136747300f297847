// What a bad tensor reached.
#include <algorithm>
#include <deque>

#include "analysis/propagation_cone.h"
#include "analysis/rank_models.h"

namespace msdbg {
namespace {

/// How many good consumers after absorbers are listed: they show where the damage stops.
constexpr uint32_t kCleanHops = 1;

class Down {
 public:
  Down(StepModels& models, const StepModel& asked, Propagation& result)
      : models_(models), evidence_(models.evidence()), asked_(asked), result_(result), nodes_(models, result) {}

  void run() {
    const TensorId& asked = result_.tensor;
    const Node& node = asked_.graph().node(asked.node);
    if (asked.slot.io == Io::kInput) {
      // The value of an input is that of its producer.
      const Edge edge = asked_.graph().effective_producer(asked.node, asked.slot.index);
      if (edge.node == kNoNode) {
        arrive(nodes_.at(asked_, {asked.node, asked.execution}, 0));
      } else if (asked_.graph().node(edge.node).kind == NodeKind::kOperator) {
        start(nodes_.at(asked_, {edge.node, asked.execution}, 0), edge.slot);
      } else {
        start_value(edge.node, asked);
      }
    } else if (node.kind == NodeKind::kOperator) {
      start(nodes_.at(asked_, {asked.node, asked.execution}, 0), asked.slot.index);
    } else {
      start_value(asked.node, asked);
    }
    while (!queue_.empty()) {
      const size_t index = queue_.front();
      queue_.pop_front();
      visit(index);
    }
    judge_senders();
    judge_receivers();
    add_clean_consumers();
    note_ranks();
    nodes_.finish();
  }

 private:
  std::vector<WrittenValue> written_values(size_t index) const { return nodes_.model(index).written_values(nodes_.execution(index)); }

  bool can_be_bad(const TensorId& tensor) {
    const std::optional<Stats> stats = evidence_.stats(tensor);
    if (!stats) return true;
    return evidence_.builtin() ? is_float(stats->dtype) : stats->dtype != DType::kBool;
  }

  void start(size_t index, uint32_t slot) {
    nodes_[index].role = PropagationRole::kOrigin;
    arrived_.insert(index);
    for (const WrittenValue& written : written_values(index)) {
      if (written.parameter || written.slot != slot) continue;
      if (written.value.tensor) nodes_.show(index, *written.value.tensor);
    }
    follow(nodes_.model(index).consumers(nodes_.execution(index), slot), index, slot);
    // An optimizer passes on its output as the parameter.
    for (const WrittenValue& written : written_values(index)) {
      if (written.parameter && written.value.state == InputState::kBad) write_parameter(index, written);
    }
  }

  void start_value(NodeId id, const TensorId& asked) {
    const size_t index = nodes_.value(asked_, id, 0);
    nodes_[index].role = PropagationRole::kOrigin;
    nodes_.show(index, asked, result_.stats);
    if (!result_.broke_at_end) return follow(asked_.consumers_at_start(id), index, 0);
    for (const NodeId updater : asked_.updaters(id)) {
      for (const Execution& execution : asked_.executions()) {
        if (execution.node == updater && leaves_bad(execution, id)) follow(asked_.consumers_after(id, execution), index, 0);
      }
    }
  }

  bool leaves_bad(const Execution& execution, NodeId parameter) const {
    return std::ranges::any_of(asked_.written_values(execution), [&](const WrittenValue& written) {
      return written.parameter == parameter && written.value.state == InputState::kBad;
    });
  }

  /// The value comes in on the operator's own rank.
  void arrive(size_t index) {
    if (!arrived_.insert(index).second) return;
    if (visited_.contains(index)) send(index);
    else queue_.push_back(index);
  }

  void follow(const std::vector<Consumer>& consumers, size_t from, uint32_t slot) {
    for (const Consumer& consumer : consumers) {
      const size_t to = nodes_.at(nodes_.model(from), consumer.execution, nodes_[from].distance + 1);
      if (to == from) continue;
      arrive(to);
      nodes_.edge(from, to, slot, consumer.slot, false, true);
    }
  }

  /// A collective takes what comes in to the other ranks. Each of their calls has one edge, from the first that reached it.
  void send(size_t from) {
    const StepModel& model = nodes_.model(from);
    const Execution execution = nodes_.execution(from);
    for (const NodeRef& ref : models_.collectives().receivers(model.graph(), execution.node)) {
      const StepModel* const other = models_.find(ref.graph->rank(), ref.graph->id(), model.step());
      if (other == nullptr) continue;
      bool added = false;
      const size_t to = nodes_.at(*other, {ref.node, execution.index}, nodes_[from].distance + 1, &added);
      if (!added) continue;
      queue_.push_back(to);
      nodes_.edge_between_ranks(from, to, true);
    }
  }

  void write_parameter(size_t from, const WrittenValue& written) {
    bool added = false;
    const StepModel& model = nodes_.model(from);
    const size_t index = nodes_.value(model, *written.parameter, nodes_[from].distance + 1, &added);
    if (added) nodes_[index].role = PropagationRole::kPassed;
    if (written.value.tensor) nodes_.show(index, *written.value.tensor);
    nodes_.edge(from, index, 0, written.slot, true, true);
    follow(model.consumers_after(*written.parameter, nodes_.execution(from)), index, 0);
  }

  void visit(size_t index) {
    if (!visited_.insert(index).second) return;
    if (arrived_.contains(index)) send(index);
    const StepModel& model = nodes_.model(index);
    const Execution execution = nodes_.execution(index);
    bool bad = false, unknown = false;
    std::optional<TensorId> sound;
    bool can = false;
    std::string reason;
    for (const WrittenValue& written : written_values(index)) {
      if (written.value.state == InputState::kGood) {
        if (!sound) sound = written.value.tensor;
        can = can || (written.value.tensor && can_be_bad(*written.value.tensor));
        continue;
      }
      if (written.value.state == InputState::kUnknown) {
        unknown = true;
        reason = written.value.reason;
        continue;
      }
      bad = true;
      if (written.value.tensor) nodes_.show(index, *written.value.tensor);
      if (written.parameter) {
        write_parameter(index, written);
      } else {
        follow(model.consumers(execution, written.slot), index, written.slot);
      }
    }
    PropagationNode& node = nodes_[index];
    node.role = bad       ? PropagationRole::kPassed
                : unknown ? PropagationRole::kUnknown
                : can     ? PropagationRole::kAbsorbed
                          : PropagationRole::kCannot;
    if (unknown && !bad) node.reason = reason;
    if (!bad && sound) nodes_.show(index, *sound);
    if (!bad && unknown) follow_unknown(index);
  }

  /// An unknown value may still turn out to be bad further on.
  void follow_unknown(size_t index) {
    const StepModel& model = nodes_.model(index);
    for (const WrittenValue& written : written_values(index)) {
      if (written.parameter || written.value.state != InputState::kUnknown) continue;
      for (const Consumer& consumer : model.consumers(nodes_.execution(index), written.slot)) {
        const std::vector<WrittenValue> made = model.written_values(consumer.execution);
        if (std::ranges::none_of(made, [](const WrittenValue& each) { return each.value.state == InputState::kBad; })) continue;
        const size_t to = nodes_.at(model, consumer.execution, nodes_[index].distance + 1);
        arrive(to);
        nodes_.edge(index, to, written.slot, consumer.slot, false, true);
      }
    }
  }

  /// A Send has no output of its own: it passed on what another rank received.
  void judge_senders() {
    for (const PropagationEdge& edge : result_.edges) {
      PropagationNode& from = nodes_[edge.from];
      const bool sends = edge.collective && collective_kind(nodes_.node(edge.from)) == CollectiveKind::kSend;
      if (!sends || from.role == PropagationRole::kPassed || nodes_[edge.to].role != PropagationRole::kPassed) continue;
      from.role = PropagationRole::kPassed;
      from.reason.clear();
      from.tensor.reset();
      for (const OriginInput& input : nodes_.model(edge.from).inputs(nodes_.execution(edge.from))) {
        if (input.state == InputState::kBad && input.value) nodes_.show(edge.from, *input.value);
      }
    }
  }

  /// A rank whose call gave something good got nothing bad: AllToAll and ReduceScatter hand out slices.
  void judge_receivers() {
    for (PropagationEdge& edge : result_.edges) {
      PropagationRole& role = nodes_[edge.to].role;
      if (!edge.collective || arrived_.contains(edge.to)) continue;
      if (role == PropagationRole::kAbsorbed || role == PropagationRole::kCannot) role = PropagationRole::kClean;
      edge.bad = role != PropagationRole::kClean;
    }
  }

  void add_clean_consumers() {
    const size_t known = nodes_.size();
    for (size_t i = 0; i < known; ++i) {
      if (nodes_[i].role != PropagationRole::kAbsorbed) continue;
      for (const WrittenValue& written : written_values(i)) {
        if (written.parameter) continue;
        for (const Consumer& consumer : nodes_.model(i).consumers(nodes_.execution(i), written.slot)) {
          bool added = false;
          const size_t to = nodes_.at(nodes_.model(i), consumer.execution, nodes_[i].distance + kCleanHops, &added);
          if (added) judge_clean(to);
          nodes_.edge(i, to, written.slot, consumer.slot, false, false);
        }
      }
    }
  }

  void judge_clean(size_t index) {
    nodes_[index].role = PropagationRole::kClean;
    for (const WrittenValue& written : written_values(index)) {
      if (written.value.state == InputState::kUnknown) {
        nodes_[index].role = PropagationRole::kUnknown;
        nodes_[index].reason = written.value.reason;
      }
      if (written.value.state == InputState::kBad) nodes_[index].role = PropagationRole::kOrigin;  // it broke by itself
      if (written.value.tensor) nodes_.show(index, *written.value.tensor);
    }
  }

  /// The other ranks that have something bad of it.
  void note_ranks() {
    struct Found {
      RankReached reached;
      uint32_t order = 0;
      std::set<size_t> calls;
      const StepModel* model = nullptr;
    };
    std::map<int, Found> ranks;
    for (const PropagationEdge& edge : result_.edges) {
      const PropagationNode& to = nodes_[edge.to];
      if (!edge.collective || to.rank == result_.tensor.rank || to.role != PropagationRole::kPassed) continue;
      Found& found = ranks[to.rank];
      const uint32_t order = nodes_.node(edge.to).order;
      const bool first = found.calls.empty() || order < found.order;
      found.calls.insert(edge.to);
      if (!first) continue;
      found.order = order;
      found.model = &nodes_.model(edge.to);
      found.reached.rank = to.rank;
      found.reached.through = to.tensor.value_or(found.model->id(to.node, {Io::kOutput, 0}, to.execution));
      found.reached.group = edge.group;
      found.reached.assumed = edge.assumed;
    }
    for (const PropagationNode& node : result_.nodes) {
      const auto at = ranks.find(node.rank);
      if (at != ranks.end() && node.role == PropagationRole::kPassed) ++at->second.reached.tensors;
    }
    for (auto& [rank, found] : ranks) {
      found.reached.collectives = found.calls.size();
      found.reached.sound_loss = sound_loss(evidence_, *found.model).has_value();
      result_.ranks_reached.push_back(std::move(found.reached));
    }
  }

  StepModels& models_;
  Evidence& evidence_;
  const StepModel& asked_;
  Propagation& result_;
  ConeNodes nodes_;
  std::set<size_t> arrived_, visited_;
  std::deque<size_t> queue_;
};

}  // namespace

void grow_cone_down(StepModels& models, const StepModel& asked, Propagation& result) { Down(models, asked, result).run(); }

}  // namespace msdbg
