// Baseline of x86-64.
#include <emmintrin.h>

#include "expr/simd_lanes.h"

namespace msdbg::expr {

template <>
struct Widen<xsimd::sse2> {
  using A = xsimd::sse2;
  MSDBG_EXPR_INLINE void run(xsimd::batch<float, A> x, xsimd::batch<double, A>* a, xsimd::batch<double, A>* b) {
    *a = _mm_cvtps_pd(x);
    *b = _mm_cvtps_pd(_mm_movehl_ps(x, x));
  }
};

static constexpr Kernels<float> kSse2Floats = block_kernels<SimdLanes<float, xsimd::sse2>>();
static constexpr Kernels<double> kSse2Doubles = block_kernels<SimdLanes<double, xsimd::sse2>>();
extern const Target kSse2Target = {"sse2", &kSse2Floats, &kSse2Doubles};

}  // namespace msdbg::expr
