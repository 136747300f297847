#include "analysis/propagation_cone.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

namespace msdbg {
namespace {

/// How many good consumers after absorbers are listed: they show where the damage stops.
constexpr uint32_t kCleanHops = 1;

/// The role of a node that is not known to be bad.
PropagationRole role_of_good(InputState state) {
  return state == InputState::kGood ? PropagationRole::kClean : PropagationRole::kUnknown;
}

class Cone {
 public:
  Cone(Evidence& evidence, const StepModel& model, Propagation& result) : evidence_(evidence), model_(model), result_(result) {}

  void down(const TensorId& asked) {
    const Node& node = model_.graph().node(asked.node);
    if (asked.slot.io == Io::kInput) {
      // The value of an input is that of its producer.
      const Edge edge = model_.graph().effective_producer(asked.node, asked.slot.index);
      if (edge.node == kNoNode) {
        queue_.push_back(at({asked.node, asked.execution}, 0));
      } else if (model_.graph().node(edge.node).kind == NodeKind::kOperator) {
        start(at({edge.node, asked.execution}, 0), edge.slot);
      } else {
        start_value(edge.node, asked);
      }
    } else if (node.kind == NodeKind::kOperator) {
      start(at({asked.node, asked.execution}, 0), asked.slot.index);
    } else {
      start_value(asked.node, asked);
    }
    while (!queue_.empty()) {
      const size_t index = queue_.front();
      queue_.pop_front();
      visit_down(index);
    }
    add_clean_consumers();
  }

  void up(const TensorId& asked) {
    const Node& node = model_.graph().node(asked.node);
    if (node.kind == NodeKind::kOperator) {
      const size_t index = at({asked.node, asked.execution}, 0);
      show(index, asked);
      queue_.push_back(index);
    } else {
      const size_t index = value(asked.node, 0);
      show(index, asked);
      visit_updates(index);
    }
    while (!queue_.empty()) {
      const size_t index = queue_.front();
      queue_.pop_front();
      visit_up(index);
    }
  }

  /// Sorts the nodes for display and renumbers the edges.
  void finish() {
    std::vector<size_t> order(result_.nodes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const PropagationNode &x = result_.nodes[a], &y = result_.nodes[b];
      return std::tuple(x.distance, model_.graph().node(x.node).order, x.execution) <
             std::tuple(y.distance, model_.graph().node(y.node).order, y.execution);
    });
    std::vector<size_t> place(order.size());
    std::vector<PropagationNode> sorted;
    for (size_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      sorted.push_back(std::move(result_.nodes[order[i]]));
    }
    result_.nodes = std::move(sorted);
    for (PropagationEdge& edge : result_.edges) edge.from = place[edge.from], edge.to = place[edge.to];
    std::sort(result_.edges.begin(), result_.edges.end(), [](const PropagationEdge& a, const PropagationEdge& b) {
      return std::tuple(a.from, a.to, a.output, a.input) < std::tuple(b.from, b.to, b.output, b.input);
    });
  }

 private:
  size_t at(const Execution& execution, uint32_t distance, bool* added = nullptr) {
    const auto [found, is_new] = places_.try_emplace({execution, false}, result_.nodes.size());
    if (added) *added = is_new;
    if (is_new) {
      PropagationNode node;
      node.node = execution.node;
      node.execution = execution.index;
      node.distance = distance;
      result_.nodes.push_back(node);
    }
    return found->second;
  }

  size_t value(NodeId id, uint32_t distance, bool* added = nullptr) {
    const auto [found, is_new] = places_.try_emplace({Execution{id, 0}, true}, result_.nodes.size());
    if (added) *added = is_new;
    if (is_new) {
      PropagationNode node;
      node.node = id;
      node.parameter = true;
      node.distance = distance;
      result_.nodes.push_back(node);
    }
    return found->second;
  }

  void show(size_t index, const TensorId& tensor) {
    PropagationNode& node = result_.nodes[index];
    if (node.tensor) return;
    node.tensor = tensor;
    node.stats = evidence_.stats(tensor);
  }

  void edge(size_t from, size_t to, uint32_t output, uint32_t input, bool update, bool bad) {
    if (!edges_.insert({from, to, output, input}).second) return;
    result_.edges.push_back({from, to, output, input, update, bad});
  }

  Execution execution_of(size_t index) const { return {result_.nodes[index].node, result_.nodes[index].execution}; }

  bool can_be_bad(const TensorId& tensor) {
    const std::optional<Stats> stats = evidence_.stats(tensor);
    if (!stats) return true;
    return evidence_.builtin() ? is_float(stats->dtype) : stats->dtype != DType::kBool;
  }

  // ---- down ----

  void start(size_t index, uint32_t slot) {
    result_.nodes[index].role = PropagationRole::kOrigin;
    for (const WrittenValue& written : model_.written_values(execution_of(index))) {
      if (written.parameter || written.slot != slot) continue;
      if (written.value.tensor) show(index, *written.value.tensor);
    }
    follow(model_.consumers(execution_of(index), slot), index, slot);
    // An optimizer passes on its output as the parameter.
    for (const WrittenValue& written : model_.written_values(execution_of(index))) {
      if (written.parameter && written.value.state == InputState::kBad) write_parameter(index, written);
    }
  }

  void start_value(NodeId id, const TensorId& asked) {
    const size_t index = value(id, 0);
    result_.nodes[index].role = PropagationRole::kOrigin;
    show(index, asked);
    follow(model_.consumers_at_start(id), index, 0);
  }

  size_t take(const Consumer& consumer, uint32_t distance = 1) {
    bool added = false;
    const size_t index = at(consumer.execution, distance, &added);
    if (added) queue_.push_back(index);
    return index;
  }

  void follow(const std::vector<Consumer>& consumers, size_t from, uint32_t slot) {
    for (const Consumer& consumer : consumers) {
      const size_t to = take(consumer, result_.nodes[from].distance + 1);
      if (to != from) edge(from, to, slot, consumer.slot, false, true);
    }
  }

  void write_parameter(size_t from, const WrittenValue& written) {
    bool added = false;
    const size_t index = value(*written.parameter, result_.nodes[from].distance + 1, &added);
    if (added) result_.nodes[index].role = PropagationRole::kPassed;
    if (written.value.tensor) show(index, *written.value.tensor);
    edge(from, index, 0, written.slot, true, true);
    follow(model_.consumers_after(*written.parameter, execution_of(from)), index, 0);
  }

  void visit_down(size_t index) {
    const Execution execution = execution_of(index);
    bool bad = false, unknown = false;
    std::optional<TensorId> sound;
    bool can = false;
    std::string reason;
    for (const WrittenValue& written : model_.written_values(execution)) {
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
      if (written.value.tensor) show(index, *written.value.tensor);
      if (written.parameter) {
        write_parameter(index, written);
      } else {
        follow(model_.consumers(execution, written.slot), index, written.slot);
      }
    }
    PropagationNode& node = result_.nodes[index];
    node.role = bad       ? PropagationRole::kPassed
                : unknown ? PropagationRole::kUnknown
                : can     ? PropagationRole::kAbsorbed
                          : PropagationRole::kCannot;
    if (unknown && !bad) node.reason = reason;
    if (!bad && sound) show(index, *sound);
    // An unknown value may still turn out to be bad further on.
    if (!bad && unknown) {
      for (const WrittenValue& written : model_.written_values(execution)) {
        if (written.parameter || written.value.state != InputState::kUnknown) continue;
        for (const Consumer& consumer : model_.consumers(execution, written.slot)) {
          if (!makes_bad(consumer.execution)) continue;
          const size_t to = take(consumer, node.distance + 1);
          edge(index, to, written.slot, consumer.slot, false, true);
        }
      }
    }
  }

  bool makes_bad(const Execution& execution) const {
    const std::vector<WrittenValue> written_values = model_.written_values(execution);
    auto bad = [](const WrittenValue& written) { return written.value.state == InputState::kBad; };
    return std::any_of(written_values.begin(), written_values.end(), bad);
  }

  void add_clean_consumers() {
    const size_t known = result_.nodes.size();
    for (size_t i = 0; i < known; ++i) {
      if (result_.nodes[i].role != PropagationRole::kAbsorbed) continue;
      for (const WrittenValue& written : model_.written_values(execution_of(i))) {
        if (written.parameter) continue;
        for (const Consumer& consumer : model_.consumers(execution_of(i), written.slot)) {
          bool added = false;
          const size_t to = at(consumer.execution, result_.nodes[i].distance + kCleanHops, &added);
          if (added) judge_clean(to);
          edge(i, to, written.slot, consumer.slot, false, false);
        }
      }
    }
  }

  void judge_clean(size_t index) {
    result_.nodes[index].role = PropagationRole::kClean;
    for (const WrittenValue& written : model_.written_values(execution_of(index))) {
      if (written.value.state == InputState::kUnknown) {
        result_.nodes[index].role = PropagationRole::kUnknown;
        result_.nodes[index].reason = written.value.reason;
      }
      if (written.value.state == InputState::kBad) result_.nodes[index].role = PropagationRole::kOrigin;  // it broke by itself
      if (written.value.tensor) show(index, *written.value.tensor);
    }
  }

  // ---- up ----

  void visit_up(size_t index) {
    const Execution execution = execution_of(index);
    bool any_bad = false, any_unknown = false;
    for (const OriginInput& input : model_.inputs(execution)) {
      any_bad = any_bad || input.state == InputState::kBad;
      if (input.state == InputState::kUnknown) {
        any_unknown = true;
        result_.nodes[index].reason = input.reason;
      }
      add_source(index, execution, input);
    }
    PropagationNode& node = result_.nodes[index];
    node.role = any_bad ? PropagationRole::kPassed : any_unknown ? PropagationRole::kUnknown : PropagationRole::kOrigin;
  }

  void add_source(size_t index, const Execution& execution, const OriginInput& input) {
    if (input.producer.node == kNoNode) return;
    const Node& producer = model_.graph().node(input.producer.node);
    const bool bad = input.state == InputState::kBad;
    const uint32_t distance = result_.nodes[index].distance + 1;
    bool added = false;
    if (producer.kind == NodeKind::kOperator) {
      const size_t from = at(made_by(producer.id, execution.index), distance, &added);
      if (input.value) show(from, *input.value);
      edge(from, index, input.producer.slot, input.slot, false, bad);
      if (bad && added) queue_.push_back(from);
      else if (bad && result_.nodes[from].role == PropagationRole::kClean) queue_.push_back(from);
      else if (!bad && added) result_.nodes[from].role = role_of_good(input.state);
      return;
    }
    const size_t from = value(producer.id, distance, &added);
    if (input.value) show(from, *input.value);
    edge(from, index, 0, input.slot, false, bad);
    if (added) result_.nodes[from].role = bad ? PropagationRole::kOrigin : role_of_good(input.state);
    if (input.state == InputState::kUnknown) result_.nodes[from].reason = input.reason;
  }

  /// A consumer that ran more often than its producer used the last value repeatedly.
  Execution made_by(NodeId producer, uint32_t execution) {
    if (last_.empty()) {
      for (const Execution& each : model_.executions()) last_[each.node] = std::max(last_[each.node], each.index);
    }
    const auto found = last_.find(producer);
    return {producer, found != last_.end() ? std::min(execution, found->second) : execution};
  }

  /// A bad parameter was updated by an operator in this step, or was bad before.
  void visit_updates(size_t index) {
    const NodeId parameter = result_.nodes[index].node;
    result_.nodes[index].role = PropagationRole::kOrigin;
    if (model_.parameter_at_start(parameter).state == InputState::kBad) return;
    for (const NodeId updater : model_.updaters(parameter)) {
      for (const Execution& execution : model_.executions()) {
        if (execution.node != updater) continue;
        bool added = false;
        const size_t from = at(execution, 1, &added);
        edge(from, index, 0, 0, true, true);
        result_.nodes[index].role = PropagationRole::kPassed;
        if (added) queue_.push_back(from);
      }
    }
  }

  Evidence& evidence_;
  const StepModel& model_;
  Propagation& result_;
  std::map<std::pair<Execution, bool>, size_t> places_;
  std::map<NodeId, uint32_t> last_;  // of an operator: its last execution
  std::set<std::tuple<size_t, size_t, uint32_t, uint32_t>> edges_;
  std::deque<size_t> queue_;
};

}  // namespace

void grow_cone(Evidence& evidence, const StepModel& model, Propagation& result) {
  Cone cone(evidence, model, result);
  if (result.up) cone.up(result.tensor);
  else cone.down(result.tensor);
  cone.finish();
}

}  // namespace msdbg
