// A session and our agent in one process: what the agent is asked for, a description that grows, another program's name.
#include <gtest/gtest.h>

#include <future>

#include "live/agent_fixture.h"

namespace msdbg::test {
namespace {

TEST_F(LiveAgent, ProgramIsShownByItsOwnName) {
  start(parameters(), 1, [](agent::Agent&, int) {});
  EXPECT_EQ(d_.session->peer().program_text(), "PyTorch 2.15.0, device");
  EXPECT_EQ(d_.session->info().framework_version, "");  // of MindSpore
  EXPECT_NE(events_of(*d_.session).find("connected: PyTorch 2.15.0, device 0 at 127.0.0.1"), std::string::npos);
  for (const std::string& note : d_.session->peer().notes) EXPECT_EQ(note.find("GPU"), std::string::npos) << note;
}

TEST_F(LiveAgent, OnlyLookedAtStepsAreWantedWhole) {
  Told wanted;
  start(operators(), 9, [&](agent::Agent& agent, int) { wanted += text_of(agent.wants()); }, "Ascend");
  EXPECT_EQ(run(RunKind::kStep).reason, StopReason::kDone);
  EXPECT_EQ(wanted.text(), "a");
  EXPECT_EQ(run(RunKind::kStep, 4).steps_run, 4);
  EXPECT_EQ(wanted.text(), "annna");
  RunRequest request;
  request.kind = RunKind::kContinue;
  request.on_step = [](int64_t step) { return step < 6; };
  ASSERT_TRUE(d_.session->run(request).ok());
  EXPECT_EQ(wanted.text(), "annnaaa");
  EXPECT_EQ(run(RunKind::kContinue).reason, StopReason::kEnded);
  EXPECT_EQ(wanted.text(), "annnaaann");
  end();
}

TEST_F(LiveAgent, FreeRunWantsWhatIsWatched) {
  Told wanted;
  start(operators(), 4, [&](agent::Agent& agent, int) {
    wanted += text_of(agent.wants()) + (agent.wants_node(0) ? "y" : "n") + (agent.wants_node(1) ? "y" : "n") + " ";
  }, "Ascend");
  const Watchpoint one = watch("=Default/network-Net/fc1-Linear/addmm-op0", "TO", 1), all = watch("**", "TO", 2);
  const Watchpoint weight = watch("fc1.weight", "TO", 3);
  ASSERT_TRUE(d_.session->set_watchpoints({&one, 1}).ok());
  RunRequest request;
  request.kind = RunKind::kStep;
  request.count = 2;
  ASSERT_TRUE(d_.session->run(request).ok());
  EXPECT_EQ(wanted.text(), "syn ayy ");
  ASSERT_TRUE(d_.session->set_watchpoints({&weight, 1}).ok());
  request.count = 2;
  ASSERT_TRUE(d_.session->run(request).ok());
  EXPECT_EQ(wanted.text(), "syn ayy nnn ayy ");
  ASSERT_TRUE(d_.session->set_watchpoints({&all, 1}).ok());
  end();
}

TEST_F(LiveAgent, ValuesOfAStepThatNobodyLookedAtAreExplained) {
  std::promise<void> reached;
  start(operators(), 1000, [&](agent::Agent& agent, int step) {
    if (step == 3) reached.set_value();
    if (agent.wants() == Wants::kNothing) return std::this_thread::sleep_for(1ms);
    for (uint32_t node = 0; node < 2; ++node) {
      agent.publish(node, 0, good_.data(), sizeof good_);
      agent.node_done(node);
    }
  }, "Ascend");
  RunRequest request;
  request.kind = RunKind::kContinue;
  request.timeout = 200ms;
  ASSERT_TRUE(d_.session->run(request).ok());
  reached.get_future().wait();
  ASSERT_TRUE(d_.session->pause(10s).ok());
  const Result<TensorId> id = resolve_tensor(*d_.session, "addmm-op1:0", d_.session->current_step());
  ASSERT_TRUE(id.ok()) << id.status().message();
  EXPECT_NE(d_.session->describe(*id).status().message().find("nobody was going to look at this step when it began"), std::string::npos)
      << d_.session->describe(*id).status().message();
  EXPECT_EQ(run(RunKind::kStep).steps_run, 1);
  TensorId next = *id;
  next.step = d_.session->current_step();
  EXPECT_TRUE(d_.session->describe(next).ok()) << d_.session->describe(next).status().message();
  end();
}

// The loss of a step that nobody looks at is not there, which must not end its history.
TEST_F(LiveAgent, HistoryFindsTheLossOnceAStepIsLookedAt) {
  d_.session.reset();
  ListenOptions options;
  options.port = 0;
  options.history_tensors = 16;
  Result<std::unique_ptr<LiveSession>> made = listen(options);
  ASSERT_TRUE(made.ok());
  d_.session = std::move(*made);
  agent::GraphDescription graph = parameters();
  agent::NodeDescription loss;
  loss.full_name = "Default/_loss_fn-CrossEntropyLoss/nll_loss-op0";
  loss.op = "nll_loss";
  loss.inputs = {{"fc1.weight", 0}};
  loss.outputs = {{DType::kFloat32, Shape{}}};
  graph.nodes = {loss};
  start(graph, 20, [this](agent::Agent& agent, int) {
    if (agent.wants() != Wants::kNothing) agent.publish(0, 0, good_.data(), sizeof(float));
  }, "Ascend");
  EXPECT_EQ(run(RunKind::kStep, 8).steps_run, 8);  // the last one is looked at
  EXPECT_EQ(run(RunKind::kStep, 2).steps_run, 2);
  TensorQuery query;
  query.steps = IntSet::of(7);
  std::string found;
  for (const TensorId& id : d_.session->tensors(query)) found += d_.session->graphs()[0]->node(id.node).op + " ";
  EXPECT_NE(found.find("nll_loss"), std::string::npos) << found;
  EXPECT_NE(found.find("Parameter"), std::string::npos) << found;
}

TEST_F(LiveAgent, WatchCoversOperatorsThatAreDescribedAtTheEndOfTheStep) {
  start(parameters(), 3, [&](agent::Agent& agent, int step) {
    if (step != 1) describe_again(agent, step == 0 ? 2 : 3);
    const std::array<float, 2>* values[] = {&good_, step == 0 ? &bad_ : &good_, step == 2 ? &bad_ : &good_};
    for (uint32_t node = 0; node < (step == 2 ? 3u : 2u); ++node) {
      EXPECT_TRUE(agent.publish_copy(node, 0, std::nullopt, values[node]->data(), {2}));  // unknown to the debugger, or watched
      agent.node_done(node);
    }
  });
  const Watchpoint all = watch("**", "TO", 7);
  ASSERT_TRUE(d_.session->set_watchpoints({&all, 1}).ok());
  RunResult result = run(RunKind::kStep);
  EXPECT_EQ(result.reason, StopReason::kHit);
  EXPECT_EQ(result.steps_run, 1);
  EXPECT_EQ(result.step, 0);
  EXPECT_EQ(result.completed_steps, 1);
  ASSERT_EQ(result.check.hits.size(), 1u);
  EXPECT_EQ(d_.session->graphs()[0]->node(result.check.hits[0].tensor.node).name, "Default/network-Net/fc1-Linear/addmm-op1");
  result = run(RunKind::kStep);
  EXPECT_EQ(result.reason, StopReason::kDone);
  EXPECT_EQ(result.steps_run, 1);
  result = run(RunKind::kContinue);
  EXPECT_EQ(result.reason, StopReason::kHit);
  EXPECT_EQ(result.step, 2);
  ASSERT_EQ(result.check.hits.size(), 1u);
  EXPECT_EQ(d_.session->graphs()[0]->node(result.check.hits[0].tensor.node).name, "Default/network-Net/fc1-Linear/addmm-op2");
  const Result<TensorPtr> value = d_.session->load(result.check.hits[0].tensor);
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_EQ(run(RunKind::kContinue).reason, StopReason::kEnded);
}

TEST_F(LiveAgent, StopBehindAnOperatorSurvivesADescriptionInBetween) {
  start(parameters(), 2, [&](agent::Agent& agent, int step) {
    if (step == 0) describe_again(agent, 2);
    for (uint32_t node = 0; node < 2; ++node) {
      EXPECT_TRUE(agent.publish_copy(node, 0, std::nullopt, good_.data(), {2}));
      agent.node_done(node);
    }
  });
  RunResult result = run(RunKind::kNextNode);
  EXPECT_EQ(result.reason, StopReason::kDone);
  EXPECT_EQ(result.node, "Default/network-Net/fc1-Linear/addmm-op0");
  EXPECT_EQ(result.completed_steps, 0);
  result = run(RunKind::kNextNode);
  EXPECT_EQ(result.node, "Default/network-Net/fc1-Linear/addmm-op1");
}

TEST_F(LiveAgent, ShapeAndTypeArriveAsPublished) {
  const std::array<uint16_t, 6> half{0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};
  start(operators(), 2, [&](agent::Agent& agent, int) {
    const int64_t transposed[] = {1, 3};
    agent.publish_copy(0, 0, DType::kFloat16, half.data(), {3, 2}, transposed);
    agent.node_done(0);
  }, "Ascend");
  EXPECT_EQ(run(RunKind::kStep).steps_run, 1);
  const Result<TensorId> id = resolve_tensor(*d_.session, "addmm-op0:0", 0);
  ASSERT_TRUE(id.ok()) << id.status().message();
  const Result<TensorPtr> value = d_.session->load(*id);
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_EQ((*value)->dtype(), DType::kFloat16);
  EXPECT_EQ((*value)->shape(), (Shape{3, 2}));
  EXPECT_EQ((*value)->view().at(1), 4);
  end();
}

TEST_F(LiveAgent, SharedParametersAreJudgedInTheGraphThatRuns) {
  agent::Options options;
  options.enabled = true;
  options.port = d_.port();
  options.backend = "Ascend";
  training_ = std::thread([=, this] {
    agent::Agent agent(options);
    EXPECT_TRUE(agent.set_option("program", "MindSpore").ok());
    for (int id : {1, 2}) {
      agent::GraphDescription graph = operators();
      graph.id = id;
      EXPECT_TRUE(agent.add_graph(std::move(graph)).ok());
    }
    for (int k = 0; k < 4; ++k) {
      if (agent.begin_step(k % 2) == Control::kStop) return;
      if (k == 1) weight_[1] = kNaN;
      agent.publish(0, 0, good_.data(), sizeof good_);
      agent.node_done(0);
      if (agent.end_step() == Control::kStop) return;
    }
  });
  ASSERT_TRUE(d_.session->wait_until_held(10s).ok());
  EXPECT_EQ(d_.session->graphs().size(), 2u);
  const Watchpoint weight = watch("fc1.weight", "TO", 3);
  ASSERT_TRUE(d_.session->set_watchpoints({&weight, 1}).ok());
  const RunResult result = run(RunKind::kContinue);
  EXPECT_EQ(result.reason, StopReason::kHit);
  EXPECT_EQ(result.step, 1);
  ASSERT_EQ(result.check.hits.size(), 1u);
  EXPECT_EQ(result.check.hits[0].tensor.graph, 2);
  TensorQuery query;
  query.steps = IntSet::of(1);
  for (const TensorId& id : d_.session->tensors(query)) EXPECT_EQ(id.graph, 2);
  EXPECT_TRUE(d_.session->steps(0, 1).empty());
  EXPECT_EQ(d_.session->steps(0, 2), std::vector<int64_t>{1});
}

}  // namespace
}  // namespace msdbg::test
