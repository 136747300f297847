// The table of releases.
#include <gtest/gtest.h>

#include "msdbg/release.h"

namespace msdbg::test {
namespace {

using Number = std::pair<int, int>;

TEST(Releases, AreNumberedByTheirFirstTwoNumbers) {
  for (const auto& [text, number] : std::vector<std::pair<const char*, Number>>{
           {"1.0.1", {1, 0}}, {"2.2.14", {2, 2}}, {"2.0.0a0", {2, 0}}, {"2.3rc1", {2, 3}}, {"1.10", {1, 10}}, {"2.1.0+cu111", {2, 1}}}) {
    EXPECT_EQ(release_number(text), number) << text;
  }
  for (const char* text : {"", "2", "x.y.z", "-1.2.0", "1.-2.0", ".1", "2.rc1", "99999.1", "1.99999999999999999999"})
    EXPECT_EQ(release_number(text), std::nullopt) << text;
}

TEST(Releases, ThoseBetweenTwoRowsBehaveLikeTheEarlierOne) {
  EXPECT_TRUE(release_of(1, 2, false).swaps_tolerances);
  EXPECT_EQ(release_of(1, 2, false).step_hold, StepHold::kCountedAtStart);
  EXPECT_EQ(release_of(1, 4, false).step_hold, StepHold::kNextStart);
  EXPECT_FALSE(release_of(1, 4, false).levels);
  EXPECT_FALSE(release_of(1, 10, false).keeps_previous);
  EXPECT_FALSE(release_of(2, 2, false).nonfinite_in_extremes);
  EXPECT_TRUE(release_of(2, 9, false).nonfinite_in_extremes);
  EXPECT_EQ(release_of(2, 2, false).minor, 2);
}

TEST(Releases, DifferByBackend) {
  EXPECT_TRUE(release_of(2, 2, true).keeps_previous);
  EXPECT_FALSE(release_of(2, 2, false).keeps_previous);
  EXPECT_EQ(release_of(1, 5, true).step_hold, StepHold::kAfterCounting);
  EXPECT_EQ(release_of(2, 3, true).step_hold, StepHold::kNever);
  EXPECT_TRUE(release_of(1, 0, true).judges_at_step_end);
  EXPECT_FALSE(release_of(1, 0, false).judges_at_step_end);
}

}  // namespace
}  // namespace msdbg::test
