// Infinities that the program puts in before a softmax: no finding, until something makes more of them.
#include "live/agent_fixture.h"
#include "msdbg/analysis.h"

namespace msdbg::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Two = std::array<float, 2>;

class Masks : public LiveAgent {
 protected:
  struct Operator {
    std::string name, op, input;
    std::vector<float> value;
    std::string infinite = {};  ///< the value of its argument
    bool reads_weight = true;
    std::vector<float> table = {};  ///< a second output
  };
  /// An operator that reads no weight; without `input`, nothing at all.
  static Operator unweighted(std::string name, std::string op, std::string input, Two value) {
    return {std::move(name), std::move(op), std::move(input), {value.begin(), value.end()}, {}, false};
  }

  /// One step of these operators, watched for NaN and Inf unless another condition is named.
  RunResult run_watched(std::vector<Operator> operators, const Two& data, const std::string& when = "TO", const std::string& on = "**") {
    data_ = data;
    agent::GraphDescription graph = parameters();
    graph.parameters.push_back({"data_0", DType::kFloat32, {2}, data_.data(), false});
    graph.parameters.push_back({"limit", DType::kFloat32, {}, &limit_, true});
    graph.constants.push_back({"Default--data-2", DType::kFloat32, {}, nullptr});
    for (const Operator& each : operators) {
      agent::NodeDescription node;
      node.full_name = each.name;
      node.op = each.op;
      if (each.reads_weight) node.inputs.push_back({"fc1.weight", 0});
      if (!each.input.empty()) node.inputs.push_back({each.input, 0});
      node.outputs = {{DType::kFloat32, each.value.size() == 1 ? Shape{} : Shape{2}}};
      if (!each.table.empty()) node.outputs.push_back({DType::kFloat32, Shape{2}});
      if (!each.infinite.empty()) node.attributes = {{"args.2", each.infinite}};
      graph.nodes.push_back(node);
    }
    start(graph, 1, [operators = std::move(operators)](agent::Agent& agent, int) {
      for (uint32_t node = 0; node < operators.size(); ++node) {
        const std::vector<float>& table = operators[node].table;
        agent.publish(node, 0, operators[node].value.data(), operators[node].value.size() * sizeof(float));
        if (!table.empty()) agent.publish(node, 1, table.data(), table.size() * sizeof(float));
        agent.node_done(node);
      }
    });
    const Watchpoint all = watch(on, when, 1);
    EXPECT_TRUE(d_.session->set_watchpoints({&all, 1}).ok());
    return run(RunKind::kStep);
  }
  /// The operator at which it was held; "" if it ran to its end.
  std::string hit_of(std::vector<Operator> operators, const Two& data = {1, 2}) {
    const RunResult result = run_watched(std::move(operators), data);
    const std::string name = result.check.hits.empty() ? "" : d_.session->node(result.check.hits.front().tensor).name;
    EXPECT_EQ(result.reason == StopReason::kHit, !name.empty());
    end();
    return name;
  }

  Two data_{};
  float limit_ = 0;
  const std::string kMask = "Default/masked_fill-op0", kSoftmax = "Default/softmax-op0";
};

/// What makes the mask is not watched, and so not kept.
TEST_F(Masks, AnOperatorBehindAMaskThatNobodyWatches) {
  const std::vector<Operator> masked = {{"Default/scalar_tensor-op0", "scalar_tensor", "data_0", {-kInfinity}, "-Infinity"},
                                        {"Default/where-op0", "where", "Default/scalar_tensor-op0", {0, -kInfinity}},
                                        {"Default/expand-op0", "expand", "Default/where-op0", {0, -kInfinity}},
                                        {"Default/add-op0", "add", "Default/expand-op0", {1, -kInfinity}}};
  EXPECT_EQ(run_watched(masked, {1, 2}, "TO", "op:add").reason, StopReason::kDone);
  end();
}

/// Where no path of the labels can be.
TEST_F(Masks, TheTableOfCtc) {
  const auto ctc = [](float loss, std::string op) {
    return Operator{"Default/loss-op0", std::move(op), "data_0", {loss}, {}, true, {-1, -kInfinity}};
  };
  EXPECT_EQ(hit_of({ctc(2, "_ctc_loss")}), "");
  EXPECT_EQ(hit_of({ctc(2, "CTCLossV2")}), "");
  EXPECT_EQ(hit_of({ctc(2, "other")}), "Default/loss-op0");
  EXPECT_EQ(hit_of({ctc(kInfinity, "_ctc_loss")}), "Default/loss-op0");
}

/// Behind the rows of shorter sequences.
TEST_F(Masks, TheLogarithmsOfSumsOfAttention) {
  const auto attention = [](float out, float sum) {
    return Operator{"Default/attention-op0", "_efficient_attention_forward", "data_0", {out}, {}, true, {1, sum}};
  };
  EXPECT_EQ(hit_of({attention(2, kInfinity)}), "");
  EXPECT_EQ(hit_of({attention(kInfinity, kInfinity)}), "Default/attention-op0");
}

TEST_F(Masks, AnInfinityThatNobodyPutInIsFoundBehindWhatIsNotWatched) {
  const std::vector<Operator> computed = {{"Default/log-op0", "log", "data_0", {0, -kInfinity}},
                                          {"Default/where-op0", "where", "Default/log-op0", {0, -kInfinity}},
                                          {"Default/expand-op0", "expand", "Default/where-op0", {0, -kInfinity}},
                                          {"Default/add-op0", "add", "Default/expand-op0", {1, -kInfinity}}};
  EXPECT_EQ(run_watched(computed, {1, 2}, "TO", "op:add").reason, StopReason::kHit);
  end();
}

/// A mask that the compiler folded into a constant, which is in no dump.
TEST_F(Masks, AConstantThatIsAdded) {
  const std::string add = "Default/Add-op0";
  EXPECT_EQ(hit_of({{add, "Add", "Default--data-2", {1, -kInfinity}}}), "");
  EXPECT_EQ(hit_of({{add, "Add", "Default--data-2", {1, kInfinity}}}), add);
  EXPECT_EQ(hit_of({{"Default/Mul-op0", "Mul", "Default--data-2", {1, -kInfinity}}}), "Default/Mul-op0");
}

TEST_F(Masks, ASoftmaxAbsorbsThem) {
  EXPECT_EQ(hit_of({{kMask, "masked_fill", "data_0", {1, -kInfinity}, "-Infinity"},
                    {"Default/div-op0", "div", kMask, {0.5, -kInfinity}},
                    {kSoftmax, "softmax", "Default/div-op0", {1, 0}}}),
            "");
}

// "not checked: Inf in the tensor" would hold a healthy training in every step.
TEST_F(Masks, AnotherConditionLeavesThemOut) {
  const std::vector<Operator> masked = {{kMask, "masked_fill", "data_0", {0, -kInfinity}, "-Infinity"}};
  RunResult result = run_watched(masked, {1, 2}, "TL max_gt=10");
  EXPECT_EQ(result.reason, StopReason::kDone);
  EXPECT_TRUE(result.check.not_checked.empty());
  end();
  d_.session->take_events();
  result = run_watched({{"Default/add-op0", "add", "data_0", {0, -kInfinity}}}, {1, 2}, "TL max_gt=10");
  EXPECT_EQ(result.reason, StopReason::kNotChecked);  // nobody put that one in
}

TEST_F(Masks, ARowThatIsMaskedWhollyIsNaN) {
  EXPECT_EQ(hit_of({{kMask, "masked_fill", "data_0", {-kInfinity, -kInfinity}, "-Infinity"}, {kSoftmax, "softmax", kMask, {kNaN, kNaN}}}),
            kSoftmax);
}

TEST_F(Masks, TheOriginIsWhatMadeNaNOfThem) {
  run_watched({{"Default/add-op0", "add", "data_0", {1, -kInfinity}},
               {kMask, "masked_fill", "Default/add-op0", {-kInfinity, -kInfinity}, "-Infinity"},
               {kSoftmax, "softmax", kMask, {kNaN, kNaN}}},
              {0, -kInfinity});
  const Result<OriginResult> found = find_origins(*d_.session, {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->steps.size(), 1u);
  EXPECT_EQ(d_.session->node(found->steps[0].origins[0].tensor).name, kSoftmax);
  EXPECT_EQ(found->steps[0].origins.size(), 1u);
  EXPECT_EQ(found->steps[0].put_in.size(), 1u);
  end();
}

TEST_F(Masks, TheNumberThatAMaskIsMadeOfIsNoOrigin) {
  const std::string number = "Default/scalar_tensor-op0";
  run_watched({{number, "scalar_tensor", "Default--data-2", {-kInfinity}, "-Infinity"},
               {kMask, "where", number, {-kInfinity, -kInfinity}},
               {kSoftmax, "softmax", kMask, {kNaN, kNaN}}},
              {0, 1});
  const Result<OriginResult> found = find_origins(*d_.session, {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->steps.size(), 1u);
  ASSERT_EQ(found->steps[0].origins.size(), 1u);
  EXPECT_EQ(d_.session->node(found->steps[0].origins[0].tensor).name, kSoftmax);
  end();
}

/// As the mask of a decoder, or the logarithm of distances.
TEST_F(Masks, TheLogarithmOfConstants) {
  const Operator ones = unweighted("Default/ones-op0", "ones", "", {1, 1}), lower = unweighted("Default/tril-op0", "tril", ones.name, {1, 0});
  const std::string log = "Default/log-op0", inverse = "Default/reciprocal-op0";
  EXPECT_EQ(hit_of({ones, lower, unweighted(log, "log", lower.name, {0, -kInfinity}), {kSoftmax, "softmax", log, {1, 0}}}), "");
  // A division by zero makes no mask, nor does what masks everything.
  EXPECT_EQ(hit_of({ones, lower, unweighted(inverse, "reciprocal", lower.name, {1, kInfinity})}), inverse);
  EXPECT_EQ(hit_of({ones, lower, unweighted(log, "log", lower.name, {-kInfinity, -kInfinity})}), log);
  // Of data, or of an operator whose inputs nobody knows.
  EXPECT_EQ(hit_of({ones, unweighted(log, "log", "data_0", {0, -kInfinity})}), log);
  EXPECT_EQ(hit_of({unweighted("Default/rand-op0", "rand", "", {1, 0}), unweighted(log, "log", "Default/rand-op0", {0, -kInfinity})}), log);
}

TEST_F(Masks, TheOriginPassesByTheLogarithmOfConstants) {
  const Operator ones = unweighted("Default/ones-op0", "ones", "", {1, 0});
  const std::string log = "Default/log-op0";
  run_watched({ones, unweighted(log, "log", ones.name, {0, -kInfinity}), {kSoftmax, "softmax", log, {kNaN, kNaN}}}, {1, 2});
  const Result<OriginResult> found = find_origins(*d_.session, {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->steps.size(), 1u);
  ASSERT_EQ(found->steps[0].origins.size(), 1u);
  EXPECT_EQ(d_.session->node(found->steps[0].origins[0].tensor).name, kSoftmax);
  ASSERT_EQ(found->steps[0].put_in.size(), 1u);
  EXPECT_EQ(found->steps[0].put_in[0].argument, "computed from constants");
  end();
}

TEST_F(Masks, ALimitMayBeInfinite) {
  limit_ = kInfinity;
  EXPECT_EQ(hit_of({{"Default/add-op0", "add", "data_0", {1, 2}}}), "");
  EXPECT_EQ(hit_of({{"Default/clamp-op0", "clamp", "limit", {1, 2}}}), "");
  EXPECT_EQ(hit_of({{"Default/exp-op0", "exp", "limit", {1, 2}}}), "limit");
}

TEST_F(Masks, ANumberMadeOfThemIsAHit) {
  EXPECT_EQ(hit_of({{kMask, "masked_fill", "data_0", {1, -kInfinity}, "-Infinity"}, {"Default/sum-op0", "sum", kMask, {-kInfinity}}}),
            "Default/sum-op0");
}

TEST_F(Masks, AGradientIsNeverMasked) {
  const std::string grad = "Gradients/Default/Grad_softmax/mul-op0";
  EXPECT_EQ(hit_of({{kMask, "masked_fill", "data_0", {1, -kInfinity}, "-Infinity"}, {grad, "mul", kMask, {1, -kInfinity}}}), grad);
}

TEST_F(Masks, WithoutAnArgumentItIsAnOverflow) {
  EXPECT_EQ(hit_of({{kMask, "masked_fill", "data_0", {1, -kInfinity}}}), kMask);
}

// MindSpore does not dump constants: what only copies has it from there.
TEST_F(Masks, AConstantThatNobodyRecorded) {
  EXPECT_EQ(hit_of({{kMask, "MaskedFill", "Default--data-2", {1, -kInfinity}}, {kSoftmax, "softmax", kMask, {1, 0}}}), "");
}

TEST_F(Masks, AnotherBadInputIsAHit) {
  EXPECT_EQ(hit_of({{kMask, "masked_fill", "data_0", {1, -kInfinity}, "-Infinity"}}, {1, kInfinity}), kMask);
}

TEST_F(Masks, ABufferOfZerosAndInfinities) {
  EXPECT_EQ(hit_of({{"Default/add-op0", "add", "data_0", {1, -kInfinity}}, {kSoftmax, "softmax", "Default/add-op0", {1, 0}}}, {0, -kInfinity}),
            "");
}

}  // namespace
}  // namespace msdbg::test
