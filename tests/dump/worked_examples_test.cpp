// Small handmade dumps, one for each generation of file names, with the expected answers.
#include <gtest/gtest.h>

#include "msdbg/check.h"
#include "dump/dump_support.h"

namespace msdbg::testing {
namespace {

// ---- epoch C, two alternating networks --------------------------------------------------------------------------------

constexpr const char* kConv = "Conv2D.Conv2D-op1.0.0.1650000000.output.0.DefaultFormat.npy";
const std::string kConvNode = "Default/network/conv1-Conv2d/Conv2D-op1";

class TwoNetworks : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int id : {0, 1, 2, 3}) {
      std::vector<PbNode> nodes;
      if (id == 0 || id == 3) nodes = {{kConvNode, "Conv2D"}};
      if (id == 1) nodes = {{"Default/network/Cast-op189", "Cast"}};
      dir_.text("rank_0/graphs/ms_output_trace_code_graph_" + std::to_string(id) + ".pb",
                graph_pb("kernel_graph_" + std::to_string(id), id == 3 ? "3" : "0", {}, nodes));
    }
    dir_.text("rank_0/execution_order/ms_global_execution_order_graph_0.csv", "0\n2\n4\n");
    dir_.text("rank_0/execution_order/ms_global_execution_order_graph_3.csv", "1\n3\n5\n6\n");
    for (int step : {1, 6}) dir_.npy("rank_0/Lenet/3/" + std::to_string(step) + "/" + kConv, {1, 2});
  }
  void dump_graph_0(std::initializer_list<int> steps) {
    for (int step : steps) {
      const std::string folder = "rank_0/Lenet/0/" + std::to_string(step) + "/";
      dir_.npy(folder + kConv, {1, 2});
      dir_.npy(folder + "Cast.Cast-op189.0.0.1650000001.output.0.DefaultFormat.npy", {3});
    }
  }
  Result<TensorId> previous(Session& session, int64_t step, bool* missing) {
    return session.previous(id_of(session, kConvNode, step, 0, 0), missing);
  }

  TempDir dir_;
};

TEST_F(TwoNetworks, StepsGraphsAndRoots) {
  dump_graph_0({0, 4});
  auto session = open(dir_.path());
  EXPECT_EQ(session->info().layout, "R");
  EXPECT_EQ(session->info().nets, (std::vector<std::string>{"Lenet"}));
  ASSERT_EQ(session->graphs().size(), 4u);
  EXPECT_EQ(session->steps(0, 0), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(session->steps(0, 3), (std::vector<int64_t>{1, 6}));
  EXPECT_EQ(session->steps(), (std::vector<int64_t>{0, 1, 4, 6}));
  EXPECT_EQ(session->graph(0, 1)->root_id(), 0);
}

TEST_F(TwoNetworks, FilesOfASubGraphLieInTheDirectoryOfItsRoot) {
  dump_graph_0({0, 4});
  auto session = open(dir_.path());
  const TensorId cast = id_of(*session, "Default/network/Cast-op189", 4);
  EXPECT_EQ(cast.graph, 1);
  EXPECT_EQ(elements(*session, cast), (std::vector<double>{3}));
  EXPECT_EQ(session->steps(0, 1), (std::vector<int64_t>{0, 4}));
}

TEST_F(TwoNetworks, TheRunBeforeHasNoDataSoThereIsNoPreviousValue) {
  dump_graph_0({0, 4});
  auto session = open(dir_.path());
  bool missing = true;
  const Result<TensorId> before = previous(*session, 4, &missing);
  ASSERT_FALSE(before.ok());
  EXPECT_FALSE(missing);
  EXPECT_NE(before.status().message().find("no data of step 2"), std::string::npos) << before.status().message();
}

TEST_F(TwoNetworks, OneStepBehindTheHistoryDoesNotDiscreditIt) {
  dump_graph_0({0, 5});
  auto session = open(dir_.path());
  EXPECT_FALSE(reports(*session, "execution_order", "history is not used"));
  // Step 5 exists and can be examined; the run before it, step 4, was not dumped.
  EXPECT_EQ(session->steps(0, 0), (std::vector<int64_t>{0, 5}));
  EXPECT_FALSE(previous(*session, 5, nullptr).ok());
}

TEST_F(TwoNetworks, AStepFarBehindTheHistoryDiscreditsTheRank) {
  dump_graph_0({0, 6});
  auto session = open(dir_.path());
  EXPECT_TRUE(reports(*session, "execution_order", "history is not used"));
  EXPECT_EQ(previous(*session, 6, nullptr)->step, 0);
  EXPECT_EQ(session->previous(id_of(*session, kConvNode, 6, 0, 3), nullptr)->step, 1);
}

TEST_F(TwoNetworks, TwoForeignStepsDiscreditTheRank) {
  dump_graph_0({1, 5});
  auto session = open(dir_.path());
  EXPECT_TRUE(reports(*session, "execution_order", "2 steps"));
  EXPECT_EQ(previous(*session, 5, nullptr)->step, 1);
}

TEST_F(TwoNetworks, RunsWithoutDataAreReported) {
  dump_graph_0({0, 4});
  auto session = open(dir_.path());
  EXPECT_TRUE(reports(*session, "", "graph 0 also ran in steps 2, which were not dumped"));
}

// ---- no graph at all, handmade names and time stamps -----------------------------------------------------------------

class NoGraph : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<double> conv(27, 1.0);
    conv[13] = -0.020966000854969025;
    dir_.npy("rank_0/Test/0/2/Conv2D.Conv2D-op369.0.0.1.input.1.DefaultFormat.npy", f32({3, 3, 3}, conv));
    dir_.npy("rank_0/Test/0/2/Parameter.fc2.bias.0.0.2.output.0.DefaultFormat.npy",
             {-5.0167350e-06, 1.2509107e-05, -4.3148934e-06, 8.1415592e-06, 2.1177532e-07, 2.9952851e-06});
    dir_.npy("rank_0/Test/0/3/Parameter.fc2.bias.0.0.2.output.0.DefaultFormat.npy",
             {2.9060817e-07, -5.1009415e-06, -2.8662325e-06, 2.6036503e-06, -5.1546101e-07, 6.0798648e-06});
    dir_.npy("rank_0/Test/0/2/CudnnUniformReal.CudnnUniformReal-op391.0.0.3.input.0.DefaultFormat.npy", {-32, -4096});
    dir_.npy("rank_0/Test/0/0/Cast.Cast-op4.0.0.1.output.0.DefaultFormat.npy", {0, 0});
    dir_.npy("rank_0/Test/0/0/Cast.Cast-op40.0.0.1.output.0.DefaultFormat.npy", {1, 1});
    dir_.text("rank_0/execution_order/ms_global_execution_order_graph_0.csv", "0\n2\n3\n");
  }
  CheckResult check_one(Session& session, const std::string& on, const std::string& when, int64_t step, bool inputs) {
    Watchpoint watch;
    watch.id = 1;
    watch.on = Selector::parse(on).value();
    watch.condition = parse_condition(when).value();
    watch.rule = watch.condition->spec->id;
    watch.inputs = inputs;
    watch.outputs = !inputs;
    CheckOptions options;
    options.steps = IntSet::of(step);
    Result<CheckResult> result = check(session, std::vector<Watchpoint>{watch}, options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result ? std::move(*result) : CheckResult();
  }

  TempDir dir_;
};

TEST_F(NoGraph, NodesAreMadeFromNames) {
  auto session = open(dir_.path());
  ASSERT_EQ(session->graphs().size(), 1u);
  const Graph& graph = *session->graphs()[0];
  EXPECT_FALSE(graph.from_file());
  ASSERT_NE(graph.find("fc2.bias"), nullptr);
  EXPECT_EQ(graph.find("fc2.bias")->kind, NodeKind::kParameter);
  EXPECT_EQ(graph.find("Conv2D-op369")->op, "Conv2D");
  EXPECT_EQ(names(*session, 2),
            (std::vector<std::string>{"fc2.bias:output:0", "Conv2D-op369:input:1", "CudnnUniformReal-op391:input:0"}));
}

TEST_F(NoGraph, MinimaOfTheInputs) {
  auto session = open(dir_.path());
  const CheckResult conv = check_one(*session, "Conv2D-op369", "min_lt 0", 2, true);
  ASSERT_EQ(conv.hits.size(), 1u);
  EXPECT_EQ(conv.hits[0].tensor.slot.index, 1u);
  EXPECT_EQ(conv.hits[0].params[0].actual, -0.020966000854969025);
  const CheckResult cudnn = check_one(*session, "CudnnUniformReal-op391", "min_lt 10", 2, true);
  ASSERT_EQ(cudnn.hits.size(), 1u);
  EXPECT_EQ(cudnn.hits[0].params[0].actual, -4096.0);
}

TEST_F(NoGraph, ChangeIsMeasuredAgainstTheRunBefore) {
  auto session = open(dir_.path());
  const CheckResult result = check_one(*session, "fc2.bias", "WCL abs_mean_update_ratio_gt=0", 3, false);
  ASSERT_EQ(result.hits.size(), 1u);
  EXPECT_NEAR(*result.hits[0].params[0].actual, 1.0156775705209766, 1e-12);
}

TEST_F(NoGraph, NamesThatBeginAlikeAreDifferentNodes) {
  auto session = open(dir_.path());
  const CheckResult result = check_one(*session, "Cast-op*", "max_gt 0", 0, false);
  ASSERT_EQ(result.hits.size(), 1u);
  EXPECT_EQ(session->node(result.hits[0].tensor).name, "Cast-op40");
}

TEST_F(NoGraph, ConstantWithoutATimeStampIsFound) {
  dir_.npy("rank_0/Test/0/constants/Parameter.data-1.0.0..output.0.DefaultFormat.npy", {7});
  auto session = open(dir_.path());
  const TensorId id = id_of(*session, "data-1", 2);
  EXPECT_EQ(session->node(id).kind, NodeKind::kConstant);
  EXPECT_EQ(elements(*session, id), (std::vector<double>{7}));
  EXPECT_FALSE(session->previous(id, nullptr).ok());
}

// ---- epoch E, one Add ------------------------------------------------------------------------------------------------

TEST(OneAdd, OpensWithItsFiveFiles) {
  TempDir dir;
  dir.text("rank_0/.dump_metadata/config.json", R"({"device_target":"CPU","ms_version":"2.6.0"})");
  dir.text("rank_0/graphs/ms_output_trace_code_graph_0.pb",
           graph_pb("kernel_graph0", "0", {"x", "y"}, {{"Default/Add-op0", "Add", {"x", "y"}}}));
  dir.text("rank_0/execution_order/ms_execution_order_graph_0.csv",
           "NodeExecutionOrder-FullNameWithScope\nDefault/Add-op0\n");
  dir.text("rank_0/execution_order/ms_global_execution_order_graph_0.csv", "0\n");
  const std::string step = "rank_0/Net/0/0/";
  dir.npy(step + "Add.Default_Add-op0.0.0.1751000000000001.input.0.DefaultFormat.Float32.npy", {1});
  dir.npy(step + "Add.Default_Add-op0.0.0.1751000000000102.input.1.DefaultFormat.Float32.npy", {2});
  dir.npy(step + "Add.Default_Add-op0.0.0.1751000000000203.output.0.DefaultFormat.Float32.npy", {3});
  dir.npy(step + "Parameter.x.0.0.1751000000000900.output.0.DefaultFormat.Float32.npy", {1});
  dir.npy(step + "Parameter.y.0.0.1751000000000950.output.0.DefaultFormat.Float32.npy", {2});
  auto session = open(dir.path());
  EXPECT_EQ(session->info().epoch, "E");
  EXPECT_EQ(session->info().device_target, "CPU");
  EXPECT_EQ(session->info().framework_version, "2.6.0");
  EXPECT_EQ(names(*session, 0), (std::vector<std::string>{"x:output:0", "y:output:0", "Default/Add-op0:input:0",
                                                          "Default/Add-op0:input:1", "Default/Add-op0:output:0"}));
  EXPECT_EQ(elements(*session, "Default/Add-op0", 0), (std::vector<double>{3}));
  const SessionReport report = session->inspect();
  EXPECT_EQ(report.tensor_files, 3u);
  EXPECT_EQ(report.parameter_files, 2u);
  EXPECT_TRUE(report.problems.empty()) << report.problems[0].message;
}

}  // namespace
}  // namespace msdbg::testing
