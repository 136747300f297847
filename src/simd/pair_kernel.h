// The kernels that compare two blocks, one functor each, templated on the architecture and the element type. Included only by the
// files of the targets, after their Ops.
//
// All sums are computed in double, like the statistics. The largest relative error would need a division per lane; instead a
// product, in float lanes if those can represent the values, selects the blocks that need an exact second pass.
#pragma once

#include "simd/stats_kernel.h"

namespace msdbg::simd {

/// Whether |a - b| / |b| may exceed `known`, without a division: the bound is lowered by more than the rounding of the lanes, and
/// ties count. Never true for NaN; true if a difference overflows the lanes.
template <class A, class T>
struct Ratio {
  static constexpr bool kFloatLanes = Elements<A, T>::kFloat && !Elements<A, T>::kWide;
  using Lanes = std::conditional_t<kFloatLanes, typename Batches<A>::Float, typename Batches<A>::Double>;
  using V = typename Lanes::value_type;

  explicit Ratio(double known) : least(low(known)) {}
  static V low(double known) {
    const double bound = known * (1 - (kFloatLanes ? 0x1p-20 : 0x1p-50)), most = Limits<V>::kMax;
    return static_cast<V>(bound < most ? bound : most);
  }
  static auto none() { return Lanes(V(0)) != Lanes(V(0)); }
  __attribute__((always_inline)) inline auto above(Lanes a, Lanes b) const {
    const Lanes size = Ops<A>::magnitude(b);
    return (size != Lanes(V(0))) & (Ops<A>::magnitude(a - b) >= size * least);
  }

  Lanes least;
};

template <class A, class T, bool kMasked>
struct ErrorsKernel {
  using E = Elements<A, T>;
  using Double = typename Batches<A>::Double;

  struct Lanes {
    Double diff = Double(0.0), diff_squares = Double(0.0), a_squares = Double(0.0), b_squares = Double(0.0), product = Double(0.0);
    Double max_abs = Double(0.0), excess = Double(0.0);
    Counter<A, Double> pairs, close;
  };

  static __attribute__((always_inline)) inline void add(Lanes& lanes, Double a, Double b, Double rtol, Double atol, Double least) {
    const Double largest(Limits<double>::kMax), zero(0.0);
    Double size = Ops<A>::magnitude(b);
    if constexpr (kMasked) {
      const auto both = (size <= largest) & (Ops<A>::magnitude(a) <= largest);
      lanes.pairs.add(both);
      a = xsimd::select(both, a, zero);
      b = xsimd::select(both, b, zero);
      size = xsimd::select(both, size, zero);
      const Double error = Ops<A>::magnitude(a - b);
      lanes.close.add(both & (error <= atol + rtol * size));
      sums(lanes, a, b, error, size, least);
    } else {
      const Double error = Ops<A>::magnitude(a - b);
      lanes.close.add(error <= atol + rtol * size);
      sums(lanes, a, b, error, size, least);
    }
  }

  static __attribute__((always_inline)) inline void sums(Lanes& lanes, Double a, Double b, Double error, Double size, Double least) {
    lanes.diff = lanes.diff + error;
    lanes.diff_squares = Ops<A>::fma(error, error, lanes.diff_squares);
    lanes.a_squares = Ops<A>::fma(a, a, lanes.a_squares);
    lanes.b_squares = Ops<A>::fma(b, b, lanes.b_squares);
    lanes.product = Ops<A>::fma(a, b, lanes.product);
    lanes.max_abs = higher<A>(error, lanes.max_abs);
    // Also exceeded where b is 0; the second pass handles that.
    if constexpr (!E::kWide) lanes.excess = higher<A>(Ops<A>::fma(size, least, error), lanes.excess);
  }

  static double greatest(Double a, Double b) {
    alignas(64) double parts[Double::size];
    higher<A>(a, b).store_aligned(parts);
    double most = parts[0];
    for (size_t i = 1; i < Double::size; ++i) most = parts[i] > most ? parts[i] : most;
    return most;
  }

  static void run(const void* a, const void* b, size_t n, const Tolerance* tolerance, double known, PairErrors* out);
};

/// The bits of float elements: `load` returns sign and magnitude, with the sign in the top bit of the lane.
template <class A, class T>
struct FloatBits {
  using Lanes = typename Batches<A>::Int;
  static constexpr int32_t kInfinity = 0x7f800000;
  MSDBG_LANES Lanes load(const char* p) { return Lanes(Ops<A>::load_int32_t(p)); }
};
template <class A>
struct FloatBits<A, double> {
  using Lanes = xsimd::batch<int64_t, A>;
  static constexpr int64_t kInfinity = 0x7ff0000000000000;
  MSDBG_LANES Lanes load(const char* p) { return Lanes::load_unaligned(reinterpret_cast<const int64_t*>(p)); }
};

/// The largest distance in representable numbers; `add` processes E::kSize elements of each.
template <class A, class T, bool kMasked>
struct Ulps {
  using Bits = FloatBits<A, T>;
  using Lanes = typename Bits::Lanes;
  using I = typename Lanes::value_type;
  static constexpr I kSign = std::numeric_limits<I>::min();
  // Unsigned distances with the top bit flipped: signed maxima then order them; zero is the smallest.
  Lanes most = Lanes(kSign);

  /// Two's complement: adjacent values become adjacent integers, and -0 equals 0.
  static __attribute__((always_inline)) inline Lanes ordered(Lanes bits) {
    return xsimd::select(bits < Lanes(I(0)), Lanes(kSign) - bits, bits);
  }
  __attribute__((always_inline)) inline void add(const char* x, const char* p) {
    Lanes a = Bits::load(x), b = Bits::load(p);
    if constexpr (kMasked) {
      const Lanes size(static_cast<I>(~kSign)), infinity(Bits::kInfinity);
      b = xsimd::select(((a & size) < infinity) & ((b & size) < infinity), b, a);
    }
    a = ordered(a);
    b = ordered(b);
    most = xsimd::max(most, (xsimd::max(a, b) - xsimd::min(a, b)) ^ Lanes(kSign));
  }
  inline uint64_t total() const;
};

template <class A, class T, bool kMasked>
uint64_t Ulps<A, T, kMasked>::total() const {
  alignas(64) I parts[Lanes::size];
  most.store_aligned(parts);
  I largest = parts[0];
  for (size_t i = 1; i < Lanes::size; ++i) largest = parts[i] > largest ? parts[i] : largest;
  using U = std::make_unsigned_t<I>;
  return static_cast<uint64_t>(static_cast<U>(static_cast<U>(largest) ^ static_cast<U>(kSign)));
}

/// The same for the 16-bit floats, in a separate pass: it processes twice as many elements at a time.
template <class A, class T, bool kMasked>
struct WordUlps {
  using Words = typename Ops<A>::Words;
  static uint64_t largest(const char* x, const char* p, size_t n);
};

template <class A, class T, bool kMasked>
uint64_t WordUlps<A, T, kMasked>::largest(const char* x, const char* p, size_t n) {
  Words most = Words(int16_t(0));
  for (size_t i = 0; i < 2 * n; i += 2 * Words::size) {
    const Words bits_a = Ops<A>::load_words(x + i), bits_b = Ops<A>::load_words(p + i);
    const Words a = Ops<A>::ordered(bits_a), b = Ops<A>::ordered(bits_b);
    Words distance = Ops<A>::max_signed(a, b) - Ops<A>::min_signed(a, b);
    if constexpr (kMasked) distance = Ops<A>::where_below(distance, bits_a, bits_b, Words(Elements<A, T>::kInfinity));
    most = Ops<A>::max_unsigned(most, distance);
  }
  alignas(64) int16_t parts[Words::size];
  most.store_aligned(parts);
  uint16_t largest = 0;
  for (int16_t part : parts) largest = static_cast<uint16_t>(part) > largest ? static_cast<uint16_t>(part) : largest;
  return largest;
}

template <class A, class T, bool kMasked>
void ErrorsKernel<A, T, kMasked>::run(const void* data_a, const void* data_b, size_t n, const Tolerance* tolerance, double known,
                                      PairErrors* out) {
  const char* x = static_cast<const char*>(data_a);
  const char* p = static_cast<const char*>(data_b);
  const Double rtol(tolerance->rtol), atol(tolerance->atol);
  Lanes first, second;
  constexpr bool kUlps = E::kFloat && !kIsHalf<T>;
  std::conditional_t<kUlps, Ulps<A, std::conditional_t<kUlps, T, float>, kMasked>, int> ulps{};
  const Ratio<A, T> ratio(known);
  auto above = ratio.none();
  const Double least(-Ratio<A, double>::low(known));
  constexpr size_t kSize = E::kSize * (kIsHalf<T> ? 2 : 1), kBytes = kSize * E::kBytes;
  for (size_t i = 0; i < n; i += kSize, x += kBytes, p += kBytes) {
    prefetch(x);
    prefetch(p);
    if constexpr (kBytes > 64) {
      prefetch(x + 64);
      prefetch(p + 64);
    }
    Double a, c, b, d;
    if constexpr (kIsHalf<T>) {
      Double e, f, g, h;
      E::two(x, &a, &c, &e, &f);
      E::two(p, &b, &d, &g, &h);
      add(first, e, g, rtol, atol, least);
      add(second, f, h, rtol, atol, least);
    } else {
      E::doubles(x, &a, &c);
      E::doubles(p, &b, &d);
    }
    add(first, a, b, rtol, atol, least);
    add(second, c, d, rtol, atol, least);
    if constexpr (E::kWide) above = above | ratio.above(a, b) | ratio.above(c, d);
    if constexpr (kUlps) {
      ulps.add(x, p);
      if constexpr (E::kWide) ulps.add(x + kBytes / 2, p + kBytes / 2);
    }
  }
  *out = PairErrors{Fold<A>::sum(first.diff, second.diff), Fold<A>::sum(first.diff_squares, second.diff_squares),
                    Fold<A>::sum(first.a_squares, second.a_squares), Fold<A>::sum(first.b_squares, second.b_squares),
                    Fold<A>::sum(first.product, second.product), greatest(first.max_abs, second.max_abs),
                    n, first.close.total() + second.close.total(), 0,
                    E::kWide ? xsimd::any(above) : greatest(first.excess, second.excess) > 0};
  if constexpr (kMasked) out->pairs = first.pairs.total() + second.pairs.total();
  if constexpr (kUlps) out->max_ulp = ulps.total();
  if constexpr (kIsHalf<T>) out->max_ulp = WordUlps<A, T, kMasked>::largest(x - n * E::kBytes, p - n * E::kBytes, n);
}

template <class A, class T>
struct RelKernel {
  static double run(const void* a, const void* b, size_t n, double known);
};

template <class A, class T>
double RelKernel<A, T>::run(const void* data_a, const void* data_b, size_t n, double known) {
  using E = Elements<A, T>;
  using Double = typename Batches<A>::Double;
  const char* x = static_cast<const char*>(data_a);
  const char* p = static_cast<const char*>(data_b);
  const Double largest(Limits<double>::kMax), zero(0.0);
  const Ratio<A, T> ratio(known);
  Double first(0.0), second(0.0);
  const auto rel = [&](Double a, Double b) __attribute__((always_inline)) {
    const Double size = Ops<A>::magnitude(b);
    const auto counts = (size != zero) & (size <= largest) & (Ops<A>::magnitude(a) <= largest);
    return xsimd::select(counts, Ops<A>::magnitude(a - b) / size, zero);
  };
  for (size_t i = 0; i < n; i += E::kSize, x += E::kSize * E::kBytes, p += E::kSize * E::kBytes) {
    if constexpr (Ratio<A, T>::kFloatLanes) {
      if (!xsimd::any(ratio.above(E::load(x), E::load(p)))) continue;
    }
    Double a, c, b, d;
    E::doubles(x, &a, &c);
    E::doubles(p, &b, &d);
    if constexpr (!Ratio<A, T>::kFloatLanes) {
      if (!xsimd::any(ratio.above(a, b) | ratio.above(c, d))) continue;
    }
    first = higher<A>(rel(a, b), first);
    second = higher<A>(rel(c, d), second);
  }
  return ErrorsKernel<A, T, true>::greatest(first, second);
}

template <class A, class T>
struct WidenKernel {
  static void run(const void* data, size_t n, double* out);
};

template <class A, class T>
void WidenKernel<A, T>::run(const void* data, size_t n, double* out) {
  using E = Elements<A, T>;
  using Double = typename Batches<A>::Double;
  const char* p = static_cast<const char*>(data);
  for (size_t i = 0; i < n; i += E::kSize, p += E::kSize * E::kBytes) {
    Double a, b;
    E::doubles(p, &a, &b);
    a.store_unaligned(out + i);
    b.store_unaligned(out + i + Double::size);
  }
}

template <class A, class T>
constexpr PairKernel pair_kernel_of() {
  constexpr bool kMasked = Elements<A, T>::kFloat;  // integers are always finite
  constexpr size_t kStep = Elements<A, T>::kSize * (kIsHalf<T> ? 2 : 1);
  return {kStep, ErrorsKernel<A, T, false>::run, ErrorsKernel<A, T, kMasked>::run, WidenKernel<A, T>::run, RelKernel<A, T>::run};
}

template <class A>
constexpr PairTable pair_kernels() {
  PairTable table = {};
#define MSDBG_ROW(NAME, TYPE) table.at[static_cast<size_t>(DType::NAME)] = pair_kernel_of<A, TYPE>();
  MSDBG_EVALUABLE_TYPES(MSDBG_ROW)
#undef MSDBG_ROW
  return table;
}

}  // namespace msdbg::simd
