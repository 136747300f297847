// The contents of a plan, its cost, and what it refuses. Sizes are those of files that MindSpore wrote.
#include "msdbg/dump.h"
#include "msdbg/dump_plan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "msdbg/session.h"
#include "support/copy_dump.h"
#include "support/temp_dir.h"

namespace msdbg {
namespace {

class PlanOfLenet : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_dump(std::string(MSDBG_TEST_DATA) + "/dumps/lenet-2.7.1-ok");
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    session = std::move(*opened);
    options.version = "2.7.1";
    options.device_target = "CPU";
    options.steps = *IntSet::parse("0:1");
  }
  std::vector<NodeRef> nodes(std::string_view selector) { return Selector::parse(selector)->resolve(session->graphs()); }
  Result<DumpPlan> plan(std::string_view selector) { return plan_dump(session->graphs(), nodes(selector), options); }
  static nlohmann::json settings(const DumpPlan& plan) { return nlohmann::json::parse(plan.json)["common_dump_settings"]; }

  std::unique_ptr<Session> session;
  DumpPlanOptions options;
};

TEST_F(PlanOfLenet, NeighbourhoodIsListedByExpressionsAndCostsWhatTheRunWrote) {
  const auto centre = find_node(session->graphs(), "conv1-Conv2d/Conv2D-op0");
  ASSERT_TRUE(centre.ok());
  const auto plan = plan_dump(session->graphs(), nodes_around(*centre->graph, centre->node, 1), options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->nodes, 4u);
  EXPECT_EQ(plan->files_per_step, 7u);
  EXPECT_EQ(plan->bytes_per_step, 147160u);  // a run with this plan wrote 294320 bytes in two steps
  EXPECT_EQ(plan->steps, 2u);
  const auto common = settings(*plan);
  EXPECT_EQ(common["dump_mode"], 1);
  EXPECT_EQ(common["iteration"], "0-1");
  const std::vector<std::string> kernels = common["kernels"];
  EXPECT_EQ(kernels, (std::vector<std::string>{"name-regex(^Default/network-WithLossCell/_backbone-LeNet5/conv1-Conv2d/Conv2D-op[0-9]+$)",
                                               "name-regex(^Default/network-WithLossCell/_backbone-LeNet5/relu1-ReLU/ReLU-op[0-9]+$)",
                                               "name-regex(^conv1.weight$)", "name-regex(^inputs0$)"}));
}

TEST_F(PlanOfLenet, WhatAPatternTakesBesidesTheChosenNodeIsCounted) {
  const auto plan = this->plan("=Default/optimizer-Momentum/ApplyMomentum-op0");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->nodes, 1u);
  uint64_t files = 0;
  const std::string step = std::string(MSDBG_TEST_DATA) + "/dumps/lenet-2.7.1-ok/rank_0/LeNet/0/1";
  for (const auto& file : std::filesystem::directory_iterator(step)) files += file.path().filename().string().starts_with("ApplyMomentum.");
  EXPECT_EQ(plan->files_per_step, files);
  ASSERT_FALSE(plan->notes.empty());
  EXPECT_TRUE(plan->notes[0].ends_with(", 7 more than were chosen")) << plan->notes[0];
}

TEST_F(PlanOfLenet, WholeStepOfTheRealDumpIsEstimatedWithinTwoPercent) {
  const auto plan = this->plan("**");
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->everything);
  EXPECT_EQ(settings(*plan)["dump_mode"], 0);
  uint64_t bytes = 0;
  const std::string step = std::string(MSDBG_TEST_DATA) + "/dumps/lenet-2.7.1-ok/rank_0/LeNet/0/1";
  for (const auto& file : std::filesystem::directory_iterator(step)) bytes += file.file_size();
  EXPECT_NEAR(static_cast<double>(plan->bytes_per_step), static_cast<double>(bytes), 0.02 * static_cast<double>(bytes));
}

TEST_F(PlanOfLenet, WithoutAGraphFileTheSizeIsUnknownAndNotZero) {
  const test::TempDir dir;
  const std::string copy = dir.file("copy");
  test::copy_dump(std::string(MSDBG_TEST_DATA) + "/dumps/lenet-2.7.1-ok", copy);
  std::filesystem::remove_all(copy + "/rank_0/graphs");
  session = std::move(*open_dump(copy));
  const auto plan = this->plan("@gradient");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_FALSE(plan->size_known());
  EXPECT_GT(plan->files_per_step, plan->nodes);
  EXPECT_TRUE(nlohmann::json::parse(plan_json(*plan))["bytes_per_step"].is_null());
  ASSERT_FALSE(plan->notes.empty());
  EXPECT_EQ(plan->notes.back(), "the size is unknown: without a readable graph file no shape is");
}

TEST_F(PlanOfLenet, OlderReleasesGetPlainNames) {
  options.version = "2.0.0";
  const auto plan = this->plan("=conv1.weight");
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(settings(*plan)["kernels"], nlohmann::json({"conv1.weight"}));
  EXPECT_TRUE(plan->notes.empty());
}

TEST_F(PlanOfLenet, MoreHopsReachMoreNodesInExecutionOrder) {
  const auto centre = find_node(session->graphs(), "conv1-Conv2d/Conv2D-op0");
  EXPECT_EQ(nodes_around(*centre->graph, centre->node, 0).size(), 1u);
  const auto near = nodes_around(*centre->graph, centre->node, 1), far = nodes_around(*centre->graph, centre->node, 2);
  EXPECT_EQ(near.size(), 4u);
  EXPECT_GT(far.size(), near.size());
  for (size_t i = 1; i < far.size(); ++i) EXPECT_LE(far[i - 1].graph->node(far[i - 1].node).order, far[i].graph->node(far[i].node).order);
}

TEST_F(PlanOfLenet, StatisticsNeedADeviceThatHasThem) {
  options.saved = SavedData::kStatistic;
  EXPECT_EQ(plan("**").status().message(), "statistics: MindSpore writes none on a CPU; plan whole tensors and let msdbg compute them");
  options.device_target = "Ascend";
  const auto coarse = plan("**");
  ASSERT_TRUE(coarse.ok());
  EXPECT_EQ(settings(*coarse)["saved_data"], "statistic");
  EXPECT_EQ(coarse->files_per_step, 0u);
  options.version = "1.5.0";
  EXPECT_EQ(plan("**").status().code(), Code::kInvalidArgument);
}

TEST_F(PlanOfLenet, WhatMindSporeWouldRefuseIsRefusedHere) {
  options.path = "/data/run.1";
  EXPECT_NE(plan("**").status().message().find("no dots, no blanks"), std::string::npos);
  options.path = "/data/run";
  options.net_name = "Le Net";
  EXPECT_EQ(plan("**").status().code(), Code::kInvalidArgument);
  options.net_name = "Net";
  options.steps = *IntSet::parse("2:");
  EXPECT_NE(plan("**").status().message().find("needs an end"), std::string::npos);
  options.steps = IntSet::all();
  EXPECT_EQ(plan("op:Depend or op:Load").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace msdbg
