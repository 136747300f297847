// Differences that tell of one fault.
#include "analysis/replica_story.h"

#include "analysis/trained_ranks.h"

namespace msdbg {
namespace {

using namespace testing;
using namespace replica_test;

/// Rank 1 differs from ranks 0 and 2 in step 1.
class Story {
 public:
  Story() : session_(3) {}

  ReplicaDifference of(const std::string& name, ReplicaKind what, ReplicaCause cause, int odd = 1, const Ranks& others = {0, 2}) {
    ReplicaDifference made;
    made.cause = cause;
    made.what = what;
    made.tensor = made.seen = session_.id(name, 1, {}, 0, odd);
    made.expected = session_.id(name, 1, {}, 0, others.front());
    made.odd = {odd};
    made.others = others;
    made.steps = {1};
    made.elements = made.of = 3;
    return made;
  }
  ReplicaDifference weight() { return of("fc.weight", ReplicaKind::kParameter, ReplicaCause::kValue); }
  /// Every rank divides the rate by 2 in each step, but for rank 1, which holds `own` in step 1.
  ReplicaDifference rate(double own) {
    for (int rank = 0; rank < 3; ++rank) {
      for (const int step : {0, 1}) set_rate(rank, step, step == 0 ? 0.5 : 0.25);
    }
    set_rate(1, 1, own);
    ReplicaDifference made = of("learning_rate", ReplicaKind::kOptimizerState, ReplicaCause::kSetting);
    made.elements = made.of = 1;
    made.first = {{{}, 0.25, own}};
    return made;
  }
  /// An optimizer's call of step 0 or 1 with another number.
  ReplicaDifference call(int64_t step) {
    ReplicaDifference made = of(kApply, ReplicaKind::kUpdate, ReplicaCause::kOperator);
    made.tensor.step = step;
    made.called = made.tensor;
    made.arguments = "alpha = 0.9 instead of 0.99";
    return made;
  }
  std::vector<ReplicaDifference> join(std::vector<ReplicaDifference> differences) {
    ReplicaBuffers buffers;
    join_stories(session_, buffers, &differences);
    return differences;
  }
  Trained& session() { return session_; }

 private:
  void set_rate(int rank, int64_t step, double value) {
    session_.set(rank, step, "learning_rate", f32(Shape{}, std::vector<double>{value}));
  }

  Trained session_;
};

TEST(ReplicaStory, ACounterMissesTheUpdateThatTheWeightMisses) {
  Story story;
  ReplicaDifference weight = story.weight();
  weight.moved = 0;
  const auto told = story.join({story.rate(0.5), weight});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].what, ReplicaKind::kParameter);
  ASSERT_EQ(told[0].reached.size(), 1U);
  EXPECT_EQ(story.session().node(told[0].reached[0]).name, "learning_rate");
}

TEST(ReplicaStory, AnotherRateIsNoCounter) {
  Story story;
  ReplicaDifference weight = story.weight();
  weight.moved = 0;
  EXPECT_EQ(story.join({story.rate(0.3), weight}).size(), 2U);  // what nobody held
  weight.moved = 2;
  EXPECT_EQ(story.join({story.rate(0.5), weight}).size(), 2U);  // the weight was updated
}

TEST(ReplicaStory, NumbersOfTheCallsThatWroteTheWeight) {
  Story story;
  ReplicaDifference weight = story.weight();
  weight.called = story.call(0).called;
  weight.arguments = "lr = 0.1 instead of 0.2";
  const auto told = story.join({story.call(0), weight});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].arguments, "lr = 0.1 instead of 0.2");
  EXPECT_EQ(story.join({story.call(1), weight}).size(), 2U);  // after it
  ReplicaDifference read_again = story.weight();
  const auto same_step = story.join({story.call(1), read_again});
  ASSERT_EQ(same_step.size(), 1U);
  EXPECT_EQ(same_step[0].arguments, "alpha = 0.9 instead of 0.99");
  ReplicaDifference other = story.of("fc.weight", ReplicaKind::kParameter, ReplicaCause::kValue, 2, {0, 1});
  EXPECT_EQ(story.join({story.call(1), other}).size(), 2U);
}

TEST(ReplicaStory, AShardDiffersTogetherWithOtherWeights) {
  Story story;
  ReplicaDifference weight = story.weight(), shard = story.of("moments.fc.weight", ReplicaKind::kParameter, ReplicaCause::kValue, 2, {1});
  weight.moved = 0;
  shard.decided = false;
  const auto told = story.join({weight, shard});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].odd, Ranks{1});
  ASSERT_EQ(told[0].also.size(), 1U);
  EXPECT_EQ(told[0].also[0], story.session().id("moments.fc.weight", 1, {}, 0, 1));
  ReplicaDifference known = story.of("moments.fc.weight", ReplicaKind::kParameter, ReplicaCause::kValue, 1, {2});
  EXPECT_EQ(story.join({weight, known}).size(), 1U);
  known.others = {3};
  EXPECT_EQ(story.join({weight, known}).size(), 2U);
  shard.elements = 1;  // a flipped bit is something else
  EXPECT_EQ(story.join({weight, shard}).size(), 2U);
  shard.elements = 3;
  shard.others = {0};  // of ranks that are not odd
  EXPECT_EQ(story.join({weight, shard}).size(), 2U);
}

TEST(ReplicaStory, WithoutWeightsTheNextUpdateShowsThatOneIsMissing) {
  Story story;
  ReplicaDifference missing = story.of(kApply, ReplicaKind::kUpdate, ReplicaCause::kNoUpdate);
  missing.tensor.step = 0;
  missing.steps = {0};
  ReplicaDifference next = story.of(kReduce, ReplicaKind::kUpdate, ReplicaCause::kValue);
  next.steps = {1, 2};
  next.single_flip = true;
  next.also = {next.tensor};
  const auto told = story.join({missing, next});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].cause, ReplicaCause::kNoUpdate);
  EXPECT_EQ(told[0].steps, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(told[0].reached, std::vector{next.tensor});
  EXPECT_FALSE(story.join({next})[0].single_flip);
  next.elements = 1;  // a flipped bit is something else
  EXPECT_EQ(story.join({missing, next}).size(), 2U);
}

TEST(ReplicaStory, AStepWithoutAnOptimizerTellsWhichSideIsWrong) {
  for (const bool turned : {false, true}) {
    Story story;
    story.session().set(turned ? 0 : 1, 1, "fc.weight", f32({7, 8, 9}));
    ReplicaDifference weight = story.of("fc.weight", ReplicaKind::kParameter, ReplicaCause::kValue, 1, {0});
    weight.decided = false;
    weight.also = {story.session().id("moments.fc.weight", 1, {}, 0, 1)};
    const Ranks with = turned ? Ranks{1, 2} : Ranks{0, 2};
    ReplicaDifference missing = story.of(kApply, ReplicaKind::kUpdate, ReplicaCause::kNoUpdate, turned ? 0 : 1, with);
    missing.tensor.step = 0;
    const auto told = story.join({missing, weight});
    ASSERT_EQ(told.size(), 1U);
    EXPECT_TRUE(told[0].decided);
    EXPECT_EQ(told[0].odd, Ranks{turned ? 0 : 1});
    EXPECT_EQ(told[0].others, Ranks{turned ? 1 : 0});
    EXPECT_EQ(told[0].moved, 0.0);
    EXPECT_EQ(told[0].also.front().rank, turned ? 0 : 1);
    if (turned) {
      ASSERT_FALSE(told[0].first.empty());
      EXPECT_EQ(told[0].first.front().actual, 7);
    }
    weight.tensor.step = 2;  // later, anything may have happened
    missing.tensor.step = 0;
    EXPECT_EQ(story.join({missing, weight}).size(), 2U);
  }
}

}  // namespace
}  // namespace msdbg
