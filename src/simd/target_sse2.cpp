// Baseline of x86-64.
#include <emmintrin.h>

#include "simd/target.h"

namespace msdbg::simd {

template <>
struct Ops<xsimd::sse2> {
  using A = xsimd::sse2;
  using Float = Batches<A>::Float;
  using Double = Batches<A>::Double;
  using Int = Batches<A>::Int;
  using Long = xsimd::batch<int64_t, A>;
  template <class B>
  using CounterOf = std::conditional_t<sizeof(typename B::value_type) == 8, Long, Int>;

  // A true lane is -1.
  MSDBG_LANES void count(Int* counter, xsimd::batch_bool<float, A> mask) {
    *counter = _mm_sub_epi32(*counter, _mm_castps_si128(mask));
  }
  MSDBG_LANES void count(Int* counter, xsimd::batch_bool<int32_t, A> mask) { *counter = _mm_sub_epi32(*counter, mask); }
  MSDBG_LANES void count(Long* counter, xsimd::batch_bool<double, A> mask) {
    *counter = _mm_sub_epi64(*counter, _mm_castpd_si128(mask));
  }
  template <class B>
  MSDBG_LANES auto between(B x, B low, B high) {
    return (x >= low) & (x <= high);
  }
  MSDBG_LANES Float magnitude(Float x) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), x); }
  MSDBG_LANES Double magnitude(Double x) { return _mm_andnot_pd(_mm_set1_pd(-0.0), x); }

  MSDBG_LANES Double fma(Double a, Double b, Double c) { return a * b + c; }
  /// |a| + |b|.
  MSDBG_LANES Double magnitudes(Double a, Double b, Double) { return magnitude(a) + magnitude(b); }

  using Words = xsimd::batch<int16_t, A>;
  MSDBG_LANES Words load_words(const char* p) { return all_bytes(p); }
  MSDBG_LANES Words max_signed(Words a, Words b) { return _mm_max_epi16(a, b); }
  MSDBG_LANES Words min_signed(Words a, Words b) { return _mm_min_epi16(a, b); }
  MSDBG_LANES Words max_unsigned(Words a, Words b) { return _mm_add_epi16(b, _mm_subs_epu16(a, b)); }
  MSDBG_LANES Words min_unsigned(Words a, Words b) { return _mm_sub_epi16(a, _mm_subs_epu16(a, b)); }
  MSDBG_LANES void count_zeros(Words* counter, Words x) {
    *counter = _mm_sub_epi16(*counter, _mm_cmpeq_epi16(_mm_add_epi16(x, x), _mm_setzero_si128()));
  }
  MSDBG_LANES void count_negatives(Words* counter, Words x) {
    const __m128i flipped = _mm_xor_si128(x, _mm_set1_epi16(-0x8000));
    *counter = _mm_sub_epi16(*counter, _mm_cmpgt_epi16(flipped, _mm_setzero_si128()));
  }
  /// Sign and magnitude to two's complement.
  MSDBG_LANES Words ordered(Words x) {
    const __m128i sign = _mm_srai_epi16(x, 15);
    return _mm_sub_epi16(_mm_xor_si128(x, _mm_srli_epi16(sign, 1)), sign);
  }
  /// x where the magnitudes of both a and b are below the limit, else 0.
  MSDBG_LANES Words where_below(Words x, Words a, Words b, Words limit) {
    const __m128i size = _mm_set1_epi16(0x7fff);
    const __m128i first = _mm_cmpgt_epi16(limit, _mm_and_si128(a, size));
    return _mm_and_si128(_mm_and_si128(x, first), _mm_cmpgt_epi16(limit, _mm_and_si128(b, size)));
  }

  MSDBG_LANES __m128i four_bytes(const char* p) {
    int bits;
    __builtin_memcpy(&bits, p, sizeof bits);
    return _mm_cvtsi32_si128(bits);
  }
  MSDBG_LANES __m128i eight_bytes(const char* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
  MSDBG_LANES __m128i all_bytes(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
  MSDBG_LANES __m128i zero() { return _mm_setzero_si128(); }

  MSDBG_LANES Int load_uint8(const char* p) { return _mm_unpacklo_epi16(_mm_unpacklo_epi8(four_bytes(p), zero()), zero()); }
  MSDBG_LANES Int load_int8(const char* p) {
    const __m128i twice = _mm_unpacklo_epi8(zero(), four_bytes(p));
    return _mm_srai_epi32(_mm_unpacklo_epi16(zero(), twice), 24);
  }
  MSDBG_LANES Int load_bool(const char* p) {
    return _mm_andnot_si128(_mm_cmpeq_epi32(load_uint8(p), zero()), _mm_set1_epi32(1));
  }
  MSDBG_LANES Int load_uint16(const char* p) { return _mm_unpacklo_epi16(eight_bytes(p), zero()); }
  MSDBG_LANES Int load_int16(const char* p) { return _mm_srai_epi32(_mm_unpacklo_epi16(zero(), eight_bytes(p)), 16); }
  MSDBG_LANES Int load_int32_t(const char* p) { return all_bytes(p); }
  MSDBG_LANES Float load_float(const char* p) { return _mm_castsi128_ps(all_bytes(p)); }
  MSDBG_LANES Float load_bfloat16(const char* p) { return _mm_castsi128_ps(_mm_unpacklo_epi16(zero(), eight_bytes(p))); }
  // Adjusting the exponent by a multiplication is exact and turns denormals into normals.
  MSDBG_LANES Float load_half(const char* p) {
    const __m128i bits = _mm_unpacklo_epi16(eight_bytes(p), zero());
    const __m128i sign = _mm_slli_epi32(_mm_and_si128(bits, _mm_set1_epi32(0x8000)), 16);
    const __m128i rest = _mm_and_si128(bits, _mm_set1_epi32(0x7fff));
    const __m128i special = _mm_and_si128(_mm_cmpgt_epi32(rest, _mm_set1_epi32(0x7bff)), _mm_set1_epi32(0x7f800000));
    const __m128 scaled = _mm_mul_ps(_mm_castsi128_ps(_mm_slli_epi32(rest, 13)), _mm_set1_ps(0x1p112f));
    return _mm_castsi128_ps(_mm_or_si128(_mm_or_si128(_mm_castps_si128(scaled), special), sign));
  }

  MSDBG_LANES void doubles_from_half(const char* p, Double* a, Double* b) { widen(load_half(p), a, b); }
  MSDBG_LANES void widen(Float x, Double* a, Double* b) {
    *a = _mm_cvtps_pd(x);
    *b = _mm_cvtps_pd(_mm_movehl_ps(x, x));
  }
  MSDBG_LANES void widen(Int x, Double* a, Double* b) {
    *a = _mm_cvtepi32_pd(x);
    *b = _mm_cvtepi32_pd(_mm_unpackhi_epi64(x, x));
  }
  MSDBG_LANES Double double_from_float(const char* p) { return _mm_cvtps_pd(_mm_castsi128_ps(eight_bytes(p))); }
  MSDBG_LANES Double double_from_int32_t(const char* p) { return _mm_cvtepi32_pd(eight_bytes(p)); }
  MSDBG_LANES Double double_from_double(const char* p) { return _mm_castsi128_pd(all_bytes(p)); }
  // Placing the halves below the exponents of 2^52 and 2^84 makes them doubles; only the last addition rounds.
  MSDBG_LANES __m128i low_half(__m128i x) {
    return _mm_or_si128(_mm_and_si128(x, _mm_set1_epi64x(0xffffffff)), _mm_castpd_si128(_mm_set1_pd(0x1p52)));
  }
  MSDBG_LANES Double double_from_uint32_t(const char* p) {
    const __m128i bits = _mm_unpacklo_epi32(eight_bytes(p), zero());
    return _mm_sub_pd(_mm_castsi128_pd(low_half(bits)), _mm_set1_pd(0x1p52));
  }
  MSDBG_LANES Double double_from_uint64_t(const char* p) {
    const __m128i x = all_bytes(p);
    const __m128i high = _mm_or_si128(_mm_srli_epi64(x, 32), _mm_castpd_si128(_mm_set1_pd(0x1p84)));
    return _mm_add_pd(_mm_sub_pd(_mm_castsi128_pd(high), _mm_set1_pd(0x1p84 + 0x1p52)), _mm_castsi128_pd(low_half(x)));
  }
  MSDBG_LANES Double double_from_int64_t(const char* p) {
    const __m128i x = all_bytes(p);
    const __m128i flipped = _mm_xor_si128(_mm_srli_epi64(x, 32), _mm_set1_epi64x(0x80000000));
    const __m128i high = _mm_or_si128(flipped, _mm_castpd_si128(_mm_set1_pd(0x1p84)));
    return _mm_add_pd(_mm_sub_pd(_mm_castsi128_pd(high), _mm_set1_pd(0x1p84 + 0x1p63 + 0x1p52)),
                      _mm_castsi128_pd(low_half(x)));
  }
};

MSDBG_SIMD_TARGET(kSse2Target, "sse2", xsimd::sse2);

}  // namespace msdbg::simd
