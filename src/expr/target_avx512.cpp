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

static constexpr Kernels<float> kAvx512Floats = block_kernels<SimdLanes<float, Avx512>>();
static constexpr Kernels<double> kAvx512Doubles = block_kernels<SimdLanes<double, Avx512>>();
extern const Target kAvx512Target = {"avx512", &kAvx512Floats, &kAvx512Doubles};

}  // namespace msdbg::expr
