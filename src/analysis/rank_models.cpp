#include "analysis/rank_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace msdbg {
namespace {

OriginInput unknown_input(std::string reason) {
  OriginInput input;
  input.reason = std::move(reason);
  return input;
}

/// The origin, or what arrived, that a bad tensor follows from.
std::optional<uint32_t> followed(const StepOrigins& step, const TensorId& id) {
  const auto earlier = [](const auto& entry, const TensorId& key) { return entry.first < key; };
  const auto at = std::lower_bound(step.follows.begin(), step.follows.end(), id, earlier);
  return at != step.follows.end() && at->first == id ? std::optional(at->second) : std::nullopt;
}

class Joiner {
 public:
  Joiner(Session& session, const Collectives& collectives, std::vector<StepOrigins>& found)
      : session_(session), collectives_(collectives), found_(found) {
    for (size_t i = 0; i < found.size(); ++i) places_[{found[i].rank, found[i].graph}] = i;
  }

  /// What a collective sums up may overflow behind it on every rank, although it became so large on one rank.
  void move_shared_overflows() {
    for (StepOrigins& step : found_) {
      const StepOrigins* const other = earlier_story(step);
      if (other == nullptr) continue;
      std::vector<Arrival> arrivals;
      for (const Origin& origin : step.origins) {
        const TensorId through{step.rank, step.graph, step.step, 0, *collective_before(step, origin), {}};
        arrivals.push_back({through, other->origins.front().tensor, std::nullopt});
      }
      // The order of `follows`: origins, then arrivals.
      step.arrivals.insert(step.arrivals.begin(), arrivals.begin(), arrivals.end());
      step.origins.clear();
    }
  }

  /// Values may pass between ranks unseen: gradients without a recorded call, as in PyTorch's DistributedDataParallel, and what a recorded
  /// call received only after it had returned. What came from nowhere on this rank is on another one, which had something bad before.
  void move_unrecorded_exchanges() {
    std::vector<std::vector<Arrival>> arrivals(found_.size());
    for (size_t i = 0; i < found_.size(); ++i) {
      for (const Origin& origin : found_[i].origins) {
        if (const auto received = received_before(found_[i], origin)) arrivals[i].push_back(*received);
        else if (const auto from = same_elsewhere(found_[i], origin)) arrivals[i].push_back({origin.tensor, *from, std::nullopt, false});
        else if (const auto sent = handed_on(found_[i], origin)) arrivals[i].push_back({origin.tensor, *sent, std::nullopt, false});
      }
    }
    std::vector<bool> moves(found_.size());
    for (size_t i = 0; i < found_.size(); ++i) moves[i] = leads_to_a_story(arrivals, i);
    for (size_t i = 0; i < found_.size(); ++i) {
      StepOrigins& step = found_[i];
      if (!moves[i]) continue;
      step.arrivals.insert(step.arrivals.begin(), arrivals[i].begin(), arrivals[i].end());
      step.origins.clear();
    }
  }

  void link() {
    for (StepOrigins& step : found_) {
      for (Arrival& arrival : step.arrivals) arrival.origin = origin_of(arrival.from, {});
    }
    for (const StepOrigins& step : found_) note_reach(step);
  }

 private:
  /// The story of another rank that has all origins of this one, bit for bit as far as statistics tell, and an earlier one of its own.
  const StepOrigins* earlier_story(const StepOrigins& step) const {
    if (step.origins.empty()) return nullptr;
    for (const StepOrigins& other : found_) {
      if (other.rank == step.rank || other.graph != step.graph || other.origins.empty()) continue;
      const bool all = std::ranges::all_of(step.origins, [&](const Origin& origin) {
        const auto same = [&](const Origin& theirs) { return is_same(theirs, origin) && follows_first(other, theirs); };
        const std::optional<NodeId> through = collective_before(step, origin);
        const Exchange* const exchange = through ? collectives_.find(*session_.graph(step.rank, step.graph), *through) : nullptr;
        const auto takes_part = [&](const NodeRef& member) { return member.graph->rank() == other.rank; };
        return exchange != nullptr && std::ranges::any_of(exchange->members, takes_part) &&
               std::any_of(other.origins.begin() + 1, other.origins.end(), same);
      });
      if (all) return &other;
    }
    return nullptr;
  }

  /// Whether all that a rank tells came from others, and in the end from one that tells a story of its own: two ranks that point at each
  /// other keep theirs.
  bool leads_to_a_story(const std::vector<std::vector<Arrival>>& arrivals, size_t rank) const {
    const auto all_came = [&](size_t at) { return !arrivals[at].empty() && arrivals[at].size() >= found_[at].origins.size(); };
    if (!all_came(rank)) return false;
    for (size_t hop = 0; hop < found_.size(); ++hop) {
      const TensorId& from = arrivals[rank].front().from;
      const auto next = places_.find({from.rank, from.graph});
      if (next == places_.end() || !all_came(next->second)) return true;
      rank = next->second;
    }
    return false;
  }

  uint32_t order_of(const Origin& origin) const {
    return origin.kind == OriginKind::kParameter ? 0 : session_.node(origin.tensor).order;
  }

  /// The same value on the rank whose story begins first, if it is a consequence there.
  std::optional<TensorId> same_elsewhere(const StepOrigins& step, const Origin& origin) const {
    const Node& node = session_.node(origin.tensor);
    if (origin.certain || node.kind != NodeKind::kOperator || !session_.graph(step.rank, step.graph)->recorded_calls()) return std::nullopt;
    std::optional<TensorId> found;
    uint32_t earliest = node.order;
    for (const StepOrigins& other : found_) {
      if (other.rank == step.rank || other.graph != step.graph || other.origins.empty()) continue;
      const Graph& graph = *session_.graph(other.rank, other.graph);
      const Node* const same = graph.find(node.name);
      if (same == nullptr) continue;
      TensorId id = origin.tensor;
      id.rank = other.rank;
      id.node = same->id;
      const std::optional<uint32_t> index = followed(other, id);
      if (!index || *index >= other.origins.size() || other.origins[*index].tensor == id) continue;
      const uint32_t order = order_of(other.origins[*index]);
      if (order >= earliest || !(has_same_bad_elements(id, origin.stats) || is_other_shard(id, origin))) continue;
      earliest = order;
      found = id;
    }
    return found;
  }

  /// An argument that nobody made, behind a call that receives: what the other rank sent there.
  std::optional<Arrival> received_before(const StepOrigins& step, const Origin& origin) const {
    const Graph& graph = *session_.graph(step.rank, step.graph);
    if (origin.certain || origin.tensor.slot.io != Io::kInput || !graph.recorded_calls()) return std::nullopt;
    const std::span<const NodeId> order = graph.execution_order();
    const auto here = std::ranges::find(order, origin.tensor.node);
    for (auto at = here; at != order.begin();) {
      --at;
      if (collective_kind(graph.node(*at)) != CollectiveKind::kReceive) continue;
      for (const NodeRef& source : collectives_.sources(graph, *at)) {
        const auto other = places_.find({source.graph->rank(), source.graph->id()});
        if (other == places_.end()) continue;
        const TensorId sent{source.graph->rank(), source.graph->id(), step.step, 0, source.node, {Io::kInput, 0}};
        if (!followed(found_[other->second], sent) || !has_same_bad_elements(sent, origin.stats)) continue;
        return Arrival{{step.rank, step.graph, step.step, 0, *at, {}}, sent, std::nullopt};
      }
    }
    return std::nullopt;
  }

  /// An argument that nobody made, and that was an output of another rank in the step before: stages of a pipeline, whose exchange no call
  /// shows at level L0. Ranks that take the same argument, such as a batch or a weight, hand nothing on.
  std::optional<TensorId> handed_on(const StepOrigins& step, const Origin& origin) const {
    const Graph* const graph = session_.graph(step.rank, step.graph);
    if (step.origins.size() > 1 || origin.certain || origin.tensor.slot.io != Io::kInput || !graph->recorded_calls()) return std::nullopt;
    const std::vector<int64_t> steps = session_.steps(step.rank, step.graph);
    const auto later = std::ranges::lower_bound(steps, step.step);
    if (later == steps.begin()) return std::nullopt;
    const int64_t before = *std::prev(later);
    const auto earlier = [&](TensorId id) {
      id.step = before;
      const Result<Stats> stats = session_.stats(id);
      return stats ? std::optional(*stats) : std::nullopt;
    };
    const std::optional<Stats> taken = earlier(origin.tensor);
    // Two tensors that are constant, or have a single element, are equal by chance.
    constexpr uint32_t kNeeded = kStatMin | kStatMax | kStatL2Norm | kStatCount;
    if (!taken || !taken->knows(kNeeded) || taken->count < 2 || taken->min == taken->max || taken->nan_count + taken->inf_count() > 0)
      return std::nullopt;
    const auto same = [&](const TensorId& id) {
      const std::optional<Stats> made = earlier(id);
      return made && made->knows(kNeeded) && made->count == taken->count && made->min == taken->min && made->max == taken->max &&
             made->l2_norm == taken->l2_norm;
    };
    for (const StepOrigins& other : found_) {
      if (other.rank == step.rank) continue;
      if (std::ranges::any_of(other.origins, [&](const Origin& theirs) { return same(theirs.tensor); })) continue;
      for (const auto& [id, index] : other.follows) {
        if (id.slot.io != Io::kOutput || session_.node(id).kind != NodeKind::kOperator) continue;
        if (has_same_bad_elements(id, origin.stats) && same(id)) return id;
      }
    }
    return std::nullopt;
  }

  /// The last rank may have fewer rows of a sharded value than the others.
  bool is_other_shard(const TensorId& id, const Origin& origin) const {
    const Result<OpenTensor> opened = session_.open(id), here = session_.open(origin.tensor);
    if (!opened || !here) return false;
    const Shape &theirs = opened->info.shape, &own = here->info.shape;
    if (theirs.size() != own.size() || own.empty() || !std::equal(own.begin() + 1, own.end(), theirs.begin() + 1)) return false;
    const Result<Stats> other = session_.stats(id);
    const auto kinds = [](const Stats& of) { return std::tuple(of.nan_count > 0, of.pos_inf_count > 0, of.neg_inf_count > 0); };
    return other && kinds(*other) == kinds(origin.stats);
  }

  bool has_same_bad_elements(const TensorId& id, const Stats& stats) const {
    const Result<Stats> other = session_.stats(id);
    const auto counts = [](const Stats& of) { return std::tuple(of.count, of.nan_count, of.pos_inf_count, of.neg_inf_count); };
    return other && counts(*other) == counts(stats);
  }

  bool follows_first(const StepOrigins& step, const Origin& origin) const {
    const NodeId first = step.origins.front().tensor.node;
    return find_before(step, origin, [&](const Node& node) { return node.id == first; }).has_value();
  }

  bool is_same(const Origin& a, const Origin& b) const {
    const auto counts = [](const Stats& stats) {
      return std::tuple(stats.count, stats.nan_count, stats.pos_inf_count, stats.neg_inf_count, stats.zero_count);
    };
    return a.kind == OriginKind::kOperator && b.kind == a.kind && session_.node(a.tensor).name == session_.node(b.tensor).name &&
           a.tensor.slot == b.tensor.slot && a.first == b.first && counts(a.stats) == counts(b.stats);
  }

  /// What the origin is computed from, the nearest first, until `wanted`.
  template <typename Wanted>
  std::optional<NodeId> find_before(const StepOrigins& step, const Origin& origin, Wanted wanted) const {
    const Graph& graph = *session_.graph(step.rank, step.graph);
    if (wanted(graph.node(origin.tensor.node))) return origin.tensor.node;
    std::vector<bool> seen(graph.nodes().size());
    std::vector<NodeId> open;
    const auto add = [&](NodeId node) {
      if (node == kNoNode || seen[node]) return;
      seen[node] = true;
      open.push_back(node);
    };
    for (const OriginInput& input : origin.inputs) {
      if (!input.rank) add(input.producer.node);
    }
    for (size_t i = 0; i < open.size(); ++i) {
      if (wanted(graph.node(open[i]))) return open[i];
      for (uint32_t slot = 0; slot < graph.node(open[i]).inputs.size(); ++slot) add(graph.effective_producer(open[i], slot).node);
    }
    return std::nullopt;
  }

  std::optional<NodeId> collective_before(const StepOrigins& step, const Origin& origin) const {
    return find_before(step, origin, [](const Node& node) { return collective_kind(node).has_value(); });
  }

  /// Through the ranks that only passed it on.
  std::optional<OriginPlace> origin_of(const TensorId& from, std::set<TensorId> seen) const {
    if (!seen.insert(from).second) return std::nullopt;
    const auto at = places_.find({from.rank, from.graph});
    if (at == places_.end()) return std::nullopt;
    const StepOrigins& step = found_[at->second];
    const std::optional<uint32_t> index = followed(step, from);
    if (!index) return std::nullopt;
    if (*index < step.origins.size()) return OriginPlace{step.rank, step.graph, *index};
    return origin_of(step.arrivals[*index - step.origins.size()].from, std::move(seen));
  }

  void note_reach(const StepOrigins& step) {
    std::map<std::tuple<int, int, uint32_t>, RankReached> reached;
    std::vector<uint64_t> tensors(step.origins.size() + step.arrivals.size());  // that follow from each
    for (const auto& [id, index] : step.follows) ++tensors[index];
    for (size_t i = 0; i < step.arrivals.size(); ++i) {
      const Arrival& arrival = step.arrivals[i];
      // From one graph of the rank to another.
      if (!arrival.origin || arrival.from.rank == step.rank) continue;
      if (arrival.origin->rank == step.rank && arrival.origin->graph != step.graph) continue;
      const auto [at, fresh] = reached.try_emplace({arrival.origin->rank, arrival.origin->graph, arrival.origin->index});
      RankReached& entry = at->second;
      ++entry.collectives;
      entry.tensors += tensors[step.origins.size() + i];
      if (!fresh) continue;
      entry.rank = step.rank;
      entry.through = arrival.tensor;
      entry.recorded = arrival.recorded;
      const Exchange* const exchange = collectives_.find(*session_.graph(step.rank, step.graph), arrival.tensor.node);
      entry.group = exchange == nullptr ? "" : exchange->group;
      entry.assumed = exchange != nullptr && exchange->assumed;
      entry.sound_loss = !step.losses.empty();
    }
    for (auto& [key, entry] : reached) {
      const auto& [rank, graph, index] = key;
      found_[places_.at({rank, graph})].origins[index].ranks_reached.push_back(std::move(entry));
    }
  }

  Session& session_;
  const Collectives& collectives_;
  std::vector<StepOrigins>& found_;
  std::map<std::pair<int, int>, size_t> places_;
};

/// What a story says but for the rank, the values and what wrote its parameters.
std::string story(const Session& session, const StepOrigins& step) {
  std::string out = fmt::format("{}", step.graph);
  for (const Origin& origin : step.origins) {
    out += fmt::format("\n{} {} {} {}", static_cast<int>(origin.kind), session.node(origin.tensor).name, slot_name(origin.tensor.slot),
                       origin.certain);
  }
  return out;
}

/// Whether nothing came from other ranks or reached them.
bool is_alone(const StepOrigins& step) {
  return step.arrivals.empty() && std::ranges::all_of(step.origins, [](const Origin& origin) { return origin.ranks_reached.empty(); });
}

/// Whether ranks that hold copies of one value tell two stories: data of two ranks may break in the same place.
bool same_values(const StepOrigins& a, const StepOrigins& b) {
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return std::ranges::equal(a.origins, b.origins, [&](const Origin& left, const Origin& right) {
    const Stats &one = left.stats, &other = right.stats;
    return one.count == other.count && one.nan_count == other.nan_count && one.pos_inf_count == other.pos_inf_count &&
           one.neg_inf_count == other.neg_inf_count && same(one.min, other.min) && same(one.max, other.max) && same(one.mean, other.mean);
  });
}

/// What two ranks tell of one fault may have reached different ranks.
void add_reached(Origin& into, const Origin& from) {
  for (const RankReached& each : from.ranks_reached) {
    if (std::ranges::find(into.ranks_reached, each.rank, &RankReached::rank) == into.ranks_reached.end()) into.ranks_reached.push_back(each);
  }
}

/// Ranks that share a story did not get it from each other.
void leave_out_own_ranks(StepOrigins& step) {
  for (Origin& origin : step.origins) {
    std::erase_if(origin.ranks_reached, [&](const RankReached& each) { return std::ranges::find(step.ranks, each.rank) != step.ranks.end(); });
  }
}

/// Whether two stories that say the same name the same writers, as far as both know them.
bool same_updates(const Session& session, const StepOrigins& a, const StepOrigins& b) {
  const auto differ = [&](const Origin& left, const Origin& right) {
    const std::optional<TensorId>&one = left.update, &other = right.update;
    return one && other && (one->step != other->step || session.node(*one).name != session.node(*other).name);
  };
  for (size_t i = 0; i < a.origins.size(); ++i) {
    if (differ(a.origins[i], b.origins[i])) return false;
  }
  return true;
}

}  // namespace

std::vector<OriginInput> RankModels::remote_inputs(const StepModel& model, const Execution& execution) const {
  std::vector<OriginInput> out;
  if (std::string reason = collectives_.unknown_sources(model.graph(), execution.node); !reason.empty())
    out.push_back(unknown_input(std::move(reason)));
  for (const NodeRef& source : collectives_.sources(model.graph(), execution.node)) {
    const auto at = models_.find(source.graph);
    std::vector<OriginInput> inputs;
    if (at != models_.end()) inputs = at->second->inputs({source.node, execution.index});
    if (inputs.empty()) inputs.push_back(unknown_input(fmt::format("nothing of this step of rank {} was looked at", source.graph->rank())));
    for (OriginInput& input : inputs) {
      input.rank = source.graph->rank();
      out.push_back(std::move(input));
    }
  }
  return out;
}

std::vector<std::pair<const StepModel*, NodeId>> RankModels::sources(const StepModel& model, NodeId node) const {
  std::vector<std::pair<const StepModel*, NodeId>> out;
  for (const NodeRef& source : collectives_.sources(model.graph(), node)) {
    const auto at = models_.find(source.graph);
    if (at != models_.end()) out.emplace_back(at->second, source.node);
  }
  return out;
}

std::vector<int> RankModels::good_outputs(const StepModel& model, const Execution& execution) const {
  std::vector<int> out;
  const Exchange* const exchange = collectives_.find(model.graph(), execution.node);
  if (exchange == nullptr || exchange->assumed || !gives_all_the_same(exchange->kind)) return out;
  for (const NodeRef& member : exchange->members) {
    const auto at = models_.find(member.graph);
    if (at == models_.end() || member.graph == &model.graph()) continue;
    if (at->second->output(member.node, execution.index, 0).state == InputState::kGood) out.push_back(member.graph->rank());
  }
  return out;
}

std::optional<TensorId> sound_loss(Evidence& evidence, const StepModel& model) {
  std::optional<TensorId> found;
  for (const Execution& execution : model.executions()) {
    if (!in_category(model.graph().node(execution.node), Category::kLoss)) continue;
    const Value value = model.output(execution.node, execution.index, 0);
    if (value.state == InputState::kUnknown || !value.tensor || value.tensor->slot.io != Io::kOutput) continue;
    const std::optional<Stats> stats = evidence.stats(*value.tensor);
    // The loss is the last single number; earlier ones are parts of it, and truth values are questions about it.
    const bool number = stats && stats->count == 1 && (stats->dtype == DType::kUnknown || is_float(stats->dtype));
    if (number) found = value.state == InputState::kGood ? value.tensor : std::nullopt;
  }
  if (!found || !evidence.session().can_step()) return found;
  // A training that is held within a step has not computed what follows.
  const Graph& graph = model.graph();
  std::set<NodeId> ran;
  for (const Execution& execution : model.executions()) ran.insert(execution.node);
  const bool more = std::ranges::any_of(graph.execution_order(), [&](NodeId id) {
    return graph.node(id).order > graph.node(found->node).order && in_category(graph.node(id), Category::kLoss) && !ran.contains(id);
  });
  return more ? std::nullopt : found;
}

void join_ranks(Session& session, const Collectives& collectives, std::vector<StepOrigins> found, OriginResult* result) {
  Joiner joiner(session, collectives, found);
  joiner.move_shared_overflows();
  joiner.move_unrecorded_exchanges();
  joiner.link();
  std::map<std::string, std::vector<size_t>> told;  // indices into result->steps
  for (StepOrigins& step : found) {
    step.ranks = {step.rank};
    if (step.origins.empty()) {
      if (!step.arrivals.empty()) result->others.push_back(std::move(step));
      continue;
    }
    std::vector<size_t>& alike = told[story(session, step)];
    const auto is_same = [&](size_t index) {
      const StepOrigins& other = result->steps[index];
      const bool alone = is_alone(other) && is_alone(step);
      return same_updates(session, other, step) && (alone || same_values(other, step));
    };
    const auto at = std::ranges::find_if(alike, is_same);
    if (at == alike.end()) {
      alike.push_back(result->steps.size());
      result->steps.push_back(std::move(step));
      continue;
    }
    StepOrigins& first = result->steps[*at];
    // One rank may show what wrote the parameter where another one does not.
    for (size_t i = 0; i < first.origins.size(); ++i) {
      if (!first.origins[i].update) first.origins[i].update = step.origins[i].update;
      add_reached(first.origins[i], step.origins[i]);
    }
    first.ranks.push_back(step.rank);
    step.told_by = first.rank;
    result->others.push_back(std::move(step));
  }
  for (StepOrigins& step : result->steps) leave_out_own_ranks(step);
}

}  // namespace msdbg
