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

static constexpr Kernels<float> kAvx2Floats = block_kernels<SimdLanes<float, Avx2>>();
static constexpr Kernels<double> kAvx2Doubles = block_kernels<SimdLanes<double, Avx2>>();
extern const Target kAvx2Target = {"avx2", &kAvx2Floats, &kAvx2Doubles};

}  // namespace msdbg::expr
