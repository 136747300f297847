// The kernels, one functor each, templated on the architecture and the element type. Included by the files of the
// targets only: nothing here exists without the architecture in its name, so the linker cannot mix the targets up.
//
// Float lanes are too coarse for sums (a mean must hold to 1e-12 of the mean magnitude), so every element is widened to
// double; extremes and counts stay in the lanes of the element, two per double lane for the types of up to 32 bits.
#pragma once

#include <xsimd/xsimd.hpp>

#include "simd/kernels.h"

#define MSDBG_LANES static inline __attribute__((always_inline))

namespace msdbg::simd {

struct Bool {};
struct Half {};
struct BFloat16 {};

/// What xsimd lacks, one specialisation for each architecture (lanes_*.h): widening loads and counting by mask.
template <class A>
struct Ops;

/// How elements of type T are read: `Part` is the batch for extremes and counts, kSize the elements of one step.
template <class A, class T>
struct Elements;

template <class A>
struct Batches {
  using Float = xsimd::batch<float, A>;
  using Double = xsimd::batch<double, A>;
  using Int = xsimd::batch<int32_t, A>;
  static constexpr size_t kSize = Float::size;
};

// Types with lanes of 32 bits: the lanes are loaded once and widened to two batches of double.
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
MSDBG_NARROW_ELEMENTS(Half, 2, Float, true, true, load_half);
MSDBG_NARROW_ELEMENTS(BFloat16, 2, Float, true, true, load_bfloat16);
#undef MSDBG_NARROW_ELEMENTS

// Widening straight from memory saves a shuffle for each batch.
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

// Types that need the lanes of double for everything.
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

template <class T>
struct Limits;
template <>
struct Limits<float> {
  static constexpr float kMax = 0x1.fffffep127f, kLeast = __builtin_huge_valf();
};
template <>
struct Limits<double> {
  static constexpr double kMax = 0x1.fffffffffffffp1023, kLeast = __builtin_huge_val();
};
template <>
struct Limits<int32_t> {
  static constexpr int32_t kMax = 0x7fffffff, kLeast = 0x7fffffff;
};

/// One counter lane for each lane of B; blocks are far too short for 32 bits to overflow.
template <class A, class B>
struct Counter {
  typename Ops<A>::template CounterOf<B> lanes = typename Ops<A>::template CounterOf<B>(0);

  template <class Mask>
  __attribute__((always_inline)) inline void add(Mask mask) {
    Ops<A>::count(&lanes, mask);
  }
  inline uint64_t total() const;
};

template <class A, class B>
uint64_t Counter<A, B>::total() const {
  using Lanes = typename Ops<A>::template CounterOf<B>;
  alignas(64) typename Lanes::value_type parts[Lanes::size];
  lanes.store_aligned(parts);
  uint64_t sum = 0;
  for (size_t i = 0; i < Lanes::size; ++i) sum += static_cast<uint64_t>(parts[i]);
  return sum;
}

/// Sums in the lanes of double.
template <class A>
struct DoubleSums {
  using Double = typename Batches<A>::Double;
  Double sum = Double(0.0), abs_sum = Double(0.0), squares = Double(0.0);

  __attribute__((always_inline)) inline void add(Double x) {
    sum = sum + x;
    abs_sum = abs_sum + Ops<A>::magnitude(x);
    squares = xsimd::fma(x, x, squares);
  }
};

template <class A>
struct Fold {
  using Double = typename Batches<A>::Double;
  static double sum(Double a, Double b) { return xsimd::hadd(a + b); }
};

/// Extremes and counts in the lanes of the element.
template <class A, class B, bool kSigned, bool kMasked>
struct PartSums {
  using T = typename B::value_type;
  static constexpr T kLeast = Limits<T>::kLeast;
  static constexpr T kGreatest = static_cast<T>(-kLeast - (static_cast<T>(0.5) == 0 ? 1 : 0));
  B min = B(kLeast), max = B(kGreatest);
  Counter<A, B> zeros, negatives, finite, pos_inf, neg_inf;

  /// Returns x with elements that are not finite replaced by 0.
  __attribute__((always_inline)) inline B add(B x) {
    zeros.add(x == B(T(0)));
    if constexpr (kSigned) negatives.add(x < B(T(0)));
    if constexpr (!kMasked) {
      min = xsimd::min(x, min);
      max = xsimd::max(x, max);
      return x;
    } else {
      const auto ok = Ops<A>::magnitude(x) <= B(Limits<T>::kMax);
      finite.add(ok);
      pos_inf.add(x == B(kLeast));
      neg_inf.add(x == B(kGreatest));
      min = xsimd::min(xsimd::select(ok, x, B(kLeast)), min);
      max = xsimd::max(xsimd::select(ok, x, B(kGreatest)), max);
      return xsimd::select(ok, x, B(T(0)));
    }
  }

  inline void fold_into(BlockSums* out) const;
};

template <class A, class B, bool kSigned, bool kMasked>
void PartSums<A, B, kSigned, kMasked>::fold_into(BlockSums* out) const {
  alignas(64) T low[B::size], high[B::size];
  min.store_aligned(low);
  max.store_aligned(high);
  T least = low[0], greatest = high[0];
  for (size_t i = 1; i < B::size; ++i) {
    least = low[i] < least ? low[i] : least;
    greatest = high[i] > greatest ? high[i] : greatest;
  }
  const auto a = static_cast<double>(least), b = static_cast<double>(greatest);
  out->min = a < out->min ? a : out->min;
  out->max = b > out->max ? b : out->max;
  out->zeros += zeros.total();
  if constexpr (kSigned) out->negatives += negatives.total();
  if constexpr (kMasked) {
    const uint64_t below = neg_inf.total();
    out->negatives -= below;
    out->neg_inf += below;
    out->pos_inf += pos_inf.total();
    out->finite += finite.total();
  }
}

/// The processor's own prefetcher stops at each page and falls behind while a block is reduced; asking for the bytes this
/// far ahead keeps memory and arithmetic busy at the same time. A place behind the end is no fault.
constexpr size_t kPrefetchBytes = 4096;
MSDBG_LANES void prefetch(const char* p) { __builtin_prefetch(p + kPrefetchBytes); }

template <class A, class T, bool kMasked>
struct SumsKernel {
  static void run(const void* data, size_t n, BlockSums* out);
};

template <class A, class T, bool kMasked>
void SumsKernel<A, T, kMasked>::run(const void* data, size_t n, BlockSums* out) {
  using E = Elements<A, T>;
  using Double = typename Batches<A>::Double;
  const char* p = static_cast<const char*>(data);
  const char* const end = p + n * E::kBytes;
  PartSums<A, typename E::Part, E::kSigned, kMasked> part, second;
  DoubleSums<A> low, high;
  for (; p != end; p += E::kSize * E::kBytes) {
    prefetch(p);
    if constexpr (E::kSize * E::kBytes > 64) prefetch(p + 64);
    Double a, b;
    if constexpr (E::kWide) {
      E::doubles(p, &a, &b);
      a = part.add(a);
      b = second.add(b);
    } else if constexpr (kMasked) {
      Ops<A>::widen(part.add(E::load(p)), &a, &b);
    } else {
      E::widen(p, part.add(E::load(p)), &a, &b);
    }
    low.add(a);
    high.add(b);
  }
  *out = BlockSums{Fold<A>::sum(low.sum, high.sum), Fold<A>::sum(low.abs_sum, high.abs_sum),
                   Fold<A>::sum(low.squares, high.squares), Limits<double>::kLeast, -Limits<double>::kLeast,
                   0, 0, kMasked ? 0 : n, 0, 0};
  part.fold_into(out);
  if constexpr (E::kWide) second.fold_into(out);
}

template <class A, class T, bool kMasked>
struct CentredKernel {
  static void run(const void* data, size_t n, double centre, Centred* out);
};

template <class A, class T, bool kMasked>
void CentredKernel<A, T, kMasked>::run(const void* data, size_t n, double centre, Centred* out) {
  using E = Elements<A, T>;
  using Double = typename Batches<A>::Double;
  const char* p = static_cast<const char*>(data);
  const Double middle(centre), largest(Limits<double>::kMax), zero(0.0);
  Double sum_a(0.0), sum_b(0.0), squares_a(0.0), squares_b(0.0);
  for (size_t i = 0; i < n; i += E::kSize, p += E::kSize * E::kBytes) {
    Double a, b;
    E::doubles(p, &a, &b);
    Double da = a - middle, db = b - middle;
    if constexpr (kMasked) {
      da = xsimd::select(Ops<A>::magnitude(a) <= largest, da, zero);
      db = xsimd::select(Ops<A>::magnitude(b) <= largest, db, zero);
    }
    sum_a = sum_a + da;
    sum_b = sum_b + db;
    squares_a = xsimd::fma(da, da, squares_a);
    squares_b = xsimd::fma(db, db, squares_b);
  }
  *out = Centred{Fold<A>::sum(sum_a, sum_b), Fold<A>::sum(squares_a, squares_b)};
}

template <class A, class T>
struct RangesKernel {
  static void run(const void* data, size_t n, const Bounds* bounds, size_t bounds_count, uint64_t* counts);
  template <size_t kCount>
  static void group(const char* p, size_t n, const Bounds* bounds, uint64_t* counts);
};

template <class A, class T>
template <size_t kCount>
void RangesKernel<A, T>::group(const char* p, size_t n, const Bounds* bounds, uint64_t* counts) {
  using E = Elements<A, T>;
  using Part = typename E::Part;
  using Value = typename Part::value_type;
  Part low[kCount], high[kCount];
  Counter<A, Part> inside[kCount];
  for (size_t r = 0; r < kCount; ++r) {
    low[r] = Part(static_cast<Value>(bounds[r].low));
    high[r] = Part(static_cast<Value>(bounds[r].high));
  }
  for (size_t i = 0; i < n; i += E::kSize, p += E::kSize * E::kBytes) {
    if constexpr (E::kWide) {
      Part a, b;
      E::doubles(p, &a, &b);
      for (size_t r = 0; r < kCount; ++r) {
        inside[r].add(Ops<A>::between(a, low[r], high[r]));
        inside[r].add(Ops<A>::between(b, low[r], high[r]));
      }
    } else {
      const Part x = E::load(p);
      for (size_t r = 0; r < kCount; ++r) inside[r].add(Ops<A>::between(x, low[r], high[r]));
    }
  }
  for (size_t r = 0; r < kCount; ++r) counts[r] += inside[r].total();
}

template <class A, class T>
void RangesKernel<A, T>::run(const void* data, size_t n, const Bounds* bounds, size_t bounds_count, uint64_t* counts) {
  const char* p = static_cast<const char*>(data);
  size_t r = 0;
  for (; r + 4 <= bounds_count; r += 4) group<4>(p, n, bounds + r, counts + r);
  if (r + 2 <= bounds_count) {
    group<2>(p, n, bounds + r, counts + r);
    r += 2;
  }
  if (r < bounds_count) group<1>(p, n, bounds + r, counts + r);
}

template <class A, class T, bool kMasked>
struct PairsKernel {
  using Double = typename Batches<A>::Double;
  struct Lanes {
    Double diff = Double(0.0), prev_abs = Double(0.0);
    Counter<A, Double> pairs, prev_finite, close;
  };
  static void run(const void* data, const void* previous, size_t n, const Tolerance* tolerance, PairSums* out);
  template <bool kClose>
  static void sums(const char* x, const char* p, size_t n, Tolerance tolerance, PairSums* out);
};

template <class A, class T, bool kMasked>
template <bool kClose>
void PairsKernel<A, T, kMasked>::sums(const char* x, const char* p, size_t n, Tolerance tolerance, PairSums* out) {
  using E = Elements<A, T>;
  const Double rtol(tolerance.rtol), atol(tolerance.atol), largest(Limits<double>::kMax), zero(0.0);
  Lanes first, second;
  const auto add = [&](Lanes& lanes, Double now, Double before) __attribute__((always_inline)) {
    Double size = Ops<A>::magnitude(before), diff = Ops<A>::magnitude(now - before);
    // Product and sum are rounded one by one on every target (no contraction), so that all draw the same line.
    if constexpr (!kMasked) {
      if constexpr (kClose) lanes.close.add(diff <= atol + rtol * size);
    } else {
      const auto before_ok = size <= largest;
      const auto both = before_ok & (Ops<A>::magnitude(now) <= largest);
      lanes.prev_finite.add(before_ok);
      lanes.pairs.add(both);
      if constexpr (kClose) lanes.close.add(both & (diff <= atol + rtol * size));
      size = xsimd::select(both, size, zero);
      diff = xsimd::select(both, diff, zero);
    }
    lanes.prev_abs = lanes.prev_abs + size;
    lanes.diff = lanes.diff + diff;
  };
  for (size_t i = 0; i < n; i += E::kSize) {
    prefetch(p + i * E::kBytes);
    if constexpr (E::kSize * E::kBytes > 64) prefetch(p + i * E::kBytes + 64);
    Double a, b, before_a, before_b;
    E::doubles(x + i * E::kBytes, &a, &b);
    E::doubles(p + i * E::kBytes, &before_a, &before_b);
    add(first, a, before_a);
    add(second, b, before_b);
  }
  *out = PairSums{Fold<A>::sum(first.diff, second.diff), Fold<A>::sum(first.prev_abs, second.prev_abs), n, n, 0};
  if constexpr (kMasked) {
    out->pairs = first.pairs.total() + second.pairs.total();
    out->prev_finite = first.prev_finite.total() + second.prev_finite.total();
  }
  if constexpr (kClose) out->close = first.close.total() + second.close.total();
}

template <class A, class T, bool kMasked>
void PairsKernel<A, T, kMasked>::run(const void* data, const void* previous, size_t n, const Tolerance* tolerance, PairSums* out) {
  const char* x = static_cast<const char*>(data);
  const char* p = static_cast<const char*>(previous);
  if (tolerance != nullptr) {
    sums<true>(x, p, n, *tolerance, out);
  } else {
    sums<false>(x, p, n, Tolerance{0, 0}, out);
  }
}

template <class A, class T>
constexpr Kernel kernel() {
  constexpr bool kMasked = Elements<A, T>::kFloat;  // integers are always finite
  return {Elements<A, T>::kSize,
          SumsKernel<A, T, false>::run,
          SumsKernel<A, T, kMasked>::run,
          CentredKernel<A, T, false>::run,
          CentredKernel<A, T, kMasked>::run,
          RangesKernel<A, T>::run,
          PairsKernel<A, T, false>::run,
          PairsKernel<A, T, kMasked>::run};
}

/// In the order of DType.
#define MSDBG_KERNELS(A)                                                                                       \
  {                                                                                                            \
    {}, kernel<A, Bool>(), kernel<A, int8_t>(), kernel<A, int16_t>(), kernel<A, int32_t>(),                    \
        kernel<A, int64_t>(), kernel<A, uint8_t>(), kernel<A, uint16_t>(), kernel<A, uint32_t>(),              \
        kernel<A, uint64_t>(), kernel<A, Half>(), kernel<A, BFloat16>(), kernel<A, float>(), kernel<A, double>() \
  }

}  // namespace msdbg::simd
