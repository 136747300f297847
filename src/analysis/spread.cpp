#include "analysis/spread.h"

#include <algorithm>
#include <limits>

namespace msdbg {
namespace {

constexpr size_t kNoParent = std::numeric_limits<size_t>::max();
constexpr size_t kChains = 4;

enum class End : uint8_t { kAbsorbed, kParameter, kLoss, kOutput };

/// Breadth first, so that the way back from any place is a shortest one.
class Walk {
 public:
  Walk(Evidence& evidence, const StepModel& model, const TensorId& origin)
      : evidence_(evidence), model_(model), origin_(origin) {
    spread_.tensors.insert(origin);
  }

  void start_at(const Execution& execution) { enqueue(execution, kNoParent); }
  void start_with(const Taker& taker) { take(taker, kNoParent); }

  Spread run() {
    for (size_t at = 0; at < visits_.size(); ++at) visit(at);
    choose_chains();
    return std::move(spread_);
  }

 private:
  struct Visit {
    Execution execution;
    size_t parent;
    size_t hops = 0;   ///< executions from the origin to here
    size_t links = 0;  ///< of those, with a tensor to show
    std::optional<TensorId> link;
  };
  struct Way {
    End end;
    size_t visit;
    std::optional<TensorId> last;  ///< what the way ends at, behind the visit's own link
    bool sound = false;
  };

  void enqueue(const Execution& execution, size_t parent) {
    if (!spread_.executions.insert(execution).second) return;
    const size_t hops = parent == kNoParent ? 0 : visits_[parent].hops + 1;
    visits_.push_back({execution, parent, hops, 0, std::nullopt});
  }

  void take(const Taker& taker, size_t parent) {
    const Slot slot{Io::kInput, taker.slot};
    if (!model_.updates(taker.execution.node, taker.slot)) {
      const TensorId recorded = model_.id(taker.execution.node, slot, taker.execution.index);
      if (const Verdicted* verdict = evidence_.find(recorded)) {
        if (verdict->state == Known::kSound) return;
        if (verdict->state == Known::kBad) spread_.tensors.insert(recorded);
      }
    }
    enqueue(taker.execution, parent);
  }

  void visit(size_t at) {
    const Execution execution = visits_[at].execution;
    bool bad = false, sound = false, unknown = false;
    std::optional<TensorId> seen;
    const std::vector<Product> products = model_.products(execution);
    // What an optimizer hands on is the parameter; its output feeds nothing as a rule.
    const bool updates = std::any_of(products.begin(), products.end(),
                                     [](const Product& product) { return product.parameter.has_value(); });
    for (const Product& product : products) {
      switch (product.value.state) {
        case Known::kSound:
          sound = true;
          seen = seen ? seen : product.value.tensor;
          continue;
        case Known::kUnknown:
          unknown = true;
          break;
        case Known::kBad:
          bad = true;
          break;
      }
      for (const TensorId& copy : product.copies) spread_.tensors.insert(copy);
      const bool is_bad = product.value.state == Known::kBad;
      if (is_bad && !visits_[at].link) visits_[at].link = product.value.tensor;
      if (product.parameter) {
        const TensorId file = model_.id(*product.parameter, Slot{});
        if (is_bad) ways_.push_back({End::kParameter, at, file, false});
        if (is_bad) follow(model_.takers_after(*product.parameter, execution), at);
        continue;
      }
      const std::vector<Taker> takers = model_.takers(execution, product.slot);
      const bool loss = in_category(model_.graph().node(execution.node), Category::kLoss);
      if (is_bad && takers.empty() && !updates)
        ways_.push_back({loss ? End::kLoss : End::kOutput, at, std::nullopt, false});
      follow(takers, at);
    }
    // A parent is visited before its children, so its count is final when theirs is made.
    const bool shows = visits_[at].link && *visits_[at].link != origin_;
    visits_[at].links = (visits_[at].parent == kNoParent ? 0 : visits_[visits_[at].parent].links) + (shows ? 1 : 0);
    // Comparisons and casts to integers have no NaN to pass on; they swallow nothing.
    if (!bad && !unknown && sound && seen && can_be_bad(*seen)) ways_.push_back({End::kAbsorbed, at, seen, true});
  }

  bool can_be_bad(const TensorId& tensor) {
    const std::optional<Stats> stats = evidence_.stats(tensor);
    if (!stats) return true;
    return evidence_.builtin() ? is_float(stats->dtype) : stats->dtype != DType::kBool;
  }

  void follow(const std::vector<Taker>& takers, size_t from) {
    for (const Taker& taker : takers) take(taker, from);
  }

  std::vector<size_t> path(size_t at) const {
    std::vector<size_t> path;
    for (; at != kNoParent; at = visits_[at].parent) path.push_back(at);
    std::reverse(path.begin(), path.end());
    return path;
  }

  std::vector<TensorId> tensors_of(const Way& way) const {
    std::vector<TensorId> tensors = {origin_};
    for (size_t at : path(way.visit)) {
      if (visits_[at].link && *visits_[at].link != origin_) tensors.push_back(*visits_[at].link);
    }
    if (way.last && tensors.back() != *way.last) tensors.push_back(*way.last);
    return tensors;
  }

  bool better(const Way& a, const Way& b) const {
    if (a.end == End::kParameter) {
      auto state = [&](const Way& way) { return model_.graph().node(way.last->node).optimizer_state; };
      if (state(a) != state(b)) return state(b);
    }
    return visits_[a.visit].hops < visits_[b.visit].hops;
  }

  size_t length(const Way& way) const { return 1 + visits_[way.visit].links + (way.last ? 1 : 0); }

  /// The shortest way to each kind of end and the longest way of all tell most; a list of all ways tells nothing.
  void choose_chains() {
    std::vector<const Way*> chosen;
    const Way* longest = nullptr;
    for (End end : {End::kAbsorbed, End::kParameter, End::kLoss, End::kOutput}) {
      const Way* best = nullptr;
      for (const Way& way : ways_) {
        if (way.end != end || length(way) < 2) continue;
        if (!best || better(way, *best)) best = &way;
        if (!longest || length(way) > length(*longest)) longest = &way;
      }
      if (best) chosen.push_back(best);
    }
    if (longest && chosen.size() < kChains && std::find(chosen.begin(), chosen.end(), longest) == chosen.end())
      chosen.push_back(longest);

    std::vector<std::vector<TensorId>> seen;
    for (const Way* way : chosen) {
      std::vector<TensorId> tensors = tensors_of(*way);
      if (std::find(seen.begin(), seen.end(), tensors) != seen.end()) continue;
      std::vector<ChainLink> chain;
      for (const TensorId& tensor : tensors) chain.push_back({tensor, evidence_.stats(tensor).value_or(Stats{}), true});
      chain.back().bad = !way->sound;
      spread_.chains.push_back(std::move(chain));
      seen.push_back(std::move(tensors));
    }
    auto place = [&](const std::vector<ChainLink>& chain) {
      std::vector<uint32_t> orders;
      for (const ChainLink& link : chain) orders.push_back(model_.graph().node(link.tensor.node).order);
      return orders;
    };
    std::stable_sort(spread_.chains.begin(), spread_.chains.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
  }

  Evidence& evidence_;
  const StepModel& model_;
  TensorId origin_;
  std::vector<Visit> visits_;
  std::vector<Way> ways_;
  Spread spread_;
};

}  // namespace

Spread spread_from(Evidence& evidence, const StepModel& model, const Execution& origin, const TensorId& tensor) {
  Walk walk(evidence, model, tensor);
  walk.start_at(origin);
  return walk.run();
}

Spread spread_from_start(Evidence& evidence, const StepModel& model, NodeId node, const TensorId& tensor) {
  Walk walk(evidence, model, tensor);
  for (const Taker& taker : model.takers_at_start(node)) walk.start_with(taker);
  return walk.run();
}

Spread spread_from_input(Evidence& evidence, const StepModel& model, const Taker& taker, const TensorId& tensor) {
  Walk walk(evidence, model, tensor);
  walk.start_with(taker);
  return walk.run();
}

}  // namespace msdbg
