// AVX2 with FMA; the kernels are compiled without contraction, so that all targets round alike.
#include <immintrin.h>

#include "expr/simd_lanes.h"

namespace msdbg::expr {

using Avx2 = xsimd::fma3<xsimd::avx2>;

template <>
struct Widen<Avx2> {
  MSDBG_EXPR_INLINE void run(xsimd::batch<float, Avx2> x, xsimd::batch<double, Avx2>* a, xsimd::batch<double, Avx2>* b) {
    *a = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    *b = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
  }
};

// A mask that holds is -1 as an integer.
template <>
struct Counting<float, Avx2> {
  MSDBG_EXPR_INLINE xsimd::batch<float, Avx2> add(xsimd::batch<float, Avx2> counts, xsimd::batch_bool<float, Avx2> mask) {
    return _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_castps_si256(counts), _mm256_castps_si256(mask)));
  }
  MSDBG_EXPR_INLINE uint64_t total(xsimd::batch<float, Avx2> counts) {
    alignas(64) uint32_t parts[xsimd::batch<float, Avx2>::size];
    _mm256_store_si256(reinterpret_cast<__m256i*>(parts), _mm256_castps_si256(counts));
    uint64_t sum = 0;
    for (uint32_t part : parts) sum += part;
    return sum;
  }
};

// A mask that holds is -1 as an integer.
template <>
struct Counting<double, Avx2> {
  MSDBG_EXPR_INLINE xsimd::batch<double, Avx2> add(xsimd::batch<double, Avx2> counts, xsimd::batch_bool<double, Avx2> mask) {
    return _mm256_castsi256_pd(_mm256_sub_epi64(_mm256_castpd_si256(counts), _mm256_castpd_si256(mask)));
  }
  MSDBG_EXPR_INLINE uint64_t total(xsimd::batch<double, Avx2> counts) {
    alignas(64) uint64_t parts[xsimd::batch<double, Avx2>::size];
    _mm256_store_si256(reinterpret_cast<__m256i*>(parts), _mm256_castpd_si256(counts));
    uint64_t sum = 0;
    for (uint64_t part : parts) sum += part;
    return sum;
  }
};

static constexpr Kernels<float> kAvx2Floats = block_kernels<SimdLanes<float, Avx2>>();
static constexpr Kernels<double> kAvx2Doubles = block_kernels<SimdLanes<double, Avx2>>();
extern const Target kAvx2Target = {"avx2", &kAvx2Floats, &kAvx2Doubles};

}  // namespace msdbg::expr
