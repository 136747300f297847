#include "session/check_plan.h"

#include "session/stats_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "msdbg/condition_numbers.h"
#include "msdbg/unfinished.h"

namespace msdbg {
namespace {

/// With more watched nodes than this, the session lists everything and the plan filters.
constexpr size_t kFewNodes = 64;

/// Sets of watchpoints by number, each stored once: a graph may have a million nodes, but few different sets.
class WatchGroups {
 public:
  using Watches = std::vector<const Watchpoint*>;
  static constexpr uint32_t kNone = 0;

  const Watches& operator[](uint32_t group) const { return groups_[group]; }
  /// The number of the set with one more watchpoint.
  uint32_t with(uint32_t group, const Watchpoint* watch) {
    const auto [known, inserted] = larger_.try_emplace({group, watch}, static_cast<uint32_t>(groups_.size()));
    if (inserted) {
      groups_.push_back(groups_[group]);
      groups_.back().push_back(watch);
    }
    return known->second;
  }

 private:
  std::vector<Watches> groups_{1};
  std::map<std::pair<uint32_t, const Watchpoint*>, uint32_t> larger_;
};

class Planner {
 public:
  Planner(Session& session, std::span<const Watchpoint> watchpoints, const CheckOptions& options)
      : session_(session), watchpoints_(watchpoints), options_(options) {}

  Result<CheckPlan> run() {
    if (Status status = choose_graphs(); !status.ok()) return status;
    if (Status status = choose_steps(); !status.ok()) return status;
    for (const Watchpoint& watch : watchpoints_) {
      if (!watch.enabled) continue;
      if (!watch.condition && !watch.expression && !watch.script) {
        return Status(Code::kInvalidArgument,
                      fmt::format("watchpoint {} has neither a condition, an expression nor a script", watch.id));
      }
      if (Status status = resolve(watch); !status.ok()) return status;
    }
    list_tensors();
    if (options_.report_missing) list_missing();
    report_idle_rules();
    const auto earlier = [](const PlannedTensor& a, const PlannedTensor& b) {
      const auto key = [](const PlannedTensor& t) {
        return std::tie(t.id.rank, t.id.step, t.id.graph, t.place, t.id.node, t.id.execution, t.id.slot);
      };
      return key(a) < key(b);
    };
    // Sessions list tensors in almost this order.
    if (!std::is_sorted(plan_.tensors.begin(), plan_.tensors.end(), earlier)) std::sort(plan_.tensors.begin(), plan_.tensors.end(), earlier);
    return std::move(plan_);
  }

 private:
  using Watches = WatchGroups::Watches;

  Status choose_graphs() {
    std::set<int64_t> ranks;
    for (const GraphPtr& graph : session_.graphs()) {
      ranks.insert(graph->rank());
      if (!options_.ranks.contains(graph->rank())) continue;
      graphs_.push_back(graph);
      by_node_.emplace(graph.get(), std::vector<uint32_t>(graph->nodes().size(), WatchGroups::kNone));
    }
    const std::vector<int64_t> available(ranks.begin(), ranks.end());
    const bool several = std::any_of(graphs_.begin(), graphs_.end(), [&](const auto& graph) { return graph->rank() != graphs_[0]->rank(); });
    compares_bits_ = several && session_.info().kind == SessionKind::kDump &&
                     std::any_of(watchpoints_.begin(), watchpoints_.end(), [](const auto& watch) { return watch.enabled && watch.compares_bits; });
    if (!graphs_.empty()) report_absent("rank", options_.ranks, available);
    if (!graphs_.empty() || ranks.empty()) return {};
    return Status(Code::kNotFound, fmt::format("no rank {} (have {})", options_.ranks.text(), numbers_text(available)));
  }

  Status choose_steps() {
    const std::vector<int64_t> available = session_.steps();
    std::copy_if(available.begin(), available.end(), std::back_inserter(plan_.steps),
                 [&](int64_t step) { return options_.steps.contains(step); });
    if (!plan_.steps.empty()) {
      for (const GraphPtr& graph : graphs_) {
        const std::vector<int64_t> ran = session_.steps(graph->rank(), graph->id());
        if (std::any_of(ran.begin(), ran.end(), [&](int64_t step) { return options_.steps.contains(step); })) ran_.insert(graph.get());
      }
      report_absent("step", options_.steps, available);
      for (std::string& text : unfinished_texts(session_, options_.steps, options_.ranks))
        plan_.problems.push_back({"*", std::move(text), RuleProblemKind::kUnfinished});
      return {};
    }
    return Status(Code::kNotFound,
                  available.empty() ? fmt::format("{}: no step has data, nothing can be checked", session_.info().source)
                               : fmt::format("no step {} (have {})", options_.steps.text(), numbers_text(available)));
  }

  /// Reports requested numbers and ranges without data. A range may extend beyond the last number.
  void report_absent(std::string_view what, const IntSet& asked, const std::vector<int64_t>& available) {
    if (asked.is_all()) return;
    const std::string text = asked.text();
    for (const std::string_view part : split(text, ',')) {
      const Result<IntSet> one = IntSet::parse(part);
      if (!one || std::any_of(available.begin(), available.end(), [&](int64_t number) { return one->contains(number); })) continue;
      plan_.problems.push_back({"*", fmt::format("no {} {} (have {})", what, part, numbers_text(available)), RuleProblemKind::kNoSuchData});
    }
  }

  /// An optional rule may match no nodes, but the reader must know that it checked nothing.
  void report_idle_rules() {
    std::set<const Watchpoint*> busy;
    for (const WatchSet& set : plan_.sets) busy.insert(set.watches.begin(), set.watches.end());
    for (const Watchpoint& watch : watchpoints_) {
      if (!watch.enabled || busy.count(&watch) > 0) continue;
      const bool selected = has_nodes_.count(&watch) > 0;
      if (selected && session_.can_step()) continue;  // a training may still compute them
      std::string reason = "selected tensors were not dumped";
      if (!selected) reason = "selector matched nothing";
      else if (selected_in_run_.count(&watch) == 0) reason = "the graphs of the selected nodes did not run in these steps";
      plan_.problems.push_back({watch.rule, std::move(reason), RuleProblemKind::kIdle});
    }
  }

  Status resolve(const Watchpoint& watch) {
    std::vector<NodeRef> nodes;
    if (watch.optional) {
      nodes = watch.on.resolve(graphs_);
    } else {
      Result<std::vector<NodeRef>> found = resolve_or_explain(watch.on, graphs_);
      if (!found) return found.status();
      nodes = std::move(*found);
    }
    size_t kept = 0;
    const Graph* graph = nullptr;  // of the last node
    std::vector<uint32_t>* groups = nullptr;
    std::optional<std::pair<uint32_t, uint32_t>> larger;  // the last group, without this watchpoint and with it
    for (const NodeRef& ref : nodes) {
      const Node& node = ref.graph->node(ref.node);
      if (node.kind == NodeKind::kConstant && !watch.on.asks_for_constant(*ref.graph, node)) continue;
      if (ref.graph != graph) {
        graph = ref.graph;
        groups = &by_node_.at(graph);
        if (ran_.count(graph) > 0) selected_in_run_.insert(&watch);
      }
      uint32_t& group = (*groups)[ref.node];
      if (group == WatchGroups::kNone) watched_.push_back(ref);
      if (!larger || larger->first != group) larger = {group, groups_.with(group, &watch)};
      group = larger->second;
      ++kept;
    }
    if (kept > 0) has_nodes_.insert(&watch);
    if (kept > 0 || watch.optional) return {};
    return Status(Code::kNotFound,
                  fmt::format("'{}' names only constants: write @constant or =NAME to look at them", watch.on.text()));
  }

  bool names_slot(const Watchpoint& watch, const TensorId& id) const {
    const bool inputs = watch.inputs || (watch.inputs_instead && without_outputs_.count(id.rank) > 0);
    if (id.slot.io == Io::kInput ? !inputs : !watch.outputs) return false;
    return !watch.slot || *watch.slot == id.slot.index;
  }

  static constexpr uint32_t kNoSet = UINT32_MAX;

  /// The set for one slot of a node of this group; kNoSet if no watchpoint looks at it.
  uint32_t set_of_slot(uint32_t group, const TensorId& id) {
    if (group == WatchGroups::kNone) return kNoSet;
    const std::tuple key(group, id.slot, without_outputs_.count(id.rank) > 0);
    // Neighbours have much in common.
    if (last_set_ != set_of_slot_.end() && last_set_->first == key) return last_set_->second;
    const auto [known, inserted] = set_of_slot_.try_emplace(key, kNoSet);
    last_set_ = known;
    if (!inserted) return known->second;
    Watches watches;
    std::copy_if(groups_[group].begin(), groups_[group].end(), std::back_inserter(watches),
                 [&](const Watchpoint* watch) { return names_slot(*watch, id); });
    if (!watches.empty()) known->second = set_of(std::move(watches));
    return known->second;
  }

  /// If only the inputs of operators were dumped, they are the only record of the values in between.
  void list_inputs_instead(TensorQuery query, std::vector<TensorId>* listed) {
    for (const GraphPtr& graph : graphs_) without_outputs_.insert(graph->rank());
    for (const TensorId& id : *listed) {
      if (id.slot.io == Io::kOutput && session_.node(id).kind == NodeKind::kOperator) without_outputs_.erase(id.rank);
    }
    if (without_outputs_.empty() || query.inputs) return;
    query.inputs = true;
    query.outputs = false;
    for (const TensorId& id : session_.tensors(query)) {
      if (without_outputs_.count(id.rank) > 0) listed->push_back(id);
    }
  }

  void list_tensors() {
    TensorQuery query;
    query.ranks = options_.ranks;
    query.steps = options_.steps;
    query.inputs = query.outputs = false;
    bool instead = false;
    for (const Watchpoint& watch : watchpoints_) {
      if (!watch.enabled) continue;
      query.inputs = query.inputs || watch.inputs;
      query.outputs = query.outputs || watch.outputs;
      instead = instead || watch.inputs_instead;
    }
    // A live session looks up every listed tensor, so list only the watched nodes.
    if (watched_.size() <= kFewNodes || session_.can_step()) query.nodes = &watched_;
    if (watched_.empty()) return;
    std::vector<TensorId> listed = session_.tensors(query);
    if (instead) list_inputs_instead(query, &listed);
    plan_.tensors.reserve(listed.size());
    const Graph* graph = nullptr;
    const std::vector<uint32_t>* groups = nullptr;
    for (const TensorId& id : listed) {
      if (graph == nullptr || graph->rank() != id.rank || graph->id() != id.graph) {
        graph = session_.graph(id.rank, id.graph);
        const auto known = by_node_.find(graph);
        groups = known == by_node_.end() ? nullptr : &known->second;
      }
      if (groups == nullptr) continue;
      plan_.inputs_instead = plan_.inputs_instead || (id.slot.io == Io::kInput && without_outputs_.count(id.rank) > 0);
      add(id, *graph, (*groups)[id.node], false);
    }
  }

  void add(const TensorId& id, const Graph& graph, uint32_t group, bool missing) {
    const uint32_t set = set_of_slot(group, id);
    if (set != kNoSet) plan_.tensors.push_back({id, place_in_step(graph.node(id.node)), set, missing});
  }

  static void add_expression(const Expression& expression, WatchSet& set) {
    const bool known = std::any_of(set.expressions.begin(), set.expressions.end(),
                                   [&](const Expression& other) { return other.text() == expression.text(); });
    if (!known) set.expressions.push_back(expression);
  }

  uint32_t set_of(Watches watches) {
    std::sort(watches.begin(), watches.end(), [](const Watchpoint* a, const Watchpoint* b) {
      return std::tie(a->turn, a->rule, a->id) < std::tie(b->turn, b->rule, b->id);
    });
    auto [it, inserted] = set_index_.try_emplace(watches, static_cast<uint32_t>(plan_.sets.size()));
    if (!inserted) return it->second;
    WatchSet set;
    for (const Watchpoint* watch : watches) {
      set.needs_stats = set.needs_stats || needs_elements(session_, *watch);
      if (watch->expression) add_expression(*watch->expression, set);
      if (!watch->condition) continue;
      add_needs(*watch->condition, set.request);
      set.needs_previous = set.needs_previous || watch->condition->spec->needs_previous;
    }
    if (!set.expressions.empty()) {
      set.compiled = std::make_shared<const ExpressionSet>(set.expressions);
      merge_request(set.compiled->stats_request(), set.request);
      set.needs_previous = set.needs_previous || set.compiled->needs_previous();
    }
    set.request.bits = set.needs_stats && compares_bits_;
    set.watches = std::move(watches);
    plan_.sets.push_back(std::move(set));
    return it->second;
  }

  /// Lists slots of watched nodes that have no tensor in a step for which their graph has data.
  void list_missing() {
    std::set<TensorId> available;  // without the execution: one is enough
    for (const PlannedTensor& planned : plan_.tensors) {
      TensorId id = planned.id;
      id.execution = 0;
      available.insert(id);
    }
    for (const NodeRef& ref : watched_) {
      const Graph& graph = *ref.graph;
      const Node& node = graph.node(ref.node);
      if (node.kind == NodeKind::kConstant || is_structural(node.op)) continue;
      for (int64_t step : session_.steps(graph.rank(), graph.id())) {
        if (!options_.steps.contains(step)) continue;
        for (Io io : {Io::kInput, Io::kOutput}) {
          const size_t slots = io == Io::kInput ? node.inputs.size() : node.outputs.size();
          for (uint32_t index = 0; index < slots; ++index) {
            const TensorId id{graph.rank(), graph.id(), step, 0, node.id, Slot{io, index}};
            if (available.count(id) == 0) add(id, graph, by_node_.at(&graph)[id.node], true);
          }
        }
      }
    }
  }

  Session& session_;
  std::span<const Watchpoint> watchpoints_;
  const CheckOptions& options_;
  std::vector<GraphPtr> graphs_;
  WatchGroups groups_;
  std::map<const Graph*, std::vector<uint32_t>> by_node_;  // the group of each node
  std::vector<NodeRef> watched_;
  std::set<const Watchpoint*> has_nodes_, selected_in_run_;  // selected_in_run_: nodes of a graph that has data
  std::set<const Graph*> ran_;
  std::set<int> without_outputs_;  // ranks, where a watchpoint looks at inputs instead
  bool compares_bits_ = false;
  std::map<Watches, uint32_t> set_index_;
  std::map<std::tuple<uint32_t, Slot, bool>, uint32_t> set_of_slot_;
  std::map<std::tuple<uint32_t, Slot, bool>, uint32_t>::iterator last_set_ = set_of_slot_.end();
  CheckPlan plan_;
};

}  // namespace

PlaceInStep place_in_step(const Node& node) {
  const int part = node.kind == NodeKind::kConstant ? 0 : node.kind == NodeKind::kOperator ? 1 : 2;
  return {part, node.order};
}

bool needs_elements(const Session& session, const Watchpoint& watch) {
  if (!watch.condition) return true;
  const int enumerator = watch.condition->spec->enumerator;
  return enumerator != condition_number::kOperatorOverflow &&
         (enumerator != condition_number::kInitialization || shows_initial_values(session.info().kind));
}

Result<CheckPlan> make_plan(Session& session, std::span<const Watchpoint> watchpoints, const CheckOptions& options) {
  return Planner(session, watchpoints, options).run();
}

}  // namespace msdbg
