// A training of ours goes on at the ends of steps without asking, and tells later what they were.
#include <gtest/gtest.h>

#include <atomic>

#include "live/agent_fixture.h"
#include "support/temp_dir.h"

namespace msdbg::test {
namespace {

class StepsAhead : public LiveAgent {
 protected:
  void listen_with(ListenOptions options) {
    options.port = 0;
    d_.session.reset();
    Result<std::unique_ptr<LiveSession>> made = listen(options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    d_.session = std::move(*made);
  }
  void listen_with_history(int steps) {
    ListenOptions options;
    options.history_tensors = 16;
    options.history_steps = steps;
    listen_with(options);
  }
  /// Steps in which the first element of the weight becomes the number of the step, from 100 on.
  void train(int steps, std::function<void(int)> also = [](int) {}) {
    start(parameters(), steps, [this, also](agent::Agent&, int step) {
      weight_[0] = 100 + static_cast<float>(step);
      also(step);
      ran_ = step + 1;
    });
  }
  /// The largest element of the weight in each step of the history and the current one, "?" where it is not known.
  std::string history() {
    std::string text;
    for (const int64_t step : d_.session->steps()) {
      const Result<TensorId> id = resolve_tensor(*d_.session, "fc1.weight:0", step);
      const Result<Stats> stats = id ? d_.session->stats(*id) : Result<Stats>(id.status());
      text += fmt(step, stats ? std::to_string(static_cast<int>(stats->max)) : "?");
    }
    return text;
  }
  static std::string fmt(int64_t step, const std::string& value) { return std::to_string(step) + "=" + value + " "; }

  std::atomic<int> ran_{0};
};

TEST_F(StepsAhead, StepsAreCountedAndTheLastOneIsHeld) {
  listen_with_history(4);
  train(1000);
  RunResult result = run(RunKind::kStep, 50);
  EXPECT_EQ(result.reason, StopReason::kDone);
  EXPECT_EQ(result.steps_run, 50);
  EXPECT_EQ(result.step, 49);
  EXPECT_EQ(result.completed_steps, 50);
  EXPECT_EQ(ran_, 50);
  EXPECT_EQ(history(), "46=146 47=147 48=148 49=149 ");
  result = run(RunKind::kStep);
  EXPECT_EQ(result.steps_run, 1);
  EXPECT_EQ(ran_, 51);
  EXPECT_EQ(history(), "47=147 48=148 49=149 50=150 ");
  result = run(RunKind::kStep, 2);
  EXPECT_EQ(result.completed_steps, 53);
  EXPECT_EQ(history(), "49=149 50=150 51=151 52=152 ");
  end();
}

TEST_F(StepsAhead, HitHoldsItsOwnStep) {
  listen_with_history(3);
  const Watchpoint wanted = watch("@weight", "TO", 7);
  train(1000, [this](int step) { weight_[1] = step == 30 ? kNaN : 2; });
  ASSERT_TRUE(d_.session->set_watchpoints({&wanted, 1}).ok());
  const RunResult result = run(RunKind::kContinue);
  EXPECT_EQ(result.reason, StopReason::kHit);
  EXPECT_EQ(result.step, 30);
  EXPECT_EQ(result.steps_run, 31);
  EXPECT_EQ(ran_, 31);
  ASSERT_EQ(result.check.hits.size(), 1u);
  EXPECT_EQ(history(), "28=128 29=129 30=130 ");
  end();
}

TEST_F(StepsAhead, ConditionOnChangeHasThePreviousValue) {
  listen_with_history(3);
  const Watchpoint wanted = watch("@weight", "WNC", 7);
  train(1000, [this](int step) { weight_[0] = step < 20 ? static_cast<float>(step) : 19; });
  ASSERT_TRUE(d_.session->set_watchpoints({&wanted, 1}).ok());
  const RunResult result = run(RunKind::kContinue);
  EXPECT_EQ(result.reason, StopReason::kHit);
  EXPECT_EQ(result.step, 20);
  end();
}

TEST_F(StepsAhead, HistoryReachesTheEndOfTheTraining) {
  listen_with_history(3);
  train(64);
  const RunResult result = run(RunKind::kContinue);
  EXPECT_EQ(result.reason, StopReason::kEnded);
  EXPECT_EQ(result.steps_run, 64);
  EXPECT_EQ(result.completed_steps, 64);
  EXPECT_EQ(history(), "61=161 62=162 63=163 ");
  end();
}

TEST_F(StepsAhead, PauseHoldsAtTheEndOfAStep) {
  listen_with_history(2);
  train(1000000, [](int) { std::this_thread::sleep_for(100us); });
  RunRequest request;
  request.kind = RunKind::kContinue;
  request.timeout = 300ms;
  Result<RunResult> result = d_.session->run(request);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->reason, StopReason::kPaused);
  result = d_.session->pause(10s);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_TRUE(result->held);
  EXPECT_EQ(result->completed_steps, ran_);
  EXPECT_GT(ran_, 10);
  const int64_t last = ran_ - 1;
  EXPECT_EQ(history(), fmt(last - 1, std::to_string(last + 99)) + fmt(last, std::to_string(last + 100)));
  end();
}

TEST_F(StepsAhead, DetachedTrainingIsHeldAgain) {
  listen_with_history(2);
  train(1000000, [](int) { std::this_thread::sleep_for(100us); });
  EXPECT_EQ(run(RunKind::kStep, 3).steps_run, 3);
  ASSERT_TRUE(d_.session->detach().ok());
  while (ran_ < 20) std::this_thread::yield();
  const Result<RunResult> result = d_.session->attach(10s);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->held);
  EXPECT_EQ(result->completed_steps, ran_);
  end();
}

// Its values are gone as soon as the training goes on.
TEST_F(StepsAhead, StepThatIsCutShortIsHeldEvenByContinue) {
  listen_with_history(4);
  start(parameters(), 9, [this](agent::Agent& agent, int step) {
    weight_[0] = 100 + static_cast<float>(step);
    if (step != 5) return;
    describe_again(agent, 2);  // its suspension comes first
    agent.cut_short("ValueError: \x1b[2J5 items");
  });
  const RunResult result = run(RunKind::kContinue);
  EXPECT_EQ(result.reason, StopReason::kCutShort);
  EXPECT_TRUE(result.held);
  EXPECT_EQ(result.step, 5);
  EXPECT_EQ(result.steps_run, 6);
  EXPECT_EQ(history(), "2=102 3=103 4=104 5=105 ");
  std::vector<std::string> told;
  for (const LiveEvent& event : d_.session->take_events()) {
    if (event.text.find("cut short") != std::string::npos) told.push_back(event.text);
  }
  EXPECT_EQ(told, std::vector<std::string>{"step 5 was cut short: ValueError: ?[2J5 items"});
  EXPECT_EQ(run(RunKind::kContinue).reason, StopReason::kEnded);
  end();
}

TEST_F(StepsAhead, DetachedTrainingIsNotHeldWhereItIsCutShort) {
  std::atomic<bool> ended{false}, go{false};
  start(parameters(), 9, [&](agent::Agent& agent, int step) {
    while (!go) std::this_thread::yield();
    if (step == 5) agent.cut_short("ValueError: 5");
    ended = step == 8;
  });
  ASSERT_TRUE(d_.session->detach().ok());
  go = true;
  training_.join();
  EXPECT_TRUE(ended);
  end();
}

// Nodes have other numbers then.
TEST_F(StepsAhead, HistoryStaysWhenTheGraphIsDescribedAgain) {
  listen_with_history(4);
  start(operators(1), 1000, [this](agent::Agent& agent, int step) {
    weight_[0] = 100 + static_cast<float>(step);
    if (step != 2) return;
    agent::GraphDescription more = operators(3);
    more.parameters.insert(more.parameters.begin(), {"fc0.weight", DType::kFloat32, {2}, good_.data()});
    EXPECT_TRUE(agent.replace_graph(0, std::move(more)).ok());
  });
  EXPECT_EQ(run(RunKind::kStep, 4).steps_run, 4);
  EXPECT_EQ(history(), "0=100 1=101 2=102 3=103 ");
  end();
}

// A replay can stop at each step.
TEST_F(StepsAhead, RecordingHoldsEachStep) {
  const TempDir directory;
  ListenOptions options;
  options.history_tensors = 16;
  options.record = directory.file("steps.msdbg");
  listen_with(options);
  train(12);
  EXPECT_EQ(run(RunKind::kContinue).steps_run, 12);
  end();
  Result<std::unique_ptr<LiveSession>> played = open_recording(options.record);
  ASSERT_TRUE(played.ok()) << played.status().message();
  ASSERT_TRUE((*played)->wait_until_held(10s).ok());
  for (int64_t step = 0; step < 3; ++step) {
    const Result<RunResult> result = (*played)->run({});
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->step, step);
  }
}

}  // namespace
}  // namespace msdbg::test
