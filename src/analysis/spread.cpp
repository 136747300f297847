#include "analysis/spread.h"

#include <algorithm>
#include <limits>

namespace msdbg {
namespace {

constexpr size_t kNoParent = std::numeric_limits<size_t>::max();

enum class PathEnd : uint8_t { kAbsorbed, kParameter, kLoss, kOutput };

/// Breadth first, so the path back from any place is a shortest one.
class BreadthFirstSearch {
 public:
  BreadthFirstSearch(Evidence& evidence, const StepModel& model, const TensorId& origin)
      : evidence_(evidence), model_(model), origin_(origin) {
    spread_.tensors.insert(origin);
  }

  void start_at(const Execution& execution) { enqueue(execution, kNoParent); }
  void start_with(const Consumer& consumer) { take(consumer, kNoParent); }

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
  struct Path {
    PathEnd end;
    size_t visit;
    std::optional<TensorId> last;  ///< where the path ends, after the visit's own link
    bool sound = false;
  };

  void enqueue(const Execution& execution, size_t parent) {
    if (!spread_.executions.insert(execution).second) return;
    const size_t hops = parent == kNoParent ? 0 : visits_[parent].hops + 1;
    visits_.push_back({execution, parent, hops, 0, std::nullopt});
  }

  void take(const Consumer& consumer, size_t parent) {
    const Slot slot{Io::kInput, consumer.slot};
    const TensorId recorded = model_.id(consumer.execution.node, slot, consumer.execution.index);
    if (evidence_.session().yet_to_run(recorded)) return;
    if (!model_.updates(consumer.execution.node, consumer.slot)) {
      if (const JudgedTensor* verdict = evidence_.find(recorded)) {
        if (verdict->state == InputState::kGood) return;
        if (verdict->state == InputState::kBad) spread_.tensors.insert(recorded);
      }
    }
    enqueue(consumer.execution, parent);
  }

  void visit(size_t at) {
    const Execution execution = visits_[at].execution;
    bool bad = false, sound = false, unknown = false;
    std::optional<TensorId> seen;
    const std::vector<WrittenValue> written_values = model_.written_values(execution);
    // The gradients of the first layer go nowhere: its backward call gave nothing.
    const size_t parent = visits_[at].parent;
    if (written_values.empty() && parent != kNoParent) ways_.push_back({PathEnd::kOutput, parent, std::nullopt, false});
    // An optimizer passes on its parameter; its own output usually feeds nothing.
    const bool updates = std::any_of(written_values.begin(), written_values.end(),
                                     [](const WrittenValue& written) { return written.parameter.has_value(); });
    for (const WrittenValue& written : written_values) {
      switch (written.value.state) {
        case InputState::kGood:
          sound = true;
          seen = seen ? seen : written.value.tensor;
          continue;
        case InputState::kUnknown:
          unknown = true;
          break;
        case InputState::kBad:
          bad = true;
          break;
      }
      for (const TensorId& copy : written.copies) spread_.tensors.insert(copy);
      const bool is_bad = written.value.state == InputState::kBad;
      if (is_bad && !visits_[at].link) visits_[at].link = written.value.tensor;
      if (written.parameter) {
        const TensorId file = model_.id(*written.parameter, Slot{});
        if (is_bad) ways_.push_back({PathEnd::kParameter, at, file, false});
        if (is_bad) follow(model_.consumers_after(*written.parameter, execution), at);
        continue;
      }
      const std::vector<Consumer> consumers = model_.consumers(execution, written.slot);
      const bool loss = in_category(model_.graph().node(execution.node), Category::kLoss);
      if (is_bad && consumers.empty() && !updates)
        ways_.push_back({loss ? PathEnd::kLoss : PathEnd::kOutput, at, std::nullopt, false});
      follow(consumers, at);
    }
    // A parent is visited before its children, so its count is final when theirs is made.
    const bool shows = visits_[at].link && *visits_[at].link != origin_;
    visits_[at].links = (visits_[at].parent == kNoParent ? 0 : visits_[visits_[at].parent].links) + (shows ? 1 : 0);
    // Comparisons and casts to integers cannot hold a NaN, so they do not absorb one.
    if (!bad && !unknown && sound && seen && can_be_bad(*seen)) ways_.push_back({PathEnd::kAbsorbed, at, seen, true});
  }

  bool can_be_bad(const TensorId& tensor) {
    const std::optional<Stats> stats = evidence_.stats(tensor);
    if (!stats) return true;
    return evidence_.builtin() ? is_float(stats->dtype) : stats->dtype != DType::kBool;
  }

  void follow(const std::vector<Consumer>& consumers, size_t from) {
    for (const Consumer& consumer : consumers) take(consumer, from);
  }

  std::vector<size_t> path(size_t at) const {
    std::vector<size_t> path;
    for (; at != kNoParent; at = visits_[at].parent) path.push_back(at);
    std::reverse(path.begin(), path.end());
    return path;
  }

  std::vector<TensorId> tensors_of(const Path& way) const {
    std::vector<TensorId> tensors = {origin_};
    for (size_t at : path(way.visit)) {
      if (visits_[at].link && *visits_[at].link != origin_) tensors.push_back(*visits_[at].link);
    }
    if (way.last && tensors.back() != *way.last) tensors.push_back(*way.last);
    return tensors;
  }

  bool better(const Path& a, const Path& b) const {
    if (a.end == PathEnd::kParameter) {
      auto state = [&](const Path& way) { return model_.graph().node(way.last->node).optimizer_state; };
      if (state(a) != state(b)) return state(b);
    }
    return visits_[a.visit].hops < visits_[b.visit].hops;
  }

  /// From a parameter through its own update to itself: that says nothing.
  bool is_own_update(const Path& way) const {
    if (way.last->node != origin_.node || length(way) > 3) return false;
    return tensors_of(way).size() == 2;
  }

  size_t length(const Path& way) const { return 1 + visits_[way.visit].links + (way.last ? 1 : 0); }

  /// The shortest path to each kind of end and the longest path of all say the most; a list of all paths would say little.
  void choose_chains() {
    std::vector<const Path*> chosen;
    const Path* longest = nullptr;
    for (PathEnd end : {PathEnd::kAbsorbed, PathEnd::kParameter, PathEnd::kLoss, PathEnd::kOutput}) {
      const Path* best = nullptr;
      for (const Path& way : ways_) {
        if (way.end != end || length(way) < 2) continue;
        if (way.end == PathEnd::kParameter && is_own_update(way)) continue;
        if (!best || better(way, *best)) best = &way;
        if (!longest || length(way) > length(*longest)) longest = &way;
      }
      if (best) chosen.push_back(best);
    }
    if (longest && chosen.size() < kMostChains && std::find(chosen.begin(), chosen.end(), longest) == chosen.end())
      chosen.push_back(longest);

    std::vector<std::vector<TensorId>> seen;
    for (const Path* way : chosen) {
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
  std::vector<Path> ways_;
  Spread spread_;
};

}  // namespace

Spread spread_from(Evidence& evidence, const StepModel& model, const Execution& origin, const TensorId& tensor) {
  BreadthFirstSearch walk(evidence, model, tensor);
  walk.start_at(origin);
  return walk.run();
}

Spread spread_from_start(Evidence& evidence, const StepModel& model, NodeId node, const TensorId& tensor) {
  BreadthFirstSearch walk(evidence, model, tensor);
  for (const Consumer& consumer : model.consumers_at_start(node)) walk.start_with(consumer);
  return walk.run();
}

Spread spread_from_input(Evidence& evidence, const StepModel& model, const Consumer& consumer, const TensorId& tensor) {
  BreadthFirstSearch walk(evidence, model, tensor);
  walk.start_with(consumer);
  return walk.run();
}

}  // namespace msdbg
