#include "describe.h"

#include <fstream>
#include <map>
#include <source_location>
#include <string>
#include <utility>

namespace trainer {
namespace {

using msdbg::DType;
using msdbg::OutputType;
using msdbg::Shape;
using msdbg::StackFrame;
using msdbg::agent::GraphDescription;
using msdbg::agent::InputDescription;
using msdbg::agent::NodeDescription;
using msdbg::agent::ParameterDescription;

/// Determines which line of net.cpp computes which operator by running one step of a tiny network.
class LineTrace : public Hook {
 public:
  LineTrace() {
    struct Alone : Reducer {
      int ranks() const override { return 1; }
      void sum(const Values& in, Values& out) override { out = in; }
    } alone;
    Net net(NetOptions{.width = 1, .batch = 1}, &alone);
    net.train_step(this);
  }
  void output(Op, uint32_t, const void*, size_t) override {}
  void done(Op op, const std::source_location& where) override { lines_[op] = where.line(); }

  /// Includes the text of the line if the source file still exists where it was compiled.
  std::vector<StackFrame> stack(Op op) {
    if (text_.empty()) read();
    const size_t line = lines_.at(op) - 1;  // net.cpp shows a value in the line after the one that computes it
    return {StackFrame{kSource, static_cast<int>(line), line <= text_.size() ? text_[line - 1] : ""}};
  }

 private:
  static constexpr const char* kSource = TRAINER_SOURCE_DIR "/net.cpp";

  void read() {
    std::ifstream file(kSource);
    for (std::string line; std::getline(file, line);) {
      line.erase(0, line.find_first_not_of(' '));
      text_.push_back(line);
    }
  }

  std::map<Op, size_t> lines_;
  std::vector<std::string> text_;
};

/// Adds operators in the order of `Op`, which keeps their indices equal.
class Nodes {
 public:
  Nodes(std::vector<NodeDescription>& nodes, bool reduces) : nodes_(nodes), reduces_(reduces) {}

  void scope(std::string scope) { scope_ = std::move(scope); }
  void add(Op op, const std::string& cell, const std::string& type, std::vector<InputDescription> inputs, Shape shape) {
    add(op, cell, type, std::move(inputs), std::vector{OutputType{DType::kFloat32, std::move(shape)}});
  }
  void add(Op op, const std::string& cell, const std::string& type, std::vector<InputDescription> inputs,
           std::vector<OutputType> outputs, std::vector<msdbg::Attribute> attributes = {}) {
    NodeDescription node;
    node.full_name = scope_ + cell + "/" + type + "-op" + std::to_string(nodes_.size() + 1);
    node.op = type;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.attributes = std::move(attributes);
    if (op != kOpCount) node.stack = lines_.stack(op);
    nodes_.push_back(std::move(node));
  }
  /// Output `slot` of an operator that was already added.
  InputDescription of(Op op, uint32_t slot = 0) const { return {nodes_.at(place_of(op, reduces_)).full_name, slot}; }

 private:
  std::vector<NodeDescription>& nodes_;
  const bool reduces_;
  std::string scope_;
  LineTrace lines_;
};

InputDescription named(const char* parameter) { return {parameter, 0}; }

void add_weights(const std::string& name, const Dense& layer, GraphDescription& graph) {
  const Shape weight = {layer.outputs, layer.inputs};
  const Shape bias = {layer.outputs};
  graph.parameters.push_back({name + ".weight", DType::kFloat32, weight, layer.weight.data()});
  graph.parameters.push_back({name + ".bias", DType::kFloat32, bias, layer.bias.data()});
  graph.parameters.push_back({"moments." + name + ".weight", DType::kFloat32, weight, layer.weight_moment.data()});
  graph.parameters.push_back({"moments." + name + ".bias", DType::kFloat32, bias, layer.bias_moment.data()});
}

void add_forward(Nodes& nodes, int64_t batch, int64_t width) {
  nodes.scope("Default/network-WithLossCell/_backbone-Net/");
  nodes.add(kFc1MatMul, "fc1-Dense", "MatMul", {named("inputs"), named("fc1.weight")}, {batch, width});
  nodes.add(kFc1BiasAdd, "fc1-Dense", "BiasAdd", {nodes.of(kFc1MatMul), named("fc1.bias")}, {batch, width});
  nodes.add(kRelu1, "relu1-ReLU", "ReLU", {nodes.of(kFc1BiasAdd)}, {batch, width});
  nodes.add(kFc2MatMul, "fc2-Dense", "MatMul", {nodes.of(kRelu1), named("fc2.weight")}, {batch, width});
  nodes.add(kFc2BiasAdd, "fc2-Dense", "BiasAdd", {nodes.of(kFc2MatMul), named("fc2.bias")}, {batch, width});
  nodes.add(kRelu2, "relu2-ReLU", "ReLU", {nodes.of(kFc2BiasAdd)}, {batch, width});
  nodes.add(kFc3MatMul, "fc3-Dense", "MatMul", {nodes.of(kRelu2), named("fc3.weight")}, {batch, kClasses});
  nodes.add(kFc3BiasAdd, "fc3-Dense", "BiasAdd", {nodes.of(kFc3MatMul), named("fc3.bias")}, {batch, kClasses});
}

void add_loss(Nodes& nodes, int64_t batch) {
  nodes.scope("Default/network-WithLossCell/_loss_fn-MaskedLogLikelihood/");
  const Shape each = {batch, kClasses}, row = {batch, 1};
  nodes.add(kMax, "max-ArgMaxWithValue", "ArgMaxWithValue", {nodes.of(kFc3BiasAdd)},
            {OutputType{DType::kInt32, row}, OutputType{DType::kFloat32, row}});
  nodes.add(kShift, "softmax-Softmax", "Sub", {nodes.of(kFc3BiasAdd), nodes.of(kMax, 1)}, each);
  nodes.add(kExp, "softmax-Softmax", "Exp", {nodes.of(kShift)}, each);
  nodes.add(kExpSum, "softmax-Softmax", "ReduceSum", {nodes.of(kExp)}, row);
  nodes.add(kSoftmax, "softmax-Softmax", "RealDiv", {nodes.of(kExp), nodes.of(kExpSum)}, each);
  nodes.add(kMask, "mask-Mask", "Mul", {nodes.of(kSoftmax), named("mask")}, each);
  nodes.add(kLog, "log-Log", "Log", {nodes.of(kMask)}, each);
  nodes.add(kPick, "pick-Pick", "Mul", {nodes.of(kLog), named("labels")}, each);
  nodes.add(kPickSum, "pick-Pick", "ReduceSum", {nodes.of(kPick)}, Shape{});
  nodes.add(kLoss, "pick-Pick", "Mul", {nodes.of(kPickSum), named("Default--data-0")}, Shape{});
}

void add_loss_gradients(Nodes& nodes, int64_t batch) {
  nodes.scope("Gradients/Default/network-WithLossCell/_loss_fn-MaskedLogLikelihood/");
  const Shape each = {batch, kClasses}, row = {batch, 1};
  nodes.add(kGradPick, "pick-Pick/gradMul-expand", "Mul", {named("labels"), named("Default--data-0")}, each);
  nodes.add(kGradLog, "log-Log/gradLog-expand", "Div", {nodes.of(kGradPick), nodes.of(kMask)}, each);
  nodes.add(kGradMask, "mask-Mask/gradMul-expand", "Mul", {nodes.of(kGradLog), named("mask")}, each);
  const std::string softmax = "softmax-Softmax/gradRealDiv-expand";
  nodes.add(kGradShare, softmax, "RealDiv", {nodes.of(kGradMask), nodes.of(kExpSum)}, each);
  nodes.add(kGradShareMul, softmax, "Mul", {nodes.of(kGradShare), nodes.of(kSoftmax)}, each);
  nodes.add(kGradShareSum, softmax, "ReduceSum", {nodes.of(kGradShareMul)}, row);
  nodes.add(kGradExpInput, softmax, "Sub", {nodes.of(kGradShare), nodes.of(kGradShareSum)}, each);
  nodes.add(kGradLogits, "softmax-Softmax/gradExp-expand", "Mul", {nodes.of(kGradExpInput), nodes.of(kExp)}, each);
}

void add_gradients(Nodes& nodes, int64_t batch, int64_t width) {
  nodes.scope("Gradients/Default/network-WithLossCell/_backbone-Net/");
  const std::string matmul = "-Dense/gradMatMul-expand", bias = "-Dense/gradBiasAdd-meta", relu = "-ReLU/gradReLU-expand";
  const InputDescription logits = nodes.of(kGradLogits);
  nodes.add(kFc3WeightGrad, "fc3" + matmul, "MatMul", {logits, nodes.of(kRelu2)}, {kClasses, width});
  nodes.add(kFc3BiasGrad, "fc3" + bias, "BiasAddGrad", {logits}, Shape{kClasses});
  nodes.add(kFc3InputGrad, "fc3" + matmul, "MatMul", {logits, named("fc3.weight")}, {batch, width});
  nodes.add(kRelu2Grad, "relu2" + relu, "ReluGrad", {nodes.of(kFc3InputGrad), nodes.of(kRelu2)}, {batch, width});
  const InputDescription second = nodes.of(kRelu2Grad);
  nodes.add(kFc2WeightGrad, "fc2" + matmul, "MatMul", {second, nodes.of(kRelu1)}, {width, width});
  nodes.add(kFc2BiasGrad, "fc2" + bias, "BiasAddGrad", {second}, Shape{width});
  nodes.add(kFc2InputGrad, "fc2" + matmul, "MatMul", {second, named("fc2.weight")}, {batch, width});
  nodes.add(kRelu1Grad, "relu1" + relu, "ReluGrad", {nodes.of(kFc2InputGrad), nodes.of(kRelu1)}, {batch, width});
  const InputDescription first = nodes.of(kRelu1Grad);
  nodes.add(kFc1WeightGrad, "fc1" + matmul, "MatMul", {first, named("inputs")}, {width, kFeatures});
  nodes.add(kFc1BiasGrad, "fc1" + bias, "BiasAddGrad", {first}, Shape{width});
}

/// The mean of each gradient over all ranks, as MindSpore's data parallelism computes it.
void add_reductions(Nodes& nodes, int64_t width, const std::string& group) {
  nodes.scope("Default/");
  const auto reduce = [&](Op op, Op gradient, Shape shape) {
    const std::string cell = "grad_reducer-DistributedGradReducer";
    nodes.add(op, cell, "AllReduce", {nodes.of(gradient)}, {OutputType{DType::kFloat32, shape}},
              {{"group", group}, {"op", "sum"}, {"fusion", "1"}, {"index", "0"}});
    nodes.add(static_cast<Op>(op + 1), cell, "Mul", {nodes.of(op), named("Default--data-2")}, std::move(shape));
  };
  reduce(kFc3WeightReduce, kFc3WeightGrad, {kClasses, width});
  reduce(kFc3BiasReduce, kFc3BiasGrad, Shape{kClasses});
  reduce(kFc2WeightReduce, kFc2WeightGrad, {width, width});
  reduce(kFc2BiasReduce, kFc2BiasGrad, Shape{width});
  reduce(kFc1WeightReduce, kFc1WeightGrad, {width, kFeatures});
  reduce(kFc1BiasReduce, kFc1BiasGrad, Shape{width});
}

void add_updates(Nodes& nodes, int64_t width, bool reduces) {
  nodes.scope("Default/");
  const auto update = [&](Op op, const std::string& parameter, Op own, Op mean, Shape shape) {
    const Op gradient = reduces ? mean : own;
    nodes.add(op, "optimizer-Momentum", "ApplyMomentum",
              {{parameter, 0}, {"moments." + parameter, 0}, named("learning_rate"), nodes.of(gradient),
               named("Default--data-1")},
              std::move(shape));
  };
  update(kFc1WeightUpdate, "fc1.weight", kFc1WeightGrad, kFc1WeightMean, {width, kFeatures});
  update(kFc1BiasUpdate, "fc1.bias", kFc1BiasGrad, kFc1BiasMean, Shape{width});
  update(kFc2WeightUpdate, "fc2.weight", kFc2WeightGrad, kFc2WeightMean, {width, width});
  update(kFc2BiasUpdate, "fc2.bias", kFc2BiasGrad, kFc2BiasMean, Shape{width});
  update(kFc3WeightUpdate, "fc3.weight", kFc3WeightGrad, kFc3WeightMean, {kClasses, width});
  update(kFc3BiasUpdate, "fc3.bias", kFc3BiasGrad, kFc3BiasMean, Shape{kClasses});
}

}  // namespace

GraphDescription describe(const Net& net, const DescribeOptions& options) {
  const int64_t batch = net.options().batch, width = net.options().width;
  GraphDescription graph;
  // Data inputs change with every step: the agent serves them as inputs of the operators that read them.
  graph.parameters = {{"inputs", DType::kFloat32, {batch, kFeatures}, net.batch.inputs.data(), false},
                      {"labels", DType::kFloat32, {batch, kClasses}, net.batch.labels.data(), false},
                      {"mask", DType::kFloat32, {batch, 1}, net.batch.mask.data(), false}};
  add_weights("fc1", net.fc1, graph);
  add_weights("fc2", net.fc2, graph);
  add_weights("fc3", net.fc3, graph);
  graph.parameters.push_back({"learning_rate", DType::kFloat32, {}, net.learning_rate.data()});
  graph.constants = {{"Default--data-0", DType::kFloat32, {}, net.loss_scale.data()},
                     {"Default--data-1", DType::kFloat32, {}, net.momentum.data()}};

  const bool reduces = !options.group.empty();
  if (reduces) graph.constants.push_back({"Default--data-2", DType::kFloat32, {}, net.mean_scale.data()});
  Nodes nodes(graph.nodes, reduces);
  add_forward(nodes, batch, width);
  add_loss(nodes, batch);
  add_loss_gradients(nodes, batch);
  add_gradients(nodes, batch, width);
  if (reduces) add_reductions(nodes, width, options.group);
  add_updates(nodes, width, reduces);

  if (options.extra != nullptr) {
    const Shape shape = {static_cast<int64_t>(options.extra->size())};
    graph.parameters.push_back({"extra.weight", DType::kFloat32, shape, options.extra->data()});
    nodes.scope("Default/");
    nodes.add(kOpCount, "extra-Identity", "Identity", {named("extra.weight")}, shape);
  }
  for (int64_t i = 0; i < options.small_nodes; ++i) {
    nodes.scope("Default/small/block" + std::to_string(i / 100) + "/");
    nodes.add(kOpCount, "cell" + std::to_string(i % 100) + "-Sum", "Sum", {named("inputs")}, Shape{kSmallCount});
  }
  for (int64_t i = 0; i < options.padding_nodes; ++i) {
    nodes.scope("Default/padding/block" + std::to_string(i / 100) + "/");
    nodes.add(kOpCount, "cell" + std::to_string(i % 100) + "-Identity", "Identity", {named("inputs")}, {batch, kFeatures});
  }
  return graph;
}

}  // namespace trainer
