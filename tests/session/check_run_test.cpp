// How a check runs: threads, cached statistics, scripts, progress, interrupt.
#include <signal.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "check_support.h"

namespace msdbg {
namespace {

using testing::checked;
using testing::f32;
using testing::fake_graph;
using testing::FakeNode;
using testing::FakeSession;
using testing::hits;
using testing::Lines;
using testing::open_questions;
using testing::watch;

/// `nodes` operators over `steps` steps; every seventh value breaks.
std::unique_ptr<FakeSession> wide(int nodes, int steps) {
  std::vector<FakeNode> graph;
  for (int i = 0; i < nodes; ++i) graph.push_back({"Default/op" + std::to_string(i), "Add"});
  auto session = std::make_unique<FakeSession>(fake_graph(graph));
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < nodes; ++i) {
      session->put("Default/op" + std::to_string(i), step, f32({1.0 * i, (step + i) % 7 == 0 ? NAN : 1.0 * step}));
    }
  }
  return session;
}

TEST(CheckRun, ResultsDoNotDependOnTheNumberOfThreads) {
  const std::vector<Watchpoint> watches = {watch(1, "**", "TO"), watch(2, "**", "TL max_gt=5"), watch(3, "**", "WCL")};
  auto session = wide(30, 6);
  const CheckResult one = checked(*session, watches, {.threads = 1});
  for (unsigned threads : {2u, 3u, 8u}) {
    auto fresh = wide(30, 6);
    const CheckResult many = checked(*fresh, watches, {.threads = threads});
    EXPECT_EQ(hits(*fresh, many), hits(*session, one));
    EXPECT_EQ(open_questions(*fresh, many), open_questions(*session, one));
    EXPECT_EQ(many.coverage.bytes, one.coverage.bytes);
  }
  EXPECT_FALSE(one.hits.empty());
  EXPECT_FALSE(one.not_checked.empty());
}

TEST(CheckRun, AnExceptionIsAskedAboutTensorsThatAreNotClean) {
  auto session = wide(7, 1);
  session->put("Default/op3", 0, f32({NAN, 1}));
  Watchpoint large = watch(1, "**", "TL max_gt=4.5");
  std::vector<std::string> asked;
  large.except = [&](const CheckedTensor& tensor) {
    asked.push_back(session->tensor_name(tensor.id));
    ScriptVerdict verdict;
    if (asked.back() == "Default/op5:output:0") verdict.verdict = Verdict::kHit;
    if (asked.back() == "Default/op6:output:0") verdict = {Verdict::kNotChecked, "cannot be told", {}, {}, 0};
    return verdict;
  };
  const CheckResult result = checked(*session, {large});
  // 0 and 3 hold NaN; 5 and 6 are larger than the limit.
  EXPECT_EQ(asked, (Lines{"Default/op0:output:0", "Default/op3:output:0", "Default/op5:output:0", "Default/op6:output:0"}));
  EXPECT_TRUE(hits(*session, result).empty());
  ASSERT_EQ(result.not_checked.size(), 3u);
  EXPECT_EQ(result.not_checked.back().reason, "cannot be told");
  EXPECT_EQ(result.coverage.checked, 4u);
}

TEST(CheckRun, RecheckWithOtherThresholdsReadsNothing) {
  auto session = wide(10, 3);
  checked(*session, {watch(1, "**", "TL max_gt=5"), watch(2, "**", "WCL")});
  session->reset_counters();
  const CheckResult again =
      checked(*session, {watch(1, "**", "TS max_lt=2"), watch(2, "**", "WCS 0.5"), watch(3, "**", "TZ 1")});
  EXPECT_EQ(session->reads(), 0u);
  EXPECT_EQ(session->looks(), 0u);
  EXPECT_EQ(again.coverage.from_cache, 30u);
  EXPECT_EQ(again.coverage.bytes, 0u);
  EXPECT_FALSE(again.hits.empty());
}

TEST(CheckRun, ATensorIsOpenedOnceAndItsPreviousValueToo) {
  auto session = wide(10, 3);
  checked(*session, {watch(1, "**", "TL max_gt=5"), watch(2, "**", "WCL")});
  EXPECT_EQ(session->looks(), 30u + 20u);
  // If the previous value breaks off, its tensor is not opened again.
  session = wide(1, 2);
  session->set_read_error(session->id("Default/op0", 0), Status(Code::kIoError, "it shrank"));
  EXPECT_EQ(checked(*session, {watch(1, "**", "WCL")}, {.steps = IntSet::of(1)}).not_checked.size(), 1u);
  EXPECT_EQ(session->looks(), 2u);
}

TEST(CheckRun, ARecheckOverMoreTensorsThanAreKeptReadsTheRestOnly) {
  std::vector<FakeNode> graph;
  for (int i = 0; i < 150; ++i) graph.push_back({"op" + std::to_string(i), "Add"});
  FakeSession session(fake_graph(graph), 100);
  for (const FakeNode& node : graph) session.put(node.name, 0, f32({1, 2}));
  checked(session, {watch(1, "**", "TL max_gt=5")});
  for (const char* again : {"TL max_gt=4", "TZ"}) {
    session.reset_counters();
    EXPECT_EQ(checked(session, {watch(1, "**", again)}).coverage.from_cache, 100u) << again;
    EXPECT_EQ(session.looks(), 50u) << again;
  }
}

TEST(CheckRun, ANewRangeIsReadOnceAndTheOldOnesAreKept) {
  auto session = wide(10, 1);
  const auto range = [](const char* bounds) {
    return watch(1, "**", std::string("TR range_percentage_gt=40 ") + bounds);
  };
  const Watchpoint first = range("range_start_inclusive=0 range_end_inclusive=1");
  const Watchpoint second = range("range_start_inclusive=3 range_end_inclusive=5");
  const Lines wanted = hits(*session, checked(*session, {first}));
  checked(*session, {second});
  session->reset_counters();
  EXPECT_EQ(hits(*session, checked(*session, {first})), wanted);
  checked(*session, {first, second});
  EXPECT_EQ(session->reads(), 0u);
}

TEST(CheckRun, StatisticsOfTheSessionServeTheCheck) {
  auto session = wide(3, 1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(session->stats(session->id("Default/op" + std::to_string(i), 0)).ok());
  session->reset_counters();
  EXPECT_EQ(checked(*session, {watch(1, "**", "TO")}).coverage.from_cache, 3u);
  EXPECT_EQ(session->reads(), 0u);
}

TEST(CheckRun, AParameterStandsBehindTheOperatorsOfItsStepAndAConstantBeforeThem) {
  FakeSession session(fake_graph({{"w", "Parameter"},
                                  {"c", "Const"},
                                  {"Default/MatMul-op0", "MatMul", {"w", "c"}},
                                  {"Default/Log-op0", "Log", {"Default/MatMul-op0"}}}));
  for (int step : {0, 1}) {
    for (const char* name : {"w", "Default/MatMul-op0", "Default/Log-op0"}) session.put(name, step, f32({NAN, 0}));
  }
  session.put("c", 0, f32({NAN, 0}));
  Watchpoint ends = watch(3, "**", [](const CheckedTensor&) { return ScriptVerdict{}; });
  ends.step_end = [](int, int64_t) { return ScriptPhase{}; };
  const auto nodes = [&](const CheckResult& result) {
    std::string out;
    for (const Hit& hit : result.hits)
      out += std::to_string(hit.tensor.step) + std::string(session.node(hit.tensor).last_component()) + " ";
    return out;
  };
  const Watchpoint overflow = watch(1, "**", "TO"), constants = watch(2, "=c", "TO");
  constexpr const char* kOrder = "0c 0MatMul-op0 0Log-op0 0w 1MatMul-op0 1Log-op0 1w ";
  EXPECT_EQ(nodes(checked(session, {overflow, constants})), kOrder);
  // Rules with phases have their results sorted afterwards, in the same order.
  EXPECT_EQ(nodes(checked(session, {overflow, constants, ends})), kOrder);
  // The cause remains when the list is cut.
  EXPECT_EQ(nodes(checked(session, {overflow}, {.max_hits = 1})), "0MatMul-op0 ");
}

TEST(CheckRun, WatchpointsWithoutATensorAreNamedAndStepsThatAreNotThereToo) {
  auto session = wide(3, 2);
  Watchpoint nowhere = watch(1, "@gradient", "GE");
  nowhere.optional = true;
  Watchpoint silent = watch(2, "=Default/op1", "TL max_gt=3");
  for (int step : {0, 1}) session->erase(session->id("Default/op1", step));
  Watchpoint off = watch(4, "=Default/op1", "TZ");
  off.enabled = false;
  const auto problems = [&](const CheckOptions& options) {
    Lines lines;
    for (const RuleProblem& problem : checked(*session, {nowhere, silent, watch(3, "**", "TO"), off}, options).rule_problems) {
      lines.push_back(problem.rule + ": " + problem.reason);
    }
    return lines;
  };
  const Lines idle = {"gradient_exploding: selector matched nothing", "tensor_too_large: selected tensors were not dumped"};
  EXPECT_EQ(problems({}), idle);
  EXPECT_EQ(problems({.steps = IntSet::parse("0:7").value()}), idle);
  Lines both = {"*: no rank 3 (have 0)", "*: no step 5 (have 0-1)", "*: no step 7:9 (have 0-1)"};
  both.insert(both.end(), idle.begin(), idle.end());
  EXPECT_EQ(problems({.steps = IntSet::parse("0,5,7:9").value(), .ranks = IntSet::parse("0,3").value()}), both);
}

TEST(CheckRun, AGraphThatDidNotRunIsNoMissingDump) {
  FakeSession session(std::vector<GraphPtr>{fake_graph({{"Default/Abs-op0", "Abs"}}), fake_graph({{"Default/Neg-op0", "Neg"}}, 0, 1)});
  session.put("Default/Abs-op0", 0, f32({1}));
  session.put(session.id("Default/Neg-op0", 1, {}, 0, 0, 1), f32({1}));
  Watchpoint optional = watch(1, "op:Neg", "TO");
  optional.optional = true;
  const CheckResult result = checked(session, {optional, watch(2, "op:Abs", "TO")}, {.steps = IntSet::of(0)});
  ASSERT_EQ(result.rule_problems.size(), 1u);
  EXPECT_EQ(result.rule_problems[0].reason, "the graphs of the selected nodes did not run in these steps");
}

// ---- scripts -------------------------------------------------------------------------------------------------------

TEST(CheckScript, RunsOnTheCallingThreadInExecutionOrder) {
  auto session = wide(20, 2);
  Lines seen;
  const auto here = std::this_thread::get_id();
  bool elsewhere = false;
  checked(*session,
          {watch(1, "**",
                 [&](const CheckedTensor& tensor) {
                   elsewhere = elsewhere || std::this_thread::get_id() != here;
                   seen.push_back(std::to_string(tensor.id.step) + session->tensor_name(tensor.id));
                   return ScriptVerdict{};
                 })},
          {.threads = 4});
  EXPECT_FALSE(elsewhere);
  ASSERT_EQ(seen.size(), 40u);
  EXPECT_EQ(seen[0], "0Default/op0:output:0");
  EXPECT_EQ(seen[1], "0Default/op1:output:0");
  EXPECT_EQ(seen[39], "1Default/op19:output:0");
}

TEST(CheckScript, HitsCarryWhatItAnswered) {
  auto session = wide(1, 1);
  const CheckResult result = checked(*session, {watch(7, "**", [](const CheckedTensor& tensor) {
    return ScriptVerdict{Verdict::kHit, "", static_cast<double>(tensor.stats->count), {{"why", "planted"}}};
  })});
  ASSERT_EQ(result.hits.size(), 1u);
  EXPECT_EQ(result.hits[0].watch_id, 7);
  EXPECT_EQ(result.hits[0].abbr, "");
  EXPECT_EQ(result.hits[0].details,
            (std::vector<std::pair<std::string, std::string>>{{"actual", "2"}, {"why", "planted"}}));
}

TEST(CheckScript, AFailureIsNotCheckedAndTheOthersGoOn) {
  auto session = wide(1, 1);
  const CheckResult result =
      checked(*session, {watch(1, "**",
                               [](const CheckedTensor&) {
                                 return ScriptVerdict{Verdict::kNotChecked, "rule error: nil value", {}, {}};
                               }),
                         watch(2, "**", "TO")});
  EXPECT_EQ(open_questions(*session, result), (Lines{"step 0 Default/op0:output:0 script: rule error: nil value [0]"}));
  EXPECT_EQ(result.hits.size(), 1u);
}

TEST(CheckScript, AnExceptionReachesTheCallerAndTheThreadsEnd) {
  auto session = wide(50, 2);
  const std::vector<Watchpoint> watches = {
      watch(1, "**", [](const CheckedTensor&) -> ScriptVerdict { throw std::runtime_error("planted"); })};
  EXPECT_THROW((void)check(*session, watches, {.threads = 3}), std::runtime_error);
}

/// What was measured and not judged yet takes memory.
TEST(CheckScript, TheThreadsAreNotFarAheadOfIt) {
  auto session = wide(1000, 40);
  std::atomic<uint64_t> reads = 0;
  session->set_read_hook([&](const TensorId&) { ++reads; });
  uint64_t calls = 0, most = 0;
  const auto count = [&](const CheckedTensor&) {
    most = std::max(most, reads - calls++);
    return ScriptVerdict{};
  };
  const CheckResult result = checked(*session, {watch(1, "**", count)}, {.threads = 3});
  EXPECT_EQ(calls, 40'000u);
  EXPECT_EQ(result.coverage.checked, 40'000u);
  EXPECT_LE(most, 17'000u);
}

TEST(CheckScript, AnExceptionEndsThreadsThatWaitForIt) {
  auto session = wide(1000, 40);
  const auto fail = [&](const CheckedTensor&) -> ScriptVerdict { throw std::runtime_error("planted"); };
  EXPECT_THROW((void)check(*session, std::vector{watch(1, "**", fail)}, {.threads = 3}), std::runtime_error);
  const auto interrupt = [&](const CheckedTensor&) {
    request_interrupt();
    return ScriptVerdict{};
  };
  EXPECT_TRUE(checked(*session, {watch(1, "**", interrupt)}, {.threads = 3}).interrupted);
  clear_interrupt();
}

// ---- progress and interrupt ----------------------------------------------------------------------------------------

TEST(CheckProgress, EndsWithEverythingDone) {
  auto session = wide(10, 1);
  uint64_t done = 0, total = 0, bytes = 0;
  checked(*session, {watch(1, "**", "TO")},
          {.progress = [&](uint64_t d, uint64_t t, uint64_t b) { done = d, total = t, bytes = b; }});
  EXPECT_EQ(done, 10u);
  EXPECT_EQ(total, 10u);
  EXPECT_EQ(bytes, 80u);
}

TEST(CheckInterrupt, KeepsWhatWasFoundAndSaysSo) {
  auto session = wide(14, 4);
  std::atomic<int> reads = 0;
  session->set_read_hook([&](const TensorId&) {
    if (++reads == 9) request_interrupt();
  });
  const CheckResult result = checked(*session, {watch(1, "**", "TO")}, {.threads = 1});
  clear_interrupt();
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.coverage.tensors, 56u);
  EXPECT_EQ(result.coverage.checked, 9u);
  EXPECT_EQ(result.coverage.not_checked, 47u);
  EXPECT_EQ(hits(*session, result),
            (Lines{"step 0 Default/op0:output:0 tensor_overflow", "step 0 Default/op7:output:0 tensor_overflow"}));
}

TEST(CheckInterrupt, OfAScriptThatClearsTheFlagStillEndsTheCheck) {
  auto session = wide(200, 3);
  bool interrupted_once = false;
  const CheckResult result = checked(*session,
                                     {watch(1, "**",
                                            [&](const CheckedTensor&) {
                                              if (!interrupted_once) request_interrupt();
                                              interrupted_once = true;
                                              return ScriptVerdict{};
                                            })},
                                     {.threads = 2});
  clear_interrupt();
  EXPECT_TRUE(result.interrupted);
}

TEST(CheckThreads, HaveAllSignalsBlockedAndTheCallerKeepsItsMask) {
  auto session = wide(4, 1);
  std::atomic<bool> open_somewhere = false;
  const auto here = std::this_thread::get_id();
  session->set_read_hook([&](const TensorId&) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (std::this_thread::get_id() != here && sigismember(&mask, SIGINT) != 1) open_somewhere = true;
  });
  checked(*session, {watch(1, "**", "TO")}, {.threads = 2});
  EXPECT_FALSE(open_somewhere);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGINT), 0);
}

/// Records the announcements of checks, and that nothing is read outside them.
struct Announced : FakeSession {
  using FakeSession::FakeSession;
  bool can_step() const override { return true; }
  void check_begins(std::vector<TensorId> reads) override {
    ++running;
    for (const TensorId& id : reads) announced.push_back(node(id).name);
  }
  void check_ends() override { --running; }
  Lines announced;
  std::atomic<int> running = 0;
};

TEST(CheckAnnounces, WhatItWillReadInTheOrderOfThePlan) {
  Announced session(fake_graph({{"a", "Add"}, {"b", "Add", {"a"}}, {"c", "Add", {"b"}}}));
  for (const char* name : {"c", "a", "b"}) session.put(name, 0, f32({1.0}));
  std::atomic<bool> outside = false;
  session.set_read_hook([&](const TensorId&) { outside = outside || session.running != 1; });
  checked(session, {watch(1, "=b", "TO")});
  EXPECT_EQ(session.announced, (Lines{"b"}));
  session.announced.clear();
  checked(session, {watch(1, "**", "TO")});
  EXPECT_EQ(session.announced, (Lines{"a", "c"})) << "b is kept";
  EXPECT_FALSE(outside);
  EXPECT_EQ(session.running, 0);
}

TEST(CheckAnnounces, ItsEndWhenItIsInterrupted) {
  Announced session(fake_graph({{"a", "Add"}, {"b", "Add", {"a"}}}));
  for (const char* name : {"a", "b"}) session.put(name, 0, f32({1.0}));
  session.set_read_hook([](const TensorId&) { request_interrupt(); });
  checked(session, {watch(1, "**", "TO")});
  clear_interrupt();
  EXPECT_EQ(session.running, 0);
}

}  // namespace
}  // namespace msdbg
