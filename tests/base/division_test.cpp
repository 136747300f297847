// Work cut into parcels and dealt out: nothing is lost, nothing is done twice, and the end is cut fine.
#include "msdbg/division.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace msdbg {
namespace {

constexpr uint64_t kMiB = 1 << 20;

uint64_t cost(const std::vector<uint64_t>& bytes, const Parcel& parcel) {
  const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(parcel.first);
  return std::accumulate(first, first + static_cast<std::ptrdiff_t>(parcel.count), parcel.count * kBytesPerItem);
}

std::vector<uint64_t> random_sizes(size_t count) {
  std::mt19937_64 random(7);
  std::vector<uint64_t> bytes(count);
  for (uint64_t& each : bytes) each = uint64_t{1} << (random() % 31);
  return bytes;
}

TEST(Divide, EveryItemIsInOneParcelInOrder) {
  for (const size_t count : {0u, 1u, 17u, 5000u}) {
    for (const unsigned processes : {1u, 2u, 64u, 512u}) {
      uint64_t next = 0;
      for (const Parcel& parcel : divide(random_sizes(count), processes)) {
        EXPECT_EQ(parcel.first, next);
        EXPECT_GT(parcel.count, 0u);
        next += parcel.count;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(Divide, ParcelsCostTheSameAndThenLess) {
  const std::vector<uint64_t> bytes(100'000, kMiB);
  const std::vector<Parcel> parcels = divide(bytes, 8);
  const uint64_t usual = cost(bytes, parcels.front());
  EXPECT_LE(usual, 100'000 * (kMiB + kBytesPerItem) / (8 * 32));
  for (const Parcel& parcel : parcels) EXPECT_LE(cost(bytes, parcel), usual);
  for (size_t i = 0; i < 7 * 32; ++i) EXPECT_EQ(cost(bytes, parcels[i]), usual);
  EXPECT_LT(cost(bytes, parcels.back()), 2 * kMiB);
}

TEST(Divide, AnItemLargerThanAParcelIsAParcel) {
  const std::vector<uint64_t> bytes = {1, uint64_t{100} << 30, 1};
  const std::vector<Parcel> parcels = divide(bytes, 4);
  EXPECT_EQ(parcels, (std::vector<Parcel>{{0, 1}, {1, 1}, {2, 1}}));
}

TEST(Divide, ManySmallFilesAreDividedByTheirNumber) {
  const std::vector<uint64_t> bytes(1000, 4);
  EXPECT_GE(divide(bytes, 4).size(), 50u);
}

TEST(Divide, SizesThatCannotBeDoNotOverflow) {
  const std::vector<uint64_t> bytes(1000, UINT64_MAX);
  EXPECT_EQ(divide(bytes, 4).size(), 1000u);
}

TEST(Dealer, OthersGetTwoParcelsAheadAndProcess0AsManyAsItAsksFor) {
  const std::vector<uint64_t> bytes(1000, kMiB);
  Dealer dealer(bytes, 3);
  ASSERT_TRUE(dealer.deal(1));
  const auto second = dealer.deal(1);
  ASSERT_TRUE(second);
  EXPECT_FALSE(dealer.deal(1));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(dealer.deal(0));
  for (uint64_t item = second->first; item < second->first + second->count; ++item) EXPECT_TRUE(dealer.finish(1, item));
  EXPECT_TRUE(dealer.deal(1));
}

TEST(Dealer, AResultThatWasNotAskedForIsRefused) {
  const std::vector<uint64_t> bytes(1000, kMiB);
  Dealer dealer(bytes, 3);
  const Parcel parcel = dealer.deal(1).value();
  EXPECT_FALSE(dealer.finish(2, parcel.first));
  EXPECT_FALSE(dealer.finish(1, parcel.first + parcel.count));
  EXPECT_FALSE(dealer.finish(1, UINT64_MAX));
  EXPECT_TRUE(dealer.finish(1, parcel.first));
  EXPECT_FALSE(dealer.finish(1, parcel.first)) << "twice";
}

TEST(Dealer, WhatAProcessGivesUpIsDealtAgain) {
  const std::vector<uint64_t> bytes(3000, kMiB);
  Dealer dealer(bytes, 4);
  std::vector<int> done(bytes.size());
  std::mt19937 random(3);
  std::vector<std::vector<uint64_t>> has(4);
  bool gave_up = false;
  while (!dealer.done()) {
    const unsigned process = random() % 4;
    if (const auto parcel = dealer.deal(process)) {
      for (uint64_t item = parcel->first; item < parcel->first + parcel->count; ++item) {
        if (process == 0) ++done[item];
        else has[process].push_back(item);
      }
    }
    if (!gave_up && has[2].size() > 1) {
      gave_up = true;
      EXPECT_TRUE(dealer.finish(2, has[2].back()));
      ++done[has[2].back()];
      dealer.give_up(2);
      EXPECT_FALSE(dealer.deal(2));
    }
    for (int i = 0; i < 40 && !has[process].empty(); ++i) {
      if (process == 2) break;
      EXPECT_TRUE(dealer.finish(process, has[process].back()));
      ++done[has[process].back()];
      has[process].pop_back();
    }
  }
  EXPECT_TRUE(gave_up);
  EXPECT_EQ(std::count(done.begin(), done.end(), 1), static_cast<std::ptrdiff_t>(done.size()));
}

}  // namespace
}  // namespace msdbg
