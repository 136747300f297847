#include <gtest/gtest.h>

#include "graph/graph_text.h"

namespace msdbg {
namespace {

// The result of the name rules alone for a node without neighbours.
bool is(const std::string& name, const std::string& op, Category category) {
  const GraphPtr graph = graph_from_text(name + " " + op + "\n");
  return in_category(graph->node(0), category);
}

TEST(Category, WeightsGoByTheirSuffix) {
  EXPECT_TRUE(is("Default/mock/node_name.bias", "Parameter", Category::kWeight));
  EXPECT_TRUE(is("fc1.WEIGHT", "Parameter", Category::kWeight));
  EXPECT_FALSE(is("fc1.weight", "Load", Category::kWeight));
  EXPECT_FALSE(is("bn1.gamma", "Parameter", Category::kWeight));
  EXPECT_FALSE(is("Gradients/mock/node_name.bias", "Parameter", Category::kWeight));
  EXPECT_FALSE(is("Default/optimizer-mock/node_name.bias", "Parameter", Category::kWeight));
  EXPECT_TRUE(is("Gradients/mock/node_name.bias", "Parameter", Category::kParameter));
}

TEST(Category, GradientsAreOperatorsBelowGradients) {
  EXPECT_TRUE(is("Gradients/mock-mock/x", "ReluGrad", Category::kGradient));
  EXPECT_TRUE(is("gradients/x/Cast-op3", "Cast", Category::kGradient));
  EXPECT_FALSE(is("Gradients/mock/node_name.bias", "Parameter", Category::kGradient));
  EXPECT_FALSE(is("Gradients/mock/data-1", "Const", Category::kGradient));
  EXPECT_FALSE(is("GradientsOfMine/x", "Mul", Category::kGradient));
  EXPECT_FALSE(is("Default/x/ReluGrad-op1", "ReluGrad", Category::kGradient));
  EXPECT_FALSE(is("Gradients/x/Depend-op1", "Depend", Category::kGradient)) << "it has no value of its own";
}

TEST(Category, ActivationsGoByTypeAndAreNeverGradients) {
  EXPECT_TRUE(is("Default/mock/relu_ReLU-op11", "ReLU", Category::kActivation));
  EXPECT_TRUE(is("Default/x", "LogSoftmax", Category::kActivation));
  EXPECT_TRUE(is("Default/fc1-Dense/x", "MatMulBiasAddReluFusion", Category::kActivation));
  EXPECT_TRUE(is("Default/bn1/x", "BatchNormWithAddAndActivation", Category::kActivation));
  EXPECT_FALSE(is("Default/fc1-Dense/x", "MatMulBiasAddFusion", Category::kActivation));
  EXPECT_FALSE(is("Gradients/mock/relu_ReLU-op11", "ReLU", Category::kActivation));
  EXPECT_FALSE(is("Default/x", "MatMul", Category::kActivation));
  EXPECT_FALSE(is("relu", "Parameter", Category::kActivation));
}

TEST(Category, TheLossIsFoundByScopeOrType) {
  EXPECT_TRUE(is("Default/_loss_fn-MyLoss/ReduceMean-op1", "ReduceMean", Category::kLoss));
  EXPECT_TRUE(is("Default/x", "SparseSoftmaxCrossEntropyWithLogits", Category::kLoss));
  EXPECT_TRUE(is("Default/x", "NLLLoss", Category::kLoss));
  EXPECT_FALSE(is("Default/x", "NLLLossGrad", Category::kLoss));
  EXPECT_FALSE(is("Gradients/_loss_fn-MyLoss/x", "SoftmaxCrossEntropyWithLogits", Category::kLoss));
}

TEST(Category, AnOptimizerMakesItsFirstInputTrainable) {
  const GraphPtr graph = graph_from_text(
      "bn.gamma Parameter\nmoments.bn.gamma Parameter\nmy_rate Parameter\ng Mul\n"
      "Default/opt-Momentum/ApplyMomentum-op1 ApplyMomentum in=bn.gamma,moments.bn.gamma,my_rate,g\n");
  const Node& gamma = *graph->find("bn.gamma");
  EXPECT_TRUE(gamma.trainable);
  EXPECT_TRUE(in_category(gamma, Category::kWeight)) << "no .weight in its name, but it is trained";
  EXPECT_FALSE(in_category(gamma, Category::kOptimizer));
  for (const char* state : {"moments.bn.gamma", "my_rate"}) {
    EXPECT_FALSE(graph->find(state)->trainable) << state;
    EXPECT_TRUE(graph->find(state)->optimizer_state) << state;
    EXPECT_TRUE(in_category(*graph->find(state), Category::kOptimizer)) << state;
    EXPECT_FALSE(in_category(*graph->find(state), Category::kWeight)) << state;
  }
  EXPECT_TRUE(in_category(*graph->find("Default/opt-Momentum/ApplyMomentum-op1"), Category::kOptimizer));
}

TEST(Category, MomentsEndingInWeightAreOptimizerState) {
  EXPECT_FALSE(is("moments.conv1.weight", "Parameter", Category::kWeight));
  EXPECT_TRUE(is("moments.conv1.weight", "Parameter", Category::kOptimizer));
  EXPECT_TRUE(is("global_step", "Parameter", Category::kOptimizer));
}

TEST(Category, AnUnknownOptimizerIsKnownByItsScope) {
  const GraphPtr graph = graph_from_text(
      "w Parameter\nglobal_step Parameter\nx Parameter\nl Load in=x\n"
      "Default/optimizer-Mine/MyUpdate-op1 MyUpdate in=w\n"
      "Default/optimizer-Mine/AssignAdd-op1 AssignAdd in=global_step\n"
      "Default/optimizer-Mine/Mul-op1 Mul in=l\n");
  EXPECT_TRUE(graph->find("w")->trainable);
  EXPECT_FALSE(graph->find("global_step")->trainable);
  EXPECT_FALSE(graph->find("x")->trainable) << "read through a Load, so not updated in place";
  EXPECT_TRUE(graph->find("x")->optimizer_state);
}

TEST(Category, AParameterThatTheNetworkReadsIsNoOptimizerState) {
  const GraphPtr graph = graph_from_text(
      "scale Parameter\nDefault/Mul-op1 Mul in=scale\nDefault/optimizer-Mine/Mul-op2 Mul in=Default/Mul-op1,scale\n");
  EXPECT_FALSE(graph->find("scale")->optimizer_state);
  EXPECT_FALSE(graph->find("scale")->trainable);
}

TEST(Category, WhatIsKeptBesideATrainedParameterIsOptimizerState) {
  const GraphPtr graph = graph_from_text(
      "accum_grad.fc.weight Parameter\nfc.weight Parameter\nsecond.head.weight Parameter\nhead.weight Parameter\ng Mul\n"
      "Default/AssignAdd-op1 AssignAdd in=accum_grad.fc.weight,g\nDefault/MatMul-op1 MatMul in=second.head.weight,head.weight\n"
      "Default/optimizer-Momentum/ApplyMomentum-op1 ApplyMomentum in=fc.weight,g\n");
  EXPECT_TRUE(in_category(*graph->find("accum_grad.fc.weight"), Category::kOptimizer));
  EXPECT_FALSE(in_category(*graph->find("accum_grad.fc.weight"), Category::kWeight));
  EXPECT_TRUE(in_category(*graph->find("fc.weight"), Category::kWeight));
  EXPECT_TRUE(in_category(*graph->find("second.head.weight"), Category::kWeight)) << "neither is trained";
}

TEST(Category, FusedOptimizersPutTheWeightFurtherBack) {
  const GraphPtr graph = graph_from_text("decay Parameter\nw Parameter\nf FusedWeightApplyMomentum in=decay,w\n");
  EXPECT_FALSE(graph->find("decay")->trainable);
  EXPECT_TRUE(graph->find("w")->trainable);
}

TEST(Category, WhatTakesAWeightIsFromWeights) {
  const GraphPtr graph = graph_from_text(
      "fc.weight Parameter\n"
      "x Parameter\n"
      "Default/Load-op0 Load in=fc.weight\n"
      "Default/mask Less in=x\n"
      "Default/MatMul-op0 MatMul in=x,Default/Load-op0\n"
      "Default/add Add in=Default/MatMul-op0,Default/mask\n"
      "Default/zeros zeros\n"
      "Default/slice slice in=Default/zeros\n"
      "Default/MatMul-op1 MatMul in=Default/slice,fc.weight\n"  // the first state is no layer's result
      "Default/tanh tanh in=Default/MatMul-op1\n"
      "Default/randn randn\n"
      "Default/MatMul-op2 MatMul in=Default/randn,fc.weight\n"  // noise is data
      "Default/Gather-op0 Gather in=fc.weight\n");              // so is what nobody recorded
  std::vector<std::string> found;
  for (const Node& node : graph->nodes()) {
    if (graph->in(node.id, Category::kFromWeights)) found.push_back(node.name);
  }
  EXPECT_EQ(found, (std::vector<std::string>{"Default/MatMul-op0", "Default/add", "Default/tanh", "Default/MatMul-op2",
                                             "Default/Gather-op0"}));
}

TEST(Category, GradientsBelowAGradScalerAreScaled) {
  const std::string gradients = "Default/mul mul\nGradients/Default/mul mul in=Default/mul\n";
  for (const bool scaler : {false, true}) {
    const GraphPtr graph =
        graph_from_text(gradients + (scaler ? "Default/check _amp_foreach_non_finite_check_and_unscale_ in=Gradients/Default/mul\n" : ""));
    EXPECT_EQ(graph->in(graph->find("Gradients/Default/mul")->id, Category::kScaled), scaler);
    EXPECT_FALSE(graph->in(graph->find("Default/mul")->id, Category::kScaled));
  }
}

TEST(Category, GradientsAreScaledWhereMindsporeSearchesALossScale) {
  const auto scaled = [](const std::string& scale, const std::string& update) {
    const GraphPtr graph = graph_from_text(
        "w Parameter\n" + scale + " Parameter\n"
        "Default/MatMul-op0 MatMul in=w\n"
        "Gradients/Default/MatMul-op1 MatMul in=Default/MatMul-op0\n"
        "Default/Mul-op0 Mul in=Gradients/Default/MatMul-op1," + scale + "\n"
        "Default/_grad_unscale_map/Mul-op1 Mul in=" + scale + "\n"
        "Default/Select-op0 Select in=Default/MatMul-op0\n"
        "Default/" + update + "-op0 " + update + " in=" + scale + ",Default/Select-op0\n"
        "Default/optimizer-Momentum/ApplyMomentum-op0 ApplyMomentum in=w,Default/Mul-op0\n"
        "Default/Cast-op0 Cast in=Default/optimizer-Momentum/ApplyMomentum-op0\n");
    std::vector<std::string> found;
    for (const Node& node : graph->nodes()) {
      if (graph->in(node.id, Category::kScaled)) found.push_back(node.name);
    }
    return found;
  };
  const std::vector<std::string> all = {"Gradients/Default/MatMul-op1", "Default/Mul-op0", "Default/_grad_unscale_map/Mul-op1"};
  for (const char* scale : {"scale_value", "network.scale_sense", "loss_scale"}) EXPECT_EQ(scaled(scale, "Assign"), all) << scale;
  EXPECT_EQ(scaled("scale_value", "Mul"), std::vector<std::string>()) << "never changes";
  EXPECT_EQ(scaled("counter", "Assign"), std::vector<std::string>()) << "no loss scale";
}

TEST(Category, OperatorsThatDrawRandomNumbers) {
  for (const char* op : {"Dropout", "DropoutGenMask", "StandardNormal", "randn", "normal_", "rand_like", "native_dropout", "rrelu_with_noise"})
    EXPECT_TRUE(draws_random_numbers(op)) << op;
  for (const char* op : {"DropoutGrad", "native_dropout_backward", "BatchNormalization", "MatMul", "normalize", ""})
    EXPECT_FALSE(draws_random_numbers(op)) << op;
}

}  // namespace
}  // namespace msdbg
