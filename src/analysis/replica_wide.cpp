// Weights of tensor-parallel ranks that are no shards: each group of data-parallel ranks keeps its own copy equal, and nothing but equal
// gradients keeps the groups together.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/replica_parts.h"
#include "analysis/replica_sides.h"

namespace msdbg {
namespace {

std::vector<int> all_of(const SharedList<std::vector<int>>& parts) {
  std::vector<int> all;
  for (const std::vector<int>& part : parts) all.insert(all.end(), part.begin(), part.end());
  std::ranges::sort(all);
  return all;
}

/// Sorted.
Parts sorted(Parts parts) {
  std::ranges::sort(parts);
  return parts;
}

}  // namespace

void ReplicaParts::widen(Session& session, const std::vector<Sighting>& seen, int64_t step) {
  if (std::exchange(widened_, true)) return;
  std::set<Parts> of_shards;
  std::vector<std::pair<const Sighting*, std::vector<int>>> alike;
  std::set<size_t> known;
  for (const Sighting& sighting : seen) {
    const ReplicaValue& given = value(sighting.value);
    const bool groups = given.what == ReplicaKind::kParameter && !given.assumed && !given.nameless && given.parts.size() > 1;
    if (!groups || is_single_number(sighting) || !known.insert(sighting.value).second) continue;
    std::vector<int> ranks = all_of(given.parts);
    if (std::ranges::adjacent_find(ranks) != ranks.end()) continue;
    const Parts equal = equal_ranks(sighting, ranks);
    if (equal.size() == 1 && equal.front().size() == ranks.size()) alike.emplace_back(&sighting, std::move(ranks));
    else if (Parts now = sorted(equal); now == sorted(Parts(given.parts.begin(), given.parts.end()))) of_shards.insert(std::move(now));
  }
  // Where shards begin differently, a weight that begins alike is none. Ones and zeros are.
  for (const auto& [sighting, ranks] : alike) {
    ReplicaValue& given = value(sighting->value);
    if (!of_shards.contains(sorted(Parts(given.parts.begin(), given.parts.end())))) continue;
    if (was_constant_before(session, *sighting, std::array{step}, step + 1)) continue;
    Parts parts{ranks};
    parts.insert(parts.end(), given.parts.begin(), given.parts.end());
    std::vector<std::pair<std::vector<int>, std::string>> reasons(given.reasons.begin(), given.reasons.end());
    reasons.emplace_back(ranks, fmt::format("equal in step {}, in which the shards of other weights differ", step));
    given.parts = last_.shared(std::move(parts));
    given.reasons = std::move(reasons);
    wide_.insert(sighting->value);
  }
}

bool ReplicaParts::is_wide(size_t index, const std::vector<int>& part) const {
  return wide_.contains(index) && part == model_.values()[index].parts.front();
}

}  // namespace msdbg
