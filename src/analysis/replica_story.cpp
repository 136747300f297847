#include "analysis/replica_story.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/replica_sets.h"

namespace msdbg {
namespace {

using Differences = std::vector<ReplicaDifference>;

bool same_sides(const ReplicaDifference& a, const ReplicaDifference& b) { return a.odd == b.odd && a.others == b.others; }

/// The dump has no elements of it.
bool is_by_statistics(const ReplicaDifference& each) { return each.elements == 0 && !each.problem.empty(); }

bool is_of_weights(const ReplicaDifference& each) { return each.cause == ReplicaCause::kValue && each.what == ReplicaKind::kParameter; }

/// True if all of `ranks` are in `of`. Both are sorted.
bool within(const std::vector<int>& ranks, const std::vector<int>& of) { return std::ranges::includes(of, ranks); }

std::optional<double> single_number(Session& session, const TensorId& id) {
  Result<OpenTensor> tensor = session.open_elements(id);
  if (!tensor || tensor->info.count != 1) return std::nullopt;
  std::vector<std::byte> bytes(item_size(tensor->info.dtype));
  if (!tensor->reader->read(0, bytes).ok()) return std::nullopt;
  return element_as_double(tensor->info.dtype, bytes.data());
}

class StoryTeller {
 public:
  StoryTeller(Session& session, ReplicaBuffers& buffers, Differences& differences)
      : session_(session), buffers_(buffers), differences_(differences), told_(differences.size()) {}

  void run() {
    for (size_t i = 0; i < differences_.size(); ++i) {
      if (!is_of_weights(differences_[i])) continue;
      for (size_t other = 0; other < differences_.size(); ++other) {
        if (other == i || told_[other] || told_[i]) continue;
        if (told_by(differences_[i], differences_[other])) told_[other] = true;
      }
    }
    for (ReplicaDifference& setting : differences_) {
      for (const ReplicaDifference& weights : differences_) {
        if (told_[index_of(setting)] || told_[index_of(weights)] || !is_setting_of(setting, weights)) continue;
        told_[index_of(weights)] = true;
        take(setting, weights);
        add_steps(setting, weights);
      }
    }
    for (ReplicaDifference& missing : differences_) {
      if (missing.cause != ReplicaCause::kNoUpdate || told_[index_of(missing)]) continue;
      for (const ReplicaDifference& other : differences_) {
        if (told_[index_of(other)] || !is_next_update(missing, other)) continue;
        told_[index_of(other)] = true;
        take(missing, other);
        missing.steps.insert(missing.steps.end(), other.steps.begin(), other.steps.end());
      }
    }
    size_t at = 0;
    std::erase_if(differences_, [&](const ReplicaDifference&) { return told_[at++]; });
  }

 private:
  size_t index_of(const ReplicaDifference& each) const { return static_cast<size_t>(&each - differences_.data()); }

  bool told_by(ReplicaDifference& weights, const ReplicaDifference& other) {
    if (shows_again(weights, other)) {
      take(weights, other);
      add_steps(weights, other);
      return true;
    }
    if (is_of_weights(other)) {
      if (!is_of_its_shards(weights, other)) return false;
      add_weight(weights, other.tensor);
      for (const TensorId& id : other.also) add_weight(weights, id);
      return true;
    }
    if (other.cause == ReplicaCause::kNoUpdate) return is_missing_update(weights, other) && decide(weights, other);
    if (!same_sides(weights, other)) {
      if (weights.arguments.empty() || !is_decided_by(weights, other) || !took_other_numbers(weights, other)) return false;
      take(weights, other);
      return true;
    }
    if (came_with(weights, other)) {
      add_steps(weights, other);
    } else if (took_other_numbers(weights, other)) {
      // A weight that is read again in the step that wrote it shows no call of the step before.
      if (weights.arguments.empty()) {
        weights.arguments = other.arguments;
        weights.called = other.called;
      }
    } else if (!is_counter_behind(weights, other)) {
      return false;
    }
    take(weights, other);
    return true;
  }

  static bool took_other_numbers(const ReplicaDifference& weights, const ReplicaDifference& other) {
    if (other.what != ReplicaKind::kUpdate || other.arguments.empty() || other.of_calls() || !other.called) return false;
    const int64_t step = other.called->step;
    if (weights.called) return weights.called->step == step || weights.arguments == other.arguments;
    return differs_mostly(weights) && weights.tensor.step == step;
  }

  // ---- the same rank, later ----

  /// A rank whose optimizer takes other numbers comes to hold other copies of one weight after the other, the constants among them last.
  /// As statistics tell, a value may be equal although it is odd.
  static bool shows_again(const ReplicaDifference& weights, const ReplicaDifference& other) {
    if (!same_sides(weights, other) || other.tensor.step < weights.tensor.step) return false;
    const bool later = is_of_weights(other) && other.tensor.step > weights.tensor.step && !other.moved && !other.own_way;
    if (later && !weights.arguments.empty() && !other.arguments.empty()) return true;
    if (!is_by_statistics(weights) || !is_by_statistics(other)) return false;
    if (other.cause == ReplicaCause::kOperator) return other.arguments.empty();
    return later && other.arguments.empty() && (!weights.also.empty() || is_same(weights.tensor, other.tensor));
  }

  static bool is_same(const TensorId& a, const TensorId& b) { return a.graph == b.graph && a.node == b.node && a.rank == b.rank; }

  static void add_steps(ReplicaDifference& weights, const ReplicaDifference& other) {
    std::vector<int64_t> all;
    std::ranges::set_union(weights.steps, other.steps, std::back_inserter(all));
    weights.steps = std::move(all);
  }

  /// Its update shows it before any weight does: the first step of Adam is the same whatever its betas. Or it is one of another call, which
  /// clips gradients.
  static bool is_setting_of(const ReplicaDifference& setting, const ReplicaDifference& weights) {
    const bool told = setting.of_calls() && setting.what == ReplicaKind::kUpdate && setting.cause != ReplicaCause::kNoUpdate;
    if (!told || !is_of_weights(weights) || !same_sides(setting, weights) || weights.tensor.step <= setting.tensor.step) return false;
    return !weights.arguments.empty() || (weights.tensor.step == setting.tensor.step + 1 && differs_mostly(weights));
  }

  /// Whoever loads another checkpoint gets its counters, too.
  static bool came_with(const ReplicaDifference& weights, const ReplicaDifference& other) {
    return other.cause == ReplicaCause::kSetting && other.of_calls() && same_sides(weights, other) && weights.arguments.empty() &&
           !weights.moved && weights.tensor.step == other.tensor.step && differs_mostly(weights);
  }

  // ---- weights with fewer copies ----

  /// A rank's shards came to differ together with its other weights. Fewer ranks have a copy of a shard: of two, nobody could tell which is
  /// wrong.
  static bool is_of_its_shards(const ReplicaDifference& weights, const ReplicaDifference& other) {
    if (!weights.decided || weights.tensor.step != other.tensor.step || !differs_mostly(weights) || !differs_mostly(other)) return false;
    const bool fewer = other.others.size() < weights.others.size();
    return other.decided ? fewer && other.odd == weights.odd && within(other.others, weights.others) : is_decided_by(weights, other);
  }

  /// `other` has two sides, and one of them has ranks that are known to be odd.
  static bool is_decided_by(const ReplicaDifference& weights, const ReplicaDifference& other) {
    const auto has = [&](const std::vector<int>& ranks) { return std::ranges::find_first_of(ranks, weights.odd) != ranks.end(); };
    return weights.decided && !other.decided && has(other.odd) != has(other.others);
  }

  void add_weight(ReplicaDifference& weights, const TensorId& id) {
    weights.also.push_back(counterpart(session_, id, weights.tensor).value_or(id));
  }

  // ---- a step without an optimizer ----

  static bool is_missing_update(const ReplicaDifference& weights, const ReplicaDifference& missing) {
    if (!missing.decided || weights.decided || weights.tensor.step != missing.tensor.step + 1 || !differs_mostly(weights)) return false;
    return (within(weights.odd, missing.odd) && within(weights.others, missing.others)) || is_other_side(weights, missing);
  }

  static bool is_other_side(const ReplicaDifference& weights, const ReplicaDifference& missing) {
    return within(weights.others, missing.odd) && within(weights.odd, missing.others);
  }

  /// Without weights in the dump, the next update shows that one is missing.
  static bool is_next_update(const ReplicaDifference& missing, const ReplicaDifference& other) {
    return other.what == ReplicaKind::kUpdate && !other.of_calls() && same_sides(missing, other) && differs_mostly(other) &&
           other.tensor.step == missing.tensor.step + 1;
  }

  bool decide(ReplicaDifference& weights, const ReplicaDifference& missing) {
    if (is_other_side(weights, missing)) {
      const auto turned = [&](const TensorId& id) { return counterpart(session_, id, weights.expected).value_or(id); };
      ReplicaDifference made = weights;
      made.tensor = turned(weights.tensor);
      made.seen = weights.expected;
      made.expected = weights.seen;
      made.odd = weights.others;
      made.others = weights.odd;
      for (auto* list : {&made.also, &made.reached}) std::ranges::transform(*list, list->begin(), turned);
      made.called.reset();
      made.arguments.clear();
      compare_replicas(session_, buffers_, &made);
      weights = std::move(made);
    }
    weights.decided = true;
    weights.own_way = false;
    weights.moved = 0;
    return true;
  }

  // ---- counters ----

  /// What an update counts or multiplies in each step, such as the powers of Adam's betas.
  bool is_counter_behind(const ReplicaDifference& weights, const ReplicaDifference& other) {
    if (weights.moved != 0.0 || other.tensor.step != weights.tensor.step || other.first.size() != 1 || other.of != 1) return false;
    if (other.what == ReplicaKind::kParameter || other.what == ReplicaKind::kCollectiveOutput) return false;
    bool missing = false;
    const Result<TensorId> before = session_.previous(other.expected, &missing);
    if (!before || before->step + 1 != other.expected.step) return false;
    const std::optional<double> held = single_number(session_, *before);
    return held && *held == other.first.front().actual;
  }

  static void take(ReplicaDifference& weights, const ReplicaDifference& other) {
    const auto place = [](const TensorId& id) { return std::tuple(id.graph, id.node, id.slot); };
    std::set<std::tuple<int, NodeId, Slot>> named{place(weights.tensor)};
    for (const auto* list : {&weights.also, &weights.reached}) {
      for (const TensorId& id : *list) named.insert(place(id));
    }
    const auto add = [&](const TensorId& id) {
      if (named.insert(place(id)).second) weights.reached.push_back(id);
    };
    add(other.tensor);
    std::ranges::for_each(other.also, add);
    std::ranges::for_each(other.reached, add);
  }

  Session& session_;
  ReplicaBuffers& buffers_;
  Differences& differences_;
  std::vector<bool> told_;  // by a weight
};

}  // namespace

void join_stories(Session& session, ReplicaBuffers& buffers, Differences* differences) {
  if (differences->size() > 1) StoryTeller(session, buffers, *differences).run();
  for (ReplicaDifference& difference : *differences) {
    std::erase(difference.reached, difference.tensor);
    if (!difference.also.empty()) difference.single_flip = false;  // 2 instead of 3 is one bit, too
  }
}

}  // namespace msdbg
