// The read limit: how fast one thread reads an array when it only sums it.
#pragma once

#include <immintrin.h>

#include <cstddef>

namespace msdbg {

__attribute__((noinline)) inline float sum_avx2(const std::byte* data, size_t bytes) {
  const float* x = reinterpret_cast<const float*>(data);
  __m256 sums[8] = {};
  const size_t n = bytes / sizeof(float);
  for (size_t i = 0; i + 64 <= n; i += 64) {
    for (size_t k = 0; k < 8; ++k) sums[k] = _mm256_add_ps(sums[k], _mm256_loadu_ps(x + i + 8 * k));
  }
  __m256 all = sums[0];
  for (size_t k = 1; k < 8; ++k) all = _mm256_add_ps(all, sums[k]);
  float lanes[8];
  _mm256_storeu_ps(lanes, all);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3] + lanes[4] + lanes[5] + lanes[6] + lanes[7];
}

}  // namespace msdbg
