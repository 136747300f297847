// Expected results of comparing the real dumps. The numbers were computed from the files by other tools.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "msdbg/diff.h"
#include "msdbg/dump.h"
#include "msdbg/series.h"
#include "support/copy_dump.h"
#include "support/temp_dir.h"

namespace msdbg {
namespace {

const std::string kScope = "Default/network-WithLossCell/_backbone-LeNet5/";

std::string path_of(const std::string& name) { return std::string(MSDBG_TEST_DATA) + "/dumps/" + name; }

struct Compared {
  Compared(const std::string& left, const std::string& right, const DiffOptions& options = {}) {
    auto x = open_dump(path_of(left)), y = open_dump(path_of(right));
    EXPECT_TRUE(x.ok() && y.ok());
    if (!x || !y) return;
    a = std::move(*x);
    b = std::move(*y);
    auto found = diff_sessions(*a, *b, options);
    EXPECT_TRUE(found.ok()) << found.status().message();
    if (found) result = std::move(*found);
  }
  const TensorDiff& at(const std::string& name_b, int64_t step) const {
    for (const TensorDiff& entry : result.tensors) {
      if (b->node(entry.b).name == name_b && entry.b.step == step && entry.b.slot == Slot{}) return entry;
    }
    ADD_FAILURE() << name_b << " was not listed";
    static const TensorDiff kNone;
    return kNone;
  }
  std::string a_of(const std::string& name_b) const { return a->node(at(name_b, 0).a).name; }
  std::vector<std::string> only(const Session& session, const std::vector<UnmatchedNode>& nodes) const {
    std::vector<std::string> out;
    for (const UnmatchedNode& node : nodes) out.push_back(session.graph(node.rank, node.graph)->node(node.node).name);
    return out;
  }

  std::unique_ptr<Session> a, b;
  DiffResult result;
};

TEST(DiffDumps, TwoReleasesTrainTheSameNetToTheSameNumbers) {
  const Compared both("lenet-2.7.1-ok", "lenet-2.0.0-ok");
  EXPECT_TRUE(both.result.is_equal());
  EXPECT_EQ(both.result.reshaped, 0u);
  // 2.0.0 has fused kernels: their value is that of the last operator they replace.
  EXPECT_EQ(both.a_of(kScope + "relu3-ReLU/MatMulBiasAddReluFusion-op84"), kScope + "relu3-ReLU/ReLU-op0");
  EXPECT_EQ(both.a_of(kScope + "relu4-ReLU/MatMulBiasAddReluFusion-op85"), kScope + "relu4-ReLU/ReLU-op0");
  EXPECT_EQ(both.a_of(kScope + "fc3-Dense/MatMulBiasAddFusion-op86"), kScope + "fc3-Dense/BiasAdd-op0");
  const TensorDiff& fused = both.at(kScope + "relu4-ReLU/MatMulBiasAddReluFusion-op85", 1);
  EXPECT_EQ(fused.state, DiffState::kClose);
  EXPECT_EQ(fused.measures.max_abs_error, 1.862645149230957e-09);
  EXPECT_EQ(coordinates(*fused.measures.max_abs_at, fused.shape_b), (std::vector<int64_t>{2, 20}));
  EXPECT_NEAR(fused.measures.mean_abs_error / 4.729372449219227e-11, 1, 1e-12);
  EXPECT_NEAR(fused.measures.relative_error() / 3.3090063111463776e-08, 1, 1e-12);
  EXPECT_EQ(both.at(kScope + "relu3-ReLU/MatMulBiasAddReluFusion-op84", 1).state, DiffState::kEqual);
  EXPECT_EQ(both.at(kScope + "conv1-Conv2d/Conv2D-op77", 1).state, DiffState::kEqual);
}

TEST(DiffDumps, ParametersOfOldReleasesAreMatchedThoughTheirLoadsBearTheSameNames) {
  const Compared both("lenet-2.7.1-ok", "lenet-1.5.0-ok");
  EXPECT_TRUE(both.result.is_equal());
  for (const char* name : {"conv1.weight", "conv2.weight", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"}) {
    EXPECT_EQ(both.a_of(name), name);
    EXPECT_TRUE(both.at(name, 1).compared()) << name;
  }
  EXPECT_EQ(both.only(*both.a, both.result.only_a), (std::vector<std::string>{"global_step", "Default/optimizer-Momentum/AssignAdd-op0"}));
}

TEST(DiffDumps, WhatNeitherSideHasIsNamed) {
  const auto eval = open_dump(path_of("lenet-2.7.1-eval")), two = open_dump(path_of("two-2.7.1"));
  ASSERT_TRUE(eval.ok() && two.ok());
  const auto message = [](Session& session, const DiffOptions& options) {
    const auto found = diff_sessions(session, session, options);
    return found ? "" : std::string(code_name(found.status().code())) + " " + found.status().message();
  };
  DiffOptions options;
  options.graph_a = 0;
  options.graph_b = 7;
  EXPECT_EQ(message(**eval, options), "not_found diff: B has no graph 7 (have 0-1)");
  options.graph_b = 1;
  options.steps_a = IntSet::of(5);
  EXPECT_EQ(message(**eval, options), "not_found diff: A has no step 5 of graph 0 (have 0-1)");
  options = {};
  options.ranks_b = IntSet::of(3);
  EXPECT_EQ(message(**eval, options), "not_found diff: B has no rank 3 (have 0)");
  options = {};
  options.graph_a = 0;
  options.graph_b = 2;
  EXPECT_EQ(message(**two, options), "not_found diff: no step of A is one of B: A has 0-2, B has 3 (pair two: --steps-a 0 --steps-b 3)");
}

// The dump without its graph files, or with a truncated one.
std::string without_graph(const test::TempDir& dir, const std::string& name, bool cut = false) {
  namespace fs = std::filesystem;
  const std::string copy = dir.file(name);
  test::copy_dump(path_of(name), copy);
  const std::string file = copy + "/rank_0/graphs/ms_output_trace_code_graph_0.pb";
  fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
  if (cut) fs::resize_file(file, fs::file_size(file) / 2);
  else fs::remove(file);
  return copy;
}

TEST(DiffDumps, WithoutGraphsNoNodeIsBlamed) {
  const test::TempDir dir;
  for (const bool cut : {false, true}) {
    const auto a = open_dump(without_graph(dir, "lenet-2.7.1-ok", cut)), b = open_dump(without_graph(dir, "lenet-2.0.0-ok", cut));
    ASSERT_TRUE(a.ok() && b.ok());
    const auto found = diff_sessions(**a, **b, {});
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->unknown_edges.size(), 2u);
    // The same weights and data: everything that can be paired without the graph is equal, and nothing is paired by number.
    EXPECT_TRUE(found->is_equal()) << (*b)->node(found->tensors[*found->first].b).name;
    EXPECT_GT(found->equal + found->close, 50u);
    EXPECT_TRUE(found->culprits.empty());
    EXPECT_FALSE(found->only_a.empty());
    std::filesystem::remove_all(dir.file("lenet-2.7.1-ok"));
    std::filesystem::remove_all(dir.file("lenet-2.0.0-ok"));
  }
}

TEST(DiffDumps, WithoutGraphsTheFirstDifferenceIsNamedAndNoCulprit) {
  const test::TempDir dir;
  const auto a = open_dump(without_graph(dir, "lenet-2.7.1-ok")), b = open_dump(path_of("lenet-2.7.1-lognan"));
  ASSERT_TRUE(a.ok() && b.ok());
  const auto found = diff_sessions(**a, **b, {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_TRUE(found->first);
  EXPECT_EQ((*b)->node(found->tensors[*found->first].b).name, kScope + "fc2-Dense/MatMul-op0");
  EXPECT_EQ(found->unknown_edges, (std::vector<std::string>{"A has no readable file of graph 0"}));
  EXPECT_TRUE(found->culprits.empty());
  for (const TensorDiff& entry : found->tensors) {
    EXPECT_FALSE(entry.amplification);
    EXPECT_TRUE(entry.role == DiffRole::kNone || entry.role == DiffRole::kUnknown);
  }
}

TEST(DiffDumps, NodesWithoutCounterpartAreListed) {
  const Compared both("lenet-2.7.1-ok", "lenet-2.0.0-ok");
  const auto only_a = both.only(*both.a, both.result.only_a);
  for (const char* name : {"fc1-Dense/MatMul-op0", "fc1-Dense/BiasAdd-op0", "fc2-Dense/MatMul-op0", "fc2-Dense/BiasAdd-op0",
                           "fc3-Dense/MatMul-op0", "flatten-Flatten/Flatten-op0"}) {
    EXPECT_NE(std::find(only_a.begin(), only_a.end(), kScope + name), only_a.end()) << name;
  }
  ASSERT_EQ(both.result.notes.size(), 1u);
  EXPECT_EQ(both.result.notes[0].text, "step 2: only in A");
}

TEST(DiffDumps, ThePlantedLogarithmIsNamedAsTheSource) {
  const Compared both("lenet-2.7.1-ok", "lenet-2.7.1-lognan");
  ASSERT_TRUE(both.result.first);
  const TensorDiff& first = both.result.tensors[*both.result.first];
  EXPECT_EQ(both.b->node(first.b).name, kScope + "fc2-Dense/MatMul-op0");
  EXPECT_EQ(first.measures.nan_mismatch, 128u);
  EXPECT_EQ(first.role, DiffRole::kVictim);
  EXPECT_EQ(first.worst_input, "input:0 " + kScope + "Log-op0 (only in B)");
  EXPECT_EQ(both.only(*both.b, both.result.only_b)[0], kScope + "Log-op0");
  EXPECT_TRUE(both.result.only_a.empty());
  EXPECT_EQ(both.at(kScope + "relu3-ReLU/ReLU-op0", 0).state, DiffState::kEqual);
  EXPECT_EQ(both.at(kScope + "relu4-ReLU/ReLU-op0", 0).measures.max_abs_error, 0.022070538252592087);
  EXPECT_NEAR(both.at(kScope + "fc3-Dense/BiasAdd-op0", 0).measures.relative_error(), 0.2180998610371593, 1e-13);
  EXPECT_TRUE(both.result.culprits.empty());
}

TEST(DiffDumps, TheOtherWayRoundItIsNamedToo) {
  const Compared both("lenet-2.7.1-lognan", "lenet-2.7.1-ok");
  ASSERT_TRUE(both.result.first);
  const TensorDiff& first = both.result.tensors[*both.result.first];
  EXPECT_EQ(both.b->node(first.b).name, kScope + "fc2-Dense/MatMul-op0");
  EXPECT_EQ(first.worst_input, "input:0 " + kScope + "relu3-ReLU/ReLU-op0, in A " + kScope + "Log-op0 (only in A)");
}

TEST(DiffDumps, ALearningRateAndABatchThatDifferCameInDifferent) {
  const Compared both("lenet-2.7.1-ok", "lenet-2.7.1-explode");
  ASSERT_TRUE(both.result.first);
  EXPECT_EQ(both.b->node(both.result.tensors[*both.result.first].b).name, "inputs0");
  EXPECT_EQ(both.result.tensors[*both.result.first].state, DiffState::kReshaped);
  std::vector<std::string> culprits;
  for (size_t i : both.result.culprits) culprits.push_back(both.b->node(both.result.tensors[i].b).name);
  EXPECT_EQ(culprits, (std::vector<std::string>{"inputs0", "inputs1", "learning_rate"}));
  EXPECT_EQ(both.at("learning_rate", 0).measures.max_abs_error, 29.949999999254942);
  ASSERT_EQ(both.result.notes.size(), 1u);
  EXPECT_EQ(both.result.notes[0].text, "steps 3-4: only in B");
}

TEST(DiffDumps, StepsOfOneDumpDifferByTheirData) {
  auto session = open_dump(path_of("lenet-2.7.1-ok"));
  ASSERT_TRUE(session.ok());
  DiffOptions options;
  options.steps_a = IntSet::of(1);
  options.steps_b = IntSet::of(2);
  const DiffResult result = diff_sessions(**session, **session, options).value();
  EXPECT_EQ((*session)->node(result.tensors[*result.first].b).name, "inputs0");
  EXPECT_EQ(result.uncompared, 0u);
}

TEST(DiffDumps, ReleasesThatWroteNothingIntoOptimizerOutputsAreNotBlamed) {
  const Compared both("lenet-1.5.0-ok", "lenet-2.0.0-ok");
  uint64_t unwritten = 0;
  for (const TensorDiff& entry : both.result.tensors) unwritten += entry.reason.find("uninitialised memory") != std::string::npos;
  EXPECT_EQ(unwritten, 16u);  // eight optimizers, two steps
}

TEST(DiffDumps, NorAreTheyWithoutTheGraph) {
  const test::TempDir dir;
  const auto a = open_dump(without_graph(dir, "lenet-1.5.0-ok")), b = open_dump(path_of("lenet-2.7.1-ok"));
  ASSERT_TRUE(a.ok() && b.ok());
  const auto found = diff_sessions(**a, **b, {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_GT(found->uncompared, 0u);
  // The same net, weights and data: nothing differs.
  EXPECT_TRUE(found->is_equal()) << (*b)->node(found->tensors[*found->first].b).name;
}

TEST(DiffDumps, PrintedLossesSayThatTheForwardPassDiffers) {
  const auto read = [](const std::string& name) {
    std::ifstream file(path_of(name) + "/printed.txt");
    std::ostringstream text;
    text << file.rdbuf();
    return parse_series(text.str(), name).value();
  };
  const Series ok = read("lenet-2.7.1-ok"), old = read("lenet-2.0.0-ok"), explode = read("lenet-2.7.1-explode"),
               lognan = read("lenet-2.7.1-lognan");
  EXPECT_EQ(compare_series(ok, old).value().verdict, SeriesVerdict::kClose);
  EXPECT_EQ(compare_series(ok, old).value().only_a, std::vector<int64_t>{2});
  EXPECT_EQ(compare_series(explode, ok).value().verdict, SeriesVerdict::kForward);
  // The planted fault is invisible here: 2.3046 against 2.3060 is less than 1 in 1000.
  EXPECT_EQ(compare_series(lognan, ok).value().verdict, SeriesVerdict::kClose);
  EXPECT_NEAR(compare_series(lognan, ok).value().max_abs_error, 0.00138903, 1e-8);
}

}  // namespace
}  // namespace msdbg
