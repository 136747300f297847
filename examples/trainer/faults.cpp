#include "faults.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace trainer {

std::optional<Fault> fault_from_name(std::string_view name) {
  if (name == "none") return Fault::kNone;
  if (name == "exploding-rate") return Fault::kExplodingRate;
  if (name == "log-of-zero") return Fault::kLogOfZero;
  if (name == "dead-relu") return Fault::kDeadRelu;
  if (name == "frozen-layer") return Fault::kFrozenLayer;
  if (name == "bad-batch") return Fault::kBadBatch;
  if (name == "one-rank-bad-batch") return Fault::kOneRankBadBatch;
  if (name == "bit-flip") return Fault::kBitFlip;
  return std::nullopt;
}

void plant(Fault fault, int64_t fault_step, int64_t step, Net& net) {
  if (step < fault_step) return;
  const bool now = step == fault_step;
  switch (fault) {
    case Fault::kNone: break;
    case Fault::kExplodingRate: net.learning_rate[0] *= 2.0F; break;
    case Fault::kLogOfZero:
      if (now) net.batch.mask[0] = 0.0F;
      break;
    case Fault::kDeadRelu:
      if (now) std::fill(net.fc2.bias.begin(), net.fc2.bias.end(), -1000.0F);
      break;
    case Fault::kFrozenLayer: net.fc2_weight_frozen = true; break;
    case Fault::kBitFlip: break;
    case Fault::kBadBatch:
    case Fault::kOneRankBadBatch:
      if (now) std::fill_n(net.batch.inputs.begin(), kFeatures, std::numeric_limits<float>::quiet_NaN());
      break;
  }
}

void plant_after(Fault fault, int64_t fault_step, int64_t step, Net& net) {
  if (fault != Fault::kBitFlip || step != fault_step) return;
  constexpr uint32_t kBit = uint32_t{1} << 24;  // the second lowest of the exponent: the value changes by a factor of 4
  float& value = net.fc1.weight[5 * kFeatures + 17];
  value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ kBit);
}

}  // namespace trainer
