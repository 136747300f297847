// Whether a block has NaN or Inf, at the rate of the memory. Included only by stats_kernel.h.
#pragma once

#include "simd/stats_elements.h"

namespace msdbg::simd {

/// The difference of an element with itself is 0, or NaN if it is not finite.
template <class A, class T>
struct FiniteKernel {
  static bool run(const void* data, size_t n);
  template <class B>
  static bool all_zero(B differences) {
    return xsimd::all(differences == B(0));
  }
};

template <class A, class T>
bool FiniteKernel<A, T>::run(const void* data, size_t n) {
  using E = Elements<A, T>;
  using Part = typename E::Part;
  const char* p = static_cast<const char*>(data);
  const char* const end = p + n * E::kBytes;
  constexpr size_t kStep = E::kSize * E::kBytes;
  if constexpr (!E::kFloat) {
    return true;  // integers
  } else if constexpr (E::kWide) {
    Part first(0.0), second(0.0);
    for (; p != end; p += kStep) {
      prefetch(p);
      if constexpr (kStep > 64) prefetch(p + 64);
      Part a, b;
      E::doubles(p, &a, &b);
      first = first + (a - a);
      second = second + (b - b);
    }
    return all_zero(first + second);
  } else {
    Part sum(0.0f);
    for (; p != end; p += kStep) {
      prefetch(p);
      const Part x = E::load(p);
      sum = sum + (x - x);
    }
    return all_zero(sum);
  }
}

/// Of the 16-bit floats, by the bits: magnitudes from that of Inf on.
template <class A, class T>
struct HalfFiniteKernel {
  static bool run(const void* data, size_t n);
};

template <class A, class T>
bool HalfFiniteKernel<A, T>::run(const void* data, size_t n) {
  using Words = typename Ops<A>::Words;
  const char* p = static_cast<const char*>(data);
  const char* const end = p + 2 * n;
  const Words size(int16_t(0x7fff));
  Words most(int16_t(0));
  for (; p != end; p += 2 * Words::size) {
    prefetch(p);
    most = Ops<A>::max_signed(most, Ops<A>::load_words(p) & size);
  }
  alignas(64) int16_t parts[Words::size];
  most.store_aligned(parts);
  for (const int16_t bits : parts) {
    if (bits >= Elements<A, T>::kInfinity) return false;
  }
  return true;
}

}  // namespace msdbg::simd
