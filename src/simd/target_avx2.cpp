// AVX2 with FMA and the conversions of half precision.
#include <immintrin.h>

#include "simd/target.h"

namespace msdbg::simd {

using Avx2 = xsimd::fma3<xsimd::avx2>;

template <>
struct Ops<Avx2> {
  using A = Avx2;
  using Float = Batches<A>::Float;
  using Double = Batches<A>::Double;
  using Int = Batches<A>::Int;
  using Long = xsimd::batch<int64_t, A>;
  template <class B>
  using CounterOf = std::conditional_t<sizeof(typename B::value_type) == 8, Long, Int>;

  // A true lane is -1.
  MSDBG_LANES void count(Int* counter, xsimd::batch_bool<float, A> mask) {
    *counter = _mm256_sub_epi32(*counter, _mm256_castps_si256(mask));
  }
  MSDBG_LANES void count(Int* counter, xsimd::batch_bool<int32_t, A> mask) {
    *counter = _mm256_sub_epi32(*counter, mask);
  }
  MSDBG_LANES void count(Long* counter, xsimd::batch_bool<double, A> mask) {
    *counter = _mm256_sub_epi64(*counter, _mm256_castpd_si256(mask));
  }
  template <class B>
  MSDBG_LANES auto between(B x, B low, B high) {
    return (x >= low) & (x <= high);
  }
  MSDBG_LANES Float magnitude(Float x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
  MSDBG_LANES Double magnitude(Double x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }

  MSDBG_LANES Double fma(Double a, Double b, Double c) { return _mm256_fmadd_pd(a, b, c); }
  /// |a| + |b|.
  MSDBG_LANES Double magnitudes(Double a, Double b, Double) { return magnitude(a) + magnitude(b); }

  using Words = xsimd::batch<int16_t, A>;
  MSDBG_LANES Words load_words(const char* p) { return all_bytes(p); }
  MSDBG_LANES Words max_signed(Words a, Words b) { return _mm256_max_epi16(a, b); }
  MSDBG_LANES Words min_signed(Words a, Words b) { return _mm256_min_epi16(a, b); }
  MSDBG_LANES Words max_unsigned(Words a, Words b) { return _mm256_max_epu16(a, b); }
  MSDBG_LANES Words min_unsigned(Words a, Words b) { return _mm256_min_epu16(a, b); }
  MSDBG_LANES void count_zeros(Words* counter, Words x) {
    *counter = _mm256_sub_epi16(*counter, _mm256_cmpeq_epi16(_mm256_add_epi16(x, x), _mm256_setzero_si256()));
  }
  MSDBG_LANES void count_negatives(Words* counter, Words x) {
    const __m256i flipped = _mm256_xor_si256(x, _mm256_set1_epi16(-0x8000));
    *counter = _mm256_sub_epi16(*counter, _mm256_cmpgt_epi16(flipped, _mm256_setzero_si256()));
  }
  /// Sign and magnitude to two's complement.
  MSDBG_LANES Words ordered(Words x) {
    const __m256i sign = _mm256_srai_epi16(x, 15);
    return _mm256_sub_epi16(_mm256_xor_si256(x, _mm256_srli_epi16(sign, 1)), sign);
  }
  /// x where the magnitudes of both a and b are below the limit, else 0.
  MSDBG_LANES Words where_below(Words x, Words a, Words b, Words limit) {
    const __m256i size = _mm256_set1_epi16(0x7fff);
    const __m256i first = _mm256_cmpgt_epi16(limit, _mm256_and_si256(a, size));
    return _mm256_and_si256(_mm256_and_si256(x, first), _mm256_cmpgt_epi16(limit, _mm256_and_si256(b, size)));
  }

  MSDBG_LANES __m128i eight_bytes(const char* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
  MSDBG_LANES __m128i half_bytes(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
  MSDBG_LANES __m256i all_bytes(const char* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

  MSDBG_LANES Int load_uint8(const char* p) { return _mm256_cvtepu8_epi32(eight_bytes(p)); }
  MSDBG_LANES Int load_int8(const char* p) { return _mm256_cvtepi8_epi32(eight_bytes(p)); }
  MSDBG_LANES Int load_bool(const char* p) {
    return _mm256_min_epi32(_mm256_cvtepu8_epi32(eight_bytes(p)), _mm256_set1_epi32(1));
  }
  MSDBG_LANES Int load_uint16(const char* p) { return _mm256_cvtepu16_epi32(half_bytes(p)); }
  MSDBG_LANES Int load_int16(const char* p) { return _mm256_cvtepi16_epi32(half_bytes(p)); }
  MSDBG_LANES Int load_int32_t(const char* p) { return all_bytes(p); }
  MSDBG_LANES Float load_float(const char* p) { return _mm256_castsi256_ps(all_bytes(p)); }
  MSDBG_LANES Float load_half(const char* p) { return _mm256_cvtph_ps(half_bytes(p)); }
  MSDBG_LANES Float load_bfloat16(const char* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half_bytes(p)), 16));
  }

  MSDBG_LANES void doubles_from_half(const char* p, Double* a, Double* b) { widen(load_half(p), a, b); }
  MSDBG_LANES void widen(Float x, Double* a, Double* b) {
    *a = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    *b = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
  }
  MSDBG_LANES void widen(Int x, Double* a, Double* b) {
    *a = _mm256_cvtepi32_pd(_mm256_castsi256_si128(x));
    *b = _mm256_cvtepi32_pd(_mm256_extracti128_si256(x, 1));
  }
  MSDBG_LANES Double double_from_float(const char* p) { return _mm256_cvtps_pd(_mm_castsi128_ps(half_bytes(p))); }
  MSDBG_LANES Double double_from_int32_t(const char* p) { return _mm256_cvtepi32_pd(half_bytes(p)); }
  MSDBG_LANES Double double_from_double(const char* p) { return _mm256_castsi256_pd(all_bytes(p)); }
  // Placing the halves below the exponents of 2^52 and 2^84 makes them doubles; only the last addition rounds.
  MSDBG_LANES __m256i low_half(__m256i x) {
    return _mm256_blend_epi32(x, _mm256_castpd_si256(_mm256_set1_pd(0x1p52)), 0b10101010);
  }
  MSDBG_LANES Double double_from_uint32_t(const char* p) {
    const __m256i bits = low_half(_mm256_cvtepu32_epi64(half_bytes(p)));
    return _mm256_sub_pd(_mm256_castsi256_pd(bits), _mm256_set1_pd(0x1p52));
  }
  MSDBG_LANES Double double_from_uint64_t(const char* p) {
    const __m256i x = all_bytes(p);
    const __m256i high = _mm256_or_si256(_mm256_srli_epi64(x, 32), _mm256_castpd_si256(_mm256_set1_pd(0x1p84)));
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), _mm256_set1_pd(0x1p84 + 0x1p52)),
                         _mm256_castsi256_pd(low_half(x)));
  }
  MSDBG_LANES Double double_from_int64_t(const char* p) {
    const __m256i x = all_bytes(p);
    const __m256i flipped = _mm256_xor_si256(_mm256_srli_epi64(x, 32), _mm256_set1_epi64x(0x80000000));
    const __m256i high = _mm256_or_si256(flipped, _mm256_castpd_si256(_mm256_set1_pd(0x1p84)));
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), _mm256_set1_pd(0x1p84 + 0x1p63 + 0x1p52)),
                         _mm256_castsi256_pd(low_half(x)));
  }
};

MSDBG_SIMD_TARGET(kAvx2Target, "avx2", Avx2);

}  // namespace msdbg::simd
