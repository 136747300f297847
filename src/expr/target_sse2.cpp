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

// A mask that holds is -1 as an integer.
template <>
struct Counting<float, xsimd::sse2> {
  MSDBG_EXPR_INLINE xsimd::batch<float, xsimd::sse2> add(xsimd::batch<float, xsimd::sse2> counts,
                                                         xsimd::batch_bool<float, xsimd::sse2> mask) {
    return _mm_castsi128_ps(_mm_sub_epi32(_mm_castps_si128(counts), _mm_castps_si128(mask)));
  }
  MSDBG_EXPR_INLINE uint64_t total(xsimd::batch<float, xsimd::sse2> counts) {
    alignas(64) uint32_t parts[xsimd::batch<float, xsimd::sse2>::size];
    _mm_store_si128(reinterpret_cast<__m128i*>(parts), _mm_castps_si128(counts));
    uint64_t sum = 0;
    for (uint32_t part : parts) sum += part;
    return sum;
  }
};

// A mask that holds is -1 as an integer.
template <>
struct Counting<double, xsimd::sse2> {
  MSDBG_EXPR_INLINE xsimd::batch<double, xsimd::sse2> add(xsimd::batch<double, xsimd::sse2> counts,
                                                          xsimd::batch_bool<double, xsimd::sse2> mask) {
    return _mm_castsi128_pd(_mm_sub_epi64(_mm_castpd_si128(counts), _mm_castpd_si128(mask)));
  }
  MSDBG_EXPR_INLINE uint64_t total(xsimd::batch<double, xsimd::sse2> counts) {
    alignas(64) uint64_t parts[xsimd::batch<double, xsimd::sse2>::size];
    _mm_store_si128(reinterpret_cast<__m128i*>(parts), _mm_castpd_si128(counts));
    uint64_t sum = 0;
    for (uint64_t part : parts) sum += part;
    return sum;
  }
};

static constexpr Kernels<float> kSse2Floats = block_kernels<SimdLanes<float, xsimd::sse2>>();
static constexpr Kernels<double> kSse2Doubles = block_kernels<SimdLanes<double, xsimd::sse2>>();
extern const Target kSse2Target = {"sse2", &kSse2Floats, &kSse2Doubles};

}  // namespace msdbg::expr
