// Bisect, trend, propagation and why on the real dumps; expected results come from the makers of the data.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "msdbg/dump.h"
#include "msdbg/follow.h"
#include "support/copy_dump.h"
#include "support/temp_dir.h"

namespace msdbg {
namespace {

const std::string kScope = "Default/network-WithLossCell/_backbone-LeNet5/";

std::unique_ptr<Session> dump(const std::string& name) {
  Result<std::unique_ptr<Session>> opened = open_dump(std::string(MSDBG_TEST_DATA) + "/dumps/" + name);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return opened ? std::move(*opened) : nullptr;
}

std::set<std::string> with(const Session& session, const Propagation& cone, PropagationRole role) {
  std::set<std::string> names;
  for (const PropagationNode& node : cone.nodes) {
    if (node.role == role) names.insert(session.graph(0, 0)->node(node.node).name);
  }
  return names;
}

TEST(FollowDumps, WeightsOfTheExplodingRunAreNanFromStep4On) {
  const auto session = dump("lenet-2.7.1-explode");
  const Result<BisectResult> found = bisect(*session, follow_target(*session, "conv1.weight").value(), parse_predicate("nan").value());
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->ranks.front().first, 4);
  EXPECT_EQ(found->ranks.front().last_before, 3);
  const Result<BisectResult> loss = bisect(*session, follow_target(*session, "@loss").value(), parse_predicate("nan or inf").value());
  ASSERT_TRUE(loss.ok());
  EXPECT_EQ(loss->ranks.front().first, 2);
}

TEST(FollowDumps, TheGrowthOfConv1ShowsInItsTrend) {
  const auto session = dump("lenet-2.7.1-explode");
  const Result<TrendResult> result = trend(*session, follow_target(*session, "conv1.weight").value(), "abs_mean");
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->lines.size(), 1u);
  const TrendLine& line = result->lines[0];
  ASSERT_EQ(line.points.size(), 5u);
  EXPECT_NEAR(*line.points[0].value, 0.097, 0.0005);
  EXPECT_NEAR(*line.points[1].value, 0.160, 0.0005);
  EXPECT_NEAR(*line.points[2].value, 105, 0.5);
  EXPECT_NEAR(*line.points[3].value, 4.0e10, 0.05e10);
  EXPECT_FALSE(line.points[4].value.has_value());
  EXPECT_EQ(line.ends, 4);
}

TEST(FollowDumps, TheReluAbsorbsWhatTheLogMadeAndTheLossStaysHealthy) {
  const auto session = dump("lenet-2.7.1-lognan");
  const TensorId log = resolve_tensor(*session, kScope + "Log-op0", 0).value();
  const Result<Propagation> cone = propagation(*session, log, {});
  ASSERT_TRUE(cone.ok()) << cone.status().message();
  EXPECT_TRUE(cone->holds);
  EXPECT_EQ(cone->bad_in_step, 8u);
  EXPECT_EQ(cone->bad_elsewhere, 1u);  // the gradient of the Log broke on its own
  EXPECT_EQ(with(*session, *cone, PropagationRole::kAbsorbed), std::set<std::string>{kScope + "relu4-ReLU/ReLU-op0"});
  const std::set<std::string> passed = with(*session, *cone, PropagationRole::kPassed);
  EXPECT_TRUE(passed.contains(kScope + "fc2-Dense/MatMul-op0"));
  EXPECT_TRUE(passed.contains("fc2.weight"));
  EXPECT_FALSE(passed.contains("fc3.weight"));

  PropagationOptions up;
  up.up = true;
  const TensorId weight = resolve_tensor(*session, "fc2.weight", 0).value();
  const Result<Propagation> back = propagation(*session, weight, up);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(with(*session, *back, PropagationRole::kOrigin), std::set<std::string>{kScope + "Log-op0"});
}

TEST(FollowDumps, AProductOfFiniteInputsIsItsOwnOrigin) {
  const auto session = dump("lenet-2.7.1-explode");
  PropagationOptions up;
  up.up = true;
  const Result<Propagation> back = propagation(*session, resolve_tensor(*session, kScope + "fc2-Dense/MatMul-op0", 4).value(), up);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(with(*session, *back, PropagationRole::kOrigin), std::set<std::string>{kScope + "fc2-Dense/MatMul-op0"});
}

WhyAnswer asked(Session& session, const std::string& name, std::optional<int64_t> step = {}, std::optional<int> graph = {}) {
  WhyOptions options;
  options.step = step;
  options.graph = graph;
  const Result<WhyAnswer> answer = why(session, name, options);
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return answer ? *answer : WhyAnswer();
}

TEST(FollowDumps, WhyNamesTheFilterOfIterationsAndItsFile) {
  const auto session = dump("lenet-2.0.0-filter");
  const WhyAnswer answer = asked(*session, "conv1.weight", 1);
  EXPECT_EQ(answer.kind, WhyKind::kIterationNotDumped);
  EXPECT_NE(answer.answer.find("0|2-3"), std::string::npos);
  ASSERT_FALSE(answer.evidence.empty());
  EXPECT_TRUE(answer.evidence[0].path.ends_with("data_dump.json"));
  EXPECT_EQ(asked(*session, "conv1.weight", 2).kind, WhyKind::kHasValue);
}

// A copy that may be changed.
std::string copy_of(const test::TempDir& dir, const std::string& name) {
  namespace fs = std::filesystem;
  const std::string copy = dir.file(name);
  test::copy_dump(std::string(MSDBG_TEST_DATA) + "/dumps/" + name, copy);
  for (const auto& entry : fs::recursive_directory_iterator(copy)) fs::permissions(entry, fs::perms::owner_write, fs::perm_options::add);
  return copy;
}

TEST(FollowDumps, WhyDistinguishesMissingFilesFromAGraphThatDidNotRun) {
  const test::TempDir dir;
  const std::string copy = copy_of(dir, "lenet-2.7.1-ok");
  std::filesystem::remove_all(copy + "/rank_0/LeNet/0/1");
  const auto opened = open_dump(copy);
  ASSERT_TRUE(opened.ok());
  const WhyAnswer answer = asked(**opened, "conv1.weight", 1);
  EXPECT_EQ(answer.kind, WhyKind::kMissingFile);
  EXPECT_EQ(answer.answer, "graph 0 ran in step 1, but its files are missing: the dump has them only of steps 0, 2");
  WhyOptions options;
  options.rank = 9;
  const auto elsewhere = why(**opened, "conv1.weight", options);
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_EQ(elsewhere.status().message(), "no rank 9 (have 0)");
}

TEST(FollowDumps, WhyReadsTheListOfKernelsAsMindSporeDoes) {
  const test::TempDir dir;
  const std::string copy = copy_of(dir, "lenet-2.7.1-ok");
  const std::string settings = copy + "/rank_0/.dump_metadata/data_dump.json";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(copy + "/rank_0/LeNet")) {
    const std::string file = entry.path().filename().string();
    if (file.find("MatMul") != std::string::npos || file.find("fc1_bias") != std::string::npos) std::filesystem::remove(entry);
  }
  const auto kind_of = [&](const std::string& kernel, const std::string& name) {
    std::ofstream(settings) << R"({"common_dump_settings": {"dump_mode": 1, "iteration": "all", "input_output": 0, "kernels": [")" << kernel
                            << R"("]}})";
    const auto opened = open_dump(copy);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened ? asked(**opened, name, 0) : WhyAnswer();
  };
  const std::string matmul = kScope + "fc1-Dense/MatMul-op0";
  EXPECT_EQ(kind_of("Conv2D", matmul).kind, WhyKind::kKernelsFilter);
  EXPECT_EQ(kind_of("MatMul", matmul).kind, WhyKind::kMissingFile);
  EXPECT_EQ(kind_of("name-regex(^Default/.+MatMul-op[0-9]+$)", matmul).kind, WhyKind::kMissingFile);
  EXPECT_EQ(kind_of("name-regex(^Gradients/.+$)", matmul).kind, WhyKind::kKernelsFilter);
  EXPECT_EQ(kind_of("name-regex((((", matmul).kind, WhyKind::kKernelsFilter);
  EXPECT_EQ(kind_of("fc1.bias", "moments.fc1.bias").kind, WhyKind::kMissingFile);
  EXPECT_EQ(kind_of("fc2.bias", "moments.fc1.bias").kind, WhyKind::kKernelsFilter);
  // The number in the file is the one that counts.
  const WhyAnswer near = kind_of(kScope + "fc1-Dense/MatMul-op7", matmul);
  EXPECT_EQ(near.kind, WhyKind::kKernelsFilter);
  ASSERT_GE(near.evidence.size(), 2u);
  EXPECT_NE(near.evidence[1].text.find("MatMul-op7\" is listed"), std::string::npos) << near.evidence[1].text;
}

TEST(FollowDumps, WhyFindsTheFusedOperatorOfTheOlderRelease) {
  const auto session = dump("lenet-2.0.0-ok");
  const WhyAnswer matmul = asked(*session, kScope + "fc1-Dense/MatMul-op0");
  EXPECT_EQ(matmul.kind, WhyKind::kFused);
  EXPECT_EQ(matmul.instead, std::vector<std::string>{kScope + "relu3-ReLU/MatMulBiasAddReluFusion-op84"});
  EXPECT_EQ(asked(*session, kScope + "fc2-Dense/BiasAdd-op0").instead,
            std::vector<std::string>{kScope + "relu4-ReLU/MatMulBiasAddReluFusion-op85"});
  EXPECT_EQ(asked(*session, kScope + "fc3-Dense/MatMul-op0").instead,
            std::vector<std::string>{kScope + "fc3-Dense/MatMulBiasAddFusion-op86"});
  EXPECT_EQ(asked(*session, "inputs1").kind, WhyKind::kMissingFile);
}

TEST(FollowDumps, WhyReportsABranchThatWasNotTakenAndAnotherNetwork) {
  const auto control = dump("control-2.7.1");
  EXPECT_EQ(asked(*control, "Default/Tanh-op0", 0).kind, WhyKind::kGraphNotRun);
  const auto two = dump("two-2.7.1");
  const Graph* second = two->graph(0, 2);
  ASSERT_NE(second, nullptr);
  ASSERT_FALSE(second->execution_order().empty());
  EXPECT_EQ(asked(*two, second->node(second->execution_order()[0]).name, 0, 2).kind, WhyKind::kGraphNotRun);
}

}  // namespace
}  // namespace msdbg
