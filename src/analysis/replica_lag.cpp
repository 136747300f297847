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

void ReplicaLag::Evidence::compare(const ReplicaPrint& own, const ReplicaPrint& theirs) {
  if (own != theirs) contradicted = true;
  // Single numbers are equal by chance, and equal statistics prove nothing.
  else if (own.by != ReplicaEvidence::kStatistics && element_count(own.shape).value_or(0) > 1) seen = true;
}

void ReplicaLag::differs(const Sighting& sighting, const std::vector<int>& odd, const std::vector<int>& others, int64_t step) {
  Step& state = seen_[odd][step];
  state.other = others.front();
  state.behind.possible = follows(step);
  const ReplicaPrint* const old = follows(step) ? before(sighting, others.front()) : nullptr;
  if (old == nullptr) return;
  for (const int rank : odd) state.behind.compare(*sighting.copies.at(rank).print, *old);
}

/// Values in which the ranks agree, and which are not those of the step before, contradict it.
void ReplicaLag::find_behind(const std::vector<Sighting>& seen, const std::vector<int>& odd, Step& state) const {
  if (!state.behind.seen || state.behind.contradicted) return;
  for (const Sighting& sighting : seen) {
    const ReplicaPrint* const old = before(sighting, state.other);
    const auto own = sighting.copies.find(odd.front()), other = sighting.copies.find(state.other);
    if (old == nullptr || own == sighting.copies.end() || other == sighting.copies.end()) continue;
    const bool keeps_pace = own->second.print && other->second.print && *own->second.print == *other->second.print;
    if (keeps_pace && *own->second.print != *old) state.behind.contradicted = true;
  }
}

/// `state` is that of the step before: what the odd ranks held then is what the others hold now, whether they agreed in it or not.
void ReplicaLag::find_ahead(const std::vector<Sighting>& seen, const std::vector<int>& odd, Step& state) const {
  state.ahead.possible = true;
  for (const Sighting& sighting : seen) {
    const ReplicaPrint* const theirs = before(sighting, state.other);
    const auto now = sighting.copies.find(state.other);
    if (theirs == nullptr || now == sighting.copies.end() || !now->second.print) continue;
    for (const int rank : odd) {
      const ReplicaPrint* const own = before(sighting, rank);
      if (own == nullptr) continue;
      if (*own != *theirs) state.ahead.compare(*own, *now->second.print);
      else if (*own != *now->second.print) state.ahead.contradicted = true;
    }
  }
}

void ReplicaLag::end_step(const std::vector<Sighting>& seen, int64_t step, bool last) {
  for (auto& [odd, steps] : seen_) {
    if (const auto state = steps.find(step); state != steps.end()) find_behind(seen, odd, state->second);
    if (!follows(step)) continue;
    if (const auto state = steps.find(step - 1); state != steps.end()) find_ahead(seen, odd, state->second);
  }
  if (!last) keep(seen);
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

std::optional<ReplicaCause> ReplicaLag::shifted(const std::vector<int>& odd, const std::set<int64_t>& steps) const {
  const auto states = seen_.find(odd);
  if (states == seen_.end()) return std::nullopt;
  const auto in_all = [&](Evidence Step::* direction) {
    bool seen = false;
    for (const int64_t step : steps) {
      const auto state = states->second.find(step);
      if (state == states->second.end()) return false;
      const Evidence& evidence = state->second.*direction;
      // The first step has none before, the last one none after it: the others decide.
      if (evidence.contradicted || (evidence.possible && !evidence.seen)) return false;
      seen = seen || evidence.seen;
    }
    return seen;
  };
  if (in_all(&Step::behind)) return ReplicaCause::kStep;
  if (in_all(&Step::ahead)) return ReplicaCause::kStepAhead;
  return std::nullopt;
}

void ReplicaLag::join(std::vector<ReplicaDifference>& differences) const {
  std::map<std::vector<int>, std::set<int64_t>> steps;
  for (const ReplicaDifference& each : differences) steps[each.odd].insert(each.steps.begin(), each.steps.end());
  std::map<std::vector<int>, size_t> first_of;  // of those behind or ahead: index into `kept`
  std::vector<ReplicaDifference> kept;
  for (ReplicaDifference& each : differences) {
    const std::optional<ReplicaCause> cause = shifted(each.odd, steps.at(each.odd));
    if (!cause) {
      kept.push_back(std::move(each));
      continue;
    }
    const auto [at, fresh] = first_of.try_emplace(each.odd, kept.size());
    std::vector<TensorId> with = std::exchange(each.also, {});
    with.insert(with.end(), each.reached.begin(), each.reached.end());
    if (fresh) {
      kept.push_back(std::move(each));
      kept.back().cause = *cause;
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
