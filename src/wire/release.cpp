#include "msdbg/release.h"

#include <cstdint>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/supported.h"

namespace msdbg {
namespace {

using enum StepHold;

enum Facts : uint32_t {
  kParams = 1 << 0,
  kRecheck = 1 << 1,
  kInitialValues = 1 << 2,
  kJudgesAtStepEnd = 1 << 3,
  kNodeLevelHolds = 1 << 4,
  kSwapsTolerances = 1 << 5,
  kLevels = 1 << 6,
  kNamedConstants = 1 << 7,
  kOneHandshake = 1 << 8,
  kPreviousOnGpu = 1 << 9,
  kWrongMeans = 1 << 10,
  kNonfiniteInExtremes = 1 << 11,
};
constexpr uint32_t kSince1_1 = kParams | kRecheck | kInitialValues | kJudgesAtStepEnd | kNodeLevelHolds;
constexpr uint32_t kSince1_6 = kSince1_1 | kLevels | kNamedConstants | kOneHandshake | kWrongMeans;

struct Row {
  int major, minor;
  StepHold gpu, ascend;
  uint32_t facts;
};

// One row per release that changed something.
constexpr Row kRows[] = {
    {1, 0, kCountedAtStart, kAfterCounting, kPreviousOnGpu},
    {1, 1, kCountedAtStart, kAfterCounting, kSince1_1 | kSwapsTolerances | kPreviousOnGpu},
    {1, 3, kNextStart, kAfterCounting, kSince1_1 | kSwapsTolerances | kPreviousOnGpu},
    {1, 5, kNextStart, kAfterCounting, kSince1_1 | kSwapsTolerances | kPreviousOnGpu | kLevels},
    {1, 6, kBeforeCounting, kBeforeCounting, kSince1_6 | kPreviousOnGpu},
    {1, 7, kBeforeCounting, kBeforeCounting, kSince1_6},
    {2, 3, kBeforeCounting, kNever, kSince1_6 | kNonfiniteInExtremes},
};

}  // namespace

std::optional<std::pair<int, int>> release_number(std::string_view version) {
  const std::vector<std::string_view> parts = split(version, '.');
  if (parts.size() < 2) return std::nullopt;
  const auto major = parse_int(parts[0]);
  // Suffixes follow the third number; a version without one may have the suffix here.
  const auto minor = parse_int(parts[1].substr(0, parts[1].find_first_not_of("0123456789")));
  if (!major || !minor || *major < 0 || *minor < 0 || *major > 1000 || *minor > 1000) return std::nullopt;
  return std::pair(static_cast<int>(*major), static_cast<int>(*minor));
}

std::vector<std::pair<int, int>> release_generations() {
  std::vector<std::pair<int, int>> out;
  for (const Row& row : kRows) out.emplace_back(row.major, row.minor);
  return out;
}

Release release_of(int major, int minor, bool ascend) {
  const Row* row = &kRows[0];
  for (const Row& candidate : kRows) {
    if (std::pair(candidate.major, candidate.minor) <= std::pair(major, minor)) row = &candidate;
  }
  const auto has = [row](uint32_t fact) { return (row->facts & fact) != 0; };
  Release release;
  release.major = major;
  release.minor = minor;
  release.ascend = ascend;
  release.step_hold = ascend ? row->ascend : row->gpu;
  release.params = has(kParams);
  release.recheck = has(kRecheck);
  release.initial_values = has(kInitialValues);
  release.judges_at_step_end = ascend || has(kJudgesAtStepEnd);
  release.node_level_holds = ascend || has(kNodeLevelHolds);
  release.swaps_tolerances = has(kSwapsTolerances);
  release.levels = has(kLevels);
  release.named_constants = has(kNamedConstants);
  release.one_handshake = has(kOneHandshake);
  release.keeps_previous = ascend || has(kPreviousOnGpu);
  release.wrong_means = has(kWrongMeans);
  release.nonfinite_in_extremes = has(kNonfiniteInExtremes);
  return release;
}

}  // namespace msdbg
