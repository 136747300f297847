// Several ranks: held before the first step, stepped together, watched by one set of watchpoints, seen as one session.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "live/ranks_fixture.h"

namespace msdbg::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(LiveRanks, AllAreHeldBeforeTheFirstStepAndSeenAsOneSession) {
  Ranks t({});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  EXPECT_EQ(t.session().state(), LiveState::kHeld);
  EXPECT_EQ(std::vector<int>(t.session().ranks().begin(), t.session().ranks().end()), (std::vector{0, 1, 2}));
  ASSERT_EQ(t.session().graphs().size(), 3U);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(t.session().graphs()[static_cast<size_t>(rank)]->rank(), rank);
  EXPECT_EQ(t.completed(), (std::vector<int64_t>{0, 0, 0}));
  const Result<Stats> weight = t.session().stats(t.id(2, "w"));
  ASSERT_TRUE(weight.ok()) << weight.status().message();
  EXPECT_EQ(weight->max, 1);
}

TEST(LiveRanks, StepTakesAllOfThemAsFar) {
  Ranks t({.backend = "Ascend"});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  const Result<RunResult> result = t.run(RunKind::kStep, 2);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kDone);
  EXPECT_EQ(result->steps_run, 2);
  EXPECT_EQ(result->completed_steps, 2);
  EXPECT_EQ(t.completed(), (std::vector<int64_t>{2, 2, 2}));
  // The data differs between ranks, the sum does not.
  std::set<double> products, sums;
  for (int rank = 0; rank < 3; ++rank) {
    products.insert(t.session().stats(t.id(rank, kRankMul))->max);
    sums.insert(t.session().stats(t.id(rank, kRankReduce))->max);
  }
  EXPECT_EQ(products.size(), 3U);
  EXPECT_EQ(sums.size(), 1U);
  // Values of the last step are not those of this one.
  const double before = *sums.begin();
  ASSERT_TRUE(t.run(RunKind::kStep).ok());
  EXPECT_NE(t.session().stats(t.id(1, kRankReduce))->max, before);
}

// The operator read another value than the one that the training has now.
TEST(LiveRanks, AnInputThatWasChangedSinceCannotBeRead) {
  Ranks t({.ranks = 2, .backend = "Ascend"});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  ASSERT_TRUE(t.run(RunKind::kStep).ok());
  TensorId weight = t.id(1, kRankMul);
  weight.slot = {Io::kInput, 1};
  const auto info = t.session().describe(weight);
  ASSERT_FALSE(info.ok());
  EXPECT_NE(info.status().message().find("Assign-op3 has changed w since Default/net-Net/Mul-op1 read it"), std::string::npos)
      << info.status().message();
  EXPECT_TRUE(t.session().describe(t.id(1, "w")).ok());
  weight.slot = {Io::kInput, 0};
  EXPECT_TRUE(t.session().describe(weight).ok());
}

TEST(LiveRanks, StepsAreCountedOnceAndCallbacksComeOncePerStep) {
  Ranks t({.steps = 4});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  std::vector<int64_t> steps;
  RunRequest request;
  request.kind = RunKind::kContinue;
  request.timeout = 30s;
  request.on_step = [&](int64_t step) { return steps.push_back(step), true; };
  const Result<RunResult> result = t.session().run(request);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kEnded);
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(t.session().state(), LiveState::kEnded);
  EXPECT_TRUE(t.session().wait_until_ended(1s).ok());
}

TEST(LiveRanks, ARankHeldInTheMiddleOfAStepDoesNotBlockTheOthersForGood) {
  RankTrainingOptions options;
  options.data = [](size_t rank, int step, Four& x) {
    if (rank == 1 && step == 2) x[3] = kNan;
  };
  Ranks t(std::move(options));
  const Status held = t.session().wait_until_held(30s);
  (void)t.told("no such text");
  ASSERT_TRUE(held.ok()) << held.message() << "\n" << t.all_told() << ::testing::PrintToString(t.completed());
  t.watch("op:Mul or op:AllReduce", "NAN");
  const Result<RunResult> hit = t.run(RunKind::kContinue);
  ASSERT_TRUE(hit.ok()) << hit.status().message();
  ASSERT_EQ(hit->reason, StopReason::kHit);
  ASSERT_EQ(hit->check.hits.size(), 1U);
  EXPECT_EQ(hit->check.hits[0].tensor.rank, 1);
  EXPECT_EQ(t.session().node(hit->check.hits[0].tensor).name, kRankMul);
  EXPECT_EQ(hit->steps_run, 2);
  // The others wait in the AllReduce.
  EXPECT_EQ(t.states(), (std::vector{LiveState::kRunning, LiveState::kHeld, LiveState::kRunning}));
  EXPECT_EQ(t.session().state(), LiveState::kHeld);
  // Then the sum is bad on all ranks.
  const Result<RunResult> sums = t.run(RunKind::kStep);
  ASSERT_TRUE(sums.ok()) << sums.status().message();
  ASSERT_EQ(sums->reason, StopReason::kHit);
  std::set<int> ranks;
  for (const Hit& each : sums->check.hits) {
    EXPECT_EQ(t.session().node(each.tensor).name, kRankReduce);
    ranks.insert(each.tensor.rank);
  }
  EXPECT_EQ(ranks, (std::set{0, 1, 2}));
  ASSERT_TRUE(t.run(RunKind::kFinish).ok());
  EXPECT_EQ(t.completed(), (std::vector<int64_t>{3, 3, 3}));
}

TEST(LiveRanks, ARankThatIsCutShortIsHeldWhileTheOthersWaitForIt) {
  RankTrainingOptions options;
  options.fails = [](size_t rank, int step) { return rank == 1 && step == 2; };
  Ranks t(std::move(options));
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  const Result<RunResult> cut = t.run(RunKind::kContinue);
  ASSERT_TRUE(cut.ok()) << cut.status().message();
  EXPECT_EQ(cut->reason, StopReason::kCutShort);
  EXPECT_EQ(cut->steps_run, 2);
  EXPECT_EQ(t.states(), (std::vector{LiveState::kRunning, LiveState::kHeld, LiveState::kRunning}));
  EXPECT_TRUE(t.told("rank 1: step 2 was cut short: RuntimeError: no memory")) << t.all_told();
  const Result<RunResult> over = t.run(RunKind::kContinue);
  ASSERT_TRUE(over.ok()) << over.status().message();
  EXPECT_EQ(over->reason, StopReason::kEnded);
}

TEST(LiveRanks, HitsThatTheCallerIgnoresDoNotStop) {
  RankTrainingOptions options;
  options.data = [](size_t rank, int step, Four& x) {
    if (rank == 1 && step == 2) x[3] = kNan;
  };
  Ranks t(std::move(options));
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  t.watch("op:Mul", "NAN");
  RunRequest request;
  request.count = 3;
  request.timeout = 30s;
  request.on_hits = [](CheckResult& check, size_t first) { check.hits.resize(first); };
  const Result<RunResult> result = t.session().run(request);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kDone);
  EXPECT_EQ(t.completed(), (std::vector<int64_t>{3, 3, 3}));
}

TEST(LiveRanks, OperatorsAreSteppedOnAllRanks) {
  Ranks t({.ranks = 2});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  ASSERT_TRUE(t.run(RunKind::kNextNode).ok());
  for (const LiveRank& rank : t.session().live_ranks()) EXPECT_EQ(rank.node, kRankMul);
  RunRequest request;
  request.kind = RunKind::kToNode;
  request.node = kRankAssign;
  request.timeout = 30s;
  const Result<RunResult> reached = t.session().run(request);
  ASSERT_TRUE(reached.ok()) << reached.status().message();
  EXPECT_EQ(reached->reason, StopReason::kDone);
  for (const LiveRank& rank : t.session().live_ranks()) EXPECT_EQ(rank.node, kRankAssign);
}

TEST(LiveRanks, AfterAnInterruptAllAreHeldAfterTheSameStep) {
  Ranks t({.steps = 100000});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  RunRequest request;
  request.kind = RunKind::kContinue;
  int steps = 0;
  request.on_step = [&](int64_t) {
    if (++steps == 3) request_interrupt();
    return true;
  };
  const Result<RunResult> result = t.session().run(request);
  clear_interrupt();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kInterrupted);
  ASSERT_TRUE(t.session().pause(30s).ok());
  ASSERT_TRUE(t.run(RunKind::kStep).ok());
  const std::vector<int64_t> completed = t.completed();
  EXPECT_EQ(std::set<int64_t>(completed.begin(), completed.end()).size(), 1U);
  EXPECT_TRUE(t.session().terminate(30s).ok());
}

TEST(LiveRanks, AnInterruptAtAnyTimeLeavesAllHeldAfterTheSameStep) {
  ListenOptions listen;
  listen.history_tensors = kHistoryTensors;  // its requests are interrupted as well
  Ranks t({.steps = 100000}, listen);
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  for (int i = 0; i < 20; ++i) {
    std::thread user([i] {
      std::this_thread::sleep_for(20ms + std::chrono::microseconds(777 * i));
      request_interrupt();
    });
    const Result<RunResult> result = t.run(RunKind::kContinue);
    user.join();
    clear_interrupt();
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->reason, StopReason::kInterrupted);
    ASSERT_TRUE(t.session().pause(30s).ok());
    EXPECT_EQ(t.states(), std::vector(3, LiveState::kHeld)) << i;
    const std::vector<int64_t> completed = t.completed();
    EXPECT_EQ(std::set<int64_t>(completed.begin(), completed.end()).size(), 1U) << i;
  }
  EXPECT_TRUE(t.session().terminate(30s).ok());
}

/// Rank 2 waits in step 1.
RankTrainingOptions with_a_late_rank(const std::atomic<bool>& go) {
  RankTrainingOptions options;
  options.data = [&go](size_t rank, int step, Four&) {
    while (rank == 2 && step == 1 && !go) std::this_thread::sleep_for(5ms);
  };
  options.meets = false;
  return options;
}

TEST(LiveRanks, ALateRankIsShownWhileACommandRuns) {
  std::atomic<bool> go{false};
  Ranks t(with_a_late_rank(go));
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  RunRequest request;
  request.count = 2;
  std::string late;
  request.on_progress = [&](const RunProgress& progress) {
    if (!progress.late.empty()) late = progress.late, go = true;
  };
  ASSERT_TRUE(t.session().run(request).ok());
  EXPECT_EQ(late.rfind("rank 2 since ", 0), 0U) << late;
}

TEST(LiveRanks, AWarningNamesARankThatDoesNotEndItsStep) {
  std::atomic<bool> go{false};
  ListenOptions listen;
  listen.late_after = 300ms;
  Ranks t(with_a_late_rank(go), listen);
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  RunRequest request;
  request.count = 3;
  const std::string warning = "rank 2: the step has not ended, 0 s after that of ranks 0-1. If the program waits in a collective for ranks 0-1";
  request.on_progress = [&](const RunProgress&) { go = go || t.told(warning); };
  ASSERT_TRUE(t.session().run(request).ok());
  EXPECT_TRUE(t.told(warning)) << t.all_told();
  EXPECT_EQ(std::ranges::count_if(t.texts, [](const std::string& text) { return text.find("has not ended") != std::string::npos; }), 1);
}

TEST(LiveRanks, TerminateEndsAll) {
  Ranks t({});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  ASSERT_TRUE(t.run(RunKind::kStep).ok());
  const Result<RunResult> ended = t.session().terminate(30s);
  ASSERT_TRUE(ended.ok()) << ended.status().message();
  EXPECT_EQ(ended->reason, StopReason::kEnded);
  EXPECT_EQ(t.states(), (std::vector{LiveState::kEnded, LiveState::kEnded, LiveState::kEnded}));
}

TEST(LiveRanks, DetachLetsAllRunAndAttachHoldsAllAfterTheSameStep) {
  Ranks t({.steps = 100000});
  ASSERT_TRUE(t.session().wait_until_held(30s).ok());
  ASSERT_TRUE(t.session().detach().ok());
  EXPECT_TRUE(t.session().detached());
  EXPECT_FALSE(t.run(RunKind::kStep).ok());
  const Result<RunResult> held = t.session().attach(30s);
  ASSERT_TRUE(held.ok()) << held.status().message();
  EXPECT_TRUE(held->held);
  const std::vector<int64_t> completed = t.completed();
  EXPECT_EQ(std::set<int64_t>(completed.begin(), completed.end()).size(), 1U) << completed[0] << " " << completed[1];
  ASSERT_TRUE(t.run(RunKind::kStep).ok());
  EXPECT_TRUE(t.session().terminate(30s).ok());
}

}  // namespace
}  // namespace msdbg::test
