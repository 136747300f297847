// How far rounding alone may separate two correct results.
#include <algorithm>
#include <cmath>

#include "msdbg/diff.h"

namespace msdbg {
namespace {

const Shape* input(const SlotShapes& shapes, uint32_t slot) {
  const auto found = shapes.find({Io::kInput, slot});
  return found == shapes.end() ? nullptr : &found->second;
}

const Shape* output(const SlotShapes& shapes) {
  const auto found = shapes.find({Io::kOutput, 0});
  return found == shapes.end() ? nullptr : &found->second;
}

uint64_t elements(const Shape* shape) { return shape ? element_count(*shape).value_or(0) : 0; }

bool starts(std::string_view op, std::string_view prefix) { return op.substr(0, prefix.size()) == prefix; }

// Independent of transposes: the |x| * |y| products of each output element all share the inner dimension, therefore elements(x) *
// elements(y) = batch * m * k * k * n, and the output has batch * m * n.
uint64_t matmul_length(const SlotShapes& shapes) {
  const Shape *x = input(shapes, 0), *y = input(shapes, 1), *out = output(shapes);
  if (!x || !y || !out || x->size() < 2 || y->size() < 2 || out->size() < 2) return 1;
  const int64_t m = (*out)[out->size() - 2], n = (*out)[out->size() - 1];
  for (const auto& [shape, side] : {std::pair(x, m), std::pair(y, n)}) {
    const int64_t first = (*shape)[shape->size() - 2], second = (*shape)[shape->size() - 1];
    if (first == side && second > 0) return static_cast<uint64_t>(second);
    if (second == side && first > 0) return static_cast<uint64_t>(first);
  }
  return 1;
}

// NCHW: the weight is [out, in / group, h, w]; each output element sums in / group * h * w products.
uint64_t convolution_length(const SlotShapes& shapes) {
  const Shape* weight = input(shapes, 1);
  if (!weight || weight->size() < 3 || (*weight)[0] <= 0) return 1;
  return elements(weight) / static_cast<uint64_t>((*weight)[0]);
}

uint64_t share(uint64_t in, const Shape* out) {
  const uint64_t left = elements(out);
  return left == 0 ? 1 : std::max<uint64_t>(in / left, 1);
}

}  // namespace

uint64_t reduction_length(const Node& node, const SlotShapes& shapes) {
  const std::string& op = node.op;
  if (op.find("MatMul") != std::string::npos) return matmul_length(shapes);
  if (starts(op, "Conv2DBackpropFilter") || starts(op, "Conv3DBackpropFilter")) {
    // Every position of every image adds to every weight.
    const Shape* dout = input(shapes, 0);
    if (!dout || dout->size() < 3 || (*dout)[1] <= 0) return 1;
    return std::max<uint64_t>(elements(dout) / static_cast<uint64_t>((*dout)[1]), 1);
  }
  if (starts(op, "Conv2DBackpropInput") || starts(op, "Conv3DBackpropInput")) {
    // dout and weight: each input element sums out * h * w products.
    const Shape* weight = input(shapes, 1);
    if (!weight || weight->size() < 3 || (*weight)[1] <= 0) return 1;
    return std::max<uint64_t>(elements(weight) / static_cast<uint64_t>((*weight)[1]), 1);
  }
  if (starts(op, "Conv") || starts(op, "DepthwiseConv")) return convolution_length(shapes);
  if (starts(op, "Reduce") || op == "BiasAddGrad" || op == "SumExt" || op == "MeanExt" || op == "L2Loss" || op == "AvgPool") {
    return share(elements(input(shapes, 0)), output(shapes));
  }
  if (op.find("SoftmaxCrossEntropy") != std::string::npos) return elements(input(shapes, 0)) > 0 ? elements(input(shapes, 0)) : 1;
  if (op.find("Softmax") != std::string::npos) {
    const Shape* in = input(shapes, 0);
    return in && !in->empty() && in->back() > 0 ? static_cast<uint64_t>(in->back()) : 1;
  }
  if (op.find("BatchNorm") != std::string::npos) {
    const Shape* in = input(shapes, 0);
    return in && in->size() > 1 && (*in)[1] > 0 ? std::max<uint64_t>(elements(in) / static_cast<uint64_t>((*in)[1]), 1) : 1;
  }
  if (op.find("LayerNorm") != std::string::npos) {
    const Shape* in = input(shapes, 0);
    return in && !in->empty() && in->back() > 0 ? static_cast<uint64_t>(in->back()) : 1;
  }
  if (op == "AddN") return std::max<uint64_t>(node.inputs.size(), 1);
  return 1;
}

uint64_t reduction_length(const Graph& graph, const Node& node) {
  SlotShapes shapes;
  const auto keep = [&](Slot slot, const Node& owner, uint32_t at) {
    if (at < owner.outputs.size() && owner.outputs[at].shape) shapes[slot] = *owner.outputs[at].shape;
  };
  for (uint32_t slot = 0; slot < std::min<size_t>(node.inputs.size(), 2); ++slot) {
    const Edge edge = graph.effective_producer(node.id, slot);
    if (edge.node != kNoNode) keep({Io::kInput, slot}, graph.node(edge.node), edge.slot);
  }
  keep({Io::kOutput, 0}, node, 0);
  return reduction_length(node, shapes);
}

CloseRequest default_tolerance(DType a, DType b, PathLength path) {
  const auto eps = [](DType dtype) { return is_float(dtype) ? dtype_eps(dtype) : 0.0; };
  const double stored = std::max(eps(a), eps(b));
  if (stored == 0) return {0, 0};
  // 16-bit kernels accumulate in float32 and round once, when they store.
  const double added = std::min(stored, dtype_eps(DType::kFloat32));
  const auto root = [](uint64_t n) { return std::sqrt(static_cast<double>(std::max<uint64_t>(n, 1))); };
  const double relative = 2 * (stored * root(path.operators) + added * root(path.additions));
  return {relative, relative};
}

}  // namespace msdbg
