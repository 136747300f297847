#include "data.h"

#include <algorithm>
#include <cmath>

namespace trainer {

uint64_t Normal::bits() {  // splitmix64
  uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

float Normal::next() {  // Box-Muller; the second value is not kept
  const double u = (static_cast<double>(bits() >> 11) + 1.0) * 0x1p-53;
  const double v = static_cast<double>(bits() >> 11) * 0x1p-53;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v));
}

Data::Data(uint64_t seed, int samples) : samples_(samples) {
  Normal normal(seed);
  Values centres(static_cast<size_t>(kClasses) * kFeatures);
  // Large enough for the loss to fall quickly, small enough to keep it above zero for thousands of steps.
  for (float& value : centres) value = 0.5F * normal.next();

  points_.resize(static_cast<size_t>(samples) * kFeatures);
  classes_.resize(static_cast<size_t>(samples));
  for (size_t i = 0; i < classes_.size(); ++i) {
    classes_[i] = static_cast<int>(normal.bits() % kClasses);
    const float* centre = &centres[static_cast<size_t>(classes_[i]) * kFeatures];
    for (size_t k = 0; k < kFeatures; ++k) points_[i * kFeatures + k] = centre[k] + normal.next();
  }
}

void Data::fill(int64_t step, int rank, int ranks, Batch& batch) const {
  const auto turn = static_cast<size_t>(step) * static_cast<size_t>(ranks) + static_cast<size_t>(rank);
  const size_t size = batch.mask.size();
  std::fill(batch.labels.begin(), batch.labels.end(), 0.0F);
  std::fill(batch.mask.begin(), batch.mask.end(), 1.0F);
  for (size_t i = 0; i < size; ++i) {
    const size_t sample = (turn * size + i) % static_cast<size_t>(samples_);
    std::copy_n(&points_[sample * kFeatures], kFeatures, &batch.inputs[i * kFeatures]);
    batch.labels[i * kClasses + static_cast<size_t>(classes_[sample])] = 1.0F;
  }
}

}  // namespace trainer
