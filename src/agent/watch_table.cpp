#include "agent/watch_table.h"

#include <algorithm>
#include <tuple>

#include "msdbg/condition_numbers.h"
#include "msdbg/node_names.h"

namespace msdbg::agent {
namespace {


/// The parameter's value by position; the client reads some lists by position and ignores the names.
double value_at(const debugger::WatchCondition& wire, int place) {
  return place < wire.params_size() ? wire.params(place).value() : 0;
}
bool enabled_at(const debugger::WatchCondition& wire, int place) {
  return place < wire.params_size() && !wire.params(place).disabled();
}

bool is_overflow(const Condition& condition) { return condition.spec->enumerator == condition_number::kOperatorOverflow; }

/// Decided by what is known of a value elsewhere, without its elements.
bool decided_by_state(const Condition& condition, TensorStore& store, FlatIndex flat) {
  using namespace condition_number;
  const int number = condition.spec->enumerator;
  return (number == kNan || number == kInf || number == kTensorOverflow) && store.state(flat) != 0;
}

/// An infinity is a hit, if the program did not ask for it.
bool is_about_infinity(const Condition& condition) {
  const int number = condition.spec->enumerator;
  return number == condition_number::kInf || number == condition_number::kTensorOverflow;
}

bool is_about_bad_values(const Condition& condition) {
  return is_about_infinity(condition) || condition.spec->enumerator == condition_number::kNan;
}

Stats stats_of_state(ValueState state) {
  Stats stats;
  stats.count = 1;
  stats.nan_count = (state & kStateNan) != 0 ? 1 : 0;
  stats.pos_inf_count = (state & kStateInf) != 0 ? 1 : 0;
  stats.known = kStatCount | kStatNan | kStatPosInf | kStatNegInf;
  return stats;
}

}  // namespace

struct WatchTable::Found {
  uint32_t order;
  uint32_t rank;
  size_t place;  ///< among the hits of one evaluation
  debugger::WatchpointHit hit;
};

void WatchTable::apply(const debugger::SetCMD& command) {
  ++version_;
  const auto id = static_cast<unsigned int>(command.id());
  std::erase_if(bad_, [&](const auto& known) { return known.first == id; });
  if (command.delete_()) {
    table_.erase(id);
    return;
  }
  Watchpoint& watchpoint = table_[id];
  watchpoint = {};
  watchpoint.id = id;
  watchpoint.wire = command.watch_condition();
  watchpoint.condition = read_condition(watchpoint.wire);
  watchpoint.nodes.assign(command.watch_nodes().begin(), command.watch_nodes().end());
  index_nodes(watchpoint);
}

bool WatchTable::judges() const {
  return std::ranges::any_of(table_, [](const auto& entry) {
    const std::optional<Condition>& condition = entry.second.condition;
    return condition && condition->spec->enumerator != condition_number::kInitialization;
  });
}

void WatchTable::clear() {
  table_.clear();
  judged_.clear();
  bad_.clear();
  ++version_;
}

std::optional<Condition> WatchTable::read_condition(const debugger::WatchCondition& wire) const {
  const int number = wire.condition();
  if (!traits_.params && number > condition_number::kLastLegacy) return std::nullopt;
  Condition condition;
  for (const ConditionSpec& spec : condition_catalogue()) {
    if (spec.enumerator == number && condition.spec == nullptr) condition.spec = &spec;
  }
  if (condition.spec == nullptr) return std::nullopt;
  if (!traits_.params) {
    if (number >= condition_number::kFirstLegacy) condition.params["param"] = static_cast<double>(wire.value());
    return condition;
  }
  for (const auto& param : wire.params()) {
    const auto known = std::find_if(condition.spec->params.begin(), condition.spec->params.end(),
                                    [&](const ParamSpec& spec) { return spec.name == param.name(); });
    // Hidden parameters have no effect in the client.
    if (param.disabled() || known == condition.spec->params.end() || known->kind != ParamKind::kCheck) continue;
    condition.params[param.name()] = param.value();
  }
  if (number == condition_number::kNotChanged) {
    condition.params["rtol"] = value_at(wire, traits_.swapped_tolerances ? 1 : 0);
    condition.params["atol"] = value_at(wire, traits_.swapped_tolerances ? 0 : 1);
  }
  if (number == condition_number::kRange) {
    if (enabled_at(wire, 0)) condition.params["range_start_inclusive"] = value_at(wire, 0);
    if (enabled_at(wire, 1)) condition.params["range_end_inclusive"] = value_at(wire, 1);
  }
  return condition;
}

void WatchTable::index_nodes(Watchpoint& watchpoint) const {
  for (uint32_t i = 0; i < watchpoint.nodes.size(); ++i) {
    const std::string& name = watchpoint.nodes[i].node_name();
    const bool scope = watchpoint.nodes[i].node_type() == "scope";
    if (scope && (traits_.prefix_scopes || name == "*")) watchpoint.prefixes.push_back(i);
    if (scope && !traits_.params) continue;
    watchpoint.names.try_emplace(name, i);
    if (traits_.params) watchpoint.names.try_emplace(std::string(last_component(name)), i);
  }
}

/// The name for the hit; null if the watchpoint does not cover this tensor.
const std::string* WatchTable::match(const Watchpoint& watchpoint, const std::string& name) const {
  const auto exact = watchpoint.names.find(name);
  uint32_t first = exact == watchpoint.names.end() ? UINT32_MAX : exact->second;
  for (const uint32_t i : watchpoint.prefixes) {
    const std::string& prefix = watchpoint.nodes[i].node_name();
    if (i < first && (prefix == "*" || name.starts_with(prefix))) first = i;
  }
  if (first == UINT32_MAX) return nullptr;
  return traits_.own_names ? &name : &watchpoint.nodes[first].node_name();
}

void WatchTable::prepare(TensorStore& store) {
  prepared_for_ = &store;
  prepared_version_ = version_;
  const auto sources = store.sources();
  wanted_.assign(store.node_count(), false);
  asked_ = wanted_;
  matches_.assign(sources.size(), {});
  std::unordered_map<std::string_view, std::vector<NodeIndex>> readers;
  std::unordered_map<std::string_view, NodeIndex> operators;
  for (NodeIndex node = 0; node < store.node_count(); ++node) {
    operators[sources[node].name] = node;
    for (const InputRef& input : store.inputs(node)) {
      const std::string& name = sources[input.source].name;
      if (name.find('/') == std::string::npos) readers[name].push_back(node);
    }
  }
  everything_ = false;
  for (const auto& [id, watchpoint] : table_) {
    for (SourceIndex i = 0; i < sources.size(); ++i) {
      if (const std::string* name = match(watchpoint, sources[i].name)) matches_[i].push_back({&watchpoint, name});
    }
    for (const debugger::WatchNode& node : watchpoint.nodes) {
      const std::string& name = node.node_name();
      if (node.node_type() == "scope") {
        if (name == "*") everything_ = true;
        for (NodeIndex i = 0; i < store.node_count(); ++i) {
          if (name == "*" || sources[i].name.starts_with(name)) asked_[i] = true;
        }
        continue;
      }
      if (const auto found = operators.find(name); found != operators.end()) asked_[found->second] = true;
      if (name.find('/') == std::string::npos || traits_.parameters_alone) continue;  // a bare parameter name does not cause it to be read
      const std::string last(last_component(name));
      if (const auto found = readers.find(last); found != readers.end()) {
        // MindSpore reads a watched parameter where an operator reads it.
        for (const NodeIndex reader : found->second) wanted_[reader] = true;
      }
    }
  }
  beginnings_ = false;
  for (SourceIndex i = store.node_count(); i < sources.size(); ++i) {
    const auto judged = [](const Match& match) { return match.watchpoint->condition && is_about_bad_values(*match.watchpoint->condition); };
    beginnings_ = beginnings_ || (sources[i].weight && std::ranges::any_of(matches_[i], judged));
  }
  feeds_.assign(store.node_count(), false);
  for (NodeIndex node = 0; node < store.node_count(); ++node) {
    if (!asked_[node]) continue;
    wanted_[node] = true;
    for (const InputRef& input : store.inputs(node)) {
      if (const SourceIndex producer = store.source_of(input.value); producer < store.node_count()) feeds_[producer] = true;
    }
  }
}

bool WatchTable::judges_beginnings(TensorStore& store) {
  if (table_.empty() || !traits_.parameters_alone) return false;
  if (prepared_for_ != &store || prepared_version_ != version_) prepare(store);
  return beginnings_;
}

Wants WatchTable::coverage(TensorStore& store) {
  if (table_.empty()) return Wants::kNothing;
  if (prepared_for_ != &store || prepared_version_ != version_) prepare(store);
  const auto count = static_cast<size_t>(std::count(asked_.begin(), asked_.end(), true));
  if (everything_ || (count > 0 && count == asked_.size())) return Wants::kAll;
  return count > 0 ? Wants::kSome : Wants::kNothing;
}

void WatchTable::described_again(const std::vector<FlatIndex>& moved) {
  std::unordered_set<uint64_t> judged;
  for (const uint64_t mark : judged_) {
    const uint64_t from = mark >> 32;
    const FlatIndex to = from < moved.size() ? moved[from] : TensorStore::kNowhere;
    if (to != TensorStore::kNowhere) judged.insert(uint64_t{to} << 32 | (mark & UINT32_MAX));
  }
  judged_ = std::move(judged);
  put_in_.clear();
}

bool WatchTable::due(const Watchpoint& watchpoint, JudgeTime when) const {
  if (!watchpoint.condition) return false;
  const bool initial = watchpoint.condition->spec->enumerator == condition_number::kInitialization;
  // Overflow flags are collected at the end of a step; a GPU has none.
  if (is_overflow(*watchpoint.condition) && (!traits_.ascend || when == JudgeTime::kOperator)) return false;
  if (when == JudgeTime::kInitialRecheck || initial) return initial && when == JudgeTime::kInitialRecheck;
  if (when == JudgeTime::kStepBegin) return is_about_bad_values(*watchpoint.condition);
  return !watchpoint.condition->spec->needs_previous || when != JudgeTime::kOperator;
}

debugger::WatchpointHit WatchTable::make_hit(const Watchpoint& watchpoint, const Decision& decision,
                                             const std::string& name, uint32_t slot) const {
  debugger::WatchpointHit hit;
  hit.mutable_tensor()->set_node_name(name);
  hit.mutable_tensor()->set_slot(std::to_string(slot));
  hit.mutable_tensor()->set_finished(true);
  auto& condition = *hit.mutable_watch_condition();
  condition.set_condition(watchpoint.wire.condition());
  if (traits_.params) *condition.mutable_params() = watchpoint.wire.params();
  for (auto& param : *condition.mutable_params()) {
    for (const ParamResult& result : decision.params) {
      if (result.name != param.name() || !result.actual) continue;
      param.set_hit(result.hit || param.hit());
      param.set_actual_value(*result.actual);
    }
  }
  hit.set_id(static_cast<int32_t>(watchpoint.id));
  hit.set_error_code(static_cast<int32_t>(decision.error_code));
  return hit;
}

void WatchTable::judge_tensor(TensorStore& store, JudgeTime when, FlatIndex flat, std::vector<Found>& found) {
  const SourceIndex source = store.source_of(flat);
  const bool once = when == JudgeTime::kOperator || when == JudgeTime::kStepEnd;
  StoredTensor tensor = store.tensor(flat);
  std::vector<const Watchpoint*> judged;
  const std::string* name = nullptr;
  StatsRequest request;
  uint32_t fields = 0;
  bool measured = false;  // something is judged by its elements
  for (const Match& match : matches_[source]) {
    if (!due(*match.watchpoint, when)) continue;
    // If several watchpoints cover one tensor, all hits use the name from the last one.
    name = match.name;
    const uint64_t mark = uint64_t{flat} << 32 | match.watchpoint->id;
    if (once && !judged_.insert(mark).second) continue;
    const bool numeric = match.watchpoint->condition->spec->enumerator >= condition_number::kFirstLegacy;
    if (!traits_.params && tensor.dtype == DType::kBool && numeric) continue;
    judged.push_back(match.watchpoint);
    if (is_overflow(*match.watchpoint->condition) || decided_by_state(*match.watchpoint->condition, store, flat)) continue;
    add_needs(*match.watchpoint->condition, request);
    fields |= needed_fields(*match.watchpoint->condition, Semantics::kCompat);
    measured = true;
  }
  if (judged.empty()) return;
  // To fetch all weights once more would take too long.
  if (when == JudgeTime::kStepBegin && measured && store.is_elsewhere(flat)) return;
  const bool readable = !measured || store.fetch(flat);
  measured = measured && readable;
  tensor = store.tensor(flat);
  StoredTensor old;
  Previous previous = Previous::kNotNeeded;
  if (request.needs_previous()) {
    const std::optional<StoredTensor> kept = store.previous(flat);
    old = kept.value_or(StoredTensor());
    previous = !kept ? Previous::kMissing : old.count() == tensor.count() ? Previous::kPresent : Previous::kSizeDiffers;
  }
  StatsRequest computed = request;
  if (previous != Previous::kPresent) computed.change = false, computed.close.clear();
  const Stats stats = !measured                        ? Stats()
                      : previous == Previous::kPresent ? compute_stats(tensor.view(), old.view(), computed)
                                                       : compute_stats(tensor.view(), computed, fields);
  const bool in_place = source < store.node_count() && !store.is_elsewhere(flat);
  if (measured && in_place && stats.knows(kStatNan | kStatPosInf | kStatNegInf) && stats.nan_count + stats.inf_count() == 0) {
    store.note_finite(source, flat - store.sources()[source].first, tensor.bytes);
  }
  for (const Watchpoint* watchpoint : judged) {
    Decision decision = judge_one(*watchpoint, store, flat, stats, computed, previous, readable, Semantics::kCompat);
    // An infinity that the program put in keeps no condition from an answer.
    if (traits_.parameters_alone && decision.error_code == kErrorInf && put_in_.holds(store, flat))
      decision = judge_one(*watchpoint, store, flat, stats, computed, previous, readable, Semantics::kFinite);
    const bool forced = std::any_of(watchpoint->wire.params().begin(), watchpoint->wire.params().end(),
                                    [](const auto& param) { return param.hit(); });
    const bool was_bad = source >= store.node_count() && note_state(*watchpoint, *name, decision);
    if (when == JudgeTime::kStepBegin && (was_bad || !decision.hit())) continue;
    // The end of the step tells.
    if (when == JudgeTime::kStepBegin && is_about_infinity(*watchpoint->condition) && PutIn::is_open(store, flat)) continue;
    const bool undecided = traits_.params && decision.error_code != 0;
    if (!decision.hit() && !undecided && !forced) continue;
    if (traits_.parameters_alone && decision.hit() && is_about_infinity(*watchpoint->condition) && put_in_.holds(store, flat)) continue;
    found.push_back({store.order(flat), store.rank(flat), found.size(),
                     make_hit(*watchpoint, decision, *name, flat - store.sources()[source].first)});
  }
  store.release(flat);  // a debugger that looks at it has it fetched again
}

/// Whether the parameter was bad when it was judged the last time: that is no news when a step begins.
bool WatchTable::note_state(const Watchpoint& watchpoint, const std::string& name, const Decision& decision) {
  if (!is_about_bad_values(*watchpoint.condition)) return false;
  if (decision.hit()) return !bad_.emplace(watchpoint.id, name).second;
  return !bad_.empty() && bad_.erase({watchpoint.id, name}) > 0;
}

/// `readable`: the elements were there, as far as they are needed.
Decision WatchTable::judge_one(const Watchpoint& watchpoint, TensorStore& store, FlatIndex flat, const Stats& stats,
                               const StatsRequest& computed, Previous previous, bool readable, Semantics semantics) const {
  const Condition& condition = *watchpoint.condition;
  Decision decision;
  if (is_overflow(condition)) {
    decision.verdict = store.has_overflowed(store.source_of(flat)) ? Verdict::kHit : Verdict::kClean;
  } else if (decided_by_state(condition, store, flat)) {
    decision = decide(condition, stats_of_state(store.state(flat)), computed, Previous::kNotNeeded, Semantics::kCompat);
  } else if (readable) {
    const Previous own = condition.spec->needs_previous ? previous : Previous::kNotNeeded;
    decision = decide(condition, stats, computed, own, semantics);
  } else {
    decision.verdict = Verdict::kNotChecked;
    decision.error_code = kErrorNoValue;
  }
  return decision;
}

std::vector<debugger::WatchpointHit> WatchTable::judge(TensorStore& store, JudgeTime when, NodeIndex node) {
  std::vector<debugger::WatchpointHit> hits;
  if (table_.empty()) return hits;
  if (prepared_for_ != &store || prepared_version_ != version_) prepare(store);
  std::vector<Found> found;
  if (when == JudgeTime::kOperator) {
    const Source& source = store.sources()[node];
    for (FlatIndex flat = source.first; flat < source.first + source.slots; ++flat) {
      if (store.is_loaded(flat)) judge_tensor(store, when, flat, found);
    }
  } else {
    const bool begins = when == JudgeTime::kStepBegin;
    const bool elsewhere = !begins || coverage(store) == Wants::kAll;
    for (const TensorStore::Loaded& loaded : store.loaded()) {
      if (begins && !store.sources()[store.source_of(loaded.flat)].weight) continue;  // data are judged with their readers
      if (elsewhere || !store.is_elsewhere(loaded.flat)) judge_tensor(store, when, loaded.flat, found);
    }
  }
  // By execution order; among equal ones the client sends the last one found first.
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tuple(a.order, b.rank, b.place) < std::tuple(b.order, a.rank, a.place);
  });
  hits.reserve(found.size());
  for (Found& entry : found) hits.push_back(std::move(entry.hit));
  return hits;
}

}  // namespace msdbg::agent
