#include "describe.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "data.h"
#include "msdbg/base.h"
#include "trainer/recorder.h"

namespace trainer {
namespace {

using msdbg::agent::GraphDescription;

TEST(Description, EveryShownSlotIsDescribedWithItsSize) {
  Net net(NetOptions{.width = 24, .batch = 7});
  Data(1).fill(0, net.batch);
  const GraphDescription graph = describe(net);
  ASSERT_EQ(graph.nodes.size(), static_cast<size_t>(kOpCount));
  Recorder recorder;
  net.train_step(&recorder);
  size_t described = 0;
  for (const auto& node : graph.nodes) described += node.outputs.size();
  EXPECT_EQ(recorder.bytes().size(), described);
  for (const auto& [key, bytes] : recorder.bytes()) {
    const auto& node = graph.nodes.at(key.first);
    ASSERT_LT(key.second, node.outputs.size()) << node.full_name;
    const auto& output = node.outputs[key.second];
    EXPECT_EQ(*msdbg::element_count(*output.shape) * msdbg::item_size(output.dtype), bytes) << node.full_name;
  }
}

/// The sum of one rank.
struct Alone : Reducer {
  int ranks() const override { return 1; }
  void sum(const Values& in, Values& out) override { out = in; }
};

TEST(Description, GradientsOfSeveralRanksPassAllReduce) {
  Alone alone;
  Net net(NetOptions{.width = 24, .batch = 7}, &alone);
  Data(1).fill(0, net.batch);
  const GraphDescription graph = describe(net, {.group = "nccl_world_group"});
  ASSERT_EQ(graph.nodes.size(), static_cast<size_t>(place_of(kFc3BiasUpdate, true)) + 1);
  Recorder recorder;
  net.train_step(&recorder);
  for (const auto& [key, bytes] : recorder.bytes()) {
    const auto& node = graph.nodes.at(place_of(static_cast<Op>(key.first), true));
    EXPECT_EQ(*msdbg::element_count(*node.outputs.at(key.second).shape) * msdbg::item_size(node.outputs[key.second].dtype), bytes)
        << node.full_name;
  }
  const auto& reduce = graph.nodes.at(place_of(kFc2WeightReduce, true));
  EXPECT_EQ(reduce.op, "AllReduce");
  ASSERT_FALSE(reduce.attributes.empty());
  EXPECT_EQ(reduce.attributes[0].name, "group");
  EXPECT_EQ(reduce.attributes[0].value, "nccl_world_group");
  EXPECT_EQ(reduce.inputs[0].name, graph.nodes.at(kFc2WeightGrad).full_name);
  const auto& update = graph.nodes.at(place_of(kFc2WeightUpdate, true));
  EXPECT_EQ(update.op, "ApplyMomentum");
  EXPECT_EQ(update.inputs[3].name, graph.nodes.at(place_of(kFc2WeightMean, true)).full_name);
}

TEST(Description, ParametersPointToTheNetworksMemory) {
  Net net(NetOptions{.width = 24});
  const GraphDescription graph = describe(net);
  std::set<std::string> weights, data;
  for (const auto& parameter : graph.parameters) {
    (parameter.is_weight ? weights : data).insert(parameter.name);
    ASSERT_NE(parameter.data, nullptr) << parameter.name;
    if (parameter.name == "fc2.weight") {
      EXPECT_EQ(parameter.data, net.fc2.weight.data());
      EXPECT_EQ(parameter.shape, (msdbg::Shape{24, 24}));
    }
    if (parameter.name == "learning_rate") {
      EXPECT_TRUE(parameter.shape.empty());
    }
  }
  EXPECT_EQ(weights.size(), 13U);
  EXPECT_TRUE(weights.count("moments.fc1.bias") == 1);
  EXPECT_EQ(data, (std::set<std::string>{"inputs", "labels", "mask"}));
}

TEST(Description, NamesAreUniqueAndInputsNameSomethingEarlier) {
  Net net(NetOptions{});
  const GraphDescription graph = describe(net);
  std::set<std::string> known;
  for (const auto& parameter : graph.parameters) EXPECT_TRUE(known.insert(parameter.name).second) << parameter.name;
  for (const auto& constant : graph.constants) EXPECT_TRUE(known.insert(constant.name).second) << constant.name;
  for (const auto& node : graph.nodes) {
    for (const auto& input : node.inputs) EXPECT_TRUE(known.count(input.name) == 1) << node.full_name << " <- " << input.name;
    EXPECT_TRUE(known.insert(node.full_name).second) << node.full_name;
  }
}

TEST(Description, NodesHaveTheNamesThatMindSporeWouldGive) {
  Net net(NetOptions{});
  const GraphDescription graph = describe(net);
  EXPECT_EQ(graph.nodes[kFc1MatMul].full_name, "Default/network-WithLossCell/_backbone-Net/fc1-Dense/MatMul-op1");
  EXPECT_EQ(graph.nodes[kLog].full_name, "Default/network-WithLossCell/_loss_fn-MaskedLogLikelihood/log-Log/Log-op15");
  EXPECT_EQ(graph.nodes[kFc2WeightGrad].full_name,
            "Gradients/Default/network-WithLossCell/_backbone-Net/fc2-Dense/gradMatMul-expand/MatMul-op31");
  EXPECT_EQ(graph.nodes[kFc3BiasUpdate].full_name, "Default/optimizer-Momentum/ApplyMomentum-op42");
  EXPECT_EQ(graph.nodes[kFc3BiasUpdate].inputs[0].name, "fc3.bias");
  EXPECT_EQ(graph.nodes[kMax].outputs.size(), 2U);
}

TEST(Description, StackPointsToTheLineThatComputes) {
  Net net(NetOptions{});
  const GraphDescription graph = describe(net);
  for (const auto& node : graph.nodes) {
    ASSERT_EQ(node.stack.size(), 1U) << node.full_name;
    EXPECT_NE(node.stack[0].file->find("net.cpp"), std::string::npos);
    EXPECT_GT(node.stack[0].line, 0);
  }
  EXPECT_NE(graph.nodes[kLog].stack[0].code->find("std::log"), std::string::npos) << graph.nodes[kLog].stack[0].code.get();
  EXPECT_EQ(graph.nodes[kFc2MatMul].stack[0].code, "multiply(relu1_, fc2);");
}

TEST(Description, ExtraTensorAndPaddingComeBehindTheNetwork) {
  Net net(NetOptions{});
  const Values extra(1000);
  const GraphDescription graph = describe(net, {.extra = &extra, .padding_nodes = 250});
  ASSERT_EQ(graph.nodes.size(), static_cast<size_t>(kOpCount) + 251U);
  EXPECT_EQ(graph.parameters.back().name, "extra.weight");
  EXPECT_EQ(graph.parameters.back().data, extra.data());
  EXPECT_EQ(graph.nodes[kOpCount].inputs[0].name, "extra.weight");
  EXPECT_EQ(graph.nodes.back().full_name, "Default/padding/block2/cell49-Identity/Identity-op293");
  EXPECT_TRUE(graph.nodes.back().stack.empty());
}

TEST(Description, SmallNodesStandBetweenThem) {
  Net net(NetOptions{});
  const Values extra(1000);
  const GraphDescription graph = describe(net, {.extra = &extra, .small_nodes = 101, .padding_nodes = 1});
  ASSERT_EQ(graph.nodes.size(), static_cast<size_t>(kOpCount) + 103U);
  EXPECT_EQ(graph.nodes[kOpCount + 101].full_name, "Default/small/block1/cell0-Sum/Sum-op144");
  EXPECT_EQ(graph.nodes[kOpCount + 101].outputs[0].shape, (msdbg::Shape{kSmallCount}));
  EXPECT_EQ(graph.nodes[kOpCount + 102].op, "Identity");
}

}  // namespace
}  // namespace trainer
