#include "analysis/put_in.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace msdbg {
namespace {

/// "input_args.2 = -Infinity": an argument of the call that is an infinity; "" without one.
std::string infinite_argument(const Node& node) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.value != "-Infinity" && attribute.value != "Infinity") continue;
    return fmt::format("{} = {}", attribute.name.get(), attribute.value.get());
  }
  return "";
}

/// Calls that write a value where they are told to.
constexpr std::array<std::string_view, 6> kFilling = {"where", "masked_fill", "masked_fill_", "fill_", "full", "full_like"};

}  // namespace

PutInValues::PutInValues(Evidence& evidence, const StepModel& model, const std::vector<Execution>& calls)
    : evidence_(evidence), model_(model) {
  const Predicate::Builtin* which = evidence.builtin();
  if (which == nullptr || *which == Predicate::Builtin::kNan) return;
  for (const Execution& call : calls) look_at(call);
}

bool PutInValues::only_infinite(const TensorId& id) {
  const std::optional<Stats> stats = evidence_.stats(id);
  return stats && stats->nan_count == 0 && stats->inf_count() > 0 && stats->knows(kStatNan);
}

size_t PutInValues::add_root(const TensorId& tensor, std::string argument) {
  put_in_.push_back({tensor, std::move(argument), {}});
  return put_in_.size() - 1;
}

std::optional<size_t> PutInValues::root_of_input(const TensorId& input) {
  const Graph& graph = model_.graph();
  const Node& node = graph.node(input.node);
  const Edge maker = graph.effective_producer(input.node, input.slot.index);
  if (maker.node != kNoNode) {
    const auto made = roots_.find(model_.id(maker.node, {Io::kOutput, maker.slot}));
    if (made != roots_.end()) return made->second;
  }
  const std::optional<Stats> stats = evidence_.stats(input);
  if (!stats) return std::nullopt;
  // A view is not recorded, and has the shape of another tensor.
  if (const auto same = alike_.find({stats->dtype, stats->count}); same != alike_.end()) return same->second;
  if (maker.node != kNoNode) return std::nullopt;
  const bool filling = std::find(kFilling.begin(), kFilling.end(), node.op) != kFilling.end();
  if (stats->count == 1 && filling) return add_root(input, fmt::format("{} is one infinite element", slot_name(input.slot)));
  // A mask that is added: 0 where a value counts.
  const bool mask = stats->count > 1 && stats->knows(kStatMax | kStatPosInf) && stats->max == 0 && stats->pos_inf_count == 0;
  if (mask && node.role == CallRole::kForward) return add_root(input, fmt::format("{} is a mask of 0 and -Inf", slot_name(input.slot)));
  return std::nullopt;
}

void PutInValues::look_at(const Execution& call) {
  const Graph& graph = model_.graph();
  const Node& node = graph.node(call.node);
  std::optional<size_t> root;
  bool other = false;
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    const TensorId input = model_.id(call.node, {Io::kInput, slot});
    if (!evidence_.is_bad(input)) continue;
    const std::optional<size_t> found = only_infinite(input) ? root_of_input(input) : std::nullopt;
    if (found) roots_.emplace(input, *found);
    other = other || !found;
    if (!root) root = found;
  }
  if (other) return;
  const std::string argument = root ? "" : infinite_argument(node);
  if (!root && argument.empty()) return;
  for (uint32_t slot = 0; slot < node.outputs.size(); ++slot) {
    const TensorId output = model_.id(call.node, {Io::kOutput, slot});
    if (!evidence_.is_bad(output) || !only_infinite(output)) continue;
    if (!root) root = add_root(output, argument);
    roots_.emplace(output, *root);
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
