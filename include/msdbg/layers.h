// One line for each trained parameter: how large it and its gradient are, and how far the updates move it.
//
// The session's owner thread only. Source: the parameter files and the gradients that the optimizers take (msdbg/gradients.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "msdbg/follow.h"

namespace msdbg {

struct LayerPoint {
  int64_t step = 0;
  std::optional<double> weight, gradient;  ///< mean magnitude of the finite elements
  uint64_t bad = 0;                        ///< NaN and Inf in both
  bool counted = true;                     ///< false: `bad` is the least; how many there are is not known
};

struct Layer {
  std::string name;                        ///< of the parameter, or of the layer
  std::vector<TensorId> parameters;        ///< one, or all of the layer; `step` is that of the values below
  std::optional<TensorId> gradient;        ///< of a single parameter
  uint64_t elements = 0;
  std::optional<double> weight, gradient_mean;  ///< mean magnitudes in the last step with finite elements
  std::optional<double> update;            ///< mean change / mean magnitude before, per update; of the last value without NaN and Inf
  double before = 0;                       ///< that magnitude; of a layer times its elements
  int64_t updates = 0;                     ///< between the two values that `update` compares
  std::optional<double> zeros, gradient_zeros;  ///< percent
  std::optional<int64_t> first_bad;        ///< first step with NaN or Inf in the parameter or its gradient
  std::vector<LayerPoint> points;          ///< ascending steps
  bool by_norm = false;                    ///< some magnitudes are root mean squares: only statistics were dumped
  std::string problem;                     ///< why there is no gradient, or no value at all
  const Node* used_by = nullptr;           ///< the first operator of the forward pass that takes it
};

struct LayersResult {
  std::vector<int64_t> steps;
  bool by_layer = false;
  std::vector<Layer> layers;               ///< by rank, then in the order of their first use
  std::vector<std::string> frozen;         ///< weights that no optimizer updates
  bool interrupted = false;
};

struct LayersOptions : FollowOptions {
  bool by_layer = false;       ///< one line for `encoder.layers.3` instead of one for each of its parameters
  std::optional<Selector> on;  ///< only these parameters
};

/// Error: kNotFound when no optimizer updates a parameter, or none of the parameters was dumped in the chosen steps.
Result<LayersResult> layers(Session& session, const LayersOptions& options);

/// `encoder.layers.3` of `encoder.layers.3.attn.weight`; `conv1` of `conv1.weight`.
std::string layer_of(std::string_view parameter);

}  // namespace msdbg
