// Models one step of one graph as values that flow: the inputs and outputs of each execution, and the value of each parameter at
// the start of the step. Every value is known from a tensor of the dump: its own file, or the recorded input of a consumer.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analysis/evidence.h"

namespace msdbg {

struct Execution {
  NodeId node = kNoNode;
  uint32_t index = 0;
  auto operator<=>(const Execution&) const = default;
};

struct Value {
  InputState state = InputState::kUnknown;
  std::string reason;              ///< reason why it is unknown
  std::optional<TensorId> tensor;  ///< where it was seen
  std::optional<TensorId> shown = {};   ///< a bad parameter whose file has a later value: the recorded input with this one
  std::optional<TensorId> before = {};  ///< a bad parameter that the step before left good: its file of that step
};

/// A value that an execution wrote: an output, or a parameter that it updates in place.
struct WrittenValue {
  uint32_t slot = 0;  ///< output slot, or the input slot of the parameter
  std::optional<NodeId> parameter;
  Value value;
  std::vector<TensorId> copies;  ///< bad tensors of the dump that hold it, except consumers' inputs
};

/// A user of a value.
struct Consumer {
  Execution execution;
  uint32_t slot = 0;
};

/// The location of the values before a step.
struct PreviousStep {
  std::optional<int64_t> step;  ///< the step whose Parameter files hold the values at the start of this one
  std::string reason;           ///< the reason if it is unknown
};

/// The step of a graph before `step`, if its Parameter files hold the values with which `step` began: a number that no graph used is a
/// step that was left out of the dump, and it may have trained. `all`: the steps of the session.
PreviousStep previous_step(const Session& session, const Graph& graph, int64_t step, std::span<const int64_t> all);
PreviousStep previous_step(const Session& session, const Graph& graph, int64_t step);

class StepModel {
 public:
  StepModel(Evidence& evidence, const Graph& graph, int64_t step, PreviousStep before, std::span<const TensorId> tensors);

  const Graph& graph() const { return graph_; }
  int64_t step() const { return step_; }
  const PreviousStep& before() const { return before_; }
  /// In execution order. Includes nodes that were not dumped but produced a bad value that a consumer recorded.
  const std::vector<Execution>& executions() const { return executions_; }
  std::span<const TensorId> tensors() const { return tensors_; }

  std::vector<OriginInput> inputs(const Execution& execution) const;
  std::vector<WrittenValue> written_values(const Execution& execution) const;
  std::vector<Consumer> consumers(const Execution& execution, uint32_t output_slot) const;
  /// Executions that use the value of a parameter or constant at the start of the step.
  std::vector<Consumer> consumers_at_start(NodeId node) const;
  /// Executions that read a parameter after `execution` updated it.
  std::vector<Consumer> consumers_after(NodeId parameter, const Execution& execution) const;
  Value output(NodeId node, uint32_t execution, uint32_t slot) const;
  /// Of a parameter or a constant.
  Value at_start(NodeId node) const;
  /// Operators that update the parameter in place, in execution order.
  std::vector<NodeId> updaters(NodeId parameter) const;
  bool updates(NodeId node, uint32_t input_slot) const;
  /// Outputs of some optimizers are uninitialised memory.
  bool is_unwritten(const TensorId& id) const;

  TensorId id(NodeId node, Slot slot, uint32_t execution = 0) const;

 private:
  uint32_t count(NodeId node) const;
  Value parameter_at_start(NodeId node) const;
  std::optional<Value> left_by_other_graph(NodeId node) const;
  Value constant(NodeId node) const;
  const std::vector<uint32_t>& updated(NodeId node) const;
  std::optional<Value> seen_by_consumer(NodeId node, std::optional<uint32_t> execution, uint32_t slot,
                                        uint32_t before_order) const;
  uint32_t first_update(NodeId parameter) const;
  void add_unseen();
  void add_backward(const Execution& execution, uint32_t slot, std::vector<Consumer>& consumers) const;
  void add_linked(const Execution& execution, uint32_t slot, std::vector<OriginInput>& inputs) const;

  Evidence& evidence_;
  const Graph& graph_;
  int64_t step_;
  PreviousStep before_;
  std::span<const TensorId> tensors_;
  std::map<NodeId, uint32_t> counts_;
  std::map<NodeId, uint32_t> recorded_inputs_;  ///< highest recorded input slot + 1
  std::map<NodeId, std::vector<uint32_t>> updated_;
  std::map<NodeId, std::vector<NodeId>> updaters_;
  std::vector<Execution> executions_;
  mutable std::map<NodeId, Value> at_start_;  // of parameters and constants with many users
  mutable uint64_t known_until_ = 0;          // the changes of the evidence that at_start_ has seen
  std::multimap<NodeId, NodeId> backward_;  ///< of recorded calls: the gradient functions by their forward call
};

}  // namespace msdbg
