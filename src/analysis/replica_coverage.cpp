#include "analysis/replica_coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "analysis/replica_calls.h"
#include "msdbg/unfinished.h"

namespace msdbg {

void ReplicaCoverage::count_alone(const ReplicaValue& value, const Sighting& sighting) {
  const std::string_view reason = sighting.copies.size() < 2 ? "no other rank has it to compare with"
                                  : "nothing tells that the ranks share it: what it is computed from was not dumped";
  for (const auto& [rank, copy] : sighting.copies) {
    if (value.nodes.size() > 1) not_checked(sighting.tensor(rank), copy.reason.empty() ? std::string(reason) : copy.reason.get());
  }
}

void ReplicaCoverage::not_checked(const TensorId& id, std::string reason) {
  ++result_.coverage.tensors;
  ++result_.coverage.not_checked;
  NotChecked entry;
  entry.tensor = id;
  entry.reason = std::move(reason);
  result_.not_checked.push_back(std::move(entry));
}

void ReplicaCoverage::count(const ReplicaValue& value, const Sighting& sighting, const std::vector<int>& part, int64_t step) {
  std::vector<int64_t> with;
  for (const int rank : part) {
    const auto copy = sighting.copies.find(rank);
    if (copy != sighting.copies.end() && copy->second.print) with.push_back(rank);
  }
  if (std::ranges::none_of(part, [&](int rank) { return sighting.copies.contains(rank); })) return;
  for (const int rank : part) {
    const auto copy = sighting.copies.find(rank);
    if (copy == sighting.copies.end()) {
      if (!sighting.is_input()) absent(value, sighting, rank, with, step);
    } else if (!copy->second.print) {
      not_checked(sighting.tensor(rank), copy->second.reason);
    } else if (with.size() < 2) {
      // An operator that one rank alone ran, as an evaluation: the weight itself is compared.
      if (sighting.is_input() && !value.nameless && sighting.copies.size() < 2) continue;
      not_checked(sighting.tensor(rank), fmt::format("only rank {} has it", rank));
    } else {
      ++result_.coverage.tensors;
      ++result_.coverage.checked;
      Counts& counts = counts_[sighting.value];
      ++counts.checked;
      const ReplicaEvidence by = copy->second.print->by;
      if (by == ReplicaEvidence::kChecksum) ++result_.by_checksum, ++counts.by_checksum;
      if (by == ReplicaEvidence::kStatistics) ++result_.by_statistics, ++counts.by_statistics;
    }
  }
}

bool ReplicaCoverage::never_ended(const ReplicaValue& value, const Sighting& sighting, const std::vector<int>& part, int64_t step) {
  if (!value.collective) return false;
  std::vector<int> absent;
  std::ranges::copy_if(part, std::back_inserter(absent), [&](int rank) { return !sighting.copies.contains(rank); });
  if (absent.empty()) return false;
  if (unfinished_.first != step) unfinished_ = {step, !unfinished_steps(session_, IntSet::of(step), IntSet::all()).empty()};
  if (!unfinished_.second) return false;
  // Ranks that wait for another one have a file with what they gave.
  not_compared(sighting, part, fmt::format("it did not end: {} never came to it", ranks_text(absent)));
  return true;
}

bool ReplicaCoverage::renumbered(const ReplicaValue& value, const Sighting& sighting, const std::vector<int>& part, const Parts& equal) {
  if (!value.nameless || !is_renumbered(session_, sighting, equal)) return false;
  not_compared(sighting, part, "calls of this type are numbered otherwise: a rank ran fewer of them before");
  return true;
}

void ReplicaCoverage::not_compared(const Sighting& sighting, const std::vector<int>& part, const std::string& reason) {
  Counts& counts = counts_[sighting.value];
  for (const int rank : part) {
    const auto copy = sighting.copies.find(rank);
    if (copy == sighting.copies.end() || !copy->second.print) continue;
    const ReplicaEvidence by = copy->second.print->by;
    const Counts own{1, by == ReplicaEvidence::kChecksum ? 1u : 0u, by == ReplicaEvidence::kStatistics ? 1u : 0u};
    uncount(own);
    counts.checked -= own.checked;
    counts.by_checksum -= own.by_checksum;
    counts.by_statistics -= own.by_statistics;
    not_checked(sighting.tensor(rank), reason);
  }
}

void ReplicaCoverage::take_back(size_t value) {
  uncount(std::exchange(counts_[value], {}));
}

void ReplicaCoverage::uncount(const Counts& counts) {
  result_.coverage.tensors -= counts.checked;
  result_.coverage.checked -= counts.checked;
  result_.by_checksum -= counts.by_checksum;
  result_.by_statistics -= counts.by_statistics;
}

void ReplicaCoverage::absent(const ReplicaValue& value, const Sighting& sighting, int rank, const std::vector<int64_t>& with,
                             int64_t step) {
  const NodeRef& ref = value.nodes.at(rank);
  TensorId id = sighting.tensor(sighting.copies.begin()->first);
  id.rank = rank;
  id.node = ref.node;
  const auto [at, fresh] = steps_.try_emplace({rank, id.graph});
  if (fresh) {
    const std::vector<int64_t> steps = session_.steps(rank, id.graph);
    at->second.insert(steps.begin(), steps.end());
  }
  const bool ran = at->second.contains(step);
  not_checked(id, ran ? fmt::format("rank {} did not dump it, but rank{} {} did", rank, with.size() == 1 ? "" : "s", numbers_text(with))
                      : fmt::format("rank {} has no step {}", rank, step));
}

}  // namespace msdbg
