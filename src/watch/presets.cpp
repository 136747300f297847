#include "msdbg/watch.h"

namespace msdbg {
namespace {

constexpr PresetRule kDefault[] = {{"tensor_overflow", "@all", "TO"}};

constexpr PresetRule kWeightChange = {"weight_change_too_large", "@weight", "WCL abs_mean_update_ratio_gt=1"};
constexpr PresetRule kVanishing = {"gradient_vanishing", "@gradient", "GV abs_mean_lt=1e-9"};
constexpr PresetRule kTanh = {
    "tanh_activation_range", "op:Tanh",
    "AR range_start_inclusive=-0.9999999545590812 range_end_inclusive=0.9999999545590812 range_percentage_lt=0.1"};
constexpr PresetRule kSigmoid = {
    "sigmoid_activation_range", "op:Sigmoid",
    "AR range_start_inclusive=9.21359998566181e-08 range_end_inclusive=0.9999999078640001 range_percentage_lt=0.1"};
constexpr PresetRule kRelu = {"relu_activation_range", "op:ReLU or op:ReLUV2",
                              "AR range_start_inclusive=-1 range_end_inclusive=0 range_percentage_gt=99.9"};

constexpr PresetRule kRecommended[] = {
    kWeightChange,
    {"weight_not_changed", "@weight", "WNC rtol=1e-5"},
    {"weight_change_too_small", "@weight", "WCS abs_mean_update_ratio_lt=1e-4"},
    kVanishing,
    {"tensor_overflow", "@all", "TO"},
    {"tensor_all_zero", "@all", "TZ zero_percentage_ge=100"},
    kTanh,
    kSigmoid,
    kRelu,
};

// Momentum starts with zeros, and biases often do: check only operator outputs for zeros.
constexpr std::string_view kOperators = "not @parameter and not @constant";
// What a loss scaler answers for is left to it.
constexpr std::string_view kUnscaled = "not @parameter and not @constant and not @scaled";
// What is added begins as zeros, and its first change is infinitely many times its size.
constexpr std::string_view kFactors = "@weight and not /(bias|beta)$/";
// A program whose every operator is seen makes masks, positions and labels, some of them with the logarithm of zero, begins the state of
// its optimizer, and asks behind the backward pass whether there is an Inf. It also slices, pads and subtracts what may well be zero: only
// what a layer gives must not be. Of the backward pass that holds for the gradients of parameters, but not of a bias: what it adds to the
// keys of an attention, or to both sides of a comparison, changes nothing.
constexpr std::string_view kComputing =
    "(@from_weights or @gradient or @loss) and not @optimizer and not @scaled and not **/after_backward/**";
constexpr std::string_view kNonzero =
    "(op:Gradient and not @scaled and not **/Grad_*bias/* or @from_weights and not @gradient and not @optimizer and "
    "(op:*mm or op:*matmul* or op:*conv* or op:*linear* or op:*dense* or op:*norm* or op:*attention* or op:*elu*)) and dtype:*float*";
// Networks begin with zeros on purpose: one of the two factors of LoRA, the last normalization of a residual block, gates, heads. What lies
// before them has no gradient until an update has changed them, and with a rate that warms up from zero the first update changes nothing.
// Weights that begin small, and the state of an optimizer under the name of a weight, grow by more than their size in the first steps.
constexpr int64_t kSettled = 3;
// A loss scale searches for a value with which the gradients do not overflow, and nothing can be told of those that do. If it falls below
// one, they overflow whatever it is; MindSpore's (of amp.DynamicLossScaler, and of the cells that train with a loss scale) ends at one.
constexpr std::string_view kTorchScale = "loss_scale*";
constexpr std::string_view kMindsporeScale = "@parameter and (scale_value or **scale_sense)";
constexpr std::string_view kAnyScale = "@parameter and (scale_value or **scale_sense or **loss_scal*)";
// While the rate warms up, a gain that began as zero is about the rate times its gradient, and the gradients before it are that much
// smaller: 1e-13 in healthy residual networks.
constexpr PresetRule kVanishingInBackward = {"gradient_vanishing", "op:Gradient and not @scaled and not **/Grad_*bias/*",
                                             "GV abs_mean_lt=1e-15", kSettled};

}  // namespace

std::span<const PresetRule> default_rules() { return kDefault; }
std::span<const PresetRule> recommended_rules() { return kRecommended; }

std::vector<PresetRule> recommended_live_rules(bool ascend, bool keeps_previous, bool each_operator) {
  std::vector<PresetRule> rules;
  // Where every operator is seen, gradients and results tell which zeros do harm.
  if (!each_operator) rules.push_back({"weight_initialization", kFactors, "WI zero_percentage_ge=100"});
  if (keeps_previous) rules.push_back({kWeightChange.name, kFactors, kWeightChange.when, kSettled});
  rules.push_back(each_operator ? kVanishingInBackward : kVanishing);
  if (ascend) rules.push_back({"operator_overflow", kUnscaled, "OO"});
  rules.push_back({"tensor_overflow", each_operator ? kComputing : kUnscaled, "TO"});
  rules.push_back({"tensor_all_zero", each_operator ? kNonzero : kOperators, "TZ zero_percentage_ge=100", each_operator ? kSettled : 0});
  if (each_operator) rules.push_back({"loss_scale_too_small", kTorchScale, "TS max_lt=1", 0, true});
  rules.push_back({"loss_scale_too_small", each_operator ? kMindsporeScale : kAnyScale, "max(x) <= 1 and max(prev) > 1"});
  for (const PresetRule& rule : {kTanh, kSigmoid, kRelu}) rules.push_back(rule);
  return rules;
}

}  // namespace msdbg
