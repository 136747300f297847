// Values that are told when their step is over: a weight has another value then than the one that the operators read.
#include <algorithm>

#include "live/agent_fixture.h"
#include "msdbg/analysis.h"

namespace msdbg::test {
namespace {

class LateValues : public LiveAgent {
 protected:
  /// An operator that reads the weight, and an optimizer's that changes it.
  agent::GraphDescription updated() const {
    agent::GraphDescription graph = operators(1);
    agent::NodeDescription add;
    add.full_name = "Default/optimizer-SGD/add_-op0";
    add.op = "add_";
    add.inputs = {{"fc1.weight", 0}, {graph.nodes[0].full_name, 0}};
    add.outputs = {{DType::kFloat32, Shape{2}}};
    add.attributes = {{"updates", "0"}};
    graph.nodes.push_back(add);
    return graph;
  }
  enum class Update { kAtOnce, kBefore, kSkipped, kToCome };
  /// A step that breaks the weight: both operators are reported done afterwards, or at once. Or the weight was broken before, and
  /// the optimizer does not run, or has not run when the training is held.
  void train(Update update) {
    weight_ = good_;
    start(updated(), 1, [this, update](agent::Agent& agent, int) {
      const bool late = update == Update::kBefore || update == Update::kSkipped;
      const auto tell = [&](uint32_t node, const std::array<float, 2>& value) {
        agent.publish(node, 0, value.data(), sizeof value);
        agent.node_done(node);
      };
      if (update != Update::kAtOnce) weight_ = bad_;
      if (late) agent.step_computed();
      const agent::NodeIndex optimizer[] = {1};
      if (update == Update::kSkipped) agent.skipped(optimizer);
      tell(0, bad_);
      weight_ = bad_;
      if (update != Update::kSkipped) tell(1, bad_);
    });
    const Watchpoint all = watch("**", "TO", 1);
    ASSERT_TRUE(d_.session->set_watchpoints({&all, 1}).ok());
    ASSERT_EQ(run(RunKind::kStep).reason, StopReason::kHit);
    ASSERT_EQ(d_.session->current_node(), "Default/network-Net/fc1-Linear/addmm-op0");
  }
  Result<TensorInfo> taken() {
    TensorId id = *resolve_tensor(*d_.session, "addmm-op0:0", d_.session->current_step());
    id.slot = {Io::kInput, 0};
    return d_.session->describe(id);
  }
};

TEST_F(LateValues, InputOfAnOperatorIsReadableWhileNothingHasChangedIt) {
  train(Update::kAtOnce);
  EXPECT_TRUE(taken().ok()) << taken().status().message();
  end();
}

TEST_F(LateValues, InputIsGoneWhenTheStepHasRun) {
  train(Update::kBefore);
  ASSERT_FALSE(taken().ok());
  EXPECT_NE(taken().status().message().find("add_-op0 has changed fc1.weight since"), std::string::npos) << taken().status().message();
  end();
}

TEST_F(LateValues, InputIsReadableWhereTheOptimizerDidNotRun) {
  train(Update::kSkipped);
  const Result<TensorInfo> read = taken();
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Result<TensorPtr> value = d_.session->load(read->id);
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_EQ((*value)->bytes().size(), sizeof bad_);
  EXPECT_EQ(std::memcmp((*value)->bytes().data(), bad_.data(), sizeof bad_), 0);
  end();
}

TEST_F(LateValues, OperatorsThatAreToComePassNothingOn) {
  for (const Update update : {Update::kToCome, Update::kBefore}) {
    const bool to_come = update == Update::kToCome;
    train(update);
    const int64_t step = d_.session->current_step();
    const TensorId updated = *resolve_tensor(*d_.session, "add_-op0:0", step);
    EXPECT_EQ(d_.session->yet_to_run(updated), to_come);
    TensorQuery query;
    query.steps = IntSet::of(step);
    query.inputs = true;
    const std::vector<TensorId> listed = d_.session->tensors(query);
    EXPECT_EQ(std::ranges::any_of(listed, [&](const TensorId& id) { return id.node == updated.node; }), !to_come);
    const Result<OriginResult> origins = find_origins(*d_.session, {});
    ASSERT_TRUE(origins.ok()) << origins.status().message();
    ASSERT_EQ(origins->steps.size(), 1u);
    const StepOrigins& found = origins->steps[0];
    ASSERT_EQ(found.origins.size(), 1u);
    EXPECT_EQ(d_.session->node(found.origins[0].tensor).name, to_come ? "fc1.weight" : "Default/network-Net/fc1-Linear/addmm-op0");
    if (to_come) {
      EXPECT_EQ(found.bad_tensors, 3u);  // the weight, and what the operator took and made
    }
    EXPECT_EQ(found.origins[0].reached, found.bad_tensors);
    end();
  }
}

// At the end of its step, the weight holds what the optimizer made of it, and the operators made NaN of a weight that seems good.
TEST_F(LateValues, WeightBrokenBetweenTwoStepsHoldsTheTrainingWhenTheNextOneBegins) {
  start(updated(), 3, [this](agent::Agent& agent, int k) {
    const auto& value = k == 0 ? good_ : bad_;
    for (uint32_t node = 0; node < 2; ++node) {
      agent.publish(node, 0, value.data(), sizeof value);
      agent.node_done(node);
    }
    (void)agent.end_step();
    weight_ = bad_;
  });
  const Watchpoint all = watch("**", "TO", 1);
  ASSERT_TRUE(d_.session->set_watchpoints({&all, 1}).ok());
  const RunResult begins = run(RunKind::kContinue);
  ASSERT_EQ(begins.reason, StopReason::kHit);
  EXPECT_TRUE(begins.at_begin);
  EXPECT_EQ(begins.node, "");
  EXPECT_EQ(begins.completed_steps, 1);
  ASSERT_EQ(begins.check.hits.size(), 1u);
  const TensorId weight = begins.check.hits[0].tensor;
  EXPECT_EQ(d_.session->node(weight).name, "fc1.weight");
  EXPECT_EQ(weight.step, 1);
  EXPECT_TRUE(d_.session->at_step_begin(0, 1));
  EXPECT_TRUE(d_.session->yet_to_run(*resolve_tensor(*d_.session, "addmm-op0:0", 1)));
  const Result<OriginResult> origins = find_origins(*d_.session, {});
  ASSERT_TRUE(origins.ok()) << origins.status().message();
  ASSERT_EQ(origins->steps.size(), 1u);
  ASSERT_EQ(origins->steps[0].origins.size(), 1u);
  EXPECT_EQ(origins->steps[0].origins[0].tensor, weight);
  EXPECT_EQ(origins->steps[0].bad_tensors, 1u);

  const RunResult within = run(RunKind::kContinue);
  EXPECT_EQ(within.reason, StopReason::kHit);
  EXPECT_FALSE(within.at_begin);
  EXPECT_EQ(within.node, "Default/network-Net/fc1-Linear/addmm-op0");
  // The weight is still bad: that is no news when step 2 begins.
  RunResult later = run(RunKind::kFinish);
  while (later.held && later.step == 1) later = run(RunKind::kContinue);
  EXPECT_EQ(later.step, 2);
  EXPECT_FALSE(later.at_begin);
  end();
}

// A new operator is judged in the step in which it was first seen, before the one that it broke.
TEST_F(LateValues, WatchpointsCoverWhatIsDescribedBeforeTheValuesAreTold) {
  start(parameters(), 1, [this](agent::Agent& agent, int) {
    describe_again(agent, 2);
    agent.step_computed();
    for (uint32_t node = 0; node < 2; ++node) {
      agent.publish(node, 0, bad_.data(), sizeof bad_);
      agent.node_done(node);
    }
  });
  const Watchpoint all = watch("**", "TO", 1);
  ASSERT_TRUE(d_.session->set_watchpoints({&all, 1}).ok());
  ASSERT_EQ(run(RunKind::kStep).reason, StopReason::kHit);
  EXPECT_EQ(d_.session->current_node(), "Default/network-Net/fc1-Linear/addmm-op0");
  end();
}

// A loss scale appears: what multiplied gradients hold is not a hit any more.
TEST_F(LateValues, WatchpointsLeaveWhatTheyNoLongerPick) {
  const auto graph = [this](bool scaled) {
    agent::GraphDescription described = operators(1);
    described.nodes[0].full_name = "Gradients/Default/network-Net/Grad_addmm/mm-op0";
    if (!scaled) return described;
    agent::NodeDescription check;
    check.full_name = "Default/after/_amp_foreach_non_finite_check_and_unscale_-op0";
    check.op = "_amp_foreach_non_finite_check_and_unscale_";
    check.outputs = {{DType::kFloat32, Shape{2}}};
    described.nodes.push_back(check);
    return described;
  };
  for (const bool scaled : {true, false}) {
    start(graph(false), 1, [this, &graph, scaled](agent::Agent& agent, int) {
      EXPECT_TRUE(agent.replace_graph(0, graph(scaled)).ok());
      agent.step_computed();
      agent.publish(0, 0, bad_.data(), sizeof bad_);
      agent.node_done(0);
    });
    const Watchpoint gradients = watch("@gradient and not @scaled", "TO", 1);
    ASSERT_TRUE(d_.session->set_watchpoints({&gradients, 1}).ok());
    EXPECT_EQ(run(RunKind::kStep).reason, scaled ? StopReason::kDone : StopReason::kHit);
    end();
  }
}

// Without operators nothing shows what the optimizer changes.
TEST_F(LateValues, WeightMayHaveChangedIfTheGraphShowsNoOptimizer) {
  start(operators(), 2, [this](agent::Agent& agent, int) {
    agent.publish(0, 0, good_.data(), sizeof good_);
    agent.node_done(0);
  });
  const TensorId weight = *resolve_tensor(*d_.session, "fc1.weight", 0);
  EXPECT_FALSE(d_.session->may_have_changed(weight));  // nothing has run
  EXPECT_EQ(run(RunKind::kStep).reason, StopReason::kDone);
  TensorId now = weight;
  now.step = d_.session->current_step();
  EXPECT_TRUE(d_.session->may_have_changed(now));
  EXPECT_NE(taken().status().message().find("the step may have changed fc1.weight since"), std::string::npos) << taken().status().message();
  end();
}

}  // namespace
}  // namespace msdbg::test
