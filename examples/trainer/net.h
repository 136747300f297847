// A classifier with three dense layers, its loss and its training step, in plain loops over float vectors.
//
// This file does not depend on a debugger. To see the values that a step computes, pass a Hook.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <vector>

#include "data.h"

namespace trainer {

/// Every operator of a training step, in execution order. describe.cpp names them.
enum Op : uint32_t {
  // forward
  kFc1MatMul, kFc1BiasAdd, kRelu1,
  kFc2MatMul, kFc2BiasAdd, kRelu2,
  kFc3MatMul, kFc3BiasAdd,
  // loss: mean over the batch of -log(mask * softmax(logits)) at the true class
  kMax, kShift, kExp, kExpSum, kSoftmax, kMask, kLog, kPick, kPickSum, kLoss,
  // backward through the loss
  kGradPick, kGradLog, kGradMask, kGradShare, kGradShareMul, kGradShareSum, kGradExpInput, kGradLogits,
  // backward through the layers
  kFc3WeightGrad, kFc3BiasGrad, kFc3InputGrad, kRelu2Grad,
  kFc2WeightGrad, kFc2BiasGrad, kFc2InputGrad, kRelu1Grad,
  kFc1WeightGrad, kFc1BiasGrad,
  // optimizer
  kFc1WeightUpdate, kFc1BiasUpdate, kFc2WeightUpdate, kFc2BiasUpdate, kFc3WeightUpdate, kFc3BiasUpdate,
  kOpCount,
  // of a training on several ranks, before the optimizer: each gradient's sum over all ranks, and its mean
  kFirstReduce,
  kFc3WeightReduce = kFirstReduce, kFc3WeightMean, kFc3BiasReduce, kFc3BiasMean,
  kFc2WeightReduce, kFc2WeightMean, kFc2BiasReduce, kFc2BiasMean,
  kFc1WeightReduce, kFc1WeightMean, kFc1BiasReduce, kFc1BiasMean,
  kReduceEnd,
};

/// The place of `op` among the operators that run.
constexpr uint32_t place_of(Op op, bool reduces) {
  constexpr uint32_t kReduces = kReduceEnd - kFirstReduce;
  if (op >= kFirstReduce) return kFc1WeightUpdate + (op - kFirstReduce);
  return reduces && op >= kFc1WeightUpdate ? op + kReduces : op;
}

/// Adds up values over all ranks of a training.
class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual int ranks() const = 0;
  virtual void sum(const Values& in, Values& out) = 0;
};

/// Sees the outputs of the operators as they are computed. The memory does not change until the step has ended.
class Hook {
 public:
  virtual ~Hook() = default;
  virtual void output(Op op, uint32_t slot, const void* data, size_t bytes) = 0;
  /// All outputs of `op` are complete; `where` is the line that computed it.
  virtual void done(Op op, const std::source_location& where) = 0;
};

struct NetOptions {
  int width = 64;  ///< outputs of the first and the second layer
  int batch = 32;
  uint64_t seed = 1;
  float learning_rate = 0.05F;
  float momentum = 0.9F;
};

/// y = x * weight^T + bias. `weight` is [outputs, inputs], row-major, as in MindSpore's Dense.
struct Dense {
  Dense(int inputs, int outputs, int batch, uint64_t seed);

  int inputs, outputs;
  Values weight, bias, weight_moment, bias_moment;
  Values product, sum;                                ///< [batch, outputs]
  Values weight_gradient, bias_gradient;
  // Of a training on several ranks: the sum and mean of all gradients, and what the update computed.
  Values weight_sum, bias_sum, weight_mean, bias_mean, weight_updated, bias_updated;
  Values input_gradient;                              ///< [batch, inputs]
};

/// All buffers live as long as the object and never move.
class Net {
 public:
  /// `reducer` adds up the gradients of all ranks; null for a training on one.
  explicit Net(const NetOptions& options, Reducer* reducer = nullptr);
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  /// Forward pass, backward pass and update with the data in `batch`. `hook` may be null.
  void train_step(Hook* hook);
  float loss() const { return loss_[0]; }
  const NetOptions& options() const { return options_; }
  int ranks() const { return reducer_ == nullptr ? 1 : reducer_->ranks(); }

  // Public for the code that feeds, describes or breaks the network.
  Batch batch;
  Dense fc1, fc2, fc3;
  Values learning_rate, momentum, loss_scale;         ///< one element each
  Values mean_scale;                                  ///< one element: 1 / ranks
  bool fc2_weight_frozen = false;                     ///< planted fault: its update is computed but not stored

 private:
  void forward();
  void compute_loss();
  void differentiate_loss();
  void backward();
  void reduce();
  void update();

  void multiply(const Values& x, Dense& layer);
  void add_bias(Dense& layer);
  void weight_gradient(const Values& gradient, const Values& x, Dense& layer);
  void bias_gradient(const Values& gradient, Dense& layer);
  void input_gradient(const Values& gradient, Dense& layer);
  void reduce(Op op, const Values& gradient, Values& sum, Values& mean);
  void show_update(Op op, const Values& parameter, Values& updated, std::source_location where = std::source_location::current());
  void apply_momentum(Values& weight, Values& moment, const Values& own, const Values& mean);

  void find_best(const Values& logits);

  /// Passes the only output of `op` to the hook; called in the line after the one that computed it.
  void show(Op op, const Values& values, std::source_location where = std::source_location::current());
  /// For the only operator with two outputs.
  void show_best(std::source_location where = std::source_location::current());

  NetOptions options_;
  Reducer* reducer_ = nullptr;
  Hook* hook_ = nullptr;
  Values relu1_, relu2_, relu1_gradient_, relu2_gradient_;
  std::vector<int32_t> best_class_;
  Values max_, shifted_, exp_, exp_sum_, softmax_, masked_, log_, picked_, picked_sum_, loss_;
  Values grad_pick_, grad_log_, grad_mask_, grad_share_, grad_share_mul_, grad_share_sum_, grad_exp_, grad_logits_;
};

}  // namespace trainer
