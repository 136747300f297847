// AArch64. Advanced SIMD converts half precision in every processor, and bfloat16 is a shift, so the instructions that ARMv8.2 adds for
// arithmetic in 16 bits have nothing to do here: sums are in double, and extremes are found by comparing integers.
#include <arm_neon.h>

#include "simd/target.h"

namespace msdbg::simd {

template <>
struct Ops<xsimd::neon64> {
  using A = xsimd::neon64;
  using Float = Batches<A>::Float;
  using Double = Batches<A>::Double;
  using Int = Batches<A>::Int;
  using Long = xsimd::batch<int64_t, A>;
  template <class B>
  using CounterOf = std::conditional_t<sizeof(typename B::value_type) == 8, Long, Int>;

  // A true lane is -1.
  MSDBG_LANES void count(Int* counter, xsimd::batch_bool<float, A> mask) {
    *counter = vsubq_s32(*counter, vreinterpretq_s32_u32(mask.data));
  }
  MSDBG_LANES void count(Int* counter, xsimd::batch_bool<int32_t, A> mask) {
    *counter = vsubq_s32(*counter, vreinterpretq_s32_u32(mask.data));
  }
  MSDBG_LANES void count(Long* counter, xsimd::batch_bool<double, A> mask) {
    *counter = vsubq_s64(*counter, vreinterpretq_s64_u64(mask.data));
  }
  template <class B>
  MSDBG_LANES auto between(B x, B low, B high) {
    return (x >= low) & (x <= high);
  }
  MSDBG_LANES Float magnitude(Float x) { return vabsq_f32(x); }
  MSDBG_LANES Double magnitude(Double x) { return vabsq_f64(x); }

  MSDBG_LANES Double fma(Double a, Double b, Double c) { return vfmaq_f64(c, a, b); }
  /// |a| + |b|.
  MSDBG_LANES Double magnitudes(Double a, Double b, Double) { return magnitude(a) + magnitude(b); }

  MSDBG_LANES Float quotient(Float a, Float b) { return vdivq_f32(a, b); }
  MSDBG_LANES Double quotient(Double a, Double b) { return vdivq_f64(a, b); }
  MSDBG_LANES Float root(Float a) { return vsqrtq_f32(a); }
  MSDBG_LANES Double root(Double a) { return vsqrtq_f64(a); }

  using Words = xsimd::batch<int16_t, A>;
  MSDBG_LANES uint16x8_t bits(Words x) { return vreinterpretq_u16_s16(x); }
  MSDBG_LANES Words load_words(const char* p) { return vreinterpretq_s16_u8(all_bytes(p)); }
  MSDBG_LANES Words max_signed(Words a, Words b) { return vmaxq_s16(a, b); }
  MSDBG_LANES Words min_signed(Words a, Words b) { return vminq_s16(a, b); }
  MSDBG_LANES Words max_unsigned(Words a, Words b) { return vreinterpretq_s16_u16(vmaxq_u16(bits(a), bits(b))); }
  MSDBG_LANES Words min_unsigned(Words a, Words b) { return vreinterpretq_s16_u16(vminq_u16(bits(a), bits(b))); }
  MSDBG_LANES void count_zeros(Words* counter, Words x) {
    *counter = vsubq_s16(*counter, vreinterpretq_s16_u16(vceqzq_s16(vaddq_s16(x, x))));
  }
  MSDBG_LANES void count_negatives(Words* counter, Words x) {
    const uint16x8_t above = vcgtq_u16(bits(x), vdupq_n_u16(0x8000));
    *counter = vsubq_s16(*counter, vreinterpretq_s16_u16(above));
  }
  /// Sign and magnitude to two's complement.
  MSDBG_LANES Words ordered(Words x) {
    const int16x8_t sign = vshrq_n_s16(x, 15);
    const int16x8_t size = vandq_s16(x, vdupq_n_s16(0x7fff));
    return vsubq_s16(veorq_s16(size, sign), sign);
  }
  /// x where the magnitudes of both a and b are below the limit, else 0.
  MSDBG_LANES Words where_below(Words x, Words a, Words b, Words limit) {
    const int16x8_t size = vdupq_n_s16(0x7fff);
    const uint16x8_t both = vandq_u16(vcgtq_s16(limit, vandq_s16(a, size)), vcgtq_s16(limit, vandq_s16(b, size)));
    return vandq_s16(x, vreinterpretq_s16_u16(both));
  }

  MSDBG_LANES uint8x8_t four_bytes(const char* p) {
    uint32_t word;
    __builtin_memcpy(&word, p, sizeof word);
    return vreinterpret_u8_u32(vdup_n_u32(word));
  }
  MSDBG_LANES uint8x8_t eight_bytes(const char* p) { return vld1_u8(reinterpret_cast<const uint8_t*>(p)); }
  MSDBG_LANES uint8x16_t all_bytes(const char* p) { return vld1q_u8(reinterpret_cast<const uint8_t*>(p)); }
  MSDBG_LANES uint32x4_t four_words(const char* p) { return vmovl_u16(vreinterpret_u16_u8(eight_bytes(p))); }

  MSDBG_LANES Int load_uint8(const char* p) { return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(four_bytes(p))))); }
  MSDBG_LANES Int load_int8(const char* p) { return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(four_bytes(p))))); }
  MSDBG_LANES Int load_bool(const char* p) { return vminq_s32(load_uint8(p), vdupq_n_s32(1)); }
  MSDBG_LANES Int load_uint16(const char* p) { return vreinterpretq_s32_u32(four_words(p)); }
  MSDBG_LANES Int load_int16(const char* p) { return vmovl_s16(vreinterpret_s16_u8(eight_bytes(p))); }
  MSDBG_LANES Int load_int32_t(const char* p) { return vreinterpretq_s32_u8(all_bytes(p)); }
  MSDBG_LANES Float load_float(const char* p) { return vreinterpretq_f32_u8(all_bytes(p)); }
  MSDBG_LANES Float load_half(const char* p) { return vcvt_f32_f16(vreinterpret_f16_u8(eight_bytes(p))); }
  MSDBG_LANES Float load_bfloat16(const char* p) { return vreinterpretq_f32_u32(vshlq_n_u32(four_words(p), 16)); }

  MSDBG_LANES void doubles_from_half(const char* p, Double* a, Double* b) { widen(load_half(p), a, b); }
  MSDBG_LANES void widen(Float x, Double* a, Double* b) {
    *a = vcvt_f64_f32(vget_low_f32(x));
    *b = vcvt_high_f64_f32(x);
  }
  MSDBG_LANES void widen(Int x, Double* a, Double* b) {
    *a = vcvtq_f64_s64(vmovl_s32(vget_low_s32(x)));
    *b = vcvtq_f64_s64(vmovl_high_s32(x));
  }
  MSDBG_LANES Double double_from_float(const char* p) { return vcvt_f64_f32(vreinterpret_f32_u8(eight_bytes(p))); }
  MSDBG_LANES Double double_from_int32_t(const char* p) { return vcvtq_f64_s64(vmovl_s32(vreinterpret_s32_u8(eight_bytes(p)))); }
  MSDBG_LANES Double double_from_double(const char* p) { return vreinterpretq_f64_u8(all_bytes(p)); }
  MSDBG_LANES Double double_from_uint32_t(const char* p) { return vcvtq_f64_u64(vmovl_u32(vreinterpret_u32_u8(eight_bytes(p)))); }
  MSDBG_LANES Double double_from_uint64_t(const char* p) { return vcvtq_f64_u64(vreinterpretq_u64_u8(all_bytes(p))); }
  MSDBG_LANES Double double_from_int64_t(const char* p) { return vcvtq_f64_s64(vreinterpretq_s64_u8(all_bytes(p))); }
};

MSDBG_SIMD_TARGET(kNeonTarget, "neon", xsimd::neon64);

}  // namespace msdbg::simd
