#include "analysis/put_in.h"

#include <fmt/format.h>

#include "msdbg/masks.h"

namespace msdbg {
namespace {

/// From a value to the constants that it is made of.
constexpr int kLongestWay = 100;

}  // namespace

PutInValues::PutInValues(Evidence& evidence, const StepModel& model, const std::vector<Execution>& calls)
    : evidence_(evidence), model_(model) {
  const Predicate::Builtin* which = evidence.builtin();
  if (which == nullptr || *which == Predicate::Builtin::kNan) return;
  for (const Execution& call : calls) look_at(call);
  if (!model.graph().recorded_calls()) look_at_parameters();
}

/// Those that no operator of this step was seen to read.
void PutInValues::look_at_parameters() {
  for (const Node& node : model_.graph().nodes()) {
    const TensorId id = model_.id(node.id, {Io::kOutput, 0});
    if (node.kind != NodeKind::kParameter || !evidence_.is_bad(id) || !only_infinite(id) || root_of_input(node, id)) continue;
    // A limit, such as that of a constraint.
    const std::optional<Stats> stats = evidence_.stats(id);
    const bool unused = !node.trainable && model_.graph().users(node.id).empty();
    if (unused && stats && stats->count == 1) roots_.emplace(id, add_root(id, "is one infinite element that nothing reads"));
  }
}

bool PutInValues::only_infinite(const TensorId& id) {
  const std::optional<Stats> stats = evidence_.stats(id);
  return stats && stats->nan_count == 0 && stats->inf_count() > 0 && stats->knows(kStatNan);
}

/// A mask has places that count, and nothing masks with +Inf.
bool PutInValues::is_like_a_mask(const TensorId& id) {
  const std::optional<Stats> stats = evidence_.stats(id);
  return stats && stats->inf_count() < stats->count && stats->pos_inf_count == 0 && stats->knows(kStatPosInf);
}

size_t PutInValues::add_root(const TensorId& tensor, std::string argument) {
  put_in_.push_back({tensor, std::move(argument), {}});
  return put_in_.size() - 1;
}

std::optional<size_t> PutInValues::root_of_input(const Node& reader, const TensorId& input) {
  const Graph& graph = model_.graph();
  const bool given = input.slot.io == Io::kOutput;  // by the tensor that was read
  const Edge maker = given ? Edge{input.node, input.slot.index, ""} : graph.effective_producer(input.node, input.slot.index);
  const bool inside = maker.node != kNoNode;
  const TensorId made = inside ? model_.id(maker.node, {Io::kOutput, maker.slot}) : input;
  if (const auto known = roots_.find(made); known != roots_.end()) return known->second;
  const std::optional<Stats> stats = evidence_.stats(input);
  if (!stats) return std::nullopt;
  if (graph.recorded_calls()) {
    // A view is not recorded, and has the shape of another tensor.
    if (const auto same = alike_.find({stats->dtype, stats->count}); same != alike_.end()) return same->second;
    return inside ? std::nullopt : root_of_outside(reader, input, *stats);
  }
  if (inside && graph.node(maker.node).kind == NodeKind::kOperator) return std::nullopt;
  const std::optional<size_t> root = root_of_outside(reader, made, *stats);
  if (root) roots_.emplace(made, *root);
  return root;
}

/// Of a value that nothing in the step made.
std::optional<size_t> PutInValues::root_of_outside(const Node& reader, const TensorId& input, const Stats& stats) {
  const std::string name = input.slot.io == Io::kInput ? slot_name(input.slot) : evidence_.session().node(input).name;
  if (stats.count == 1 && (only_copies(reader.op) || takes_limits(reader.op))) return add_root(input, fmt::format("{} is one infinite element", name));
  // A buffer of a module is held like a weight.
  const bool held = !model_.graph().recorded_calls() && evidence_.session().node(input).trainable;
  const bool kept = !model_.graph().recorded_calls() && !held;
  if (kept && takes_limits(reader.op) && is_unset_limit(stats)) return add_root(input, fmt::format("{} is infinite everywhere", name));
  const bool forward = !model_.graph().recorded_calls() || reader.role == CallRole::kForward;
  return forward && is_additive_mask(stats, held) ? std::optional(add_root(input, fmt::format("{} is a mask of 0 and -Inf", name))) : std::nullopt;
}

std::vector<TensorId> PutInValues::bad_inputs(const Execution& call) const {
  std::vector<TensorId> out;
  if (!model_.graph().recorded_calls()) {
    for (const OriginInput& input : model_.inputs(call)) {
      if (input.state == InputState::kBad && input.value) out.push_back(*input.value);
    }
    return out;
  }
  for (uint32_t slot = 0; slot < model_.graph().node(call.node).inputs.size(); ++slot) {
    const TensorId input = model_.id(call.node, {Io::kInput, slot});
    if (evidence_.is_bad(input)) out.push_back(input);
  }
  return out;
}

/// A constant whose value nobody recorded: where everything else is finite, it is the infinity that is copied or added. So it is where
/// there is nothing else.
std::string PutInValues::unseen_constant(const Node& node) const {
  const Graph& graph = model_.graph();
  if (graph.recorded_calls() || !(only_copies(node.op) || only_adds_to(node))) return "";
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    const Edge maker = graph.effective_producer(node.id, slot);
    if (maker.node == kNoNode || graph.node(maker.node).kind != NodeKind::kConstant) continue;
    if (evidence_.find(model_.id(node.id, {Io::kInput, slot})) == nullptr) return fmt::format("{} is a constant", slot_name({Io::kInput, slot}));
  }
  return "";
}

/// Whether the operator takes nothing but constants, or adds them to what is known and small.
bool PutInValues::only_adds_to(const Node& node) const {
  std::vector<Stats> taken;
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    const Edge maker = model_.graph().effective_producer(node.id, slot);
    if (maker.node != kNoNode && model_.graph().node(maker.node).kind == NodeKind::kConstant) continue;
    const std::optional<Stats> stats = evidence_.stats(model_.id(node.id, {Io::kInput, slot}));
    if (!stats) return false;
    taken.push_back(*stats);
  }
  if (taken.empty()) return true;
  const std::optional<Stats> result = evidence_.stats(model_.id(node.id, {Io::kOutput, 0}));
  return result && adds_mask(node.op, *result, taken);
}

/// Whether neither data nor a weight nor a random number has a part in it: the same in each step, such as the logarithm of a mask of 0 and 1.
bool PutInValues::is_made_from_numbers(const Node& node, int depth) {
  const Graph& graph = model_.graph();
  if (depth > kLongestWay) return false;
  if (graph.recorded_calls() || node.kind == NodeKind::kParameter) return false;
  if (node.kind == NodeKind::kConstant || makes_values(node.op)) return true;
  const auto [known, fresh] = from_numbers_.try_emplace(node.id, false);  // false for a circle
  if (!fresh) return known->second;
  bool all = !node.inputs.empty();
  for (uint32_t slot = 0; slot < node.inputs.size() && all; ++slot) {
    const Edge maker = graph.effective_producer(node.id, slot);
    all = maker.node != kNoNode && is_made_from_numbers(graph.node(maker.node), depth + 1);
  }
  return from_numbers_[node.id] = all;
}

bool PutInValues::matters(const TensorId& id) const {
  const Graph& graph = model_.graph();
  const Node& node = graph.node(id.node);
  if (id.slot.io != Io::kOutput) return false;
  if (in_category(node, Category::kGradient) || node.role == CallRole::kOptimizer) return true;
  if (graph.recorded_calls()) return in_category(node, Category::kLoss);
  // Of the operators of a loss, some work on what is masked; the loss is a single number.
  const std::optional<Stats> stats = evidence_.stats(id);
  const bool told = root(id).tensor == id;  // to write that number, which a mask is made of
  return in_category(node, Category::kOptimizer) || (!told && stats && stats->count == 1 && node.kind == NodeKind::kOperator);
}

void PutInValues::look_at(const Execution& call) {
  const Node& node = model_.graph().node(call.node);
  std::optional<size_t> root;
  bool other = false;
  for (const TensorId& input : bad_inputs(call)) {
    const std::optional<size_t> found = only_infinite(input) ? root_of_input(node, input) : std::nullopt;
    if (found) roots_.emplace(input, *found);
    other = other || !found;
    if (!root) root = found;
  }
  if (other) return;
  std::string argument;
  if (!root) {
    const Attribute* const told = infinite_argument(node.attributes.get());
    argument = told != nullptr ? fmt::format("{} = {}", told->name.get(), told->value.get()) : unseen_constant(node);
  }
  const bool has_reason = root || !argument.empty();
  for (uint32_t slot = 0; slot < node.outputs.size(); ++slot) {
    const TensorId output = model_.id(call.node, {Io::kOutput, slot});
    if (!evidence_.is_bad(output) || !only_infinite(output)) continue;
    const bool table = is_table_with_infinities(node.op, slot);
    if (!has_reason && !table && !(is_like_a_mask(output) && is_made_from_numbers(node))) continue;
    if (!root) root = add_root(output, has_reason ? argument : table ? "a table for its derivative" : "computed from constants");
    roots_.emplace(output, *root);
    if (!model_.graph().recorded_calls()) continue;
    if (const std::optional<Stats> stats = evidence_.stats(output)) alike_[{stats->dtype, stats->count}] = *root;
  }
}

std::vector<PutIn> PutInValues::all() const {
  std::vector<PutIn> all = put_in_;
  for (const auto& [tensor, root] : roots_) all[root].held_by.push_back(tensor);
  std::erase_if(all, [](const PutIn& each) { return each.held_by.empty(); });
  return all;
}

}  // namespace msdbg
