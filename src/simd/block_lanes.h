// Lanes of xsimd batches. Included only by the files of the targets.
#pragma once

#include "simd/block_kernels.h"
#include "simd/stats_kernel.h"

namespace msdbg::expr {

template <class T, class A>
struct SimdLanes {
  using Value = T;
  using Batch = xsimd::batch<T, A>;
  using Mask = xsimd::batch_bool<T, A>;
  using Doubles = xsimd::batch<double, A>;
  using Counts = simd::Counter<A, Batch>;
  static constexpr size_t kSize = Batch::size;
  static constexpr bool kWide = sizeof(T) == 8;
  static constexpr T kInfinity = static_cast<T>(__builtin_huge_val());
  static constexpr T kNan = static_cast<T>(__builtin_nan(""));

  MSDBG_EXPR_INLINE Batch load(const T* p) { return Batch::load_unaligned(p); }
  MSDBG_EXPR_INLINE void store(T* p, Batch a) { a.store_unaligned(p); }
  MSDBG_EXPR_INLINE Batch all(T value) { return Batch(value); }
  MSDBG_EXPR_INLINE Batch add(Batch a, Batch b) { return a + b; }
  MSDBG_EXPR_INLINE Batch sub(Batch a, Batch b) { return a - b; }
  MSDBG_EXPR_INLINE Batch mul(Batch a, Batch b) { return a * b; }
  // Where xsimd's version is an approximation, the target has one that rounds correctly.
  MSDBG_EXPR_INLINE Batch div(Batch a, Batch b) {
    if constexpr (requires { simd::Ops<A>::quotient(a, b); }) return simd::Ops<A>::quotient(a, b);
    else return a / b;
  }
  MSDBG_EXPR_INLINE Batch abs(Batch a) { return xsimd::abs(a); }
  MSDBG_EXPR_INLINE Batch sqrt(Batch a) {
    if constexpr (requires { simd::Ops<A>::root(a); }) return simd::Ops<A>::root(a);
    else return xsimd::sqrt(a);
  }
  // xsimd's exp gives 0 for denormal results: split those into two factors.
  static constexpr T kLowExponent = kWide ? T(-708) : T(-87);
  MSDBG_EXPR_INLINE Batch exp(Batch a) {
    const Mask low = a < Batch(kLowExponent);
    const Batch result = xsimd::exp(xsimd::select(low, a - Batch(kLowExponent), a));
    return xsimd::select(low, result * xsimd::exp(Batch(kLowExponent)), result);
  }
  // xsimd's logarithms are wrong for denormals: scale those up by a power of two first.
  static constexpr T kLeastNormal = kWide ? static_cast<T>(0x1p-1022) : static_cast<T>(0x1p-126);
  static constexpr T kUpDigits = kWide ? T(54) : T(24), kUp = kWide ? T(0x1p54) : T(0x1p24);
  MSDBG_EXPR_INLINE Batch lifted(Batch a, Mask low) { return xsimd::select(low, a * Batch(kUp), a); }
  MSDBG_EXPR_INLINE Batch log(Batch a) {
    const Mask low = a < Batch(kLeastNormal);
    const Batch result = xsimd::log(lifted(a, low));
    return xsimd::select(low, result - Batch(kUpDigits * static_cast<T>(0.693147180559945309)), result);
  }
  MSDBG_EXPR_INLINE Batch log2(Batch a) {
    const Mask low = a < Batch(kLeastNormal);
    const Batch result = xsimd::log2(lifted(a, low));
    return xsimd::select(low, result - Batch(kUpDigits), result);
  }
  // Without a native instruction, xsimd's version loses the sign of -0.
  MSDBG_EXPR_INLINE Batch floor(Batch a) {
    const Batch result = xsimd::floor(a);
    return xsimd::select(result == a, a, result);
  }
  MSDBG_EXPR_INLINE Mask less(Batch a, Batch b) { return a < b; }
  MSDBG_EXPR_INLINE Mask less_equal(Batch a, Batch b) { return a <= b; }
  MSDBG_EXPR_INLINE Mask greater(Batch a, Batch b) { return b < a; }
  MSDBG_EXPR_INLINE Mask equal(Batch a, Batch b) { return a == b; }
  MSDBG_EXPR_INLINE Mask either(Mask a, Mask b) { return a | b; }
  MSDBG_EXPR_INLINE Mask negation(Mask a) { return !a; }
  MSDBG_EXPR_INLINE Batch select(Mask mask, Batch a, Batch b) { return xsimd::select(mask, a, b); }
  MSDBG_EXPR_INLINE Batch lower(Batch a, Batch b) { return simd::lower<A>(a, b); }
  MSDBG_EXPR_INLINE Batch higher(Batch a, Batch b) { return simd::higher<A>(a, b); }
  // xsimd computes exp(b * log(a)), which loses digits with large exponents; powers other than squares are rare.
  static Batch pow(Batch a, Batch b) {
    alignas(64) T bases[kSize], exponents[kSize];
    a.store_aligned(bases);
    b.store_aligned(exponents);
    for (size_t i = 0; i < kSize; ++i) {
      if constexpr (kWide) bases[i] = __builtin_pow(bases[i], exponents[i]);
      else bases[i] = __builtin_powf(bases[i], exponents[i]);
    }
    return Batch::load_aligned(bases);
  }

  struct Sums {
    Doubles low = Doubles(0.0), high = Doubles(0.0), scale;
    explicit Sums(double factor) : scale(factor) {}
    __attribute__((always_inline)) inline void add(Batch a) {
      if constexpr (kWide) {
        low = low + a * scale;
      } else {
        Doubles first, second;  // no sum of floats leaves the range of double
        simd::Ops<A>::widen(a, &first, &second);
        low = low + first;
        high = high + second;
      }
    }
    __attribute__((always_inline)) inline void add_square(Batch a) {
      if constexpr (kWide) {
        const Batch scaled = a * scale;
        low = low + scaled * scaled;
      } else {
        Doubles first, second;
        simd::Ops<A>::widen(a, &first, &second);
        low = low + first * first;
        high = high + second * second;
      }
    }
    __attribute__((always_inline)) inline double total() const {
      alignas(64) double parts[Doubles::size];
      (low + high).store_aligned(parts);
      double sum = 0;
      for (double part : parts) sum += part;
      return sum;
    }
  };

  struct Moments {
    Sums sum, squares;
    Doubles centre, scale;
    Moments(double middle, double factor) : sum(1.0), squares(1.0), centre(middle * factor), scale(factor) {}
    template <class... Masks>
    __attribute__((always_inline)) inline void add(Batch a, Masks... mask) {
      if constexpr (kWide) {
        Doubles d = a * scale - centre;
        if constexpr (sizeof...(mask) > 0) d = xsimd::select(mask..., d, Doubles(0.0));
        sum.low = sum.low + d;
        squares.low = squares.low + d * d;
      } else {
        Doubles first, second;
        simd::Ops<A>::widen(a, &first, &second);
        first = first - centre;
        second = second - centre;
        if constexpr (sizeof...(mask) > 0) {
          Doubles keep_first, keep_second;
          simd::Ops<A>::widen(xsimd::select(mask..., Batch(T(1)), Batch(T(0))), &keep_first, &keep_second);
          first = xsimd::select(keep_first > Doubles(0.0), first, Doubles(0.0));
          second = xsimd::select(keep_second > Doubles(0.0), second, Doubles(0.0));
        }
        sum.low = sum.low + first;
        sum.high = sum.high + second;
        squares.low = squares.low + first * first;
        squares.high = squares.high + second * second;
      }
    }
  };
};

}  // namespace msdbg::expr
