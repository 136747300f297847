// AVX-512 with the F, CD, DQ, BW and VL parts.
#include <immintrin.h>

#include "expr/simd_lanes.h"

namespace msdbg::expr {

using Avx512 = xsimd::avx512bw;

template <>
struct Widen<Avx512> {
  MSDBG_EXPR_INLINE void run(xsimd::batch<float, Avx512> x, xsimd::batch<double, Avx512>* a,
                             xsimd::batch<double, Avx512>* b) {
    *a = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    *b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
  }
};

template <>
struct Counting<float, Avx512> {
  MSDBG_EXPR_INLINE xsimd::batch<float, Avx512> add(xsimd::batch<float, Avx512> counts, xsimd::batch_bool<float, Avx512> mask) {
    return _mm512_mask_add_ps(counts, mask, counts, _mm512_set1_ps(1));
  }
  MSDBG_EXPR_INLINE uint64_t total(xsimd::batch<float, Avx512> counts) { return static_cast<uint64_t>(_mm512_reduce_add_ps(counts)); }
};

template <>
struct Counting<double, Avx512> {
  MSDBG_EXPR_INLINE xsimd::batch<double, Avx512> add(xsimd::batch<double, Avx512> counts, xsimd::batch_bool<double, Avx512> mask) {
    return _mm512_mask_add_pd(counts, mask, counts, _mm512_set1_pd(1));
  }
  MSDBG_EXPR_INLINE uint64_t total(xsimd::batch<double, Avx512> counts) { return static_cast<uint64_t>(_mm512_reduce_add_pd(counts)); }
};

static constexpr Kernels<float> kAvx512Floats = block_kernels<SimdLanes<float, Avx512>>();
static constexpr Kernels<double> kAvx512Doubles = block_kernels<SimdLanes<double, Avx512>>();
extern const Target kAvx512Target = {"avx512", &kAvx512Floats, &kAvx512Doubles};

}  // namespace msdbg::expr
