#include "analysis/trail.h"

#include "analysis/parameter_writes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace msdbg {
namespace {

/// Longer ones go round in circles.
constexpr size_t kMostLinks = 10000;

class Walk {
 public:
  explicit Walk(StepModels& models)
      : models_(models), evidence_(models.evidence()), session_(models.session()), writes_(models.session()) {}

  Result<Trail> run(const TensorId& tensor) {
    if (const StepModel* model = model_of(tensor)) {
      const Node& node = model->graph().node(tensor.node);
      if (node.kind != NodeKind::kOperator) from_value(*model, tensor);
      else if (tensor.slot.io == Io::kInput) from_input(*model, tensor);
      else from_operator(*model, {tensor.node, tensor.execution}, tensor);
    }
    if (!models_.status().ok()) return models_.status();
    if (!status_.ok()) return status_;
    return std::move(trail_);
  }

 private:
  const StepModel* model_of(const TensorId& at) {
    const StepModel* const model = models_.find(at);
    if (model == nullptr && models_.status().ok()) end(TrailEnd::kUnknown, "interrupted");
    return model;
  }

  void end(TrailEnd kind, std::string reason = "") {
    trail_.end = kind;
    trail_.reason = std::move(reason);
  }

  /// False where the trail has been before, or is too long.
  bool add(const TensorId& at, const TensorId& seen) {
    if (trail_.links.size() >= kMostLinks || !visited_.insert(at).second) {
      end(TrailEnd::kUnknown, "the way back goes round in a circle");
      return false;
    }
    trail_.links.push_back({at, seen, evidence_.stats(seen)});
    return true;
  }

  TensorId output_of(const StepModel& model, const Execution& execution, uint32_t slot) const {
    return model.id(execution.node, {Io::kOutput, slot}, execution.index);
  }

  void from_input(const StepModel& model, const TensorId& tensor) {
    if (!add(tensor, tensor)) return;
    const Execution execution{tensor.node, tensor.execution};
    // An optimizer recorded what it wrote, not what it took.
    if (model.updates(tensor.node, tensor.slot.index)) return back(model, execution);
    for (const OriginInput& input : model.inputs(execution)) {
      if (input.slot == tensor.slot.index) return to_source(model, execution, input);
    }
    end(TrailEnd::kUnknown, fmt::format("the producer of {} is unknown", slot_name(tensor.slot)));
  }

  void from_operator(const StepModel& model, const Execution& execution, const TensorId& seen) {
    if (add(output_of(model, execution, seen.slot.io == Io::kOutput ? seen.slot.index : 0), seen)) back(model, execution);
  }

  /// Back from an operator along its first bad input.
  void back(const StepModel& model, const Execution& execution) {
    const std::vector<OriginInput> inputs = model.inputs(execution);
    const OriginInput* bad = nullptr;
    const OriginInput* unknown = nullptr;
    for (const OriginInput& input : inputs) {
      // A parameter that was bad before its update did not break because of the gradient.
      if (input.state == InputState::kBad && (bad == nullptr || model.updates(execution.node, input.slot))) bad = &input;
      if (input.state == InputState::kUnknown && unknown == nullptr) unknown = &input;
    }
    if (bad != nullptr) return to_source(model, execution, *bad);
    if (to_other_rank(model, execution)) return;
    if (unknown != nullptr) return end(TrailEnd::kUnknown, unknown->reason);
    end(TrailEnd::kOrigin);
  }

  /// Through a collective, to the first rank that brought something bad. False if the inputs of all ranks are good.
  bool to_other_rank(const StepModel& model, const Execution& execution) {
    std::string unknown = models_.collectives().unknown_sources(model.graph(), execution.node);
    for (const NodeRef& source : models_.collectives().sources(model.graph(), execution.node)) {
      const int rank = source.graph->rank();
      const StepModel* const other = models_.find(rank, source.graph->id(), model.step());
      if (other == nullptr) {
        end(TrailEnd::kUnknown, "interrupted");
        return true;
      }
      const Execution sent{source.node, execution.index};
      const std::vector<OriginInput> inputs = other->inputs(sent);
      if (const auto bad = std::ranges::find(inputs, InputState::kBad, &OriginInput::state); bad != inputs.end()) {
        const TensorId output = other->id(source.node, {Io::kOutput, 0}, execution.index);
        if (add(output, bad->value.value_or(output))) to_source(*other, sent, *bad);
        return true;
      }
      const auto open = std::ranges::find(inputs, InputState::kUnknown, &OriginInput::state);
      if (open != inputs.end() && unknown.empty()) unknown = fmt::format("rank {}: {}", rank, open->reason);
    }
    if (unknown.empty()) return false;
    end(TrailEnd::kUnknown, std::move(unknown));
    return true;
  }

  void to_source(const StepModel& model, const Execution& execution, const OriginInput& input) {
    const NodeId producer = input.producer.node;
    if (producer == kNoNode) return end(TrailEnd::kInput, fmt::format("the producer of input {} is unknown", input.slot));
    const Node& node = model.graph().node(producer);
    const TensorId seen = input.value.value_or(model.id(producer, {Io::kOutput, input.producer.slot}));
    if (node.kind == NodeKind::kOperator) {
      const uint32_t runs = session_.executions(model.graph().rank(), model.graph().id(), model.step(), producer);
      const Execution made{producer, runs == 0 ? execution.index : std::min(execution.index, runs - 1)};
      if (add(output_of(model, made, input.producer.slot), seen)) back(model, made);
    } else if (node.kind == NodeKind::kParameter) {
      from_start(model, producer, seen);
    } else if (add(model.id(producer, Slot{}), seen)) {
      end(TrailEnd::kInput);
    }
  }

  /// A parameter or constant as the step left it behind.
  void from_value(const StepModel& model, const TensorId& tensor) {
    const std::vector<NodeId> updaters = model.updaters(tensor.node);
    if (updaters.empty()) return from_start(model, tensor.node, tensor);
    if (!add(tensor, tensor)) return;
    if (model.at_start(tensor.node).state == InputState::kBad) return written_before(model, tensor.node);
    const uint32_t runs = session_.executions(tensor.rank, tensor.graph, tensor.step, updaters.back());
    from_operator(model, {updaters.back(), runs == 0 ? 0 : runs - 1}, tensor);
  }

  /// A parameter or constant as the step found it.
  void from_start(const StepModel& model, NodeId node, const TensorId& seen) {
    TensorId at = model.id(node, Slot{});
    if (model.graph().node(node).kind != NodeKind::kParameter) {
      if (add(at, seen)) end(TrailEnd::kInput);
      return;
    }
    if (add(at, seen)) written_before(model, node);
  }

  bool was_bad(const ParameterWrite& write) {
    const TensorId id = write.value();
    if (const Predicate::Builtin* which = evidence_.builtin()) {
      const std::optional<Stats> stats = evidence_.stats(id);
      return stats && bad_elements(*which, *stats) > 0;
    }
    if (evidence_.find(id) == nullptr && status_.ok()) status_ = evidence_.judge_parameters(write.step, seen_);
    return evidence_.is_bad(id);
  }

  /// The parameter was bad when the step began: to the step that broke it.
  void written_before(const StepModel& model, NodeId parameter) {
    const std::string& name = model.graph().node(parameter).name;
    std::optional<ParameterWrite> write = writes_.before(model.graph(), parameter, model.step());
    if (!write) return end(TrailEnd::kInput, fmt::format("no dumped step before writes {}", name));
    if (!was_bad(*write)) {
      return end(TrailEnd::kUnknown, fmt::format("{} was sound or not dumped after step {}, and bad when step {} began", name, write->step,
                                                 model.step()));
    }
    while (const std::optional<ParameterWrite> earlier = writes_.before(*write)) {
      if (!was_bad(*earlier) || !status_.ok()) break;
      write = earlier;
    }
    const StepModel* then = model_of(write->value());
    if (then == nullptr) return;
    if (then->at_start(write->parameter).state == InputState::kBad) {
      if (add(write->value(), write->value())) end(TrailEnd::kInput, fmt::format("it was so when step {} began", write->step));
      return;
    }
    const uint32_t runs = session_.executions(write->graph->rank(), write->graph->id(), write->step, write->updater);
    from_operator(*then, {write->updater, runs == 0 ? 0 : runs - 1}, write->value());
  }

  StepModels& models_;
  Evidence& evidence_;
  Session& session_;
  OriginResult seen_;
  ParameterWrites writes_;
  std::set<TensorId> visited_;
  Trail trail_;
  Status status_;
};

}  // namespace

Result<Trail> follow_trail(StepModels& models, const TensorId& tensor) { return Walk(models).run(tensor); }

}  // namespace msdbg
