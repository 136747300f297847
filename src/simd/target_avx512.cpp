// AVX-512 with the F, CD, DQ, BW and VL parts.
#include <immintrin.h>

#include "simd/target.h"

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
  // The second comparison runs with the mask of the first.
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

  MSDBG_LANES Double fma(Double a, Double b, Double c) { return _mm512_fmadd_pd(a, b, c); }
  /// |a| + |b|, which is the larger magnitude of sum and difference. Not finite if either of them is not.
  MSDBG_LANES Double magnitudes(Double a, Double b, Double sum) { return _mm512_range_pd(sum, _mm512_sub_pd(a, b), 0b1011); }

  using Words = xsimd::batch<int16_t, A>;
  MSDBG_LANES Words load_words(const char* p) { return all_bytes(p); }
  MSDBG_LANES Words max_signed(Words a, Words b) { return _mm512_max_epi16(a, b); }
  MSDBG_LANES Words min_signed(Words a, Words b) { return _mm512_min_epi16(a, b); }
  MSDBG_LANES Words max_unsigned(Words a, Words b) { return _mm512_max_epu16(a, b); }
  MSDBG_LANES Words min_unsigned(Words a, Words b) { return _mm512_min_epu16(a, b); }
  MSDBG_LANES void count_words(Words* counter, __mmask32 mask) {
    *counter = _mm512_mask_sub_epi16(*counter, mask, *counter, _mm512_set1_epi16(-1));
  }
  MSDBG_LANES void count_zeros(Words* counter, Words x) { count_words(counter, _mm512_testn_epi16_mask(x, _mm512_set1_epi16(0x7fff))); }
  MSDBG_LANES void count_negatives(Words* counter, Words x) {
    count_words(counter, _mm512_cmpgt_epu16_mask(x, _mm512_set1_epi16(-0x8000)));
  }
  /// Sign and magnitude to two's complement.
  MSDBG_LANES Words ordered(Words x) { return _mm512_mask_sub_epi16(x, _mm512_movepi16_mask(x), _mm512_set1_epi16(-0x8000), x); }
  /// x where the magnitudes of both a and b are below the limit, else 0.
  MSDBG_LANES Words where_below(Words x, Words a, Words b, Words limit) {
    const __m512i size = _mm512_set1_epi16(0x7fff);
    const __mmask32 first = _mm512_cmplt_epi16_mask(_mm512_and_si512(a, size), limit);
    return _mm512_maskz_mov_epi16(_mm512_mask_cmplt_epi16_mask(first, _mm512_and_si512(b, size), limit), x);
  }

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

  MSDBG_LANES void doubles_from_half(const char* p, Double* a, Double* b) {
    *a = _mm512_cvtps_pd(_mm256_cvtph_ps(quarter_bytes(p)));
    *b = _mm512_cvtps_pd(_mm256_cvtph_ps(quarter_bytes(p + 16)));
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

/// Counts in a float lane with one addition: a zero becomes 1.0 and a negative value the largest float, whose bits are added as
/// integers. The lower half of a lane is then minus the number of negatives; what remains is 127 * zeros << 23.
template <>
struct SignCounter<Avx512, xsimd::batch<float, Avx512>, true> {
  using Ints = xsimd::batch<int32_t, Avx512>;
  Ints sums = Ints(0);

  MSDBG_LANES __m512i classes(__m512 x) {
    // A nibble for each class, from the lowest: NaN (2), zero, one, -inf, inf, negative, positive. 8 gives 0, A 1.0, E the largest.
    return _mm512_castps_si512(_mm512_fixupimm_ps(x, x, _mm512_set1_epi32(static_cast<int>(0x8E8E8A88)), 0));
  }
  __attribute__((always_inline)) inline void add(xsimd::batch<float, Avx512> x) { sums = _mm512_add_epi32(sums, classes(x)); }
  void fold_into(BlockSums* out) const {
    constexpr uint32_t kNegative = 0x7f7fffff, kInverse = 383;  // 383 * 127 = 1 modulo 512
    alignas(64) int32_t parts[Ints::size];
    sums.store_aligned(parts);
    for (int32_t part : parts) {
      const auto sum = static_cast<uint32_t>(part);
      const uint32_t negatives = (0 - sum) & 0xffff;
      out->negatives += negatives;
      out->zeros += ((sum - negatives * kNegative) >> 23) * kInverse % 512;
    }
  }
};

MSDBG_SIMD_TARGET(kAvx512Target, "avx512", Avx512);

}  // namespace msdbg::simd
