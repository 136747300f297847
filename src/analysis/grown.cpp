#include "analysis/grown.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/cause_kind.h"
#include "msdbg/base.h"
#include "msdbg/tensor.h"

namespace msdbg {
namespace {

constexpr double kMuch = 100;
constexpr uint64_t kMostBytes = 256 << 20;  // of what is compared: a training sends the elements
constexpr double kUnusual = 1000;           // earlier steps are of interest only if a weight is larger
constexpr int kEarlierSteps = 16;           // as many as the history of a training keeps

/// Looks for one jump in the files of the earlier ones of `steps`, the latest first. `after` was read in the step of `id`.
std::optional<Grown> earlier_jump(Evidence& evidence, const Graph& graph, std::span<const int64_t> steps, const TensorId& id, double after,
                                  uint64_t& compared) {
  TensorId later = id;
  for (int i = 0; i < kEarlierSteps && compared < kMostBytes; ++i) {
    const PreviousStep previous = previous_step(evidence.session(), graph, later.step, steps);
    if (!previous.step) return std::nullopt;
    TensorId earlier = later;
    earlier.step = *previous.step;
    const std::optional<Stats> stats = evidence.stats(earlier);
    if (!stats || largest_magnitude(*stats) == 0) return std::nullopt;
    compared += stats->count * item_size(stats->dtype);
    if (after > kMuch * largest_magnitude(*stats)) {
      Grown out{earlier, after, largest_magnitude(*stats), later.step};
      out.value = later;
      return out;
    }
    after = largest_magnitude(*stats);
    if (after <= kUnusual) return std::nullopt;
    later = earlier;
  }
  return std::nullopt;
}

}  // namespace

namespace {

class GrownSearch {
 public:
  GrownSearch(Evidence& evidence, const RankModels& ranks, ParameterWrites& writes)
      : evidence_(evidence), ranks_(ranks), writes_(writes), steps_(evidence.session().steps()) {}

  std::vector<Grown> run(const StepModel& model, NodeId node) {
    visit({&model, node});
    while (!waiting_.empty() && compared_ < kMostBytes) {
      const Place at = waiting_.front();
      waiting_.pop_front();
      const Graph& graph = at.model->graph();
      for (uint32_t slot = 0; slot < graph.node(at.node).inputs.size(); ++slot) {
        const NodeId producer = graph.effective_producer(at.node, slot).node;
        if (producer != kNoNode) visit({at.model, producer});
      }
      for (const auto& [other, source] : ranks_.sources(*at.model, at.node)) visit({other, source});
    }
    if (found_.empty() && model.graph().recorded_calls()) visit_earlier(model.graph(), node);
    return told(model.graph().rank());
  }

 private:
  struct Place {
    const StepModel* model;
    NodeId node;
    auto operator<=>(const Place&) const = default;
  };

  void visit(const Place& place) {
    if (!seen_.insert(place).second) return;
    const NodeKind kind = place.model->graph().node(place.node).kind;
    if (kind == NodeKind::kOperator) waiting_.push_back(place);
    if (kind == NodeKind::kParameter) compare(*place.model, place.node);
  }

  /// Not every exchange of ranks is recorded: on each of them, all parameters that an earlier call took. What is not connected must be
  /// unusual to be named.
  void visit_earlier(const Graph& graph, NodeId node) {
    std::vector<std::pair<const Graph*, const StepModel*>> models(ranks_.models().begin(), ranks_.models().end());
    std::ranges::sort(models, {}, [](const auto& model) { return model.first->rank(); });
    for (const auto& [other, model] : models) {
      const Node* const same = other->id() == graph.id() ? other->find(graph.node(node).name) : nullptr;
      if (same == nullptr) continue;
      const auto is_earlier = [&, at = other](const Use& use) { return at->node(use.node).order < same->order; };
      for (const Node& each : other->nodes()) {
        if (compared_ >= kMostBytes) break;
        if (each.kind == NodeKind::kParameter && std::ranges::any_of(other->effective_users(each.id), is_earlier)) visit({model, each.id});
      }
    }
    std::erase_if(found_, [](const Grown& each) { return each.largest <= kUnusual; });
  }

  void compare(const StepModel& model, NodeId parameter) {
    // Steps in between, which were not dumped, can have made it larger.
    if (model.before().step != model.step() - 1) return;
    const Value value = model.at_start(parameter);
    if (value.state == InputState::kBad || (value.state == InputState::kGood && !value.tensor)) return;
    TensorId old = model.id(parameter, {Io::kOutput, 0});
    old.step = *model.before().step;
    const std::optional<Stats> before = evidence_.stats(old);
    if (!before || largest_magnitude(*before) == 0) return;
    compared_ += before->count * item_size(before->dtype);
    // Where no operator recorded what it read, the value is that of the step before.
    const bool is_now = value.tensor && value.tensor->step == model.step();
    if (!is_now && deduce(model, parameter, old, largest_magnitude(*before))) return;
    const std::optional<Stats> now = is_now ? evidence_.stats(*value.tensor) : std::nullopt;
    const std::string& name = model.graph().node(parameter).name;
    if (now && largest_magnitude(*now) > kMuch * largest_magnitude(*before)) {
      found_.push_back(grown_since(model, old, largest_magnitude(*now), largest_magnitude(*before)));
      found_.back().value = value.tensor;
    } else if (largest_magnitude(*before) <= kUnusual) {
      sound_.insert(name);
    } else if (const auto jump = earlier_jump(evidence_, model.graph(), steps_, old, largest_magnitude(*before), compared_)) {
      found_.push_back(*jump);
      found_.back().at_begin = model.graph().recorded_calls();
    }
  }

  /// A training that is held when its step has run has other values in its parameters by then. What a product with one of them became,
  /// or a view of it, tells how large it was at least. True if that is too large.
  bool deduce(const StepModel& model, NodeId parameter, const TensorId& old, double before) {
    Grown most{old, 0, before, std::nullopt};
    for (const Consumer& consumer : model.consumers_at_start(parameter)) {
      const Value made = model.output(consumer.execution.node, consumer.execution.index, 0);
      const std::optional<Stats> out = made.tensor && made.state != InputState::kUnknown ? evidence_.stats(*made.tensor) : std::nullopt;
      const double least = out ? least_size(model, consumer, largest_magnitude(*out)) : 0;
      if (!(least > most.largest)) continue;
      most.largest = least;
      most.seen_by = made.tensor;
    }
    if (!(most.largest > kMuch * before)) return false;
    found_.push_back(most);
    return true;
  }

  /// How large the parameter that `consumer` read was at least, if the largest element of its output is `made`; 0 if that does not tell.
  double least_size(const StepModel& model, const Consumer& consumer, double made) {
    const std::string op = to_lower(model.graph().node(consumer.execution.node).op);
    if (consumer.slot == 0 && passes_elements(op)) return made;
    const std::optional<ProductRule> rule = product_rule(op);
    if (!rule || (consumer.slot != rule->a && consumer.slot != rule->b)) return 0;
    double factor = 0, terms = 1, added = 0;
    for (const OriginInput& input : model.inputs(consumer.execution)) {
      if (input.slot == consumer.slot) continue;
      if (!input.value && input.state != InputState::kUnknown) continue;  // a flag
      const std::optional<Stats> stats = input.value && input.state == InputState::kGood ? evidence_.stats(*input.value) : std::nullopt;
      const double size = stats ? largest_magnitude(*stats) : std::numeric_limits<double>::infinity();
      if (input.slot != rule->a && input.slot != rule->b) {
        added += size;
        continue;
      }
      factor = size;
      if (stats && rule->sums) terms = static_cast<double>(stats->count);
    }
    return factor > 0 ? (made - added) / (terms * factor) : 0;
  }

  /// Calls show a parameter as a step begins: what the step before left is the output of its update.
  Grown grown_since(const StepModel& model, const TensorId& old, double now, double before) {
    Grown out{old, now, before, std::nullopt};
    if (!model.graph().recorded_calls()) return out;
    const std::optional<ParameterWrite> write = writes_.before(model.graph(), old.node, model.step());
    std::optional<Stats> left;
    if (write && write->step == old.step) {
      TensorId id = write->value();
      id.node = write->updater;
      left = evidence_.stats(id);
    }
    if (left && now > kMuch * largest_magnitude(*left)) {
      out.before = largest_magnitude(*left);
    } else {
      out.since = model.step();
      out.at_begin = true;
    }
    return out;
  }

  const std::string& name_of(const Grown& each) const { return evidence_.session().node(each.parameter).name; }

  /// What happened last comes first. What grew on several ranks is told once.
  std::vector<Grown> told(int rank) {
    const auto factor = [](const Grown& each) { return each.largest / each.before; };
    std::ranges::stable_sort(found_, [&](const Grown& a, const Grown& b) {
      return a.parameter.step != b.parameter.step ? a.parameter.step > b.parameter.step : factor(a) > factor(b);
    });
    std::vector<Grown> out;
    for (Grown& each : found_) {
      const auto same = std::ranges::find(out, name_of(each), [&](const Grown& other) -> const std::string& { return name_of(other); });
      each.one_rank = sound_.contains(name_of(each));
      if (same == out.end()) out.push_back(each);
      else if (each.parameter.rank == rank && !each.one_rank) *same = each;
    }
    return out;
  }

  Evidence& evidence_;
  const RankModels& ranks_;
  ParameterWrites& writes_;
  const std::vector<int64_t> steps_;
  std::deque<Place> waiting_;  // the nearest first
  std::set<Place> seen_;
  std::vector<Grown> found_;
  std::set<std::string> sound_;  // names of parameters that did not grow, on one rank at least
  uint64_t compared_ = 0;
};

}  // namespace

std::vector<Grown> grown_parameters(Evidence& evidence, const StepModel& model, const RankModels& ranks, ParameterWrites& writes, NodeId node) {
  return GrownSearch(evidence, ranks, writes).run(model, node);
}

}  // namespace msdbg
