#include "agent/put_in.h"

#include <algorithm>

#include "msdbg/masks.h"

namespace msdbg::agent {
namespace {

/// From a value to the constants that it is made of.
constexpr int kLongestWay = 100;

/// Nothing is known of a value that cannot be read.
std::optional<Stats> stats_of(TensorStore& store, FlatIndex flat) {
  if (!store.is_loaded(flat)) return std::nullopt;
  // What is known of a value on a device suffices, but not to tell a mask from data.
  const bool computed = store.sources()[store.source_of(flat)].kind == SourceKind::kOperator;
  if (const ValueState state = store.state(flat); state != 0 && (computed || state != kStateInf)) {
    Stats stats;
    stats.count = store.tensor(flat).count();
    stats.nan_count = (state & kStateNan) != 0 ? 1 : 0;
    stats.neg_inf_count = (state & kStateInf) != 0 ? 1 : 0;
    stats.known = kStatCount | kStatNan | kStatPosInf | kStatNegInf;
    return stats;
  }
  if (!store.fetch(flat)) return std::nullopt;
  return compute_stats(store.tensor(flat).view());
}

/// A mask has places that count, and nothing masks with +Inf.
bool is_like_a_mask(TensorStore& store, FlatIndex flat) {
  if (!store.fetch(flat)) return false;
  const Stats stats = compute_stats(store.tensor(flat).view());
  return stats.pos_inf_count == 0 && stats.neg_inf_count < stats.count;
}

}  // namespace

bool PutIn::holds(TensorStore& store, FlatIndex flat) {
  if (const auto known = known_.find(flat); known != known_.end()) return known->second;
  known_[flat] = false;  // an operator that reads what it changes is no reason
  return known_[flat] = look(store, flat);
}

bool PutIn::look(TensorStore& store, FlatIndex flat) {
  const std::optional<Stats> stats = stats_of(store, flat);
  if (!stats || stats->nan_count > 0 || stats->inf_count() == 0) return false;
  const SourceIndex index = store.source_of(flat);
  const Source& source = store.sources()[index];
  return source.kind == SourceKind::kOperator ? look_at_output(store, index, flat, *stats) : look_at_input(store, source, *stats);
}

PutIn::Use PutIn::use_of(TensorStore& store, const Source& source) {
  Use use;
  for (NodeIndex node = 0; node < store.node_count(); ++node) {
    const NodeDescription& described = store.graph().nodes[node];
    const auto inputs = store.inputs(node);
    use.operators = use.operators || !inputs.empty();
    const bool reads = std::ranges::any_of(inputs, [&](const InputRef& input) { return &store.sources()[input.source] == &source; });
    use.read = use.read || reads;
    use.limits = use.limits || (reads && takes_limits(described.op));
    use.copied = use.copied || (reads && only_copies(described.op));
    const auto is_its_gradient = [&](const Attribute& each) { return each.name == "gradient_of" && each.value == source.name; };
    use.trained = use.trained || std::ranges::any_of(described.attributes, is_its_gradient);
  }
  return use;
}

bool PutIn::is_open(TensorStore& store, FlatIndex flat) {
  const Source& source = store.sources()[store.source_of(flat)];
  if (source.kind != SourceKind::kParameter) return false;
  const Use use = use_of(store, source);
  if (use.operators || use.trained) return false;
  const std::optional<Stats> stats = stats_of(store, flat);
  return stats && stats->nan_count == 0;
}

bool PutIn::look_at_input(TensorStore& store, const Source& source, const Stats& stats) const {
  // A buffer of a module is held like a weight.
  if (is_additive_mask(stats, source.weight)) return true;
  const Use use = use_of(store, source);
  if (stats.count > 1) return is_unset_limit(stats) && use.limits && !use.trained;
  if (use.limits || use.copied) return true;
  // A limit, such as that of a constraint.
  return use.operators && !use.read && !use.trained;
}

/// Whether values that were not kept lead back to an operator that was given an infinity.
bool PutIn::leads_back(TensorStore& store, SourceIndex source) {
  if (store.sources()[source].kind != SourceKind::kOperator || store.is_loaded(store.sources()[source].first)) return false;
  if (const auto known = back_.find(source); known != back_.end()) return known->second;
  back_[source] = false;  // for a circle
  const auto inputs = store.inputs(source);
  const bool found = infinite_argument(store.graph().nodes[source].attributes) != nullptr ||
                     std::ranges::any_of(inputs, [&](const InputRef& input) { return leads_back(store, input.source); });
  return back_[source] = found;
}

/// Whether neither data nor a weight nor a random number has a part in it: the same in each step, such as the logarithm of a mask of 0 and 1.
bool PutIn::is_made_from_numbers(TensorStore& store, SourceIndex source, int depth) {
  if (depth > kLongestWay) return false;
  const SourceKind kind = store.sources()[source].kind;
  if (kind != SourceKind::kOperator) return kind == SourceKind::kConstant;
  if (makes_values(store.graph().nodes[source].op)) return true;
  if (const auto known = from_numbers_.find(source); known != from_numbers_.end()) return known->second;
  from_numbers_[source] = false;  // for a circle
  const auto inputs = store.inputs(source);
  const bool all = !inputs.empty() && inputs.size() == store.graph().nodes[source].inputs.size() &&
                   std::ranges::all_of(inputs, [&](const InputRef& input) { return is_made_from_numbers(store, input.source, depth + 1); });
  return from_numbers_[source] = all;
}

bool PutIn::look_at_output(TensorStore& store, NodeIndex node, FlatIndex flat, const Stats& stats) {
  // Nobody masks a gradient: an infinity that got there was not absorbed.
  if (store.sources()[node].name.starts_with("Gradients/")) return false;
  const NodeDescription& described = store.graph().nodes[node];
  if (is_table_with_infinities(described.op, flat - store.sources()[node].first)) return true;
  const bool copies = only_copies(described.op);
  bool found = infinite_argument(described.attributes) != nullptr;
  bool constant = false, unknown = false;
  std::vector<Stats> finite;
  for (const InputRef& input : store.inputs(node)) {
    const FlatIndex taken_from = store.sources()[input.source].first;
    const std::optional<Stats> taken = stats_of(store, taken_from);
    if (!taken) {
      // MindSpore's constants are not in its dumps, and values that nobody watches are not kept.
      const bool is_constant = store.sources()[input.source].kind == SourceKind::kConstant;
      constant = constant || is_constant;
      unknown = unknown || !is_constant;
      found = found || (is_constant && copies) || leads_back(store, input.source);
      continue;
    }
    if (taken->nan_count > 0) return false;
    if (taken->inf_count() == 0) {
      finite.push_back(*taken);
      continue;
    }
    if (!holds(store, taken_from) && !(taken->count == 1 && copies)) return false;
    // A sum or a loss that became infinite is what a mask must not do.
    if (taken->count > 1 && stats.count == 1) return false;
    found = true;
  }
  if (!found && finite.size() == store.inputs(node).size() && is_made_from_numbers(store, node)) found = is_like_a_mask(store, flat);
  return found || (constant && !unknown && (finite.empty() || adds_mask(described.op, stats, finite)));
}

}  // namespace msdbg::agent
