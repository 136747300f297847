// Which suspension is the end of a step; no end of a step passes without being judged.
#include <gtest/gtest.h>

#include <thread>

#include "live/faults.h"

namespace msdbg::test {
namespace {

using debugger::EventReply;
using debugger::WatchCondition;

class LiveStepEnd : public LiveFaults {
 protected:
  // In the recorded client's execution order; the last one reads fc1.weight.
  static constexpr const char* kFirst = "Default/net-Net/MatMul-op25";
  static constexpr const char* kMiddle = "Default/net-Net/MatMul-op29";
  static constexpr const char* kLast = "Default/opt-Momentum/ApplyMomentum-op40";

  static void hit(Driver& d, const std::string& node, int id, WatchCondition::Condition condition = WatchCondition::tensor_too_large) {
    debugger::WatchpointHit hit;
    hit.mutable_tensor()->set_node_name(node);
    hit.mutable_tensor()->set_slot("0");
    hit.mutable_watch_condition()->set_condition(condition);
    hit.set_id(id);
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendWatchpointHits, std::vector<std::string>{hit.SerializeAsString()}).ok());
  }
  /// The watchpoint's number as sent to the training.
  static int set(Driver& d, const Watchpoint& watchpoint, int step = 0, const std::string& node = "") {
    int id = 0;
    std::thread training([&] {
      id = d.reply().set_cmd().id();
      d.hold(step, node);
    });
    EXPECT_TRUE(d.session->set_watchpoints({&watchpoint, 1}).ok());
    training.join();
    return id;
  }
  static RunResult run(Driver& d, RunKind kind, const std::string& node = "") {
    const Result<RunResult> result = d.session->run({kind, 1, node, 10s, {}});
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result ? *result : RunResult();
  }
};

TEST_F(LiveStepEnd, HitOnAParameterOfTheLastOperatorComesAtTheEndOfTheStep) {
  for (const char* version : {"1.6.1", "1.10.0", "2.2.0", "2.3.0"}) {
    Driver d;
    d.connect(version);
    ASSERT_TRUE(d.session->wait_until_held(10s).ok());
    const int id = set(d, watch("=fc1.weight", "WL max_gt=0"));
    std::thread training([&] {
      EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
      hit(d, "fc1.weight", id);
      d.hold(0, kLast);
    });
    const RunResult result = run(d, RunKind::kContinue);
    training.join();
    EXPECT_EQ(result.reason, StopReason::kHit) << version;
    EXPECT_EQ(result.completed_steps, 1) << version;
    EXPECT_EQ(result.steps_run, 1) << version;
  }
}

TEST_F(LiveStepEnd, HitOnWhatTheOperatorComputedComesInTheMiddleOfTheStep) {
  for (const char* version : {"", "1.1.0", "1.6.1", "2.2.0"}) {
    Driver d;
    d.connect(version);
    ASSERT_TRUE(d.session->wait_until_held(10s).ok());
    const bool counts_at_start = std::string(version) < "1.3";
    const int id = set(d, watch(std::string("=") + kLast, "max_gt param=0"));
    std::thread training([&] {
      (void)d.reply();
      hit(d, kLast, id, WatchCondition::max_gt);
      d.hold(counts_at_start ? 1 : 0, kLast);
      (void)d.reply();
      d.hold(counts_at_start ? 1 : 0, kLast);
    });
    RunResult result = run(d, RunKind::kContinue);
    EXPECT_EQ(result.reason, StopReason::kHit) << version;
    EXPECT_EQ(result.completed_steps, 0) << version;
    result = run(d, RunKind::kStep);
    training.join();
    EXPECT_EQ(result.completed_steps, 1) << version;
    EXPECT_EQ(result.steps_run, 1) << version;
  }
}

// 1.6 keeps previous values only of parameters, and reports that for each operator at the end of the step.
TEST_F(LiveStepEnd, ConditionsOnChangeAreJudgedAtTheEndOfTheStep) {
  Driver d;
  d.connect("1.6.1");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const int id = set(d, watch(std::string("=") + kLast, "WNC"));
  std::thread training([&] {
    (void)d.reply();
    hit(d, kLast, id, WatchCondition::tensor_not_changed);
    d.hold(0, kLast);
  });
  EXPECT_EQ(run(d, RunKind::kContinue).completed_steps, 1);
  training.join();
}

TEST_F(LiveStepEnd, HitOnTheWayToAnOperatorComesInTheMiddleOfTheStep) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const int id = set(d, watch(std::string("=") + kFirst, "TL max_gt=0"));
  std::thread training([&] {
    EXPECT_EQ(d.reply().run_cmd().node_name(), kMiddle);
    hit(d, kFirst, id);
    d.hold(0, kFirst);
  });
  const RunResult result = run(d, RunKind::kToNode, kMiddle);
  training.join();
  EXPECT_EQ(result.reason, StopReason::kHit);
  EXPECT_EQ(result.completed_steps, 0);
}

// A client that stopped at an operator is not held at the end of that step; when told to run to an earlier operator, it would run
// into the next step. A watchpoint stops it instead, and it is held at the step's end.
TEST_F(LiveStepEnd, OperatorThatHasRunIsNotMetBeforeTheStepEnds) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread training([&] {
    EXPECT_EQ(d.reply().run_cmd().run_level(), "node");
    d.hold(0, kMiddle);
    const debugger::SetCMD stop = d.reply().set_cmd();
    ASSERT_EQ(stop.watch_nodes_size(), 1);
    EXPECT_EQ(stop.watch_nodes(0).node_name(), kFirst);
    d.hold(0, kMiddle);
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
    d.hold(0, kLast);
    const debugger::SetCMD gone = d.reply().set_cmd();
    EXPECT_TRUE(gone.delete_());
    EXPECT_EQ(gone.id(), stop.id());
    d.hold(0, kLast);
    EXPECT_EQ(d.reply().run_cmd().node_name(), kFirst);
    d.hold(1, kFirst);
  });
  EXPECT_EQ(run(d, RunKind::kToNode, kMiddle).reason, StopReason::kDone);
  RunResult result = run(d, RunKind::kToNode, kFirst);
  EXPECT_EQ(result.reason, StopReason::kNodeNotMet);
  EXPECT_EQ(result.step, 0);
  EXPECT_EQ(result.completed_steps, 1);
  result = run(d, RunKind::kToNode, kFirst);
  training.join();
  EXPECT_EQ(result.reason, StopReason::kDone);
  EXPECT_EQ(result.step, 1);
  EXPECT_EQ(result.completed_steps, 1);
  EXPECT_EQ(events_of(*d.session).find("watchpoint"), std::string::npos);
}

TEST_F(LiveStepEnd, OperatorThatIsStillToRunIsReachedBehindAnotherStop) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::thread training([&] {
    EXPECT_EQ(d.reply().run_cmd().run_level(), "node");
    d.hold(0, kFirst);
    const int stop = d.reply().set_cmd().id();
    d.hold(0, kFirst);
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
    hit(d, kMiddle, stop);
    d.hold(0, kMiddle);
  });
  (void)run(d, RunKind::kNextNode);
  const RunResult result = run(d, RunKind::kToNode, kMiddle);
  training.join();
  EXPECT_EQ(result.reason, StopReason::kDone);
  EXPECT_TRUE(result.check.hits.empty());
  EXPECT_EQ(result.node, kMiddle);
  EXPECT_EQ(result.completed_steps, 0);
}

TEST_F(LiveStepEnd, NextPassesTheEndOfTheStepByWayOfItsSuspension) {
  Driver d;
  d.connect();
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const int id = set(d, watch("=fc1.weight", "WL max_gt=0"));
  bool hits = true;
  std::thread training([&] {
    EXPECT_EQ(d.reply().run_cmd().run_level(), "node");
    d.hold(0, kLast);
    int stop = 0;
    for (int round = 0; round < 2; ++round) {
      debugger::SetCMD told = d.reply().set_cmd();
      if (told.delete_()) {
        d.hold(0, kLast);
        told = d.reply().set_cmd();
      }
      EXPECT_GT(told.watch_nodes_size(), 5);
      for (const auto& node : told.watch_nodes()) EXPECT_NE(node.node_name(), kLast);
      stop = told.id();
      d.hold(round, kLast);
      EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
      if (hits) hit(d, "fc1.weight", id);
      d.hold(round, kLast);
      if (hits) {  // it stops there
        EXPECT_EQ(d.reply().set_cmd().id(), stop);
        d.hold(round, kLast);
        EXPECT_EQ(d.reply().run_cmd().run_level(), "node");
        d.hold(1, kLast);
      } else {
        EXPECT_TRUE(d.reply().set_cmd().delete_());
        d.hold(round, kLast);
        EXPECT_EQ(d.reply().run_cmd().run_level(), "node");
        d.hold(2, kFirst);
      }
      hits = false;
    }
  });
  (void)run(d, RunKind::kNextNode);
  RunResult result = run(d, RunKind::kNextNode);
  EXPECT_EQ(result.reason, StopReason::kHit);
  EXPECT_EQ(result.completed_steps, 1);
  EXPECT_EQ(result.steps_run, 1);
  (void)run(d, RunKind::kNextNode);
  result = run(d, RunKind::kNextNode);
  training.join();
  EXPECT_EQ(result.reason, StopReason::kDone);
  EXPECT_EQ(result.node, kFirst);
  EXPECT_EQ(result.step, 2);
  EXPECT_EQ(result.completed_steps, 2);
  EXPECT_EQ(result.steps_run, 1);
}

// 1.3 to 1.5 are not held after their last step.
TEST_F(LiveStepEnd, LocalJudgementReportsThatTheLastStepWasNotJudged) {
  Driver d;
  d.connect("1.5.0", Driver::graph_bytes("graph-real-1.5.0.pb"));
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  Watchpoint function = watch("=fc1.weight", "TO");
  function.inputs = true;  // which a training cannot judge
  function.optional = true;
  (void)set(d, function);
  std::thread training([&] {
    (void)d.reply();
    d.farewell(1);
  });
  const RunResult result = run(d, RunKind::kContinue);
  training.join();
  EXPECT_EQ(result.state, LiveState::kEnded);
  const std::string told = events_of(*d.session);
  EXPECT_NE(told.find("step 0 ended without holding the training"), std::string::npos) << told;
}

TEST_F(LiveStepEnd, FinishRunsToTheEndOfTheStepThatIsUnderWay) {
  Driver d;
  d.connect("2.2.0");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  EXPECT_EQ(d.session->run({RunKind::kFinish, 1, {}, {}, {}}).status().code(), Code::kInvalidArgument);
  std::thread training([&] {
    EXPECT_EQ(d.reply().run_cmd().run_level(), "node");
    d.hold(0, kFirst);
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
    d.hold(0, kLast);
  });
  (void)run(d, RunKind::kNextNode);
  const RunResult result = run(d, RunKind::kFinish);
  training.join();
  EXPECT_EQ(result.reason, StopReason::kDone);
  EXPECT_EQ(result.completed_steps, 1);
  EXPECT_EQ(result.steps_run, 1);
  EXPECT_NE(d.session->run({RunKind::kFinish, 1, {}, {}, {}}).status().message().find("step 0 has ended already"), std::string::npos);
}

TEST_F(LiveStepEnd, HitsThatAreTakenOutDoNotStop) {
  Driver d;
  d.connect("2.2.0");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  const int id = set(d, watch(std::string("=") + kFirst, "TL max_gt=0"));
  std::thread training([&] {
    for (int step = 0; step < 3; ++step) {
      (void)d.reply();
      hit(d, kFirst, id);
      d.hold(step, kFirst);
      if (step == 2) break;
      (void)d.reply();
      d.hold(step, kLast);
    }
  });
  int asked = 0;
  RunRequest request;
  request.kind = RunKind::kContinue;
  request.on_hits = [&](CheckResult& check, size_t first) {
    EXPECT_EQ(first, 0u);
    EXPECT_EQ(check.hits.size(), 1u);
    if (++asked < 3) check.hits.clear();
  };
  const Result<RunResult> result = d.session->run(request);
  training.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(result->reason, StopReason::kHit);
  EXPECT_EQ(result->step, 2);
  EXPECT_EQ(result->completed_steps, 2);
}

TEST_F(LiveStepEnd, ProgressShowsStepsAndTime) {
  Driver d;
  d.connect("2.2.0");
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  std::vector<RunProgress> told;
  std::thread training([&] {
    for (int step = 0; step < 3; ++step) {
      (void)d.reply();
      std::this_thread::sleep_for(300ms);
      d.hold(step, kLast);
    }
  });
  RunRequest request;
  request.count = 3;
  request.on_progress = [&](const RunProgress& progress) { told.push_back(progress); };
  ASSERT_TRUE(d.session->run(request).ok());
  training.join();
  ASSERT_FALSE(told.empty());
  EXPECT_GE(told.back().steps_run, 1);
  EXPECT_LE(told.back().steps_run, 3);
  EXPECT_LE(told.back().held, told.back().elapsed);
  EXPECT_GT(told.back().elapsed, 0ns);
}

}  // namespace
}  // namespace msdbg::test
