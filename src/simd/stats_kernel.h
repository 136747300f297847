// The kernels, one functor each, templated on the architecture and the element type. Included only by the files of the targets:
// every name here contains the architecture, which keeps the linker from mixing targets.
//
// Float lanes are too coarse for sums (a mean must be accurate to 1e-12 of the mean magnitude): every element is widened to double.
// Extremes and counts stay in the lanes of the element, two per double lane for types of up to 32 bits.
#pragma once

#include "simd/finite_kernel.h"
#include "simd/stats_elements.h"

namespace msdbg::simd {

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

/// One counter lane per lane of B; blocks are far too short for 16 bits to overflow.
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

template <class A>
struct Fold {
  using Double = typename Batches<A>::Double;
  static double sum(Double a, Double b) { return xsimd::hadd(a + b); }
};

/// Sums in double lanes, two batches at a time.
template <class A>
struct DoubleSums {
  using Double = typename Batches<A>::Double;
  Double sum = Double(0.0), abs_sum = Double(0.0), low = Double(0.0), high = Double(0.0);  // low and high: squares

  __attribute__((always_inline)) inline void add(Double a, Double b) {
    const Double both = a + b;
    sum = sum + both;
    abs_sum = abs_sum + Ops<A>::magnitudes(a, b, both);
    low = Ops<A>::fma(a, a, low);
    high = Ops<A>::fma(b, b, high);
  }
  void fold_into(BlockSums* out, const DoubleSums& other) const {
    out->sum = Fold<A>::sum(sum, other.sum);
    out->abs_sum = Fold<A>::sum(abs_sum, other.abs_sum);
    out->squares = Fold<A>::sum(low + high, other.low + other.high);
  }
};

/// Counts elements that are zero and below zero.
template <class A, class B, bool kSigned>
struct SignCounter {
  Counter<A, B> zeros, negatives;

  __attribute__((always_inline)) inline void add(B x) {
    using T = typename B::value_type;
    zeros.add(x == B(T(0)));
    if constexpr (kSigned) negatives.add(x < B(T(0)));
  }
  void fold_into(BlockSums* out) const {
    out->zeros += zeros.total();
    if constexpr (kSigned) out->negatives += negatives.total();
  }
};

/// Extremes and counts in the lanes of the element.
template <class A, class B, bool kSigned, bool kMasked>
struct PartSums {
  using T = typename B::value_type;
  static constexpr T kLeast = Limits<T>::kLeast;
  static constexpr T kGreatest = static_cast<T>(-kLeast - (static_cast<T>(0.5) == 0 ? 1 : 0));
  B min = B(kLeast), max = B(kGreatest);
  SignCounter<A, B, kSigned> signs;
  Counter<A, B> finite, pos_inf, neg_inf;

  /// Returns x with non-finite elements replaced by 0.
  __attribute__((always_inline)) inline B add(B x) {
    signs.add(x);
    if constexpr (!kMasked) {
      min = lower<A>(x, min);
      max = higher<A>(x, max);
      return x;
    } else {
      const auto ok = Ops<A>::magnitude(x) <= B(Limits<T>::kMax);
      finite.add(ok);
      pos_inf.add(x == B(kLeast));
      neg_inf.add(x == B(kGreatest));
      min = lower<A>(xsimd::select(ok, x, B(kLeast)), min);
      max = higher<A>(xsimd::select(ok, x, B(kGreatest)), max);
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
  signs.fold_into(out);
  if constexpr (kMasked) {
    const uint64_t below = neg_inf.total();
    out->negatives -= below;
    out->neg_inf += below;
    out->pos_inf += pos_inf.total();
    out->finite += finite.total();
  }
}

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
  DoubleSums<A> sums;
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
    sums.add(a, b);
  }
  *out = BlockSums{0, 0, 0, Limits<double>::kLeast, -Limits<double>::kLeast, 0, 0, kMasked ? 0 : n, 0, 0};
  sums.fold_into(out, DoubleSums<A>());
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
    squares_a = Ops<A>::fma(da, da, squares_a);
    squares_b = Ops<A>::fma(db, db, squares_b);
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
    // Product and sum are rounded separately on every target (no contraction): all of them draw the same line.
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

/// The plain sums of the 16-bit floats. What needs no arithmetic is computed from the bits, a full register at a time: order by
/// magnitude, zeros and signs.
template <class A, class T>
struct HalfSumsKernel {
  using Words = typename Ops<A>::Words;
  static void run(const void* data, size_t n, BlockSums* out);
};

template <class A, class T>
void HalfSumsKernel<A, T>::run(const void* data, size_t n, BlockSums* out) {
  using E = Elements<A, T>;
  using Double = typename Batches<A>::Double;
  constexpr size_t kBytes = 2 * Words::size;
  const char* p = static_cast<const char*>(data);
  const char* const end = p + 2 * n;
  // Bits without a sign have the order of their values, bits with a sign the reverse order.
  Words above = Words(int16_t(-0x8000)), below = Words(int16_t(0)), nearest = Words(int16_t(-1));
  Words zeros = Words(int16_t(0)), negatives = Words(int16_t(0));
  DoubleSums<A> first, second;
  for (; p != end; p += kBytes) {
    prefetch(p);
    const Words x = Ops<A>::load_words(p);
    above = Ops<A>::max_signed(above, x);
    below = Ops<A>::max_unsigned(below, x);
    nearest = Ops<A>::min_unsigned(nearest, x);
    Ops<A>::count_zeros(&zeros, x);
    Ops<A>::count_negatives(&negatives, x);
    Double a, b, c, d;
    E::two(p, &a, &b, &c, &d);
    first.add(a, b);
    second.add(c, d);
  }
  alignas(64) int16_t parts[5][Words::size];
  above.store_aligned(parts[0]);
  below.store_aligned(parts[1]);
  nearest.store_aligned(parts[2]);
  zeros.store_aligned(parts[3]);
  negatives.store_aligned(parts[4]);
  int16_t greatest = parts[0][0];
  uint16_t lowest = 0, least_bits = 0xffff;
  uint32_t zero_count = 0, negative_count = 0;
  for (size_t i = 0; i < Words::size; ++i) {
    const auto low = static_cast<uint16_t>(parts[1][i]), near = static_cast<uint16_t>(parts[2][i]);
    greatest = parts[0][i] > greatest ? parts[0][i] : greatest;
    lowest = low > lowest ? low : lowest;
    least_bits = near < least_bits ? near : least_bits;
    zero_count += static_cast<uint16_t>(parts[3][i]);
    negative_count += static_cast<uint16_t>(parts[4][i]);
  }
  *out = BlockSums{0, 0, 0, 0, 0, zero_count, negative_count, n, 0, 0};
  if (greatest >= E::kInfinity || lowest >= (0x8000 | E::kInfinity)) {
    out->abs_sum = Limits<double>::kLeast;
    return;
  }
  first.fold_into(out, second);
  // Without a sign, the smallest bits are the smallest value; if every element has a sign, they are the largest.
  parts[0][0] = static_cast<int16_t>(lowest & 0x8000 ? lowest : least_bits);
  parts[0][1] = greatest < 0 ? static_cast<int16_t>(least_bits) : greatest;
  Double ends, rest;
  E::doubles(reinterpret_cast<const char*>(parts[0]), &ends, &rest);
  alignas(64) double values[Double::size];
  ends.store_aligned(values);
  out->min = values[0] + 0.0;  // -0 becomes 0
  out->max = values[1] + 0.0;
}

template <class A, class T>
constexpr Kernel kernel() {
  constexpr bool kMasked = Elements<A, T>::kFloat;  // integers are always finite
  using Plain = std::conditional_t<kIsHalf<T>, HalfSumsKernel<A, T>, SumsKernel<A, T, false>>;
  using Finite = std::conditional_t<kIsHalf<T>, HalfFiniteKernel<A, T>, FiniteKernel<A, T>>;
  return {Elements<A, T>::kSize * (kIsHalf<T> ? 2 : 1),
          Finite::run,
          Plain::run,
          SumsKernel<A, T, kMasked>::run,
          CentredKernel<A, T, false>::run,
          CentredKernel<A, T, kMasked>::run,
          RangesKernel<A, T>::run,
          PairsKernel<A, T, false>::run,
          PairsKernel<A, T, kMasked>::run};
}

template <class A>
constexpr KernelTable stats_kernels() {
  KernelTable table = {};
#define MSDBG_ROW(NAME, TYPE) table.at[static_cast<size_t>(DType::NAME)] = kernel<A, TYPE>();
  MSDBG_EVALUABLE_TYPES(MSDBG_ROW)
#undef MSDBG_ROW
  return table;
}

}  // namespace msdbg::simd
