// The lines of several ranks: those that agree become one, and who departs from the others is noted.
#include "analysis/trend_ranks.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <tuple>

namespace msdbg {
namespace {

using Bits = std::optional<uint64_t>;
Bits bits_of(const TrendPoint& point) { return point.value ? Bits(std::bit_cast<uint64_t>(*point.value)) : std::nullopt; }

bool same_point(const TrendPoint& a, const TrendPoint& b) {
  return a.step == b.step && bits_of(a) == bits_of(b) && a.not_finite == b.not_finite && a.count == b.count;
}
bool same_points(const TrendLine& a, const TrendLine& b) { return std::ranges::equal(a.points, b.points, same_point); }

uint64_t hash_of(const TrendLine& line) {
  uint64_t hash = line.points.size();
  for (const TrendPoint& point : line.points) {
    for (const uint64_t word : {static_cast<uint64_t>(point.step), bits_of(point).value_or(~uint64_t{0}), point.not_finite})
      hash = (hash ^ word) * 0x9E3779B97F4A7C15U ^ (hash >> 29);
  }
  return hash;
}

const TrendPoint* point_at(const TrendLine& line, int64_t step) {
  const auto at = std::ranges::lower_bound(line.points, step, {}, &TrendPoint::step);
  return at != line.points.end() && at->step == step ? &*at : nullptr;
}

/// `lines` are of one tensor on different ranks.
void note_departures(std::vector<TrendLine*> lines) {
  bool agreed = false;
  std::vector<int64_t> steps;
  for (const TrendPoint& point : lines.front()->points) steps.push_back(point.step);
  for (const int64_t step : steps) {
    std::map<Bits, std::vector<TrendLine*>> parts;
    for (TrendLine* line : lines) {
      // A rank that has fewer steps departs from nobody.
      if (const TrendPoint* point = point_at(*line, step)) parts[bits_of(*point)].push_back(line);
    }
    if (parts.size() < 2) {
      agreed = true;
      continue;
    }
    if (!agreed) return;  // values of the rank, such as its data
    const auto ranks_in = [](const std::vector<TrendLine*>& part) {
      std::vector<int> ranks;
      for (const TrendLine* line : part) ranks.insert(ranks.end(), line->ranks.begin(), line->ranks.end());
      std::ranges::sort(ranks);
      return ranks;
    };
    std::vector<std::vector<TrendLine*>> sorted;
    for (auto& [value, part] : parts) sorted.push_back(part);
    std::ranges::stable_sort(sorted, std::greater{}, [&](const auto& part) { return ranks_in(part).size(); });
    const size_t most = ranks_in(sorted[0]).size();
    const bool decided = most > ranks_in(sorted[1]).size();
    for (size_t i = decided ? 1 : 0; i < sorted.size(); ++i) {
      for (TrendLine* line : sorted[i]) {
        line->departs = step;
        if (decided) line->departs_from = ranks_in(sorted[0]);
      }
    }
    if (!decided) return;
    lines = sorted[0];
  }
}

}  // namespace

void join_ranks_of_lines(const Session& session, std::vector<TrendLine>& lines) {
  for (TrendLine& line : lines) line.ranks = {line.tensor.rank};
  if (session.ranks().size() < 2) return;
  // Nodes of one name may have other numbers on other ranks.
  using Key = std::tuple<int, std::string_view, uint32_t, Slot>;
  std::map<Key, std::map<uint64_t, std::vector<size_t>>> same;
  std::map<Key, std::vector<size_t>> of_tensor;
  std::vector<TrendLine> joined;
  std::ranges::stable_sort(lines, {}, [](const TrendLine& line) { return line.tensor.rank; });
  for (TrendLine& line : lines) {
    const Key key(line.tensor.graph, std::string_view(session.node(line.tensor).name), line.tensor.execution, line.tensor.slot);
    std::vector<size_t>& like = same[key][hash_of(line)];
    const auto known = std::ranges::find_if(like, [&](size_t index) { return same_points(joined[index], line); });
    if (known != like.end()) {
      joined[*known].ranks.push_back(line.tensor.rank);
      continue;
    }
    like.push_back(joined.size());
    of_tensor[key].push_back(joined.size());
    joined.push_back(std::move(line));
  }
  for (const auto& [key, indexes] : of_tensor) {
    if (indexes.size() < 2) continue;
    std::vector<TrendLine*> of_ranks;
    for (const size_t index : indexes) of_ranks.push_back(&joined[index]);
    // By the line with the most steps.
    std::ranges::stable_sort(of_ranks, std::greater{}, [](const TrendLine* line) { return line->points.size(); });
    note_departures(std::move(of_ranks));
  }
  lines = std::move(joined);
}

}  // namespace msdbg
