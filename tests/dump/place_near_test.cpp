// Search from a guess.
#include "session/dump/place_near.h"

#include <gtest/gtest.h>

#include <vector>

namespace msdbg::dump {
namespace {

TEST(PlaceNear, IsThatOfABinarySearchWhateverTheGuess) {
  for (size_t size = 0; size < 40; ++size) {
    std::vector<int> items;
    for (size_t i = 0; i < size; ++i) items.push_back(static_cast<int>(i / 3));  // some are equal
    for (int wanted = -1; wanted <= static_cast<int>(size / 3) + 1; ++wanted) {
      const auto expected = static_cast<size_t>(std::lower_bound(items.begin(), items.end(), wanted) - items.begin());
      for (size_t guess = 0; guess < size + 3; ++guess) {
        for (const size_t reach : {1, 2, 5, 64}) {
          const size_t place = place_near(std::span<const int>(items), guess, reach, [wanted](int item) { return item < wanted; });
          ASSERT_EQ(place, expected) << size << " items, " << wanted << " from " << guess << ", reach " << reach;
        }
      }
    }
  }
}

TEST(PlaceNear, AGoodGuessTakesFewQuestions) {
  std::vector<int> items(100000);
  for (size_t i = 0; i < items.size(); ++i) items[i] = static_cast<int>(i);
  int questions = 0;
  const auto before = [&](int item) { return ++questions, item < 50003; };
  EXPECT_EQ(place_near(std::span<const int>(items), 50000, 1, before), 50003u);
  EXPECT_LE(questions, 6);
}

}  // namespace
}  // namespace msdbg::dump
