#include "analysis/replica_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace msdbg {

ReplicasResult chosen_replicas(Session& session, const FollowOptions& options) {
  ReplicasResult result;
  std::ranges::copy_if(session.ranks(), std::back_inserter(result.ranks), [&](int rank) { return options.ranks.contains(rank); });
  std::ranges::copy_if(session.steps(), std::back_inserter(result.steps), [&](int64_t step) { return options.steps.contains(step); });
  if (result.ranks.size() < 2)
    result.nothing = result.ranks.empty() ? "no such rank" : fmt::format("rank {} is the only one", result.ranks.front());
  return result;
}

void list_sets(const ReplicaModel& model, const DifferentParts& different, ReplicasResult* result) {
  std::map<std::string, std::vector<std::string>> alone;  // by reason
  using SetKey = std::tuple<ReplicaKind, std::string, bool, std::vector<int>>;
  std::map<SetKey, ReplicaSet> sets;
  for (size_t i = 0; i < model.values().size(); ++i) {
    const ReplicaValue& given = model.values()[i];
    if (given.nodes.size() < 2) {
      alone[fmt::format("only rank {} has them", given.nodes.begin()->first)].emplace_back(given.name);
      continue;
    }
    if (given.parts.empty()) {
      alone["not dumped on two ranks"].emplace_back(given.name);
      continue;
    }
    bool shared = false;
    for (const std::vector<int>& part : given.parts) {
      if (part.size() < 2) continue;
      shared = true;
      ReplicaSet& set = sets[{given.what, std::string(given.reason_of(part)), given.assumed, part}];
      set.ranks = part;
      set.what = given.what;
      set.assumed = given.assumed;
      set.reason = given.reason_of(part);
      ++set.tensors;
      if (different.contains({i, part})) ++set.different;
    }
    if (!shared && given.reason->starts_with("sharded")) alone[given.reason].emplace_back(given.name);
    if (!shared && given.collective) alone["outputs of collectives of a group with one rank in this dump"].emplace_back(given.name);
  }
  for (auto& [key, set] : sets) result->sets.push_back(std::move(set));
  result->not_replicated = model.left_out();
  for (const auto& [reason, names] : alone) {
    NotReplicated entry{reason, names.size(), names};
    entry.examples.resize(std::min<size_t>(names.size(), 3));
    result->not_replicated.push_back(std::move(entry));
  }
}

void explain_nothing(ReplicasResult* result) {
  if (result->coverage.checked > 0 || result->interrupted || !result->differences.empty()) return;
  result->nothing = result->sets.empty() ? "no two ranks have a value that they must share"
                                         : "no value was dumped on two ranks that must share it";
}

bool differs_mostly(const ReplicaDifference& difference) {
  const bool unknown = difference.elements == 0 && !difference.problem.empty();
  return unknown || (2 * difference.elements > difference.of && difference.of > 0);
}

void add_ranks(const std::vector<int>& ranks, ReplicaDifference* difference) {
  std::vector<int>& odd = difference->odd;
  for (const int rank : ranks) {
    const bool other = std::ranges::find(difference->others, rank) != difference->others.end();
    if (!other && std::ranges::find(odd, rank) == odd.end()) odd.push_back(rank);
  }
  std::ranges::sort(odd);
}

std::optional<size_t> same_weights(const std::vector<ReplicaDifference>& differences, const ReplicaDifference& made) {
  const auto mostly = [](const ReplicaDifference& each) {
    const bool weight = each.what == ReplicaKind::kParameter && each.updated;
    const bool update = each.cause == ReplicaCause::kUnknown && (weight || each.what == ReplicaKind::kUpdate);
    return (each.cause == ReplicaCause::kValue || each.cause == ReplicaCause::kCollective || update) && differs_mostly(each);
  };
  for (size_t i = 0; i < differences.size(); ++i) {
    const ReplicaDifference& other = differences[i];
    const bool same_ranks = other.odd == made.odd && other.others == made.others;
    const bool same_numbers = !made.arguments.empty() && made.arguments == other.arguments;
    const bool at_once = other.tensor.step == made.tensor.step && mostly(made) && mostly(other);
    if ((same_numbers || at_once) && other.cause == made.cause && same_ranks) return i;
  }
  return std::nullopt;
}

}  // namespace msdbg
