#include "analysis/replica_moves.h"

#include <cmath>
#include <string>

#include "analysis/trained_ranks.h"

namespace msdbg {
namespace {

using namespace testing;

std::vector<double> numbers(size_t count, double first, double factor = 0) {
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i) out.push_back(first + 0.25 * static_cast<double>(i) + factor * std::sin(static_cast<double>(i)));
  return out;
}

/// The weight was the same on both ranks in step 0; in step 1, rank 0 moved it by 0.01 * sin(i).
class Moves {
 public:
  explicit Moves(size_t count = 16) : count_(count), session_(2) {
    for (const int rank : {0, 1}) set(rank, 0, numbers(count_, 1));
    set(0, 1, numbers(count_, 1, 0.01));
  }
  void set(int rank, int64_t step, const std::vector<double>& values) {
    session_.set(rank, step, "fc.weight", f32(Shape{static_cast<int64_t>(values.size())}, values));
  }
  ReplicaDifference difference(const std::vector<double>& odd, ReplicaCause cause = ReplicaCause::kValue) {
    set(1, 1, odd);
    ReplicaDifference difference;
    difference.cause = cause;
    difference.seen = session_.id("fc.weight", 1, {}, 0, 1);
    difference.expected = session_.id("fc.weight", 1, {}, 0, 0);
    ReplicaBuffers buffers;
    compare_replicas(session_, buffers, &difference);
    compare_moves(session_, buffers, &difference);
    return difference;
  }
  std::optional<double> with(const std::vector<double>& odd, ReplicaCause cause = ReplicaCause::kValue) { return difference(odd, cause).moved; }

 private:
  size_t count_;
  Trained session_;
};

TEST(ReplicaMoves, AnotherRateMovesEachElementFurther) {
  const auto moved = Moves().with(numbers(16, 1, 0.02));
  ASSERT_TRUE(moved);
  EXPECT_NEAR(*moved, 2, 1e-4);
  EXPECT_NEAR(*Moves().with(numbers(16, 1, 0.001)), 0.1, 1e-3);
}

TEST(ReplicaMoves, WithoutAnUpdateItIsWhatItWas) { EXPECT_EQ(Moves().with(numbers(16, 1)), 0.0); }

TEST(ReplicaMoves, OtherMovesSayNothing) {
  EXPECT_FALSE(Moves().with(numbers(16, 1, 0.01)));   // as far
  EXPECT_FALSE(Moves().with(numbers(16, 1, -0.02)));  // the other way
  EXPECT_FALSE(Moves().with(numbers(16, 7)));         // other weights
  std::vector<double> one = numbers(16, 1, 0.01);
  one[3] += 0.5;
  EXPECT_FALSE(Moves().with(one));
  one[3] = NAN;
  EXPECT_FALSE(Moves().with(one));
  EXPECT_FALSE(Moves().with(numbers(15, 1, 0.02)));  // another shape
  EXPECT_FALSE(Moves().with(numbers(16, 1, 0.02), ReplicaCause::kOperator));
}

TEST(ReplicaMoves, OtherGradientsMoveItInAnotherDirection) {
  std::vector<double> other = numbers(16, 1);
  for (size_t i = 0; i < other.size(); ++i) other[i] += 0.02 * std::cos(static_cast<double>(i));
  EXPECT_TRUE(Moves().difference(other).own_way);
  EXPECT_TRUE(Moves().difference(numbers(16, 1, -0.02)).own_way);
  EXPECT_FALSE(Moves().difference(other, ReplicaCause::kOperator).own_way);
}

TEST(ReplicaMoves, OtherWeightsAndASingleWrongElementAreNoDirection) {
  EXPECT_FALSE(Moves().difference(numbers(16, 7)).own_way);        // much further than the other
  EXPECT_FALSE(Moves().difference(numbers(16, 1, 0.02)).own_way);  // the same direction
  std::vector<double> one = numbers(16, 1, 0.01);
  one[3] += 0.05;
  EXPECT_FALSE(Moves().difference(one).own_way);
}

TEST(ReplicaMoves, AFewElementsFitByChance) {
  EXPECT_FALSE(Moves(4).with(numbers(4, 1, 0.02)));
  EXPECT_EQ(Moves(4).with(numbers(4, 1)), 0.0);
}

TEST(ReplicaMoves, WhatRoundingHidesIsUnknown) {
  Moves tiny;
  tiny.set(0, 1, numbers(16, 1, 1e-8));
  EXPECT_FALSE(tiny.with(numbers(16, 1, 2e-8)));
}

TEST(ReplicaMoves, TheSentenceSaysWhatIsMissing) {
  ReplicaDifference difference;
  difference.odd = {1};
  difference.others = {0, 2};
  difference.seen.step = 3;
  EXPECT_EQ(move_text(difference), "");
  difference.moved = 0;
  EXPECT_EQ(move_text(difference), "unlike ranks 0, 2, rank 1 did not move it since step 2: an update is missing");
  difference.moved = 2.00004;
  difference.also.resize(1);
  EXPECT_EQ(move_text(difference), "rank 1 moved them 2 times as far since step 2 as ranks 0, 2: another learning rate");
  difference.moved.reset();
  difference.own_way = true;
  EXPECT_EQ(move_text(difference), "rank 1 moved them in another direction since step 2 than ranks 0, 2: it took other gradients");
}

}  // namespace
}  // namespace msdbg
