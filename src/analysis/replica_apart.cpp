#include "analysis/replica_apart.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "analysis/replica_sides.h"

namespace msdbg {

void ReplicaApart::see(const Sighting& sighting, const std::vector<int>& part, const Parts& equal, int64_t step) {
  const bool alone = equal.size() == part.size() && equal.front().size() == 1;
  const auto known = weights_.find(sighting.value);
  if (known == weights_.end()) {
    const ReplicaValue& given = model_.values()[sighting.value];
    const std::optional<int64_t> decided = parts_.decided(sighting.value);
    if (!alone || !given.is_parameter() || given.nameless || is_single_number(sighting)) return;
    if (!given.assumed || !decided || *decided == step) return;
    weights_[sighting.value] = {sighting, equal, part, {part}, {step}, std::nullopt, std::nullopt};
    return;
  }
  Weight& weight = known->second;
  if (equal.empty()) return;
  if (std::ranges::find(weight.groups, part) == weight.groups.end()) {
    if (!alone || step != weight.first.step) return;
    weight.groups.push_back(part);
    weight.part.insert(weight.part.end(), part.begin(), part.end());
    std::ranges::sort(weight.part);
    return;
  }
  if (step == weight.first.step) return;
  if (equal.size() == 1 && equal.front().size() == part.size()) {
    if (!weight.again) weight.again = step;
  } else if (weight.steps.back() != step) {
    weight.steps.push_back(step);
    const bool most = equal.size() > 1 && equal.front().size() > 1 && 2 * equal.front().size() > part.size();
    if (most && !weight.most && !sighting.is_input()) weight.most = {sighting, equal, step};
  }
}

const ReplicaApart::Weight* ReplicaApart::find(size_t value) const {
  const auto at = weights_.find(value);
  return at == weights_.end() ? nullptr : &at->second;
}

bool ReplicaApart::is_compared_weight(size_t value) const {
  const ReplicaValue& given = model_.values()[value];
  return given.what == ReplicaKind::kParameter && !given.nameless && !given.untrained && given.nodes.size() > 1 && !parts_.is_single(value);
}

bool ReplicaApart::is_every_weight() const {
  int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
  for (size_t i = 0; i < model_.values().size(); ++i) {
    if (!is_compared_weight(i)) continue;
    const Weight* const weight = find(i);
    if (weight == nullptr || weight->part.size() != model_.values()[i].nodes.size()) return false;
    first = std::min(first, weight->first.step);
    last = std::max(last, weight->first.step);
  }
  // The first update of Adam moves each element by the rate alone: the statistics of constants may stay equal then.
  return last >= first && last - first <= 1;
}

void ReplicaApart::end() {
  every_weight_ = is_every_weight();
  const auto meets = [&](const auto& entry) {
    const auto &most = entry.second.most, &first = weights_.begin()->second.most;
    return most && first && most->step == first->step && most->equal == first->equal;
  };
  most_meet_ = every_weight_ && !weights_.empty() && model_.all_exchange_together() && std::ranges::all_of(weights_, meets);
}

bool ReplicaApart::is_everything() const {
  const auto stays = [](const auto& entry) { return !entry.second.again; };
  return every_weight_ && std::ranges::all_of(weights_, stays) && model_.nothing_exchanged();
}

uint64_t ReplicaApart::staying(Session& session) const {
  constexpr uint64_t kFew = 5;  // of so many that stay equal, one
  uint64_t staying = 0, leaving = 0;
  for (size_t i = 0; i < model_.values().size(); ++i) {
    if (!is_compared_weight(i)) continue;
    const Weight* const weight = find(i);
    if (weight == nullptr) {
      staying += std::ranges::any_of(model_.values()[i].parts, [](const auto& part) { return part.size() > 1; }) ? 1 : 0;
      continue;
    }
    const int64_t equal = *parts_.decided(i);
    if (weight->again || was_constant_before(session, weight->first, std::span(&equal, 1), weight->first.step)) return 0;
    ++leaving;
  }
  return leaving > 0 && kFew * leaving <= staying ? staying : 0;
}

std::vector<ReplicaApart::Missed> ReplicaApart::missed() const {
  std::vector<Missed> out;
  if (!most_meet_) return out;
  for (const auto& [value, weight] : weights_) {
    const Weight::Most& most = *weight.most;
    for (size_t i = 1; i < most.equal.size(); ++i) out.push_back({most.seen, most.equal.front(), most.equal[i], most.step});
  }
  std::ranges::stable_sort(out, {}, [](const Missed& each) { return each.seen.order; });
  return out;
}

std::string ReplicaApart::reason(size_t value) const {
  const Weight& weight = weights_.at(value);
  const int64_t equal = *parts_.decided(value), since = weight.first.step;
  if (weight.again) return fmt::format("each rank has another one from step {} on, until they are equal again in step {}", since, *weight.again);
  if (most_meet_) {
    return fmt::format("each rank has another one from step {} on, until {} are equal again in step {}", since,
                       ranks_text(weight.most->equal.front()), weight.most->step);
  }
  if (every_weight_)
    return fmt::format("equal in step {}, and different on every rank from step {} on: each rank trains them by itself, or they are shards "
                       "that began alike", equal, since);
  return by_chance(value, since);
}

std::string ReplicaApart::by_chance(size_t value, int64_t since) const {
  return fmt::format("equal in step {} by chance: they differ on every rank from step {} on", *parts_.decided(value), since);
}

}  // namespace msdbg
