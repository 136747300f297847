// Summaries and advice of the catalogue, separate from the tables: the wording can be read and changed in one place.
//
// Each advice says what to do next, starting with the most informative step.
#pragma once

#include <string_view>

namespace msdbg::texts {

struct Text {
  std::string_view summary;
  std::string_view advice;
};

inline constexpr Text kOperatorOverflow{"the hardware flagged an overflow inside the operator",
                                        "Take the earliest flagged operator and compare its inputs with its outputs: "
                                        "the result may look finite because half "
                                        "precision saturates. Compute the operator in float32 or change the loss "
                                        "scale. A single flag while a dynamic loss scale "
                                        "is adapting is normal."};
inline constexpr Text kTensorOverflow{"the tensor holds NaN or Inf",
                                      "Find the first such tensor in execution order and look at its inputs; go "
                                      "upstream until they are finite. Usual causes: "
                                      "division by zero, log or root of a value that is not positive, exp of a large "
                                      "one, missing values in the samples, half "
                                      "precision left, learning rate too high. Add a small constant to denominators, "
                                      "clean the data, lower the loss scale."};
inline constexpr Text kWeightOverflow{
    "a weight holds NaN or Inf",
    "Look at the gradients of the same step with GE and GL: a broken gradient was applied. Lower the learning rate, "
    "make sure "
    "that steps whose gradient overflowed are skipped, and clip gradients after the loss scale is undone."};
inline constexpr Text kGradientExploding{"a gradient holds NaN or Inf",
                                         "Halve the loss scale and try again; look for zeros among the forward inputs "
                                         "of that operator (the derivative of a root or "
                                         "a quotient has no value there); run the backward operator in float32."};
inline constexpr Text kWeightInitialization{"initial weights look wrong: too many zeros, or out of range",
                                            "Check the initialiser and whether the right checkpoint was loaded. Zeros "
                                            "are normal for biases. Scale random weights by "
                                            "the layer's width (Xavier, He) and use the same seed on all ranks."};
inline constexpr Text kTensorTooLarge{"values of a tensor are above a limit",
                                      "Find the first layer above the limit. Check the scale and the normalisation of "
                                      "the input data and the initial weights, "
                                      "then watch upstream with a tighter limit."};
inline constexpr Text kWeightTooLarge{"values of a weight are above a limit",
                                      "Compare with earlier steps; WCL and GL tell whether updates or gradients grow. "
                                      "Lower the learning rate, add weight decay, "
                                      "check the scale of the initial weights."};
inline constexpr Text kGradientTooLarge{"values of a gradient are above a limit",
                                        "Go backwards to the first large gradient. Clip gradients after the loss scale "
                                        "is undone, normalise the data, check how "
                                        "the loss is reduced, lower the learning rate."};
inline constexpr Text kTensorTooSmall{"values of a tensor are below a limit",
                                      "Check the range of the data, the activation before it with AR, and the weights "
                                      "with WS: a dead layer or too strong a "
                                      "regularisation makes values vanish."};
inline constexpr Text kWeightTooSmall{
    "values of a weight are below a limit",
    "Check the decay factor and the initial weights, and whether the layer is used at all."};
inline constexpr Text kGradientVanishing{
    "values of a gradient are below a limit",
    "Look with AR at the activations that feed this gradient: saturated sigmoid or tanh and dead ReLU stop it. Add "
    "normalisation or shortcuts, change the activation, raise the loss scale, check that the loss is still connected."};
inline constexpr Text kTensorAllZero{
    "zeros make up at least the given percentage",
    "Decide whether zeros are legal here (masks, biases, sparse labels). If not, find the first all-zero output "
    "upstream: a "
    "dead ReLU, a branch that is not used, dropout with keep and drop exchanged. Check the initial weights."};
inline constexpr Text kWeightChangeTooLarge{"an update changed a weight by more than the given fraction",
                                            "Check the gradients with GL and GE, lower the learning rate or warm it "
                                            "up. Weights that start at zero exceed any limit in "
                                            "the first steps; leave them out."};
inline constexpr Text kWeightChangeTooSmall{"an update changed a weight by less than the given fraction",
                                            "Check the learning-rate schedule and the gradient with GV, and with WNC "
                                            "whether the weight is frozen. Near convergence "
                                            "small updates are expected."};
inline constexpr Text kWeightNotChanged{"the weight did not change since the previous step",
                                        "Decide whether it is frozen on purpose. If not: is it in the optimizer's "
                                        "parameter list, is its gradient zero (GV, TZ) or "
                                        "blocked, is the learning rate zero? In half precision an update can be too "
                                        "small to count; keep master weights in float32."};
inline constexpr Text kTensorRange{
    "the share of values inside a range, or max - min, is off",
    "Look at the histogram and compare with the previous step; check the inputs against the range that the next layer "
    "expects. A missing normalisation or a wrong activation shifts the distribution."};
inline constexpr Text kActivationRange{"an activation is saturated or dead",
                                       "Check the values before the activation with TR. Normalise them, initialise the "
                                       "weights again, use a leaky variant, lower "
                                       "the learning rate."};

inline constexpr Text kNan{"the tensor holds NaN", kTensorOverflow.advice};
inline constexpr Text kInf{"the tensor holds Inf", kTensorOverflow.advice};
inline constexpr Text kMaxGt{"the largest value is above the limit", kTensorTooLarge.advice};
inline constexpr Text kMaxLt{"the largest value is below the limit", kTensorTooSmall.advice};
inline constexpr Text kMinGt{"the smallest value is above the limit", kTensorTooLarge.advice};
inline constexpr Text kMinLt{"the smallest value is below the limit", kTensorTooSmall.advice};
inline constexpr Text kMaxMinGt{"max - min is above the limit", kTensorRange.advice};
inline constexpr Text kMaxMinLt{"max - min is below the limit", kTensorRange.advice};
inline constexpr Text kMeanGt{"the mean is above the limit", kTensorTooLarge.advice};
inline constexpr Text kMeanLt{"the mean is below the limit", kTensorTooSmall.advice};
inline constexpr Text kSdGt{"the standard deviation is above the limit", kTensorRange.advice};
inline constexpr Text kSdLt{"the standard deviation is below the limit", kTensorRange.advice};

}  // namespace msdbg::texts
