// The data that the example trains on: points around one centre per class.
#pragma once

#include <cstdint>
#include <vector>

namespace trainer {

using Values = std::vector<float>;

inline constexpr int kFeatures = 64;
inline constexpr int kClasses = 10;

/// The data of one step.
struct Batch {
  Values inputs;  ///< [batch, kFeatures]
  Values labels;  ///< [batch, kClasses], one-hot
  Values mask;    ///< [batch, 1], 1 for each sample that counts
};

/// The same points for the same seed, on every machine.
class Data {
 public:
  Data(uint64_t seed, int samples = 1024);
  /// Fills `batch` with the samples of step `step`; they repeat after all have been used.
  void fill(int64_t step, Batch& batch) const { fill(step, 0, 1, batch); }
  /// The share of rank `rank` of `ranks` in that step.
  void fill(int64_t step, int rank, int ranks, Batch& batch) const;

 private:
  int samples_;
  Values points_;
  std::vector<int> classes_;
};

/// Normally distributed numbers. The standard library's distributions differ between implementations.
class Normal {
 public:
  explicit Normal(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
  float next();
  uint64_t bits();

 private:
  uint64_t state_;
};

}  // namespace trainer
