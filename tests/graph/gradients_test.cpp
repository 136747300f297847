// Which value is the gradient of which parameter, in the forms that optimizers have.
#include "msdbg/gradients.h"

#include <gtest/gtest.h>

#include "graph/graph_text.h"

namespace msdbg {
namespace {

std::string gradient_text(const Graph& graph, const char* parameter) {
  const auto found = gradient_of(graph, graph.find(parameter)->id);
  if (!found) return "none";
  const std::string producer = found->producer.node == kNoNode ? "?" : graph.node(found->producer.node).name;
  return producer + ":" + std::to_string(found->producer.slot) + " -> " + graph.node(found->optimizer).name + ":" +
         std::to_string(found->slot);
}

constexpr const char* kMomentum = R"(
w Parameter
b Parameter
moments.w Parameter
learning_rate Parameter
momentum Parameter
Default/MatMul-op0 MatMul in=w
Gradients/Default/Grad-op1 LayerNormGrad in=Default/MatMul-op0 out=3
Default/Mul-op2 Mul in=Gradients/Default/Grad-op1:1
Default/optimizer-Momentum/ApplyMomentum-op3 ApplyMomentum in=w,moments.w,learning_rate,Default/Mul-op2,momentum
Default/optimizer-Momentum/SGD-op4 SGD in=b,Gradients/Default/Grad-op1:2,learning_rate,momentum
)";

TEST(Gradients, AreInputsOfTheOptimizerThatNoParameterIs) {
  const GraphPtr graph = graph_from_text(kMomentum);
  EXPECT_EQ(gradient_text(*graph, "w"), "Default/Mul-op2:0 -> Default/optimizer-Momentum/ApplyMomentum-op3:3");
  EXPECT_EQ(gradient_text(*graph, "b"), "Gradients/Default/Grad-op1:2 -> Default/optimizer-Momentum/SGD-op4:1");
  EXPECT_EQ(gradient_text(*graph, "moments.w"), "none");
  EXPECT_EQ(gradient_text(*graph, "learning_rate"), "none");
}

TEST(Gradients, AreThoseThatTheProgramTells) {
  GraphBuilder builder(0, 0);
  for (const char* name : {"lstm.weight_ih_l0", "mask"}) {
    Node parameter;
    parameter.kind = NodeKind::kParameter;
    parameter.op = "Parameter";
    parameter.name = name;
    builder.add(std::move(parameter));
  }
  Node gradient;
  gradient.op = "Gradient";
  gradient.name = "Gradients/Default/network-Net/lstm-LSTM/Grad_weight_ih_l0/Gradient-op0";
  gradient.outputs = std::vector<OutputType>(1);
  gradient.attributes = std::vector<Attribute>{{"gradient_of", "lstm.weight_ih_l0"}};
  const NodeId told = builder.add(std::move(gradient));
  const GraphPtr graph = builder.build();
  const NodeId weight = graph->find("lstm.weight_ih_l0")->id;
  EXPECT_TRUE(graph->node(weight).trainable);
  EXPECT_TRUE(graph->in(weight, Category::kWeight));
  EXPECT_FALSE(graph->in(graph->find("mask")->id, Category::kWeight));
  ASSERT_TRUE(gradient_of(*graph, weight));
  EXPECT_EQ(gradient_of(*graph, weight)->producer.node, told);
  EXPECT_EQ(parameter_of_gradient(*graph, told, 0), weight);
}

TEST(Gradients, LeadBackToTheirParameterByTheOutputThatIsTaken) {
  const GraphPtr graph = graph_from_text(kMomentum);
  const NodeId many = graph->find("Gradients/Default/Grad-op1")->id;
  EXPECT_EQ(parameter_of_gradient(*graph, many, 2), graph->find("b")->id);
  EXPECT_EQ(parameter_of_gradient(*graph, many, 1), std::nullopt);  // goes through Mul first
  EXPECT_EQ(parameter_of_gradient(*graph, many, 0), std::nullopt);
  EXPECT_EQ(parameter_of_gradient(*graph, graph->find("Default/Mul-op2")->id, 0), graph->find("w")->id);
  EXPECT_EQ(parameter_of_gradient(*graph, graph->find("Default/MatMul-op0")->id, 0), std::nullopt);
}

TEST(Gradients, OfAnOptimizerInsideAConditionAreParametersOfItsGraph) {
  const GraphPtr graph = graph_from_text(R"(
w Parameter
moments.w Parameter
Parameter_7 Parameter
Default/optimizer-Momentum/ApplyMomentum-op3 ApplyMomentum in=w,moments.w,learning_rate,Parameter_7
)");
  EXPECT_EQ(gradient_text(*graph, "w"), "Parameter_7:0 -> Default/optimizer-Momentum/ApplyMomentum-op3:3");
}

constexpr const char* kComposite = R"(
w Parameter
step_size.w Parameter
Default/MatMul-op0 MatMul in=w
Gradients/Default/MatMul-op1 MatMul in=Default/MatMul-op0
Default/optimizer-Rprop/Sign-op2 Sign in=Gradients/Default/MatMul-op1
Default/optimizer-Rprop/Mul-op3 Mul in=Default/optimizer-Rprop/Sign-op2,step_size.w
Default/optimizer-Rprop/Sub-op4 Sub in=w,Default/optimizer-Rprop/Mul-op3
Default/optimizer-Rprop/Assign-op5 Assign in=w,Default/optimizer-Rprop/Sub-op4
Default/optimizer-Rprop/Assign-op6 Assign in=step_size.w,Default/optimizer-Rprop/Mul-op3
)";

TEST(Gradients, EnterAnOptimizerOfSeveralOperators) {
  GraphBuilder builder = builder_from_text(kComposite);
  const GraphPtr graph = std::move(builder).build();
  EXPECT_EQ(gradient_text(*graph, "w"), "Gradients/Default/MatMul-op1:0 -> Default/optimizer-Rprop/Sign-op2:0");
  EXPECT_FALSE(graph->find("step_size.w")->trainable);
  EXPECT_EQ(parameter_of_gradient(*graph, graph->find("Gradients/Default/MatMul-op1")->id, 0), graph->find("w")->id);
}

TEST(Gradients, OfAnotherShapeAreNone) {
  GraphBuilder builder = builder_from_text(R"(
w Parameter
rate Gather
Default/optimizer-SGD/SGD-op3 SGD in=w,rate
)");
  builder.set_outputs(1, {{DType::kFloat32, Shape{}}});
  EXPECT_EQ(gradient_text(*builder.build(), "w"), "none");
}

}  // namespace
}  // namespace msdbg
