// Unusual directory layouts, and users who name a different level.
#include <gtest/gtest.h>

#include "dump/dump_support.h"

namespace msdbg::testing {
namespace {

std::string raw_floats(std::initializer_list<float> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(float));
}
constexpr const char* kRawConv = "Default--net--conv1-Conv2d--Conv2D-op3_output_0_shape_2_2_Float32_DefaultFormat.bin";
constexpr const char* kNewAdd = "Add.Default_Add-op0.0.0.5.output.0.DefaultFormat.Float32.npy";

TEST(RankLayout, OneRankMayBeNamedInsteadOfTheRoot) {
  TempDir dir;
  for (int rank : {0, 1}) dir.npy("run/rank_" + std::to_string(rank) + "/Net/0/3/" + kNewAdd, {rank + 10.0});
  auto whole = open(dir.at("run"));
  EXPECT_EQ(whole->ranks().size(), 2u);
  auto one = open(dir.at("run/rank_1/"));
  ASSERT_EQ(one->ranks().size(), 1u);
  EXPECT_EQ(one->ranks()[0], 1);
  EXPECT_EQ(one->info().layout, "R");
  EXPECT_EQ(elements(*one, "Default_Add-op0", 3), (std::vector<double>{11}));
}

TEST(RankLayout, ARenamedRankIsKnownByWhatItHolds) {
  TempDir dir;
  dir.npy("copy/Net/0/3/" + std::string(kNewAdd), {1});
  dir.text("copy/.dump_metadata/config.json", R"({"device_target":"GPU","ms_version":"2.4.0"})");
  auto session = open(dir.at("copy"));
  EXPECT_EQ(session->info().layout, "R");
  EXPECT_EQ(session->info().device_target, "GPU");
  EXPECT_EQ(session->steps(), (std::vector<int64_t>{3}));
}

TEST(RankLayout, RanksAreListedInOrderAndCanBeChosen) {
  TempDir dir;
  for (int rank : {10, 2, 0}) dir.npy("rank_" + std::to_string(rank) + "/Net/0/0/" + kNewAdd, {rank * 1.0});
  dir.directory("rank_x");
  auto session = open(dir.path());
  EXPECT_EQ(std::vector<int>(session->ranks().begin(), session->ranks().end()), (std::vector<int>{0, 2, 10}));
  const std::vector<TensorId> ids = all_tensors(*session, 0);
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(ids[1].rank, 2);
  EXPECT_EQ(elements(*session, ids[2]), (std::vector<double>{10}));
  DumpOptions options;
  options.ranks = IntSet::of(2);
  EXPECT_EQ(open(dir.path(), options)->ranks().size(), 1u);
  options.ranks = IntSet::of(7);
  const auto none = open_dump(dir.path(), options);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kNotFound);
  EXPECT_NE(none.status().message().find("it has 0, 2, 10"), std::string::npos) << none.status().message();
}

TEST(RankLayout, RanksWithDifferentStepsAreAProblem) {
  TempDir dir;
  for (int step : {0, 1, 2}) dir.npy("rank_0/Net/0/" + std::to_string(step) + "/" + kNewAdd, {1});
  for (int step : {0, 1}) dir.npy("rank_1/Net/0/" + std::to_string(step) + "/" + kNewAdd, {1});
  const auto session = open(dir.path());
  const std::vector<Problem> problems = session->inspect().problems;
  const auto found = std::find_if(problems.begin(), problems.end(), [](const Problem& problem) {
    return problem.message.find("rank 1 has steps 0-1, rank 0 has steps 0-2") != std::string::npos;
  });
  ASSERT_NE(found, problems.end());
  EXPECT_EQ(found->severity, Severity::kWarning);
}

TEST(RankLayout, NetsAreDirectoriesWithNumbersAndCanBeChosen) {
  TempDir dir;
  dir.npy("rank_0/Train/0/0/" + std::string(kNewAdd), {1});
  dir.npy("rank_0/Eval/1/0/" + std::string(kNewAdd), {2});
  dir.text("rank_0/notes/readme.txt", "x");
  dir.npy("rank_0/_/0/0/" + std::string(kNewAdd), {3});
  dir.npy("rank_0/Train/0/init/" + std::string(kNewAdd), {4});
  auto session = open(dir.path());
  EXPECT_EQ(session->info().nets, (std::vector<std::string>{"Eval", "Train"}));
  EXPECT_EQ(all_tensors(*session, 0).size(), 2u);
  DumpOptions options;
  options.net = "Eval";
  auto eval = open(dir.path(), options);
  EXPECT_EQ(eval->info().nets, (std::vector<std::string>{"Eval"}));
  EXPECT_EQ(elements(*eval, "Default_Add-op0", 0), (std::vector<double>{2}));
  options.net = "Test";
  EXPECT_NE(open_dump(dir.path(), options).status().message().find("it has Eval, Train"), std::string::npos);
}

TEST(RankLayout, StepsAreNumbersNotText) {
  TempDir dir;
  for (int step : {10, 9, 100}) dir.npy("rank_0/Net/0/" + std::to_string(step) + "/" + kNewAdd, {1});
  EXPECT_EQ(open(dir.path())->steps(), (std::vector<int64_t>{9, 10, 100}));
}

TEST(RankLayout, ARankWithoutStepsOpensAndSaysSo) {
  TempDir dir;
  dir.directory("rank_0");
  auto session = open(dir.path());
  EXPECT_TRUE(session->steps().empty());
  EXPECT_TRUE(reports(*session, "rank_0", "no steps were dumped"));
}

TEST(OldLayout, CpuOf12) {
  TempDir dir;
  dir.text("Net/iteration_1/" + std::string(kRawConv), raw_floats({1, 2, 3, 4}));
  dir.text("Net/iteration_1/cst1_output_0_shape_0_Int32_DefaultFormat.bin", std::string("\7\0\0\0", 4));
  dir.text("Net/iteration_1/conv1.weight_output_0_shape_2_Float32_DefaultFormat.bin", raw_floats({5, 6}));
  dir.text("Net/iteration_2/" + std::string(kRawConv), raw_floats({1, 2, 3}));
  auto session = open(dir.path());
  EXPECT_EQ(session->info().layout, "V-cpu");
  EXPECT_EQ(session->info().epoch, "A");
  EXPECT_EQ(session->steps(), (std::vector<int64_t>{1, 2}));
  const TensorId conv = id_of(*session, "Default/net/conv1-Conv2d/Conv2D-op3", 1);
  EXPECT_EQ(session->node(conv).op, "Conv2D");
  EXPECT_EQ(session->describe(conv)->shape, (Shape{2, 2}));
  EXPECT_EQ(elements(*session, conv), (std::vector<double>{1, 2, 3, 4}));
  const TensorId constant = id_of(*session, "cst1", 1);
  EXPECT_EQ(session->node(constant).kind, NodeKind::kConstant);
  EXPECT_EQ(session->describe(constant)->shape, Shape{});
  EXPECT_EQ(elements(*session, constant), (std::vector<double>{7}));
  EXPECT_EQ(session->node(id_of(*session, "conv1.weight", 1)).kind, NodeKind::kParameter);
  const Status cut = problem_of(*session, id_of(*session, "Conv2D-op3", 2));
  EXPECT_EQ(cut.code(), Code::kCorrupt);
  EXPECT_EQ(cut.message(), "file is cut off: file name promises 16 bytes, 12 are there");
}

TEST(OldLayout, SynchronousOf12WithItsGraphs) {
  TempDir dir;
  const std::string device = "Net/device_3/";
  dir.text(device + "iteration_1/" + kRawConv, raw_floats({1, 2, 3, 4}));
  dir.text(device + "iteration_1/Default--net--Relu-op4_output_0_shape_1_Float32_DefaultFormat.bin", raw_floats({9}));
  dir.text(device + "graphs/ms_output_trace_code_graph_0.pb",
           graph_pb("kernel_graph_0", "0", {}, {{"Default/net/conv1-Conv2d/Conv2D-op3", "Conv2D"}}));
  dir.text(device + "graphs/ms_output_trace_code_graph_1.pb",
           graph_pb("kernel_graph_1", "1", {}, {{"Default/net/Relu-op4", "ReLU"}}));
  dir.text(".metadata/data_dump.json", R"({"common_dump_settings":{"net_name":"Net"}})");
  for (const char* given : {"", "Net", "Net/device_3"}) {
    auto session = open(dir.at(given));
    EXPECT_EQ(session->info().layout, "V-sync") << given;
    ASSERT_EQ(session->ranks().size(), 1u);
    EXPECT_EQ(session->ranks()[0], 3) << given;
    const TensorId relu = id_of(*session, "Default/net/Relu-op4", 1);
    EXPECT_EQ(relu.graph, 1);
    EXPECT_EQ(session->node(relu).op, "ReLU");
    EXPECT_EQ(elements(*session, relu), (std::vector<double>{9}));
  }
}

TEST(OldLayout, ADamagedContainerOf12IsListed) {
  TempDir dir;
  dir.text("device_0/Net_graph_2/2/5/MatMul.Default_MatMul-op1.12.1700000000000000", "container");
  auto session = open(dir.path());
  EXPECT_EQ(session->info().layout, "V-async");
  const TensorId id = id_of(*session, "Default_MatMul-op1", 5);
  EXPECT_EQ(id.graph, 2);
  const Result<TensorInfo> info = session->describe(id);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->availability, Availability::kUnreadable);
  EXPECT_EQ(info->problem.code(), Code::kCorrupt);
  EXPECT_TRUE(info->problem.message().starts_with("the container is cut off")) << info->problem.message();
  EXPECT_EQ(session->open_elements(id).status().code(), Code::kCorrupt);
  EXPECT_EQ(session->inspect().device_files, 1u);
}

class GeLayout : public ::testing::Test {
 protected:
  void put(const std::string& step, const std::string& time, double value) {
    dir_.npy(step + "/" + time +
                 "/2/net_1/7/0/MatMul.Default_MatMul-op1.65535.65535.1700000000000001.output.0.ND.float32.npy",
             {value});
  }
  TempDir dir_;
};

TEST_F(GeLayout, LeavesAreFoundAndTheNewestTimeCounts) {
  dir_.text("acl_dump_2.json", "{}");
  put("0", "20240101120000", 1);
  put("0", "20240101120001", 2);
  put("1", "20240101120002", 3);
  auto session = open(dir_.path());
  EXPECT_EQ(session->info().layout, "G");
  ASSERT_EQ(session->ranks().size(), 1u);
  EXPECT_EQ(session->ranks()[0], 2);
  EXPECT_EQ(session->steps(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(session->graphs()[0]->id(), 7);
  EXPECT_EQ(elements(*session, "Default_MatMul-op1", 0), (std::vector<double>{2}));
  EXPECT_EQ(elements(*session, "Default_MatMul-op1", 1), (std::vector<double>{3}));
  EXPECT_TRUE(reports(*session, "7/0", "earlier activation"));
}

TEST_F(GeLayout, TheControlFileAloneIsADumpWithoutSteps) {
  dir_.text("acl_dump_0.json", "{}");
  auto session = open(dir_.path());
  EXPECT_TRUE(session->steps().empty());
}

TEST(PlainFiles, ADirectoryOfTensorsIsOneStep) {
  TempDir dir;
  dir.npy(kNewAdd, {1});
  dir.npy("x_float32_0.npy", {2});
  dir.text("notes.txt", "no tensor");
  auto session = open(dir.path());
  EXPECT_EQ(session->info().layout, "files");
  EXPECT_EQ(session->steps(), (std::vector<int64_t>{0}));
  EXPECT_EQ(elements(*session, "Default_Add-op0", 0), (std::vector<double>{1}));
  EXPECT_EQ(elements(*session, "x_float32_0", 0), (std::vector<double>{2}));
}

TEST(PlainFiles, OneStepOfADumpSaysWhereTheRestIs) {
  TempDir dir;
  dir.npy("run/rank_0/Net/0/4/" + std::string(kNewAdd), {1});
  auto session = open(dir.at("run/rank_0/Net/0/4"));
  EXPECT_TRUE(reports(*session, "/4", "open " + dir.at("run") + " for its graph"));
}

}  // namespace
}  // namespace msdbg::testing
