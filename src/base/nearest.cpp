// "Did you mean": ranks candidates by the likelihood that the user meant them.
#include <algorithm>
#include <numeric>

#include "msdbg/base.h"
#include "msdbg/node_names.h"

namespace msdbg {
namespace {

// Edit distance with transpositions; stops when every cell of a row exceeds `limit`.
size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  const size_t gap = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (gap > limit) return limit + 1;
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  std::iota(previous.begin(), previous.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    size_t best = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + cost});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
      best = std::min(best, row[j]);
    }
    if (best > limit) return limit + 1;
    std::swap(before, previous);
    std::swap(previous, row);
  }
  return previous[b.size()];
}

size_t common_prefix(std::string_view a, std::string_view b) {
  const size_t n = std::min(a.size(), b.size());
  size_t i = 0;
  while (i < n && a[i] == b[i]) ++i;
  return i;
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates, size_t limit) {
  constexpr size_t kMaxWord = 200;  // edit distance is quadratic; only the ends of longer words are compared
  std::string wanted = to_lower(word);
  if (wanted.size() > kMaxWord) wanted = wanted.substr(wanted.size() - kMaxWord);
  const std::string wanted_tail(last_component(wanted));
  if (wanted_tail.empty()) return {};
  // With more than half of the letters wrong, words do not resemble each other.
  const size_t tolerance = std::max<size_t>(1, wanted_tail.size() / 2);

  struct Scored {
    size_t score;
    size_t index;
  };
  std::vector<Scored> scored;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const std::string candidate = to_lower(candidates[i]);
    const std::string_view tail = last_component(candidate);
    size_t score;
    if (tail == wanted_tail) {
      score = 0;
    } else if (candidate.find(wanted) != std::string::npos) {
      score = 1;
    } else if (const size_t whole = edit_distance(wanted_tail, tail.substr(0, kMaxWord), tolerance); whole <= tolerance) {
      score = 1 + whole;
    } else if (const size_t shared = common_prefix(tail, wanted_tail); shared * 2 >= wanted_tail.size() && shared > 1) {
      score = 2 + tolerance + (wanted_tail.size() - shared);
    } else {
      continue;
    }
    // Ties go to the candidate with the longest common part: `relu9` is nearer to `relu4` than to `elu`.
    scored.push_back({score * 1000 + 990 - std::min<size_t>(common_prefix(tail, wanted_tail), 99) * 10, i});
  }
  std::stable_sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) { return a.score < b.score; });
  std::vector<std::string> out;
  for (const Scored& s : scored) {
    if (out.size() == limit) break;
    out.push_back(candidates[s.index]);
  }
  return out;
}

}  // namespace msdbg
