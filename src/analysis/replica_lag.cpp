#include "analysis/replica_lag.h"

#include <algorithm>
#include <tuple>

namespace msdbg {
namespace {

/// Of more, each rank has its own, and nobody can be behind.
constexpr size_t kMostParts = 4;

}  // namespace

const ReplicaPrint* ReplicaLag::before(const Sighting& sighting, int rank) const {
  const auto at = before_.find({sighting.value, sighting.order});
  if (at == before_.end()) return nullptr;
  const auto part = std::ranges::find_if(at->second, [&](const Part& each) { return std::ranges::binary_search(each.ranks, rank); });
  return part == at->second.end() ? nullptr : &part->print;
}

void ReplicaLag::differs(const Sighting& sighting, const std::vector<int>& odd, const std::vector<int>& others, int64_t step) {
  Step& state = seen_[odd][step];
  state.other = others.front();
  // A step that was left out of the dump is none before.
  const ReplicaPrint* const old = step_before_ && *step_before_ + 1 == step ? before(sighting, others.front()) : nullptr;
  if (old == nullptr) return;
  for (const int rank : odd) {
    const ReplicaPrint& print = *sighting.copies.at(rank).print;
    if (print != *old) state.contradicted = true;
    // Single numbers are equal by chance, and equal statistics prove nothing.
    else if (print.by != ReplicaEvidence::kStatistics && element_count(print.shape).value_or(0) > 1) state.behind = true;
  }
}

void ReplicaLag::end_step(const std::vector<Sighting>& seen, int64_t step) {
  for (auto& [odd, steps] : seen_) {
    const auto state = steps.find(step);
    if (state == steps.end() || !state->second.behind || state->second.contradicted) continue;
    for (const Sighting& sighting : seen) {
      const ReplicaPrint* const old = before(sighting, state->second.other);
      const auto own = sighting.copies.find(odd.front()), other = sighting.copies.find(state->second.other);
      if (old == nullptr || own == sighting.copies.end() || other == sighting.copies.end()) continue;
      const bool keeps_pace = own->second.print && own->second.print == other->second.print;
      if (keeps_pace && *own->second.print != *old) state->second.contradicted = true;
    }
  }
  keep(seen);
  step_before_ = step;
}

void ReplicaLag::keep(const std::vector<Sighting>& seen) {
  before_.clear();
  for (const Sighting& sighting : seen) {
    std::vector<Part> parts;
    for (const auto& [rank, copy] : sighting.copies) {
      if (!copy.print) continue;
      const auto same = std::ranges::find(parts, *copy.print, &Part::print);
      if (same != parts.end()) same->ranks.push_back(rank);
      else if (parts.size() < kMostParts) parts.push_back({*copy.print, {rank}});
    }
    before_[{sighting.value, sighting.order}] = std::move(parts);
  }
}

bool ReplicaLag::is_behind(const std::vector<int>& odd, const std::set<int64_t>& steps) const {
  const auto states = seen_.find(odd);
  if (states == seen_.end()) return false;
  return std::ranges::all_of(steps, [&](int64_t step) {
    const auto state = states->second.find(step);
    return state != states->second.end() && state->second.behind && !state->second.contradicted;
  });
}

void ReplicaLag::join(std::vector<ReplicaDifference>& differences) const {
  std::map<std::vector<int>, std::set<int64_t>> steps;
  for (const ReplicaDifference& each : differences) steps[each.odd].insert(each.steps.begin(), each.steps.end());
  std::map<std::vector<int>, size_t> first_of;  // of those behind: index into `kept`
  std::vector<ReplicaDifference> kept;
  for (ReplicaDifference& each : differences) {
    if (!is_behind(each.odd, steps.at(each.odd))) {
      kept.push_back(std::move(each));
      continue;
    }
    const auto [at, fresh] = first_of.try_emplace(each.odd, kept.size());
    std::vector<TensorId> with = std::exchange(each.also, {});
    with.insert(with.end(), each.reached.begin(), each.reached.end());
    if (fresh) {
      kept.push_back(std::move(each));
      kept.back().cause = ReplicaCause::kStep;
      kept.back().steps.assign(steps.at(kept.back().odd).begin(), steps.at(kept.back().odd).end());
      kept.back().reached = std::move(with);
      continue;
    }
    with.insert(with.begin(), each.tensor);
    kept[at->second].reached.insert(kept[at->second].reached.end(), with.begin(), with.end());
  }
  // A value that differs in several steps is named with the first of them.
  for (const auto& [odd, index] : first_of) {
    const auto place = [](const TensorId& id) { return std::tuple(id.graph, id.node, id.slot); };
    std::set named{place(kept[index].tensor)};
    std::erase_if(kept[index].reached, [&](const TensorId& id) { return !named.insert(place(id)).second; });
  }
  differences = std::move(kept);
}

}  // namespace msdbg
