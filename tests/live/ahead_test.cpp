// Suspensions without news are answered without the session's thread; all others still reach it.
#include <gtest/gtest.h>

#include <thread>

#include "live/faults.h"

namespace msdbg::test {
namespace {

class AnsweredAhead : public LiveFaults {
 protected:
  void SetUp() override {
    d_.connect();
    ASSERT_TRUE(d_.session->wait_until_held(10s).ok());
  }

  /// The training: `steps` steps, each answered with run(step).
  void run_steps(int first, int steps) {
    for (int step = first; step < first + steps; ++step) {
      EXPECT_EQ(d_.reply().run_cmd().run_level(), "step") << step;
      d_.hold(step, kNode);
    }
  }
  void hit(int id) {
    debugger::WatchpointHit hit;
    hit.mutable_tensor()->set_node_name(kNode);
    hit.mutable_tensor()->set_slot("0");
    hit.set_id(id);
    EXPECT_TRUE(d_.client->stream(live::Rpc::kSendWatchpointHits, std::vector<std::string>{hit.SerializeAsString()}).ok());
  }
  bool stays_held() { return !d_.wait->get(50ms).has_value(); }
  Result<RunResult> run(RunKind kind, int64_t count = 1) { return d_.session->run({kind, count, {}, {}, {}}); }

  static constexpr const char* kNode = "Default/net-Net/Add-op30";
  Driver d_;
};

TEST_F(AnsweredAhead, StepsAreCountedAndTheLastOneIsHeld) {
  std::thread training([&] { run_steps(0, 5); });
  Result<RunResult> result = run(RunKind::kStep, 5);
  training.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kDone);
  EXPECT_TRUE(result->held);
  EXPECT_EQ(result->steps_run, 5);
  EXPECT_EQ(result->step, 4);
  EXPECT_EQ(result->completed_steps, 5);
  EXPECT_EQ(result->node, kNode);
  EXPECT_TRUE(stays_held());
}

TEST_F(AnsweredAhead, OnlyTheLastStepIsLookedAt) {
  std::string told;
  const auto steps = [&](int first, int count) {
    for (int step = first; step < first + count; ++step) {
      const debugger::EventReply reply = d_.reply();
      told += !reply.run_cmd().has_looked_at() ? "?" : reply.run_cmd().looked_at() ? "y" : "n";
      d_.hold(step, kNode);
    }
  };
  std::thread training([&] { steps(0, 6); });
  ASSERT_TRUE(run(RunKind::kStep, 4).ok());
  ASSERT_TRUE(run(RunKind::kStep).ok());
  ASSERT_TRUE(run(RunKind::kStep).ok());
  training.join();
  EXPECT_EQ(told, "nnnyyy");
  std::thread free([&] {
    steps(6, 3);
    EXPECT_FALSE(d_.reply().run_cmd().looked_at());
    d_.farewell(10);
  });
  ASSERT_TRUE(run(RunKind::kContinue).ok());
  free.join();
  EXPECT_EQ(told, "nnnyyynnn");
}

TEST_F(AnsweredAhead, HitEndsIt) {
  Watchpoint wanted = watch(std::string("=") + kNode, "TO", 3);
  std::thread training([&] {
    (void)d_.reply();  // the watchpoint
    d_.hold(0, "");
    run_steps(0, 3);
    (void)d_.reply();
    hit(1);
    d_.hold(3, kNode);
  });
  ASSERT_TRUE(d_.session->set_watchpoints({&wanted, 1}).ok());
  Result<RunResult> result = run(RunKind::kContinue);
  training.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kHit);
  ASSERT_EQ(result->check.hits.size(), 1u);
  EXPECT_EQ(result->check.hits[0].watch_id, 3);
  EXPECT_EQ(result->step, 3);
  EXPECT_TRUE(stays_held());
}

TEST_F(AnsweredAhead, InterruptHoldsTheNextSuspension) {
  std::thread training([&] {
    run_steps(0, 20);
    (void)d_.reply();
    request_interrupt();
    std::this_thread::sleep_for(100ms);  // the session has withdrawn its answer in advance
    d_.hold(20, kNode);
  });
  Result<RunResult> result = run(RunKind::kContinue);
  training.join();
  clear_interrupt();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kInterrupted);
  EXPECT_EQ(result->steps_run, 20);
  result = d_.session->pause(10s);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->held);
  EXPECT_EQ(result->step, 20);
  EXPECT_EQ(result->completed_steps, 21);
  EXPECT_TRUE(stays_held());
}

TEST_F(AnsweredAhead, TimeLimitHoldsTheNextSuspension) {
  std::thread training([&] { run_steps(0, 4); });
  RunRequest request;
  request.kind = RunKind::kContinue;
  request.timeout = 1s;
  Result<RunResult> result = d_.session->run(request);
  training.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kPaused);
  EXPECT_EQ(result->steps_run, 4);
  EXPECT_FALSE(result->held);
  EXPECT_EQ(d_.reply().run_cmd().run_level(), "step");
  d_.hold(4, kNode);
  EXPECT_TRUE(reaches(*d_.session, LiveState::kHeld));
  EXPECT_TRUE(stays_held());
}

TEST_F(AnsweredAhead, WhoeverAsksForEveryStepSeesEveryStep) {
  std::thread training([&] { run_steps(0, 4); });
  std::vector<int64_t> seen;
  RunRequest request;
  request.kind = RunKind::kContinue;
  request.on_step = [&](int64_t step) {
    seen.push_back(step);
    return step < 3;
  };
  Result<RunResult> result = d_.session->run(request);
  training.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(result->steps_run, 4);
}

TEST_F(AnsweredAhead, NextTrainingIsHeldAtItsFirstSuspension) {
  std::thread training([&] {
    run_steps(0, 3);
    (void)d_.reply();
    d_.client->drop();
  });
  Result<RunResult> result = run(RunKind::kContinue);
  training.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kLost);
  EXPECT_EQ(result->steps_run, 3);
  EXPECT_EQ(result->step, 2);
  d_.connect();
  ASSERT_TRUE(d_.session->wait_until_held(10s).ok());
  EXPECT_TRUE(stays_held());
}

class ToldAhead : public LiveFaults {
 protected:
  void SetUp() override {
    ListenOptions options;
    options.history_tensors = 2;
    d_ = std::make_unique<Driver>(options);
    d_->reports = true;
    d_->connect();
    ASSERT_TRUE(d_->session->wait_until_held(10s).ok());
  }
  /// Answers the questions after the first steps, until a command asks for a report. Returns that command.
  debugger::RunCMD first_steps() {
    for (int step = -1;;) {
      const debugger::EventReply reply = d_->reply();
      if (reply.run_cmd().has_report()) return reply.run_cmd();
      if (reply.has_run_cmd()) ++step;
      if (reply.has_view_cmd()) answer(reply.view_cmd());
      d_->hold(step, "Default/net-Net/Add-op30");
    }
  }
  void answer(const debugger::ViewCMD& view) {
    debugger::TensorSummary summary;
    *summary.mutable_tensor_base() = base();
    const bool shapes = view.level() == debugger::ViewCMD::base;
    const std::string each = shapes ? base().SerializeAsString() : summary.SerializeAsString();
    const std::vector<std::string> all(static_cast<size_t>(view.tensors_size()), each);
    EXPECT_TRUE(d_->client->stream(shapes ? live::Rpc::kSendTensorBase : live::Rpc::kSendTensorStats, all).ok());
  }
  static debugger::TensorBase base() {
    debugger::TensorBase base;
    base.set_data_type(43);
    base.set_data_size(4);
    return base;
  }

  std::unique_ptr<Driver> d_;
};

TEST_F(ToldAhead, NonsenseAboutStepsIsLeftOut) {
  std::thread training([&] {
    const debugger::RunCMD command = first_steps();
    EXPECT_GT(command.ahead().steps(), 0u);
    EXPECT_GT(command.ahead().milliseconds(), 0u);
    debugger::Metadata wait = d_->metadata("", 9, "Default/net-Net/Add-op30");
    wait.set_passed(UINT32_MAX);
    debugger::EndedStep right;
    right.set_number(command.report().number());
    for (int i = 0; i < command.report().tensors_size(); ++i) {
      *right.add_statistics()->mutable_tensor_base() = base();
      right.mutable_statistics(i)->mutable_statistics()->set_count(1);
    }
    for (const int step : {-7, 1 << 30, 8}) {
      *wait.add_ended() = right;
      wait.mutable_ended(wait.ended_size() - 1)->set_step(step);
    }
    debugger::EndedStep wrong = right;
    wrong.set_step(7);
    wrong.set_number(right.number() + 1);  // another report
    *wait.add_ended() = wrong;
    wrong.set_number(right.number());
    wrong.add_statistics();  // one tensor more
    *wait.add_ended() = wrong;
    wrong.mutable_statistics()->RemoveLast();
    for (int i = 0; i < 10000; ++i) wrong.mutable_statistics(0)->mutable_tensor_base()->add_shape(1);
    *wait.add_ended() = wrong;
    d_->wait = d_->client->wait_cmd(wait.SerializeAsString());
    EXPECT_TRUE(d_->reply().has_run_cmd());
    d_->farewell(10);
  });
  const Result<RunResult> result = d_->session->run({RunKind::kContinue, 1, {}, {}, {}});
  training.join();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kEnded);
  EXPECT_LE(result->steps_run, 10);
  EXPECT_EQ(result->completed_steps, 10);
  EXPECT_EQ(d_->session->steps(), (std::vector<int64_t>{0, 8, 9}));
}

// Up to 1.5 a graph that is compiled later sends a handshake, after which the table of watchpoints is empty.
TEST_F(LiveFaults, WatchpointsAreSetAgainBehindAnotherHandshake) {
  const std::string kNode = "Default/net-Net/Add-op30";
  Driver d;
  d.connect("1.5.0", Driver::graph_bytes("graph-real-1.5.0.pb"));
  ASSERT_TRUE(d.session->wait_until_held(10s).ok());
  Watchpoint wanted = watch("op:MatMul", "TO", 3);
  std::thread training([&] {
    const std::string first = d.reply().SerializeAsString();
    d.hold(0, "");
    for (int step = 1; step < 4; ++step) {
      EXPECT_EQ(d.reply().run_cmd().run_level(), "step") << step;
      d.hold(step, kNode);
    }
    (void)d.reply();
    EXPECT_TRUE(d.client->unary(live::Rpc::kSendMetadata, d.metadata("1.5.0", 4).SerializeAsString()).parsed().version_matched());
    std::vector<std::string> chunks;
    for (const char* name : {"kernel_graph_0", "kernel_graph_9"}) {
      debugger::GraphProto graph;
      graph.ParsePartialFromString(Driver::graph_bytes("graph-real-1.5.0.pb"));
      graph.set_name(name);
      debugger::Chunk chunk;
      chunk.set_buffer(graph.SerializeAsString());
      chunk.set_finished(true);
      chunks.push_back(chunk.SerializeAsString());
    }
    EXPECT_TRUE(d.client->stream(live::Rpc::kSendMultiGraphs, chunks).ok());
    d.hold(4, kNode);
    const debugger::EventReply again = d.reply();
    EXPECT_TRUE(again.has_set_cmd()) << again.ShortDebugString();
    d.hold(4, kNode);
    EXPECT_EQ(d.reply().run_cmd().run_level(), "step");
    d.hold(5, kNode);
    EXPECT_TRUE(d.reply().has_exit());
    d.farewell(6);
  });
  ASSERT_TRUE(d.session->set_watchpoints({&wanted, 1}).ok());
  Result<RunResult> result = d.session->run({RunKind::kStep, 4, {}, {}, {}});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->steps_run, 4);
  EXPECT_EQ(d.session->graphs().size(), 2u);
  EXPECT_TRUE(d.session->terminate(10s).ok());
  training.join();
}

TEST_F(AnsweredAhead, GraphThatComesLaterIsLookedAtFirst) {
  std::thread training([&] {
    run_steps(0, 2);
    (void)d_.reply();
    debugger::Chunk chunk;
    chunk.set_buffer(Driver::graph_bytes());
    ASSERT_TRUE(d_.client->stream(live::Rpc::kSendGraph, std::vector<std::string>{chunk.SerializeAsString()}).ok());
    d_.hold(2, "");
    run_steps(2, 2);
    EXPECT_TRUE(d_.reply().has_exit());
    d_.farewell(4);
  });
  Result<RunResult> result = run(RunKind::kStep, 4);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->steps_run, 4);
  EXPECT_EQ(result->reason, StopReason::kDone);
  EXPECT_TRUE(d_.session->terminate(10s).ok());
  training.join();
}

}  // namespace
}  // namespace msdbg::test
