// A rank that is one step behind the others, or ahead of them.
#include "analysis/trained_ranks.h"

namespace msdbg {
namespace {

using namespace replica_test;

/// Rank 1 of four is one step behind from step 1 on.
class Lagging : public Trained {
 public:
  Lagging() : Trained(4, 4) {
    for (int step = 1; step < 4; ++step) put_step(1, step - 1, step);
  }
};

TEST(ReplicaLag, AllThatDiffersIsOneDifference) {
  Lagging s;
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  const ReplicaDifference& found = result.differences[0];
  EXPECT_EQ(found.cause, ReplicaCause::kStep);
  EXPECT_EQ(found.odd, Ranks{1});
  EXPECT_EQ(found.others, (Ranks{0, 2, 3}));
  EXPECT_EQ(found.steps, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(found.tensor.step, 1);
  EXPECT_EQ(found.reached.size(), 4u);  // of weight, moments, AllReduce, Mul and ApplyMomentum, one is where it was seen first
  EXPECT_EQ(difference_sentence(found), "rank 1 is one step behind ranks 0, 2-3: it holds what these held in the step before");
}

TEST(ReplicaLag, OfTwoRanksItIsTold) {
  Trained s(2, 3);
  for (int step = 1; step < 3; ++step) s.put_step(1, step - 1, step);
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].cause, ReplicaCause::kStep);
  EXPECT_FALSE(result.differences[0].decided);
  EXPECT_EQ(difference_sentence(result.differences[0]), "rank 1 is one step behind rank 0: it holds what that one held in the step before");
}

/// It has the weights of the step before, but what the AllReduce gave it is new.
TEST(ReplicaLag, ARankThatMissedAnUpdateIsNotBehind) {
  Trained s(4, 2);
  for (const char* name : {"fc.weight", "moments.fc.weight"}) s.set(1, 1, name, f32({1, 2, 3}));
  for (const ReplicaDifference& each : s.compare().differences) EXPECT_NE(each.cause, ReplicaCause::kStep);
}

/// The steps that are looked at begin when it is behind already: the later ones tell.
TEST(ReplicaLag, TheFirstStepNeedNotShowIt) {
  Lagging s;
  FollowOptions options;
  options.steps = *IntSet::parse("2:");
  const ReplicasResult result = s.compare(options);
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].cause, ReplicaCause::kStep);
  EXPECT_EQ(result.differences[0].steps, (std::vector<int64_t>{2, 3}));
  options.steps = *IntSet::parse("2");
  for (const ReplicaDifference& each : s.compare(options).differences) EXPECT_FALSE(each.shifted());
}

/// Rank 1 of four is one step ahead until its last step.
class Leading : public Trained {
 public:
  Leading() : Trained(4, 4) {
    for (int step = 0; step < 3; ++step) put_step(1, step + 1, step);
  }
};

TEST(ReplicaLag, ARankThatIsAheadIsOneDifference) {
  Leading s;
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  const ReplicaDifference& found = result.differences[0];
  EXPECT_EQ(found.cause, ReplicaCause::kStepAhead);
  EXPECT_EQ(found.odd, Ranks{1});
  EXPECT_EQ(found.steps, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(difference_sentence(found), "rank 1 is one step ahead of ranks 0, 2-3: it holds what these hold in the next step");
}

TEST(ReplicaLag, OneOtherValueContradictsThatItIsAhead) {
  Leading s;
  s.set(1, 1, "fc.weight", f32({2, 4, 7}));
  for (const ReplicaDifference& each : s.compare().differences) EXPECT_FALSE(each.shifted());
}

/// The lowest rank is the one with which the other one is compared.
TEST(ReplicaLag, OfTwoRanksTheOtherOneIsAheadWhereTheFirstIsBehind) {
  Trained s(2, 3);
  for (int step = 1; step < 3; ++step) s.put_step(0, step - 1, step);
  const ReplicasResult result = s.compare();
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(difference_sentence(result.differences[0]), "rank 1 is one step ahead of rank 0: it holds what that one holds in the next step");
}

TEST(ReplicaLag, OneOtherValueContradictsIt) {
  Lagging s;
  s.set(1, 2, "fc.weight", f32({2, 4, 7}));
  const ReplicasResult result = s.compare();
  EXPECT_GT(result.differences.size(), 1u);
  for (const ReplicaDifference& each : result.differences) EXPECT_NE(each.cause, ReplicaCause::kStep);
}

TEST(ReplicaLag, AStepThatIsNotInTheDumpIsNoStepBefore) {
  Lagging s;
  FollowOptions options;
  options.steps = *IntSet::parse("1,3");
  for (const ReplicaDifference& each : s.compare(options).differences) EXPECT_NE(each.cause, ReplicaCause::kStep);
}

}  // namespace
}  // namespace msdbg
