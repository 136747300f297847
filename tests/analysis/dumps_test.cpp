// What a debugger should find in the real dumps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "msdbg/analysis.h"
#include "msdbg/dump.h"

namespace msdbg {
namespace {

const std::string kScope = "Default/network-WithLossCell/_backbone-LeNet5/";
const std::string kLoss =
    "Default/network-WithLossCell/_loss_fn-SoftmaxCrossEntropyWithLogits/SparseSoftmaxCrossEntropyWithLogits-op0";

std::string dump_path(const std::string& name) { return std::string(MSDBG_TEST_DATA) + "/dumps/" + name; }

class Dump {
 public:
  explicit Dump(const std::string& name, const std::string& when = "nan or inf", const IntSet& steps = IntSet::all())
      : name_(name) {
    Result<std::unique_ptr<Session>> opened = open_dump(dump_path(name));
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    if (!opened) return;
    session_ = std::move(*opened);
    OriginOptions options;
    options.predicate = parse_predicate(when).value();
    options.steps = steps;
    Result<OriginResult> found = find_origins(*session_, options);
    EXPECT_TRUE(found.ok()) << found.status().message();
    if (found) result_ = std::move(*found);
  }

  const OriginResult& result() const { return result_; }
  const StepOrigins* step(int64_t number) const {
    for (const StepOrigins& step : result_.steps) {
      if (step.step == number) return &step;
    }
    return nullptr;
  }
  const Node& node(const TensorId& id) const { return session_->node(id); }
  Session& session() { return *session_; }

  /// Lines of the execution order file, which define the order.
  std::vector<std::string> csv_order() const {
    std::ifstream file(dump_path(name_) + "/rank_0/execution_order/ms_execution_order_graph_0.csv");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  /// The first listed node whose output holds NaN or Inf, found without find_origins().
  std::string first_bad_in_csv(int64_t step) {
    TensorQuery query;
    query.steps = IntSet::of(step);
    std::set<std::string> bad;
    for (const TensorId& id : session_->tensors(query)) {
      const Result<Stats> stats = session_->stats(id);
      if (stats && stats->nan_count + stats->inf_count() > 0) bad.insert(node(id).name);
    }
    for (const std::string& line : csv_order()) {
      if (bad.count(line)) return line;
    }
    return "";
  }

 private:
  std::string name_;
  std::unique_ptr<Session> session_;
  OriginResult result_;
};

std::vector<std::string> chain_names(const Dump& dump, const std::vector<ChainLink>& chain) {
  std::vector<std::string> out;
  for (const ChainLink& link : chain) {
    const std::string& full = dump.node(link.tensor).name;
    out.push_back(full.rfind(kScope, 0) == 0 ? full.substr(kScope.size()) : full);
  }
  return out;
}
using Names = std::vector<std::string>;

// ---- lognan ----

TEST(LognanOrigin, FirstBadIsTheLogOfStepZero) {
  Dump dump("lenet-2.7.1-lognan");
  const StepOrigins* step = dump.step(0);
  ASSERT_NE(step, nullptr);
  const Origin& origin = step->origins.at(0);
  EXPECT_EQ(dump.node(origin.tensor).name, kScope + "Log-op0");
  EXPECT_EQ(origin.tensor.slot, (Slot{Io::kOutput, 0}));
  EXPECT_EQ(dump.node(origin.tensor).name, dump.first_bad_in_csv(0));
  EXPECT_EQ(origin.kind, OriginKind::kOperator);
  EXPECT_TRUE(origin.certain);
  EXPECT_EQ(origin.info.shape, (Shape{4, 48}));
  EXPECT_EQ(origin.stats.count, 192u);
  EXPECT_EQ(origin.stats.neg_inf_count, 104u);
  EXPECT_EQ(origin.stats.nan_count, 0u);
  EXPECT_EQ(origin.bad_count, 104u);
}

TEST(LognanOrigin, BadElementsAreLocated) {
  Dump dump("lenet-2.7.1-lognan");
  const Origin& origin = dump.step(0)->origins.at(0);
  ASSERT_EQ(origin.first.size(), 8u);
  EXPECT_EQ(origin.first[0], (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(origin.first[1], (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(origin.first[2], (std::vector<int64_t>{0, 5}));
  ASSERT_TRUE(origin.rows);
  EXPECT_EQ(origin.rows->first, 4);
  EXPECT_EQ(origin.rows->second, (std::pair<uint64_t, uint64_t>{24, 29}));
}

TEST(LognanOrigin, ItsInputIsFiniteAndZeroInTheSamePlaces) {
  Dump dump("lenet-2.7.1-lognan");
  const Origin& origin = dump.step(0)->origins.at(0);
  ASSERT_EQ(origin.inputs.size(), 1u);
  const OriginInput& input = origin.inputs[0];
  EXPECT_EQ(input.state, InputState::kGood);
  ASSERT_TRUE(input.stats);
  EXPECT_EQ(input.stats->zero_count, 104u);
  EXPECT_EQ(input.stats->nan_count + input.stats->inf_count(), 0u);
  EXPECT_TRUE(input.zeros_at_bad);
  const Graph* graph = dump.session().graph(0, 0);
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->node(input.producer.node).name, kScope + "relu3-ReLU/ReLU-op0");
}

TEST(LognanOrigin, SourceLineIsTheOneOfTheScript) {
  Dump dump("lenet-2.7.1-lognan");
  const Node& node = dump.node(dump.step(0)->origins.at(0).tensor);
  ASSERT_FALSE(node.stack.empty());
  EXPECT_EQ(node.stack.front().line, 70);
  EXPECT_EQ(node.stack.front().code->rfind("x = self.log(x)", 0), 0u);
}

TEST(LognanOrigin, WaysEndAtTheReluAndAtTheWeight) {
  Dump dump("lenet-2.7.1-lognan");
  const Origin& origin = dump.step(0)->origins.at(0);
  ASSERT_EQ(origin.chains.size(), 3u);
  EXPECT_EQ(chain_names(dump, origin.chains[0]),
            (Names{"Log-op0", "fc2-Dense/MatMul-op0", "fc2-Dense/BiasAdd-op0", "relu4-ReLU/ReLU-op0"}));
  EXPECT_FALSE(origin.chains[0].back().bad);
  EXPECT_EQ(origin.chains[0].back().stats.zero_count, origin.chains[0].back().stats.count);
  EXPECT_EQ(origin.chains[0][1].stats.nan_count, 128u);
  EXPECT_EQ(origin.chains[0][1].stats.count, 128u);
  EXPECT_EQ(
      chain_names(dump, origin.chains[1]),
      (Names{"Log-op0", "Gradients/Default/network-WithLossCell/_backbone-LeNet5/fc1-Dense/Grad_MatMul/MatMul-op4",
             "Default/optimizer-Momentum/ApplyMomentum-op3", "fc2.weight"}));
  EXPECT_EQ(origin.chains[1][1].stats.nan_count, 1344u);
  // Its derivative divides by the same zeros, whatever comes from Log: the same fault.
  EXPECT_EQ(dump.node(origin.chains[2].front().tensor).op, "Div");
}

TEST(LognanOrigin, CountsTheBadTensorsOfEachStep) {
  Dump dump("lenet-2.7.1-lognan");
  // 14 and 57 inputs and outputs, and the Parameter files.
  EXPECT_EQ(dump.step(0)->bad_tensors, 16u);
  EXPECT_EQ(dump.step(1)->bad_tensors, 67u);
  ASSERT_EQ(dump.step(0)->origins.size(), 1u);
  EXPECT_EQ(dump.step(0)->origins[0].reached, 16u);
}

TEST(LognanOrigin, SecondStepBeginsWithABrokenWeight) {
  Dump dump("lenet-2.7.1-lognan");
  const StepOrigins* step = dump.step(1);
  ASSERT_NE(step, nullptr);
  ASSERT_EQ(step->origins.size(), 2u);
  EXPECT_EQ(dump.node(step->origins[0].tensor).name, kScope + "Log-op0");
  EXPECT_EQ(dump.node(step->origins[0].tensor).name, dump.first_bad_in_csv(1));
  EXPECT_EQ(step->origins[0].stats.neg_inf_count, 88u);
  EXPECT_EQ(step->origins[0].stats.count, 192u);
  const Origin& weight = step->origins[1];
  EXPECT_EQ(weight.kind, OriginKind::kParameter);
  EXPECT_EQ(dump.node(weight.tensor).name, "fc2.weight");
  EXPECT_EQ(weight.tensor.step, 0);
  ASSERT_TRUE(weight.update);
  EXPECT_EQ(dump.node(*weight.update).name, "Default/optimizer-Momentum/ApplyMomentum-op3");
  EXPECT_EQ(weight.update->step, 0);
}

TEST(LognanOrigin, SecondStepAloneGivesTheSameAnswer) {
  Dump all("lenet-2.7.1-lognan"), second("lenet-2.7.1-lognan", "nan or inf", IntSet::of(1));
  ASSERT_EQ(second.result().steps.size(), 1u);
  const StepOrigins &a = *all.step(1), &b = second.result().steps[0];
  ASSERT_EQ(a.origins.size(), b.origins.size());
  for (size_t i = 0; i < a.origins.size(); ++i) {
    EXPECT_EQ(a.origins[i].tensor, b.origins[i].tensor);
    EXPECT_EQ(a.origins[i].update, b.origins[i].update);
    EXPECT_EQ(a.origins[i].reached, b.origins[i].reached);
  }
}

TEST(LognanOrigin, LossLooksHealthyInBothSteps) {
  Dump dump("lenet-2.7.1-lognan");
  for (const auto& [number, loss] : {std::pair(0, 2.3046174), std::pair(1, 2.30267191)}) {
    const StepOrigins* step = dump.step(number);
    ASSERT_EQ(step->losses.size(), 1u);
    EXPECT_EQ(dump.node(step->losses[0]).name, kLoss);
    EXPECT_NEAR(dump.session().stats(step->losses[0])->max, loss, 1e-6);
  }
}

TEST(LognanOrigin, NanAloneBreaksLater) {
  Dump dump("lenet-2.7.1-lognan", "nan");
  EXPECT_EQ(dump.node(dump.step(0)->origins.at(0).tensor).name, kScope + "fc2-Dense/MatMul-op0");
}

// ---- explode ----

TEST(ExplodeOrigin, StepsZeroAndOneAreFinite) {
  Dump dump("lenet-2.7.1-explode");
  EXPECT_EQ(dump.step(0), nullptr);
  EXPECT_EQ(dump.step(1), nullptr);
}

TEST(ExplodeOrigin, OnlyTheLossIsBadInStepsTwoAndThree) {
  Dump dump("lenet-2.7.1-explode");
  for (int64_t number : {2, 3}) {
    const StepOrigins* step = dump.step(number);
    ASSERT_NE(step, nullptr);
    ASSERT_EQ(step->origins.size(), 1u);
    EXPECT_EQ(dump.node(step->origins[0].tensor).name, kLoss);
    EXPECT_EQ(dump.node(step->origins[0].tensor).name, dump.first_bad_in_csv(number));
    EXPECT_EQ(step->origins[0].stats.pos_inf_count, 1u);
    EXPECT_TRUE(step->origins[0].certain);
    EXPECT_EQ(step->bad_tensors, 1u);
    EXPECT_EQ(step->origins[0].reached, 1u);
    EXPECT_TRUE(step->losses.empty());
  }
}

TEST(ExplodeOrigin, MatMulOverflowsThoughBothInputsAreFinite) {
  Dump dump("lenet-2.7.1-explode");
  const StepOrigins* step = dump.step(4);
  ASSERT_NE(step, nullptr);
  const Origin& origin = step->origins.at(0);
  EXPECT_EQ(dump.node(origin.tensor).name, kScope + "fc2-Dense/MatMul-op0");
  EXPECT_EQ(dump.node(origin.tensor).name, dump.first_bad_in_csv(4));
  EXPECT_EQ(origin.kind, OriginKind::kOperator);
  EXPECT_TRUE(origin.certain);
  EXPECT_EQ(origin.stats.nan_count, 64u);
  EXPECT_EQ(origin.stats.count, 64u);
  std::vector<double> largest;
  for (const OriginInput& input : origin.inputs) {
    EXPECT_EQ(input.state, InputState::kGood);
    if (input.stats && is_float(input.stats->dtype))
      largest.push_back(std::max(std::abs(input.stats->min), std::abs(input.stats->max)));
  }
  ASSERT_EQ(largest.size(), 2u);
  EXPECT_NEAR(largest[0] / 1e36, 3.4, 0.05);
  EXPECT_NEAR(largest[1] / 1e12, 1.1, 0.05);
}

TEST(ExplodeOrigin, AllEightWeightsAreReached) {
  Dump dump("lenet-2.7.1-explode");
  // 137 inputs and outputs, 8 weights and their 8 moments.
  EXPECT_EQ(dump.step(4)->bad_tensors, 153u);
  EXPECT_EQ(dump.step(4)->origins.at(0).reached, 153u);
}

// ---- healthy ones ----

class HealthyDump : public testing::TestWithParam<std::string> {};

TEST_P(HealthyDump, HasNoOriginAndIsLookedAt) {
  Dump dump(GetParam());
  for (const StepOrigins& step : dump.result().steps) {
    ADD_FAILURE() << "step " << step.step << " graph " << step.graph << ": "
                  << dump.node(step.origins.at(0).tensor).name;
  }
  EXPECT_GT(dump.result().coverage.checked, 0u);
}

INSTANTIATE_TEST_SUITE_P(Real, HealthyDump,
                         testing::Values("lenet-2.7.1-ok", "lenet-2.7.1-eval", "lenet-2.0.0-ok", "lenet-2.0.0-filter",
                                         "lenet-1.5.0-ok", "control-1.5.0", "control-2.0.0", "control-2.7.1",
                                         "two-1.5.0", "two-2.0.0", "two-2.7.1", "long-1.5.0", "long-2.0.0",
                                         "long-2.7.1", "synthetic-stat-old"),
                         [](const auto& dump) {
                           std::string name = dump.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
                           return name;
                         });

TEST(StatisticsOnlyOrigin, ExtremesOfTheCsvAreEnoughToFindTheLog) {
  Dump dump("synthetic-stat-new");
  const StepOrigins* step = dump.step(0);
  ASSERT_NE(step, nullptr);
  const Origin& origin = step->origins.at(0);
  EXPECT_EQ(dump.node(origin.tensor).name, kScope + "Log-op0");
  EXPECT_TRUE(origin.certain);
  EXPECT_EQ(origin.info.availability, Availability::kStatisticsOnly);
  EXPECT_TRUE(origin.first.empty());
  EXPECT_EQ(step->bad_tensors, 16u);
}

// ---- conditions on real values ----

TEST(ConditionOrigin, GrowthShowsTwoStepsBeforeTheNan) {
  Dump large("lenet-2.7.1-explode", "TL abs_mean_gt=100"), broken("lenet-2.7.1-explode", "nan");
  ASSERT_FALSE(large.result().steps.empty());
  ASSERT_FALSE(broken.result().steps.empty());
  EXPECT_EQ(large.result().steps[0].step, 2);
  EXPECT_EQ(broken.result().steps[0].step, 4);
}

/// Control flow on tensors: one step is a run of several graphs, whose parameters are written when all have run.
TEST(Branches, WhatOneGraphHandsOverBreaksTheNext) {
  Dump dump("../trainings/branches");
  const StepOrigins* const step = dump.step(3);
  ASSERT_NE(step, nullptr);
  // The weights were good when the step began, although graph 1 has NaN in its files of that step.
  EXPECT_EQ(step->graph, 1);
  ASSERT_EQ(step->origins.size(), 1u);
  EXPECT_EQ(dump.node(step->origins[0].tensor).name, "Default/network-WithLoss/net-Net/Div-op0");
  EXPECT_EQ(step->graphs_behind, (std::vector<int>{2, 6}));
  EXPECT_EQ(std::ranges::count(dump.result().steps, 3, &StepOrigins::step), 1);
  uint64_t behind = 0;
  for (const StepOrigins& other : dump.result().others) {
    if (other.step != 3) continue;
    behind += other.follows.size();
    for (const Arrival& arrival : other.arrivals) {
      ASSERT_TRUE(arrival.origin.has_value());
      EXPECT_EQ(arrival.origin->graph, 1);
    }
  }
  EXPECT_EQ(step->origins[0].reached, step->follows.size() + behind);
  EXPECT_TRUE(step->origins[0].ranks_reached.empty());
  EXPECT_EQ(dump.step(4)->origins.front().kind, OriginKind::kParameter);
}

TEST(Branches, AWeightMayHaveChangedInAnotherGraph) {
  Dump dump("../trainings/branches");
  const Graph* const forward = dump.session().graph(0, 1);
  const auto changed = [&](const char* name, int64_t step) {
    return dump.session().may_have_changed({0, 1, step, 0, forward->find(name)->id, {}});
  };
  EXPECT_TRUE(changed("net.out.weight", 2));   // by Adam in graph 2
  EXPECT_FALSE(changed("net.out.weight", 9));  // no step
  EXPECT_FALSE(changed("inputs1", 2));
  // A graph of its own that evaluates has read what the training left.
  Dump evaluated("lenet-2.7.1-eval");
  Session& session = evaluated.session();
  for (const GraphPtr& graph : session.graphs()) {
    const Node* const weight = graph->find("fc1.weight");
    ASSERT_NE(weight, nullptr);
    for (const int64_t step : session.steps(0, graph->id()))
      EXPECT_FALSE(session.may_have_changed({0, graph->id(), step, 0, weight->id, {}})) << graph->id() << " " << step;
  }
}

}  // namespace
}  // namespace msdbg
