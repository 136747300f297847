// Watchpoints of a live session: sent to the training if it can judge them, otherwise judged here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "msdbg/condition_numbers.h"
#include "session/live/live_session.h"
#include "session/live/recorded_watch.h"

namespace msdbg::live {

bool LiveSessionImpl::judged_here(const Watchpoint& watch) const {
  if (!watch.condition || watch.inputs || !watch.outputs) return true;
  // Reported as "not checked", with the reason.
  if (watch.condition->spec->enumerator == condition_number::kOperatorOverflow && !profile_.ascend) return true;
  return !peer_judges(profile_, *watch.condition);
}

Status LiveSessionImpl::resolve(Wanted& wanted) const {
  std::vector<NodeRef> nodes;
  if (wanted.watch.optional) {
    nodes = wanted.watch.on.resolve(graphs_);
  } else {
    Result<std::vector<NodeRef>> found = resolve_or_explain(wanted.watch.on, graphs_);
    if (!found) return found.status();
    nodes = std::move(*found);
  }
  wanted.nodes.clear();
  for (const NodeRef& ref : nodes) {
    const Node& node = ref.graph->node(ref.node);
    if (node.kind == NodeKind::kConstant && !wanted.watch.on.asks_for_constant(*ref.graph, node)) continue;
    wanted.nodes.push_back(ref);
  }
  return {};
}

std::vector<WatchedName> LiveSessionImpl::names_of(const Wanted& wanted) const {
  std::vector<WatchedName> names;
  for (const NodeRef& ref : wanted.nodes) {
    const Node& node = ref.graph->node(ref.node);
    if (auto name = watch_name(*ref.graph, node)) names.push_back({std::move(*name), node.op});
  }
  // The training has one name for a node that two graphs share.
  std::set<std::string_view> seen;
  std::vector<WatchedName> unique;
  for (WatchedName& watched : names) {
    if (seen.insert(watched.name).second) unique.push_back(watched);
  }
  return unique;
}

std::string LiveSessionImpl::condition_signature(const Wanted& wanted) const {
  if (!wanted.watch.condition || wanted.local) return "carrier";
  std::string text = wanted.watch.condition->text();
  for (const auto& [name, value] : wanted.watch.condition->params) text += fmt::format(" {}={}", name, format_double(value));
  return text;
}

Status LiveSessionImpl::set_watchpoints(std::span<const Watchpoint> watchpoints) {
  process_events();
  std::vector<Wanted> next;
  for (const Watchpoint& watch : watchpoints) {
    if (!watch.enabled) continue;
    Wanted wanted;
    const auto old = std::find_if(wanted_.begin(), wanted_.end(), [&](const Wanted& w) { return w.watch.id == watch.id; });
    if (old != wanted_.end()) wanted = *old;
    wanted.watch = watch;
    if (old == wanted_.end() || old->nodes.empty() || old->watch.on.text() != watch.on.text()) {
      if (Status status = resolve(wanted); !status.ok()) return status;
    }
    next.push_back(std::move(wanted));
  }
  for (const Wanted& old : wanted_) {
    const bool stays = std::any_of(next.begin(), next.end(), [&](const Wanted& w) { return w.watch.id == old.watch.id; });
    if (!stays) delete_ids_.insert(delete_ids_.end(), old.peer_ids.begin(), old.peer_ids.end());
  }
  wanted_ = std::move(next);
  stale_ = true;
  if (talk_.state() != LiveState::kHeld) return {};
  return flush();
}

Status LiveSessionImpl::flush() {
  if (!stale_) return {};
  while (!delete_ids_.empty()) {
    const int id = delete_ids_.back();
    if (Status status = talk_.send(make_delete(id), fmt::format("removing watchpoint {}", id)); !status.ok()) return status;
    ignored_ids_.erase(id);
    delete_ids_.pop_back();
  }
  keep_.clear();
  for (Wanted& wanted : wanted_) {
    if (wanted.nodes.empty()) {
      if (Status status = resolve(wanted); !status.ok()) {
        report(Severity::kWarning, fmt::format("watchpoint {}: {}", wanted.watch.id, status.message()));
        // The training must not go on looking at what was picked before.
        if (wanted.sent.empty()) continue;
      }
    }
    wanted.local = judged_here(wanted.watch);
    const bool looks_back = (wanted.watch.condition && wanted.watch.condition->spec->needs_previous) ||
                            (wanted.watch.expression && wanted.watch.expression->needs_previous());
    if (wanted.local && looks_back) {
      for (const NodeRef& ref : wanted.nodes) {
        for (uint32_t slot = 0; slot < ref.graph->node(ref.node).outputs.size(); ++slot)
          keep_.insert({options_.rank, ref.graph->id(), ref.node, slot});
      }
    }
    if (Status status = send_watchpoint(wanted); !status.ok()) return status;
  }
  if (!keeper_.nodes.empty() || !keeper_.peer_ids.empty()) {
    if (Status status = send_watchpoint(keeper_); !status.ok()) return status;
  }
  stale_ = false;
  return {};
}

Status LiveSessionImpl::send_watchpoint(Wanted& wanted) {
  const std::vector<WatchedName> names = names_of(wanted);
  std::string signature = condition_signature(wanted);
  size_t hash = names.size();
  for (const WatchedName& watched : names) hash = hash * 1099511628211u + std::hash<std::string>()(watched.name);
  signature += fmt::format(" on {} names {:x}", names.size(), hash);
  if (signature == wanted.sent) return {};

  const bool initialization = wanted.watch.condition && wanted.watch.condition->spec->enumerator == condition_number::kInitialization;
  if (wanted.local && wanted.watch.condition && wanted.watch.condition->spec->needs_previous) {
    report(Severity::kInfo, fmt::format("watchpoint {}: {} is judged by msdbg, because this training keeps no previous values",
                                        wanted.watch.id, wanted.watch.condition->spec->id));
  }
  if (initialization) {
    wanted.initial_pending = hold_ == HoldKind::kInitial;
    if (!wanted.initial_pending)
      report(Severity::kWarning, fmt::format("watchpoint {}: {} is judged before the first step only, which is over",
                                             wanted.watch.id, wanted.watch.condition->spec->id));
  }
  // Ascend keeps all values at the end of a step: nothing has to be watched to stay readable.
  const bool silent = wanted.local && profile_.ascend;
  const size_t needed = silent ? 0 : set_cmds_needed(names);
  while (wanted.peer_ids.size() < needed) wanted.peer_ids.push_back(next_peer_id_++);
  const std::vector<int> unused(wanted.peer_ids.begin() + static_cast<std::ptrdiff_t>(needed), wanted.peer_ids.end());
  wanted.peer_ids.resize(needed);
  for (const int id : unused) {
    if (Status status = talk_.send(make_delete(id), fmt::format("removing watchpoint {}", id)); !status.ok()) {
      delete_ids_.push_back(id);
      return status;
    }
    ignored_ids_.erase(id);
  }
  if (!silent) {
    const std::vector<debugger::EventReply> replies = wanted.local
        ? make_carriers(profile_, names, wanted.peer_ids)
        : make_set_cmds(profile_, *wanted.watch.condition, names, wanted.peer_ids);
    for (const debugger::EventReply& reply : replies) {
      const std::string what = fmt::format("watchpoint {} on {} nodes", wanted.watch.id, names.size());
      if (Status status = talk_.send(reply, what); !status.ok()) return status;
    }
  }
  for (const int id : wanted.peer_ids) {
    if (wanted.local) ignored_ids_.insert(id);
    else ignored_ids_.erase(id);
  }
  wanted.sent = std::move(signature);
  return {};
}

/// Any output of one of these operators is a hit: the training stops after it without level "node".
Status LiveSessionImpl::arm_stop(std::span<const WatchedName> names) {
  if (names.empty()) return {};
  for (size_t i = set_cmds_needed(names); i > 0; --i) stop_ids_.push_back(next_peer_id_++);
  ignored_ids_.insert(stop_ids_.begin(), stop_ids_.end());
  for (const debugger::EventReply& reply : make_stops(profile_, names, stop_ids_)) {
    if (Status status = talk_.send(reply, fmt::format("a stop after {} operators", names.size())); !status.ok()) return status;
  }
  return {};
}

/// The next command sends this to the training.
void LiveSessionImpl::disarm_stop() {
  if (stop_ids_.empty()) return;
  delete_ids_.insert(delete_ids_.end(), stop_ids_.begin(), stop_ids_.end());
  stop_ids_.clear();
  stale_ = true;
}

const LiveSessionImpl::Wanted* LiveSessionImpl::by_peer_id(int id) const {
  for (const Wanted& wanted : wanted_) {
    if (std::find(wanted.peer_ids.begin(), wanted.peer_ids.end(), id) != wanted.peer_ids.end()) return &wanted;
  }
  return nullptr;
}

// Only an operator's own outputs are judged after it has run. Its inputs were judged with their producers, or are parameters;
// parameters and conditions on change are judged at the end of the step.
bool LiveSessionImpl::hit_at_current_node(std::span<const debugger::WatchpointHit> hits) const {
  const auto current = names_.find(suspension_.cur_node);
  return std::any_of(hits.begin(), hits.end(), [&](const debugger::WatchpointHit& hit) {
    const int condition = hit.watch_condition().condition();
    if (condition >= condition_number::kChangeTooLarge && condition <= condition_number::kNotChanged) return false;
    if (hit.tensor().node_name() == suspension_.cur_node) return true;
    const auto named = names_.find(hit.tensor().node_name());
    return current && named && named->graph == current->graph && named->node == current->node;
  });
}

void LiveSessionImpl::add_hit(const Wanted& wanted, const debugger::WatchpointHit& hit, CheckResult& into) {
  const std::string shown = printable(hit.tensor().node_name());
  const auto node = names_.find(hit.tensor().node_name());
  const auto slot = parse_int(hit.tensor().slot());
  if (!node || !slot || *slot < 0) {
    report(Severity::kWarning, fmt::format("watchpoint {} hit on {}:{}, which is in no graph of this session", wanted.watch.id,
                                           shown, printable(hit.tensor().slot())));
    return;
  }
  if (wanted.watch.slot && *wanted.watch.slot != static_cast<uint32_t>(*slot)) return;
  const TensorId id{options_.rank, node->graph->id(), step_, 0, node->node, {Io::kOutput, static_cast<uint32_t>(*slot)}};
  const std::string abbr(wanted.watch.condition->spec->abbr);
  if (hit.error_code() != 0) {
    const auto code = static_cast<uint32_t>(hit.error_code());
    into.not_checked.push_back({wanted.watch.id, wanted.watch.rule, abbr, id, fmt::format("{}", fmt::join(error_texts(code), ", ")), code});
    return;
  }
  Hit out;
  out.watch_id = wanted.watch.id;
  out.watch_name = wanted.watch.name;
  out.rule = wanted.watch.rule;
  out.abbr = abbr;
  out.severity = wanted.watch.severity;
  out.tensor = id;
  const Node& named = node->graph->node(node->node);
  if (id.slot.index < named.outputs.size()) {
    out.dtype = named.outputs[id.slot.index].dtype;
    if (named.outputs[id.slot.index].shape) out.shape = *named.outputs[id.slot.index].shape;
  }
  out.params = hit_params(profile_, *wanted.watch.condition, hit);
  ++into.total_hits;
  into.hits.push_back(std::move(out));
}

bool LiveSessionImpl::collect_hits(CheckResult& into) {
  const size_t before = into.hits.size() + into.not_checked.size();
  std::map<int, Target> targets;  // a recording only has watchpoint numbers: derive targets from the nodes of all their hits
  for (const debugger::WatchpointHit& hit : raw_hits_) {
    const auto node = names_.find(hit.tensor().node_name());
    if (!options_.recorded || !node) continue;
    const Target target = target_of(node->graph->node(node->node));
    if (const auto known = targets.try_emplace(hit.id(), target).first; known->second != target) known->second = Target::kTensor;
  }
  for (const debugger::WatchpointHit& hit : raw_hits_) {
    if (ignored_ids_.count(hit.id()) > 0) continue;
    const Wanted* wanted = by_peer_id(hit.id());
    const bool known = wanted != nullptr && wanted->watch.condition;
    if (options_.recorded && !(known && wanted->watch.condition->spec->enumerator == hit.watch_condition().condition())) {
      Wanted recorded;
      const auto target = targets.find(hit.id());
      if (recorded_watchpoint(hit, target == targets.end() ? Target::kTensor : target->second, &recorded.watch))
        add_hit(recorded, hit, into);
    } else if (known) {
      add_hit(*wanted, hit, into);
    } else if (hit.id() < 1 || hit.id() >= next_peer_id_) {  // else it was removed while the training ran
      report(Severity::kWarning, fmt::format("the training reports a hit of watchpoint {} on {}, which this session has not set",
                                             hit.id(), printable(hit.tensor().node_name())));
    }
  }
  raw_hits_.clear();
  const auto key = [this](const auto& entry) {
    const Graph* graph = this->graph(entry.tensor.rank, entry.tensor.graph);
    const Node* node = graph == nullptr ? nullptr : &graph->node(entry.tensor.node);
    // As in check(): a parameter holds the value at the end of the step.
    const bool last = node != nullptr && node->kind == NodeKind::kParameter;
    return std::tuple(entry.tensor.step, entry.tensor.graph, last, node == nullptr ? 0 : node->order, entry.tensor.node,
                      entry.tensor.slot, entry.rule);
  };
  const auto earlier = [&](const auto& a, const auto& b) { return key(a) < key(b); };
  std::stable_sort(into.hits.begin(), into.hits.end(), earlier);
  std::stable_sort(into.not_checked.begin(), into.not_checked.end(), earlier);
  return into.hits.size() + into.not_checked.size() > before;
}

void LiveSessionImpl::collect_last_hits(CheckResult& into) {
  std::ranges::move(talk_.take_hits(), std::back_inserter(raw_hits_));
  // Releases that are held at the start of the next step use the number k + 1 for the end of step k.
  if (!raw_hits_.empty() && profile_.step_hold == StepHold::kNextStart) step_ = std::max(step_, completed_);
  collect_hits(into);
}

void LiveSessionImpl::judge_locally(CheckResult& into) {
  for (const bool elements : {true, false}) {
    std::vector<Watchpoint> group;
    for (const Wanted& wanted : wanted_) {
      if (wanted.local && wanted.watch.needs_elements == elements) group.push_back(wanted.watch);
    }
    if (group.empty()) continue;
    CheckOptions options;
    options.steps = IntSet::of(step_);
    options.mem_limit_bytes = options_.mem_limit_bytes;
    statistics_only_ = !elements && profile_.levels;
    Result<CheckResult> result = check(*this, group, options);
    statistics_only_ = false;
    if (!result) {
      report(Severity::kWarning, fmt::format("step {}: {}", step_, result.status().message()));
      continue;
    }
    std::move(result->hits.begin(), result->hits.end(), std::back_inserter(into.hits));
    std::move(result->not_checked.begin(), result->not_checked.end(), std::back_inserter(into.not_checked));
    std::move(result->rule_problems.begin(), result->rule_problems.end(), std::back_inserter(into.rule_problems));
    into.total_hits += result->total_hits;
    into.interrupted = into.interrupted || result->interrupted;
    into.coverage.tensors += result->coverage.tensors;
    into.coverage.checked += result->coverage.checked;
    into.coverage.not_checked += result->coverage.not_checked;
    into.coverage.bytes += result->coverage.bytes;
    into.coverage.from_cache += result->coverage.from_cache;
  }
}

}  // namespace msdbg::live
