#include "net.h"

#include <algorithm>
#include <cmath>

namespace trainer {
namespace {

Values zeros(int rows, int columns) { return Values(static_cast<size_t>(rows) * static_cast<size_t>(columns)); }

void relu(const Values& x, Values& y) {
  // Not std::max(x, 0): it returns 0 for NaN and would hide a fault.
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] < 0.0F ? 0.0F : x[i];
}

// A closed unit multiplies by 0 instead of writing 0, for the same reason.
void relu_gradient(const Values& gradient, const Values& y, Values& out) {
  for (size_t i = 0; i < y.size(); ++i) out[i] = y[i] > 0.0F ? gradient[i] : 0.0F * gradient[i];
}

/// out[row, column] = f(x[row, column], per_row[row])
template <typename F>
void by_row(const Values& x, const Values& per_row, Values& out, F f) {
  const size_t columns = x.size() / per_row.size();
  for (size_t i = 0; i < x.size(); ++i) out[i] = f(x[i], per_row[i / columns]);
}

void sum_rows(const Values& x, Values& out) {
  const size_t columns = x.size() / out.size();
  std::fill(out.begin(), out.end(), 0.0F);
  for (size_t i = 0; i < x.size(); ++i) out[i / columns] += x[i];
}

template <typename F>
void combine(const Values& a, const Values& b, Values& out, F f) {
  for (size_t i = 0; i < a.size(); ++i) out[i] = f(a[i], b[i]);
}

constexpr auto kTimes = [](float a, float b) { return a * b; };
constexpr auto kMinus = [](float a, float b) { return a - b; };
constexpr auto kOver = [](float a, float b) { return a / b; };

}  // namespace

Dense::Dense(int in, int out, int batch, uint64_t seed)
    : inputs(in), outputs(out), weight(zeros(out, in)), bias(zeros(1, out)), weight_moment(weight), bias_moment(bias),
      product(zeros(batch, out)), sum(product), weight_gradient(weight), bias_gradient(bias),
      input_gradient(zeros(batch, in)) {
  Normal normal(seed);
  const float spread = std::sqrt(2.0F / static_cast<float>(in));
  for (float& value : weight) value = spread * normal.next();
}

Net::Net(const NetOptions& options, Reducer* reducer)
    : batch{zeros(options.batch, kFeatures), zeros(options.batch, kClasses), zeros(options.batch, 1)},
      fc1(kFeatures, options.width, options.batch, options.seed + 1),
      fc2(options.width, options.width, options.batch, options.seed + 2),
      fc3(options.width, kClasses, options.batch, options.seed + 3),
      learning_rate{options.learning_rate}, momentum{options.momentum},
      loss_scale{-1.0F / static_cast<float>(options.batch)},
      mean_scale{1.0F / static_cast<float>(reducer == nullptr ? 1 : reducer->ranks())}, options_(options), reducer_(reducer) {
  relu1_ = relu1_gradient_ = fc1.sum;
  relu2_ = relu2_gradient_ = fc2.sum;
  best_class_.resize(batch.mask.size());
  max_ = exp_sum_ = grad_share_sum_ = batch.mask;
  shifted_ = exp_ = softmax_ = masked_ = log_ = picked_ = batch.labels;
  grad_pick_ = grad_log_ = grad_mask_ = grad_share_ = grad_share_mul_ = grad_exp_ = grad_logits_ = batch.labels;
  picked_sum_ = loss_ = Values(1);
  for (Dense* layer : {&fc1, &fc2, &fc3}) {
    if (reducer_ == nullptr) break;
    layer->weight_sum = layer->weight_mean = layer->weight_updated = layer->weight_gradient;
    layer->bias_sum = layer->bias_mean = layer->bias_updated = layer->bias;
  }
}

void Net::show(Op op, const Values& values, std::source_location where) {
  if (hook_ == nullptr) return;
  hook_->output(op, 0, values.data(), values.size() * sizeof(float));
  hook_->done(op, where);
}

// On several ranks the output is a copy: what happens to the parameter later is not the operator's doing.
void Net::show_update(Op op, const Values& parameter, Values& updated, std::source_location where) {
  if (reducer_ == nullptr || hook_ == nullptr) return show(op, parameter, where);
  updated = parameter;
  show(op, updated, where);
}

void Net::show_best(std::source_location where) {
  if (hook_ == nullptr) return;
  hook_->output(kMax, 0, best_class_.data(), best_class_.size() * sizeof(int32_t));
  hook_->output(kMax, 1, max_.data(), max_.size() * sizeof(float));
  hook_->done(kMax, where);
}

void Net::train_step(Hook* hook) {
  hook_ = hook;
  forward();
  compute_loss();
  differentiate_loss();
  backward();
  if (reducer_ != nullptr) reduce();
  update();
  hook_ = nullptr;
}

void Net::forward() {
  multiply(batch.inputs, fc1);
  show(kFc1MatMul, fc1.product);
  add_bias(fc1);
  show(kFc1BiasAdd, fc1.sum);
  relu(fc1.sum, relu1_);
  show(kRelu1, relu1_);

  multiply(relu1_, fc2);
  show(kFc2MatMul, fc2.product);
  add_bias(fc2);
  show(kFc2BiasAdd, fc2.sum);
  relu(fc2.sum, relu2_);
  show(kRelu2, relu2_);

  multiply(relu2_, fc3);
  show(kFc3MatMul, fc3.product);
  add_bias(fc3);
  show(kFc3BiasAdd, fc3.sum);
}

void Net::compute_loss() {
  find_best(fc3.sum);
  show_best();
  by_row(fc3.sum, max_, shifted_, kMinus);
  show(kShift, shifted_);
  std::transform(shifted_.begin(), shifted_.end(), exp_.begin(), [](float x) { return std::exp(x); });
  show(kExp, exp_);
  sum_rows(exp_, exp_sum_);
  show(kExpSum, exp_sum_);
  by_row(exp_, exp_sum_, softmax_, kOver);
  show(kSoftmax, softmax_);
  by_row(softmax_, batch.mask, masked_, kTimes);
  show(kMask, masked_);
  std::transform(masked_.begin(), masked_.end(), log_.begin(), [](float x) { return std::log(x); });
  show(kLog, log_);
  combine(log_, batch.labels, picked_, kTimes);
  show(kPick, picked_);
  sum_rows(picked_, picked_sum_);
  show(kPickSum, picked_sum_);
  combine(picked_sum_, loss_scale, loss_, kTimes);
  show(kLoss, loss_);
}

void Net::differentiate_loss() {
  std::transform(batch.labels.begin(), batch.labels.end(), grad_pick_.begin(), [&](float x) { return x * loss_scale[0]; });
  show(kGradPick, grad_pick_);
  combine(grad_pick_, masked_, grad_log_, kOver);
  show(kGradLog, grad_log_);
  by_row(grad_log_, batch.mask, grad_mask_, kTimes);
  show(kGradMask, grad_mask_);
  // Quotient rule: d exp = g / sum - sum over the row of (g / sum * softmax). The row's maximum counts as a constant.
  by_row(grad_mask_, exp_sum_, grad_share_, kOver);
  show(kGradShare, grad_share_);
  combine(grad_share_, softmax_, grad_share_mul_, kTimes);
  show(kGradShareMul, grad_share_mul_);
  sum_rows(grad_share_mul_, grad_share_sum_);
  show(kGradShareSum, grad_share_sum_);
  by_row(grad_share_, grad_share_sum_, grad_exp_, kMinus);
  show(kGradExpInput, grad_exp_);
  combine(grad_exp_, exp_, grad_logits_, kTimes);
  show(kGradLogits, grad_logits_);
}

void Net::backward() {
  weight_gradient(grad_logits_, relu2_, fc3);
  show(kFc3WeightGrad, fc3.weight_gradient);
  bias_gradient(grad_logits_, fc3);
  show(kFc3BiasGrad, fc3.bias_gradient);
  input_gradient(grad_logits_, fc3);
  show(kFc3InputGrad, fc3.input_gradient);
  relu_gradient(fc3.input_gradient, relu2_, relu2_gradient_);
  show(kRelu2Grad, relu2_gradient_);

  weight_gradient(relu2_gradient_, relu1_, fc2);
  show(kFc2WeightGrad, fc2.weight_gradient);
  bias_gradient(relu2_gradient_, fc2);
  show(kFc2BiasGrad, fc2.bias_gradient);
  input_gradient(relu2_gradient_, fc2);
  show(kFc2InputGrad, fc2.input_gradient);
  relu_gradient(fc2.input_gradient, relu1_, relu1_gradient_);
  show(kRelu1Grad, relu1_gradient_);

  weight_gradient(relu1_gradient_, batch.inputs, fc1);
  show(kFc1WeightGrad, fc1.weight_gradient);
  bias_gradient(relu1_gradient_, fc1);
  show(kFc1BiasGrad, fc1.bias_gradient);
}

void Net::reduce() {
  reduce(kFc3WeightReduce, fc3.weight_gradient, fc3.weight_sum, fc3.weight_mean);
  reduce(kFc3BiasReduce, fc3.bias_gradient, fc3.bias_sum, fc3.bias_mean);
  reduce(kFc2WeightReduce, fc2.weight_gradient, fc2.weight_sum, fc2.weight_mean);
  reduce(kFc2BiasReduce, fc2.bias_gradient, fc2.bias_sum, fc2.bias_mean);
  reduce(kFc1WeightReduce, fc1.weight_gradient, fc1.weight_sum, fc1.weight_mean);
  reduce(kFc1BiasReduce, fc1.bias_gradient, fc1.bias_sum, fc1.bias_mean);
}

/// The operator of the mean follows that of the sum.
void Net::reduce(Op op, const Values& gradient, Values& sum, Values& mean) {
  reducer_->sum(gradient, sum);
  show(op, sum);
  std::transform(sum.begin(), sum.end(), mean.begin(), [&](float x) { return x * mean_scale[0]; });
  show(static_cast<Op>(op + 1), mean);
}

void Net::update() {
  apply_momentum(fc1.weight, fc1.weight_moment, fc1.weight_gradient, fc1.weight_mean);
  show_update(kFc1WeightUpdate, fc1.weight, fc1.weight_updated);
  apply_momentum(fc1.bias, fc1.bias_moment, fc1.bias_gradient, fc1.bias_mean);
  show_update(kFc1BiasUpdate, fc1.bias, fc1.bias_updated);
  if (!fc2_weight_frozen) apply_momentum(fc2.weight, fc2.weight_moment, fc2.weight_gradient, fc2.weight_mean);
  show_update(kFc2WeightUpdate, fc2.weight, fc2.weight_updated);
  apply_momentum(fc2.bias, fc2.bias_moment, fc2.bias_gradient, fc2.bias_mean);
  show_update(kFc2BiasUpdate, fc2.bias, fc2.bias_updated);
  apply_momentum(fc3.weight, fc3.weight_moment, fc3.weight_gradient, fc3.weight_mean);
  show_update(kFc3WeightUpdate, fc3.weight, fc3.weight_updated);
  apply_momentum(fc3.bias, fc3.bias_moment, fc3.bias_gradient, fc3.bias_mean);
  show_update(kFc3BiasUpdate, fc3.bias, fc3.bias_updated);
}

void Net::multiply(const Values& x, Dense& layer) {
  const auto in = static_cast<size_t>(layer.inputs);
  const auto out = static_cast<size_t>(layer.outputs);
  for (size_t row = 0; row < layer.product.size() / out; ++row) {
    for (size_t o = 0; o < out; ++o) {
      float total = 0.0F;
      for (size_t i = 0; i < in; ++i) total += x[row * in + i] * layer.weight[o * in + i];
      layer.product[row * out + o] = total;
    }
  }
}

void Net::add_bias(Dense& layer) {
  const size_t out = layer.bias.size();
  for (size_t i = 0; i < layer.sum.size(); ++i) layer.sum[i] = layer.product[i] + layer.bias[i % out];
}

void Net::find_best(const Values& logits) {
  for (size_t row = 0; row < max_.size(); ++row) {
    const float* first = &logits[row * kClasses];
    const float* best = std::max_element(first, first + kClasses);
    best_class_[row] = static_cast<int32_t>(best - first);
    max_[row] = *best;
  }
}

void Net::weight_gradient(const Values& gradient, const Values& x, Dense& layer) {
  const auto in = static_cast<size_t>(layer.inputs);
  const auto out = static_cast<size_t>(layer.outputs);
  std::fill(layer.weight_gradient.begin(), layer.weight_gradient.end(), 0.0F);
  for (size_t row = 0; row < gradient.size() / out; ++row) {
    for (size_t o = 0; o < out; ++o) {
      const float g = gradient[row * out + o];
      for (size_t i = 0; i < in; ++i) layer.weight_gradient[o * in + i] += g * x[row * in + i];
    }
  }
}

void Net::bias_gradient(const Values& gradient, Dense& layer) {
  const size_t out = layer.bias.size();
  std::fill(layer.bias_gradient.begin(), layer.bias_gradient.end(), 0.0F);
  for (size_t i = 0; i < gradient.size(); ++i) layer.bias_gradient[i % out] += gradient[i];
}

void Net::input_gradient(const Values& gradient, Dense& layer) {
  const auto in = static_cast<size_t>(layer.inputs);
  const auto out = static_cast<size_t>(layer.outputs);
  std::fill(layer.input_gradient.begin(), layer.input_gradient.end(), 0.0F);
  for (size_t row = 0; row < gradient.size() / out; ++row) {
    for (size_t o = 0; o < out; ++o) {
      const float g = gradient[row * out + o];
      for (size_t i = 0; i < in; ++i) layer.input_gradient[row * in + i] += g * layer.weight[o * in + i];
    }
  }
}

void Net::apply_momentum(Values& weight, Values& moment, const Values& own, const Values& mean) {
  const Values& gradient = reducer_ == nullptr ? own : mean;
  for (size_t i = 0; i < weight.size(); ++i) {
    moment[i] = momentum[0] * moment[i] + gradient[i];
    weight[i] -= learning_rate[0] * moment[i];
  }
}

}  // namespace trainer
