#include "analysis/replica_sides.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <utility>

#include "analysis/cause_kind.h"

namespace msdbg {
namespace {

constexpr double kOutOfProportion = 1e6;  // more than any two copies of a weight that were trained apart differ

template <typename IsWrong>
bool put_the_other_first(Parts& equal, const IsWrong& is_wrong) {
  if (std::ranges::count_if(equal, is_wrong) + 1 != std::ssize(equal)) return false;
  std::ranges::stable_partition(equal, std::not_fn(is_wrong));
  return true;
}

bool is_one_constant(const Stats& stats) {
  return stats.count > 0 && stats.nan_count == 0 && stats.inf_count() == 0 && stats.min == stats.max;
}

}  // namespace

bool is_even(const Parts& equal) {
  return std::ranges::all_of(equal, [&](const auto& part) { return part.size() == equal.front().size(); });
}

bool put_nan_last(const Sighting& sighting, Parts& equal) {
  return put_the_other_first(equal, [&](const std::vector<int>& ranks) { return sighting.copies.at(ranks.front()).print->bits.nan; });
}

bool put_far_larger_last(Session& session, const Sighting& sighting, Parts& equal) {
  std::map<int, double> largest;
  for (const std::vector<int>& ranks : equal) {
    const Result<Stats> stats = session.stats(sighting.tensor(ranks.front()));
    if (!stats || stats->count == stats->nan_count) return false;
    largest[ranks.front()] = largest_magnitude(*stats);
  }
  const double least = std::ranges::min(largest | std::views::values);
  return least > 0 && put_the_other_first(equal, [&](const std::vector<int>& ranks) {
           return largest.at(ranks.front()) > kOutOfProportion * least;
         });
}

bool was_constant_before(Session& session, const Sighting& sighting, std::span<const int64_t> steps, int64_t step) {
  TensorId id = sighting.tensor(sighting.copies.begin()->first);
  for (const int64_t before : steps) {
    if (before >= step) break;
    id.step = before;
    if (!session.exists(id)) continue;
    const Result<Stats> stats = session.stats(id);
    if (stats && !is_one_constant(*stats)) return false;
  }
  return true;
}

void tell_of_state(Session& session, ReplicaBuffers& buffers, TensorId state, ReplicaDifference* made) {
  const std::optional<TensorId> other = counterpart(session, state, made->expected);
  if (!other || !session.exists(state)) return;
  ReplicaDifference moved = *made;
  moved.cause = ReplicaCause::kValue;
  moved.tensor = moved.seen = state;
  std::erase(moved.reached, state);
  moved.reached.insert(moved.reached.begin(), made->tensor);
  moved.expected = *other;
  moved.moved.reset();  // that was about the weight
  moved.own_way = false;
  moved.not_seen.clear();
  compare_replicas(session, buffers, &moved);
  *made = std::move(moved);
}

}  // namespace msdbg
