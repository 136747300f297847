// How the kernels read elements of each type, one specialisation per architecture and type. Included only by the files of the targets,
// as stats_kernel.h is.
#pragma once

#include <xsimd/xsimd.hpp>

#include "simd/kernels.h"

#define MSDBG_LANES static inline __attribute__((always_inline))

namespace msdbg::simd {

struct Bool {};
struct Half {};
struct BFloat16 {};
template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// Operations missing in xsimd, one specialisation per architecture (target_*.cpp): widening loads, counting by mask, and 16-bit
/// lanes on architectures without them.
template <class A>
struct Ops;

/// How elements of type T are read: `Part` is the batch for extremes and counts, kSize the number of elements per step.
template <class A, class T>
struct Elements;

template <class A>
struct Batches {
  using Float = xsimd::batch<float, A>;
  using Double = xsimd::batch<double, A>;
  using Int = xsimd::batch<int32_t, A>;
  static constexpr size_t kSize = Float::size;
};

/// a where it is lower, else b: b where either is NaN. The instructions of x86 do this; those of ARM would return the NaN.
template <class A, class B>
MSDBG_LANES B lower(B a, B b) {
  if constexpr (std::is_same_v<A, xsimd::neon64>) return xsimd::select(a < b, a, b);
  else return xsimd::min(a, b);
}
/// a where it is higher, else b.
template <class A, class B>
MSDBG_LANES B higher(B a, B b) {
  if constexpr (std::is_same_v<A, xsimd::neon64>) return xsimd::select(a > b, a, b);
  else return xsimd::max(a, b);
}

// Types with 32-bit lanes: the lanes are loaded once and widened to two batches of double.
#define MSDBG_NARROW_ELEMENTS(TYPE, BYTES, PART, IS_FLOAT, IS_SIGNED, LOAD)                        \
  template <class A>                                                                               \
  struct Elements<A, TYPE> {                                                                       \
    using Part = typename Batches<A>::PART;                                                        \
    using Double = typename Batches<A>::Double;                                                    \
    static constexpr size_t kBytes = BYTES, kSize = Batches<A>::kSize;                             \
    static constexpr bool kFloat = IS_FLOAT, kSigned = IS_SIGNED, kWide = false;                   \
    MSDBG_LANES Part load(const char* p) { return Ops<A>::LOAD(p); }                               \
    MSDBG_LANES void widen(const char*, Part x, Double* a, Double* b) { Ops<A>::widen(x, a, b); }  \
    MSDBG_LANES void doubles(const char* p, Double* a, Double* b) { Ops<A>::widen(load(p), a, b); } \
  }
MSDBG_NARROW_ELEMENTS(Bool, 1, Int, false, false, load_bool);
MSDBG_NARROW_ELEMENTS(int8_t, 1, Int, false, true, load_int8);
MSDBG_NARROW_ELEMENTS(uint8_t, 1, Int, false, false, load_uint8);
MSDBG_NARROW_ELEMENTS(int16_t, 2, Int, false, true, load_int16);
MSDBG_NARROW_ELEMENTS(uint16_t, 2, Int, false, false, load_uint16);
#undef MSDBG_NARROW_ELEMENTS

// The 16-bit floats: `two` widens twice as many elements, in any order.
template <class A, class T>
struct HalfElements {
  using Part = typename Batches<A>::Float;
  using Double = typename Batches<A>::Double;
  static constexpr size_t kBytes = 2, kSize = Batches<A>::kSize;
  static constexpr bool kFloat = true, kSigned = true, kWide = false;
  MSDBG_LANES void widen(const char*, Part x, Double* a, Double* b) { Ops<A>::widen(x, a, b); }
};
template <class A>
struct Elements<A, Half> : HalfElements<A, Half> {
  using typename HalfElements<A, Half>::Part;
  using typename HalfElements<A, Half>::Double;
  static constexpr int16_t kInfinity = 0x7c00;
  MSDBG_LANES Part load(const char* p) { return Ops<A>::load_half(p); }
  MSDBG_LANES void doubles(const char* p, Double* a, Double* b) { Ops<A>::doubles_from_half(p, a, b); }
  MSDBG_LANES void two(const char* p, Double* a, Double* b, Double* c, Double* d) {
    doubles(p, a, b);
    doubles(p + 2 * Batches<A>::kSize, c, d);
  }
};
template <class A>
struct Elements<A, BFloat16> : HalfElements<A, BFloat16> {
  using typename HalfElements<A, BFloat16>::Part;
  using typename HalfElements<A, BFloat16>::Double;
  using Int = typename Batches<A>::Int;
  static constexpr int16_t kInfinity = 0x7f80;
  MSDBG_LANES Part load(const char* p) { return Ops<A>::load_bfloat16(p); }
  MSDBG_LANES void doubles(const char* p, Double* a, Double* b) { Ops<A>::widen(load(p), a, b); }
  // The lower halves of the lanes, then the upper halves.
  MSDBG_LANES void two(const char* p, Double* a, Double* b, Double* c, Double* d) {
    const Int x = Ops<A>::load_int32_t(p);
    Ops<A>::widen(xsimd::bitwise_cast<Part>(x << 16), a, b);
    Ops<A>::widen(xsimd::bitwise_cast<Part>(x & Int(static_cast<int32_t>(0xffff0000))), c, d);
  }
};

// Widening directly from memory saves a shuffle per batch.
#define MSDBG_FULL_ELEMENTS(TYPE, PART, IS_FLOAT)                                            \
  template <class A>                                                                         \
  struct Elements<A, TYPE> {                                                                 \
    using Part = typename Batches<A>::PART;                                                  \
    using Double = typename Batches<A>::Double;                                              \
    static constexpr size_t kBytes = 4, kSize = Batches<A>::kSize;                           \
    static constexpr bool kFloat = IS_FLOAT, kSigned = true, kWide = false;                  \
    MSDBG_LANES Part load(const char* p) { return Part(Ops<A>::load_##TYPE(p)); }            \
    MSDBG_LANES void widen(const char* p, Part, Double* a, Double* b) { doubles(p, a, b); }  \
    MSDBG_LANES void doubles(const char* p, Double* a, Double* b) {                          \
      *a = Ops<A>::double_from_##TYPE(p);                                                    \
      *b = Ops<A>::double_from_##TYPE(p + kSize / 2 * kBytes);                               \
    }                                                                                        \
  }
MSDBG_FULL_ELEMENTS(float, Float, true);
MSDBG_FULL_ELEMENTS(int32_t, Int, false);
#undef MSDBG_FULL_ELEMENTS

// Types that need double lanes for everything.
#define MSDBG_WIDE_ELEMENTS(TYPE, BYTES, IS_FLOAT, IS_SIGNED)                   \
  template <class A>                                                            \
  struct Elements<A, TYPE> {                                                    \
    using Part = typename Batches<A>::Double;                                   \
    using Double = typename Batches<A>::Double;                                 \
    static constexpr size_t kBytes = BYTES, kSize = Batches<A>::kSize;          \
    static constexpr bool kFloat = IS_FLOAT, kSigned = IS_SIGNED, kWide = true; \
    MSDBG_LANES void doubles(const char* p, Double* a, Double* b) {             \
      *a = Ops<A>::double_from_##TYPE(p);                                       \
      *b = Ops<A>::double_from_##TYPE(p + kSize / 2 * kBytes);                  \
    }                                                                           \
  }
MSDBG_WIDE_ELEMENTS(uint32_t, 4, false, false);
MSDBG_WIDE_ELEMENTS(int64_t, 8, false, true);
MSDBG_WIDE_ELEMENTS(uint64_t, 8, false, false);
MSDBG_WIDE_ELEMENTS(double, 8, true, true);
#undef MSDBG_WIDE_ELEMENTS

/// The processor's prefetcher stops at each page and falls behind while a block is reduced; prefetching this many bytes ahead keeps
/// memory and arithmetic busy at the same time. An address after the end is no fault.
constexpr size_t kPrefetchBytes = 4096;
MSDBG_LANES void prefetch(const char* p) { __builtin_prefetch(p + kPrefetchBytes); }

}  // namespace msdbg::simd
