// Faults that the example can plant. Each one occurs in real trainings, and each one is really computed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "net.h"

namespace trainer {

enum class Fault : uint8_t {
  kNone,
  kExplodingRate,  ///< from this step on, the learning rate doubles in every step
  kLogOfZero,      ///< in that step one sample's mask is 0, and it is applied before the logarithm
  kDeadRelu,       ///< in that step fc2.bias becomes so negative that relu2 is zero from then on
  kFrozenLayer,    ///< from this step on, fc2.weight is not updated
  kBadBatch,       ///< in that step the first sample is NaN
  kOneRankBadBatch,  ///< the same on one rank only
  kBitFlip,        ///< after that step one bit of fc1.weight changes on one rank
};
/// True for a fault of one rank of several.
inline bool is_of_one_rank(Fault fault) { return fault == Fault::kOneRankBadBatch || fault == Fault::kBitFlip; }
std::optional<Fault> fault_from_name(std::string_view name);

/// Call it after the batch was filled and before the step runs. Steps count from 0.
void plant(Fault fault, int64_t fault_step, int64_t step, Net& net);
/// Call it after the step has run and before it ends.
void plant_after(Fault fault, int64_t fault_step, int64_t step, Net& net);

}  // namespace trainer
