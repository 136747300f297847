// The statements in the notes on the real LeNet dumps, sentence by sentence.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "dump/dump_support.h"

namespace msdbg::testing {
namespace {

const std::string kForward = "Default/network-WithLossCell/_backbone-LeNet5/";
const std::string kLoss =
    "Default/network-WithLossCell/_loss_fn-SoftmaxCrossEntropyWithLogits/SparseSoftmaxCrossEntropyWithLogits-op0";

bool is_bad(Session& session, const TensorId& id) {
  const Result<Stats> stats = session.stats(id);
  EXPECT_TRUE(stats.ok()) << session.tensor_name(id) << ": " << stats.status().message();
  return stats.ok() && stats->nan_count + stats->inf_count() > 0;
}

struct BadFiles {
  size_t kernels = 0;  ///< input and output files of operators
  std::set<std::string> parameters;
};

BadFiles bad_files(Session& session, int64_t step) {
  BadFiles bad;
  for (const TensorId& id : all_tensors(session, step)) {
    if (!is_bad(session, id)) continue;
    const Node& node = session.node(id);
    if (node.kind == NodeKind::kOperator) {
      ++bad.kernels;
    } else {
      bad.parameters.insert(node.name);
    }
  }
  return bad;
}

/// First output in execution order that holds NaN or Inf.
std::string first_bad(Session& session, int64_t step) {
  const Graph& graph = *session.graphs()[0];
  for (NodeId node : graph.execution_order()) {
    for (uint32_t slot = 0; slot < graph.node(node).outputs.size(); ++slot) {
      const TensorId id{0, graph.id(), step, 0, node, {Io::kOutput, slot}};
      if (session.describe(id).ok() && is_bad(session, id)) return session.tensor_name(id);
    }
  }
  return "";
}

class HealthyLenet : public ::testing::TestWithParam<const char*> {};
TEST_P(HealthyLenet, HoldsNoNanAndNoInf) {
  auto session = open_data(GetParam());
  size_t looked_at = 0;
  for (int64_t step : session->steps()) {
    for (const TensorId& id : all_tensors(*session, step)) {
      EXPECT_FALSE(is_bad(*session, id)) << session->tensor_name(id);
      ++looked_at;
    }
  }
  EXPECT_GT(looked_at, 300u);
}
INSTANTIATE_TEST_SUITE_P(Dumps, HealthyLenet, ::testing::Values("lenet-2.7.1-ok", "lenet-2.0.0-ok", "lenet-1.5.0-ok"),
                         [](const auto& made) {
                           std::string name = made.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_');
                           return name;
                         });

TEST(LenetData, LossesAreThosePrintedByTheRun) {
  const std::map<std::string, std::vector<float>> printed = {
      {"lenet-2.7.1-ok", {2.30600643f, 2.30259562f, 2.31330013f}},
      {"lenet-2.7.1-lognan", {2.3046174f, 2.30267191f}},
      {"lenet-2.7.1-explode", {2.31056023f, 30.8976212f, INFINITY, INFINITY}},
  };
  for (const auto& [name, losses] : printed) {
    auto session = open_data(name);
    for (size_t step = 0; step < losses.size(); ++step) {
      const std::vector<double> loss = elements(*session, kLoss, static_cast<int64_t>(step));
      ASSERT_EQ(loss.size(), 1u);
      EXPECT_EQ(static_cast<float>(loss[0]), losses[step]) << name << " step " << step;
    }
  }
  auto explode = open_data("lenet-2.7.1-explode");
  EXPECT_TRUE(std::isnan(elements(*explode, kLoss, 4).at(0)));
}

TEST(LognanData, FirstBadIsTheLogarithmInBothSteps) {
  auto session = open_data("lenet-2.7.1-lognan");
  EXPECT_EQ(first_bad(*session, 0), kForward + "Log-op0:output:0");
  EXPECT_EQ(first_bad(*session, 1), kForward + "Log-op0:output:0");
  for (const auto& [step, bad] : std::map<int64_t, uint64_t>{{0, 104}, {1, 88}}) {
    const TensorId log = id_of(*session, kForward + "Log-op0", step);
    EXPECT_EQ(session->describe(log)->shape, (Shape{4, 48}));
    const Stats stats = session->stats(log).value();
    EXPECT_EQ(stats.neg_inf_count, bad);
    EXPECT_EQ(stats.nan_count + stats.pos_inf_count, 0u);
    EXPECT_EQ(stats.count, 192u);
  }
  const Stats input = session->stats(id_of(*session, kForward + "Log-op0:input:0", 0)).value();
  EXPECT_EQ(input.nan_count + input.inf_count(), 0u);
  EXPECT_EQ(input.zero_count, 104u);
  EXPECT_EQ(session->stats(id_of(*session, kForward + "fc2-Dense/MatMul-op0", 0))->nan_count, 128u);
}

TEST(LognanData, CountsOfBadFiles) {
  auto session = open_data("lenet-2.7.1-lognan");
  const BadFiles first = bad_files(*session, 0), second = bad_files(*session, 1);
  EXPECT_EQ(first.kernels, 14u);
  EXPECT_EQ(first.parameters, (std::set<std::string>{"fc2.weight", "moments.fc2.weight"}));
  EXPECT_EQ(second.kernels, 57u);
  for (const char* layer : {"conv1", "conv2", "fc1", "fc2"}) {
    EXPECT_TRUE(second.parameters.count(std::string(layer) + ".weight")) << layer;
  }
}

TEST(LognanData, ReluTurnsNanIntoZeroAndTwoParametersStay) {
  auto session = open_data("lenet-2.7.1-lognan");
  for (int64_t step : {0, 1}) {
    const Stats relu = session->stats(id_of(*session, kForward + "relu4-ReLU/ReLU-op0", step)).value();
    EXPECT_EQ(relu.zero_count, relu.count);
  }
  for (const char* name : {"fc3.weight", "fc2.bias"}) {
    EXPECT_EQ(elements(*session, name, 0), elements(*session, name, 1)) << name;
  }
}

TEST(ExplodeData, TheLossBreaksTwoStepsBeforeAnOperator) {
  auto session = open_data("lenet-2.7.1-explode");
  for (int64_t step : {0, 1}) {
    const BadFiles bad = bad_files(*session, step);
    EXPECT_EQ(bad.kernels, 0u);
    EXPECT_TRUE(bad.parameters.empty());
  }
  for (int64_t step : {2, 3}) {
    size_t outputs = 0;
    for (const TensorId& id : all_tensors(*session, step, false)) {
      if (!is_bad(*session, id)) continue;
      ++outputs;
      EXPECT_EQ(session->tensor_name(id), kLoss + ":output:0");
      EXPECT_EQ(session->stats(id)->pos_inf_count, 1u);
    }
    EXPECT_EQ(outputs, 1u);
  }
}

TEST(ExplodeData, StepFourBreaksInsideAMatMulWithFiniteInputs) {
  auto session = open_data("lenet-2.7.1-explode");
  const std::string matmul = kForward + "fc2-Dense/MatMul-op0";
  EXPECT_EQ(first_bad(*session, 4), matmul + ":output:0");
  const Stats out = session->stats(id_of(*session, matmul, 4)).value();
  EXPECT_EQ(out.nan_count, 64u);
  EXPECT_EQ(out.count, 64u);
  const auto magnitude = [&](const char* slot) {
    const Stats stats = session->stats(id_of(*session, matmul + slot, 4)).value();
    EXPECT_EQ(stats.finite_count(), stats.count);
    return std::max(std::abs(stats.min), std::abs(stats.max));
  };
  EXPECT_NEAR(magnitude(":input:0"), 3.4e36, 0.05e36);
  EXPECT_NEAR(magnitude(":input:1"), 1.1e12, 0.05e12);
  const BadFiles bad = bad_files(*session, 4);
  EXPECT_EQ(bad.kernels, 137u);
  for (const char* name :
       {"conv1.weight", "conv2.weight", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"}) {
    const Stats stats = session->stats(id_of(*session, name, 4)).value();
    EXPECT_EQ(stats.nan_count, stats.count) << name;
  }
}

TEST(ExplodeData, TheGrowthShowsInTheFirstWeight) {
  auto session = open_data("lenet-2.7.1-explode");
  const double wanted[] = {0.097, 0.160, 105, 4.0e10};
  for (int64_t step = 0; step < 4; ++step) {
    const double mean = session->stats(id_of(*session, "conv1.weight", step))->abs_mean;
    EXPECT_NEAR(mean, wanted[step], 0.02 * wanted[step]) << step;
  }
}

/// Name -> bytes of a safetensors file: length, JSON with offsets, data.
std::map<std::string, std::string> read_safetensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  std::map<std::string, std::string> tensors;
  const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const uint64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    tensors[name] = bytes.substr(8 + length + begin, end - begin);
  }
  return tensors;
}

TEST(LenetData, ParameterFilesEqualTheCheckpointAfterTheStep) {
  for (const auto& [name, steps] : std::map<std::string, int64_t>{{"lenet-2.7.1-ok", 3}, {"lenet-2.7.1-explode", 5}}) {
    auto session = open_data(name);
    for (int64_t step = 0; step < steps; ++step) {
      const auto checkpoint =
          read_safetensors(data_path("checkpoints/" + name + "/lenet-1_" + std::to_string(step + 1) + ".safetensors"));
      ASSERT_EQ(checkpoint.size(), 8u);
      for (const auto& [parameter, bytes] : checkpoint) {
        const Result<TensorPtr> tensor = session->load(id_of(*session, parameter, step));
        ASSERT_TRUE(tensor.ok()) << parameter;
        ASSERT_EQ((*tensor)->bytes().size(), bytes.size());
        EXPECT_EQ(std::memcmp((*tensor)->bytes().data(), bytes.data(), bytes.size()), 0) << parameter << " " << step;
      }
    }
  }
}

TEST(EvalData, TwoNetworksInTurnAndRenumberedFiles) {
  auto session = open_data("lenet-2.7.1-eval");
  ASSERT_EQ(session->graphs().size(), 2u);
  EXPECT_EQ(session->steps(0, 0), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(session->steps(0, 1), (std::vector<int64_t>{1, 2}));
  const auto number = [](std::string_view text) { return text.substr(text.rfind("-op")); };
  std::set<std::string> nodes;
  for (const TensorId& id : all_tensors(*session, 2)) {
    const Node& node = session->node(id);
    if (id.graph != 1 || node.kind != NodeKind::kOperator) continue;
    const std::string file = session->describe(id)->source;
    const std::string_view in_file = number(std::string_view(file));
    EXPECT_NE(in_file.substr(0, in_file.find('.')), number(node.name)) << file;
    nodes.insert(node.name);
  }
  EXPECT_GE(nodes.size(), 14u);
  // The history lists only step 0 of graph 0; step 1 directly after it counts as its next run.
  bool missing = true;
  const Result<TensorId> before = session->previous(id_of(*session, kLoss, 1, 0, 0), &missing);
  ASSERT_TRUE(before.ok()) << before.status().message();
  EXPECT_EQ(before->step, 0);
  EXPECT_FALSE(missing);
}

TEST(EvalData, LossesOfTrainingAndEvaluation) {
  auto session = open_data("lenet-2.7.1-eval");
  const auto loss = [&](int graph, int64_t step) {
    for (const TensorId& id : all_tensors(*session, step, false)) {
      const Node& node = session->node(id);
      const bool forward = node.name.find("Gradients") == std::string::npos;
      if (id.graph == graph && node.op == "SparseSoftmaxCrossEntropyWithLogits" && forward) {
        return static_cast<float>(elements(*session, id).at(0));
      }
    }
    return 0.0f;
  };
  EXPECT_EQ(loss(0, 0), 2.31102991f);
  EXPECT_EQ(loss(0, 1), 2.30673981f);
  EXPECT_EQ(loss(1, 1), 2.31189251f);
  EXPECT_EQ(loss(1, 2), 2.32218266f);
}

TEST(OldLenetData, ConstantsAndTheMissingInput) {
  auto session = open_data("lenet-2.0.0-ok");
  EXPECT_EQ(session->info().epoch, "C");
  EXPECT_EQ(session->info().framework_version, "2.0.0");
  size_t constants = 0, fused = 0;
  for (const TensorId& id : all_tensors(*session, 0, false)) {
    const Node& node = session->node(id);
    if (node.op->find("Fusion") != std::string::npos) ++fused;
    if (node.kind != NodeKind::kConstant) continue;
    ++constants;
    EXPECT_NE(session->describe(id)->source.find("/constants/"), std::string::npos);
  }
  EXPECT_EQ(constants, 9u);
  EXPECT_GT(fused, 0u);
  const Result<TensorInfo> input = session->describe(id_of(*session, "inputs1", 0));
  ASSERT_FALSE(input.ok());
  EXPECT_EQ(input.status().code(), Code::kNotFound);
  EXPECT_NE(input.status().message().find("inputs1 has no file in any step"), std::string::npos)
      << input.status().message();
}

TEST(OldLenetData, ConstantsAppearOnceWithTheFirstStepAskedFor) {
  auto session = open_data("lenet-2.0.0-filter");
  TensorQuery query;
  query.steps = IntSet::parse("2:").value();
  size_t constants = 0;
  for (const TensorId& id : session->tensors(query)) {
    if (session->node(id).kind != NodeKind::kConstant) continue;
    EXPECT_EQ(id.step, 2);
    EXPECT_FALSE(elements(*session, id).empty());
    ++constants;
  }
  EXPECT_EQ(constants, 9u);
}

TEST(OldLenetData, FilteredDumpTakesTheStepBeforeFromTheHistory) {
  auto session = open_data("lenet-2.0.0-filter");
  EXPECT_EQ(session->steps(), (std::vector<int64_t>{0, 2, 3}));
  const auto before = [&](int64_t step) { return session->previous(id_of(*session, "fc1.weight", step), nullptr); };
  EXPECT_FALSE(before(0).ok());
  EXPECT_EQ(before(2)->step, 0);
  EXPECT_EQ(before(3)->step, 2);
}

TEST(OldestLenetData, ConstantsStandInEveryStepAndDumpedStepsServeAsHistory) {
  auto session = open_data("lenet-1.5.0-ok");
  EXPECT_EQ(session->info().epoch, "B");
  const TensorId constant = id_of(*session, "cst2", 0);
  EXPECT_EQ(session->node(constant).kind, NodeKind::kConstant);
  EXPECT_NE(session->describe(constant)->source.find("/LeNet/0/0/Parameter.cst2."), std::string::npos);
  bool missing = true;
  EXPECT_EQ(session->previous(id_of(*session, "fc1.weight", 1), &missing)->step, 0);
  EXPECT_FALSE(missing);
}

}  // namespace
}  // namespace msdbg::testing
