// Comparing recorded calls: paired by the lines of the program, judged by checksums and statistics.
#include "msdbg/diff.h"

#include "msprobe/msprobe_support.h"

namespace msdbg::testing {
namespace {

using Words = std::vector<std::string>;

class CallDiff : public ::testing::Test {
 protected:
  void run(const std::string& a, const std::string& b, const std::string& step = "") {
    a_ = open_real(a);
    b_ = open_real(b);
    DiffOptions options;
    if (!step.empty()) options.steps_a = options.steps_b = *IntSet::parse(step);
    auto result = diff_sessions(*a_, *b_, options);
    ASSERT_TRUE(result.ok()) << result.status().message();
    result_ = std::move(*result);
  }
  const TensorDiff& first() const { return result_.tensors[*result_.first]; }
  static Words names(Session& session, const std::vector<UnmatchedNode>& nodes) {
    Words out;
    for (const UnmatchedNode& each : nodes) out.push_back(session.graph(each.rank, each.graph)->node(each.node).name);
    return out;
  }

  std::unique_ptr<Session> a_, b_;
  DiffResult result_;
};

TEST_F(CallDiff, AnotherArgumentIsTheCulprit) {
  run("26.2-torch-gpt-scale", "26.2-torch-gpt-good", "0");
  ASSERT_TRUE(result_.first);
  EXPECT_EQ(b_->tensor_name(first().b), "Tensor.__truediv__.0.forward:output:0");
  EXPECT_EQ(first().role, DiffRole::kCulprit);
  EXPECT_EQ(first().argument, "input_args.1 is 4 in A, 2.8284271247461903 in B");
  EXPECT_EQ(result_.culprits.size(), 1u);
  EXPECT_EQ(result_.by_statistics, result_.close + result_.different);
  EXPECT_TRUE(result_.only_a.empty() && result_.only_b.empty());
}

TEST_F(CallDiff, OneCallMoreIsOnlyThatCall) {
  run("26.2-torch-lenet-extrarelu", "26.2-torch-lenet-good");
  EXPECT_EQ(result_.verdict(), "equal");
  EXPECT_EQ(names(*a_, result_.only_a), Words{"Functional.relu.0.forward"});
  EXPECT_EQ(result_.only_b.size(), 0u);
  EXPECT_EQ(result_.different + result_.reshaped, 0u);
  EXPECT_GT(result_.close, 300u);
}

TEST_F(CallDiff, ChecksumsShowWhichDataDiffers) {
  run("26.2-torch-lenet-lognan-md5", "26.2-torch-lenet-good-md5", "0:1");
  ASSERT_TRUE(result_.first);
  EXPECT_EQ(b_->tensor_name(first().b), "Tensor.mean.0.forward:input:0");
  EXPECT_EQ(first().b.step, 1);
  EXPECT_EQ(first().role, DiffRole::kCulprit);
  EXPECT_EQ(first().evidence, DiffEvidence::kChecksum);
  EXPECT_EQ(result_.reshaped, 0u);
  // In step 0 only the inputs of in-place calls have other checksums, which is a race of the tool; their statistics agree.
  for (const TensorDiff& entry : result_.tensors) {
    if (entry.b.step != 0) continue;
    EXPECT_NE(entry.state, DiffState::kDifferent) << b_->tensor_name(entry.b);
    if (entry.state == DiffState::kClose) {
      EXPECT_EQ(entry.b.slot.io, Io::kInput) << b_->tensor_name(entry.b);
      EXPECT_TRUE(b_->node(entry.b).op->ends_with("_")) << b_->tensor_name(entry.b);
    }
  }
}

TEST_F(CallDiff, OlderReleasesArePairedByTheLinesToo) {
  run("8.3-torch-lenet-lognan", "26.2-torch-lenet-good", "0");
  EXPECT_EQ(result_.verdict(), "equal");
  for (const std::string& name : names(*b_, result_.only_b)) EXPECT_NE(name.find("parameters_grad"), std::string::npos) << name;
}

// A has modules only; the calls between them are on one side.
TEST_F(CallDiff, ModulesAreComparedWithModules) {
  run("26.2-torch-lenet-lognan-L0", "26.2-torch-lenet-lognan");
  EXPECT_EQ(result_.verdict(), "equal");
  EXPECT_TRUE(result_.only_a.empty());
}

// Of a model with the same weights and data in both frameworks.
TEST_F(CallDiff, PyTorchAgainstMindSporeByTheNamesOfModules) {
  run("26.2-torch-lenet-ms", "26.2-ms-lenet-lognan", "0");
  EXPECT_EQ(result_.different + result_.reshaped, 0u);
  EXPECT_GT(result_.close, 50u);
  // What PyTorch records as gradient of cross_entropy is that of the log of softmax.
  for (const TensorDiff& entry : result_.tensors) EXPECT_NE(b_->node(entry.b).role, CallRole::kBackward) << b_->tensor_name(entry.b);
}

TEST_F(CallDiff, AnotherArgumentInOneFrameworkIsTheCulprit) {
  run("26.2-torch-lenet-ms-scale", "26.2-ms-lenet-lognan", "0");
  ASSERT_TRUE(result_.first);
  EXPECT_EQ(b_->tensor_name(first().b), "Tensor.__rmul__.0.forward:output:0");
  EXPECT_EQ(first().argument, "input_args.1 is 0.2 in A, 0.1 in B");
  EXPECT_EQ(result_.culprits.size(), 1u);
}

TEST_F(CallDiff, NothingIsClaimedWithoutAnyFact) {
  run("26.2-torch-lenet-xor", "26.2-torch-lenet-lognan");
  EXPECT_EQ(result_.verdict(), "nothing compared");
  EXPECT_GT(result_.uncompared, 0u);
}

}  // namespace
}  // namespace msdbg::testing
