// AVX-512 with the F, CD, DQ, BW and VL parts.
#include <immintrin.h>

#include "simd/pair_kernel.h"
#include "simd/stats_kernel.h"

namespace msdbg::simd {

using Avx512 = xsimd::avx512bw;

template <>
struct Ops<Avx512> {
  using A = Avx512;
  using Float = Batches<A>::Float;
  using Double = Batches<A>::Double;
  using Int = Batches<A>::Int;
  using Long = xsimd::batch<int64_t, A>;
  template <class B>
  using CounterOf = std::conditional_t<sizeof(typename B::value_type) == 8, Long, Int>;

  MSDBG_LANES void count(Int* counter, __mmask16 mask) {
    *counter = _mm512_mask_sub_epi32(*counter, mask, *counter, _mm512_set1_epi32(-1));
  }
  MSDBG_LANES void count(Long* counter, __mmask8 mask) {
    *counter = _mm512_mask_sub_epi64(*counter, mask, *counter, _mm512_set1_epi64(-1));
  }
  template <class B>
  MSDBG_LANES void count(Int* counter, xsimd::batch_bool<B, A> mask) {
    count(counter, static_cast<__mmask16>(mask.data));
  }
  MSDBG_LANES void count(Long* counter, xsimd::batch_bool<double, A> mask) {
    count(counter, static_cast<__mmask8>(mask.data));
  }
  // The second comparison runs under the mask of the first.
  MSDBG_LANES __mmask16 between(Float x, Float low, Float high) {
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x, low, _CMP_GE_OQ), x, high, _CMP_LE_OQ);
  }
  MSDBG_LANES __mmask8 between(Double x, Double low, Double high) {
    return _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(x, low, _CMP_GE_OQ), x, high, _CMP_LE_OQ);
  }
  MSDBG_LANES __mmask16 between(Int x, Int low, Int high) {
    return _mm512_mask_cmple_epi32_mask(_mm512_cmpge_epi32_mask(x, low), x, high);
  }
  MSDBG_LANES Float magnitude(Float x) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x); }
  MSDBG_LANES Double magnitude(Double x) { return _mm512_andnot_pd(_mm512_set1_pd(-0.0), x); }

  MSDBG_LANES __m128i quarter_bytes(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
  MSDBG_LANES __m256i half_bytes(const char* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  MSDBG_LANES __m512i all_bytes(const char* p) { return _mm512_loadu_si512(p); }

  MSDBG_LANES Int load_uint8(const char* p) { return _mm512_cvtepu8_epi32(quarter_bytes(p)); }
  MSDBG_LANES Int load_int8(const char* p) { return _mm512_cvtepi8_epi32(quarter_bytes(p)); }
  MSDBG_LANES Int load_bool(const char* p) {
    return _mm512_min_epi32(_mm512_cvtepu8_epi32(quarter_bytes(p)), _mm512_set1_epi32(1));
  }
  MSDBG_LANES Int load_uint16(const char* p) { return _mm512_cvtepu16_epi32(half_bytes(p)); }
  MSDBG_LANES Int load_int16(const char* p) { return _mm512_cvtepi16_epi32(half_bytes(p)); }
  MSDBG_LANES Int load_int32_t(const char* p) { return all_bytes(p); }
  MSDBG_LANES Float load_float(const char* p) { return _mm512_castsi512_ps(all_bytes(p)); }
  MSDBG_LANES Float load_half(const char* p) { return _mm512_cvtph_ps(half_bytes(p)); }
  MSDBG_LANES Float load_bfloat16(const char* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half_bytes(p)), 16));
  }

  MSDBG_LANES void widen(Float x, Double* a, Double* b) {
    *a = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    *b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
  }
  MSDBG_LANES void widen(Int x, Double* a, Double* b) {
    *a = _mm512_cvtepi32_pd(_mm512_castsi512_si256(x));
    *b = _mm512_cvtepi32_pd(_mm512_extracti32x8_epi32(x, 1));
  }
  MSDBG_LANES Double double_from_float(const char* p) { return _mm512_cvtps_pd(_mm256_castsi256_ps(half_bytes(p))); }
  MSDBG_LANES Double double_from_int32_t(const char* p) { return _mm512_cvtepi32_pd(half_bytes(p)); }
  MSDBG_LANES Double double_from_uint32_t(const char* p) { return _mm512_cvtepu32_pd(half_bytes(p)); }
  MSDBG_LANES Double double_from_int64_t(const char* p) { return _mm512_cvtepi64_pd(all_bytes(p)); }
  MSDBG_LANES Double double_from_uint64_t(const char* p) { return _mm512_cvtepu64_pd(all_bytes(p)); }
  MSDBG_LANES Double double_from_double(const char* p) { return _mm512_castsi512_pd(all_bytes(p)); }
};

extern const Target kAvx512Target = {"avx512", MSDBG_KERNELS(Avx512)};
extern const PairTarget kAvx512PairTarget = MSDBG_PAIR_KERNELS(Avx512);

}  // namespace msdbg::simd
