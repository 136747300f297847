// The kernels, templated on a set of lanes; included only by the files of the targets. Every name here contains the lanes, which
// keeps the linker from mixing targets.
//
// Lanes<V> offer: Value, Batch, Mask, Counts, kSize, load, store, all, and the operations below.
#pragma once

#include <type_traits>

#include "simd/expr_kernels.h"

#define MSDBG_EXPR_INLINE static inline __attribute__((always_inline))

namespace msdbg::expr {

template <class V>
struct BlockKernels {
  using T = typename V::Value;
  using B = typename V::Batch;
  using M = typename V::Mask;

  MSDBG_EXPR_INLINE B truth(M mask) { return V::select(mask, V::all(T(1)), V::all(T(0))); }
  MSDBG_EXPR_INLINE M holds(B truth) { return V::greater(truth, V::all(T(0))); }
  MSDBG_EXPR_INLINE M is_nan(B a) { return V::negation(V::equal(a, a)); }

  // ---- operations ------------------------------------------------------------------------------------------------
  struct Negate { MSDBG_EXPR_INLINE B run(B a) { return V::mul(a, V::all(T(-1))); } };
  struct Abs { MSDBG_EXPR_INLINE B run(B a) { return V::abs(a); } };
  struct Sqrt { MSDBG_EXPR_INLINE B run(B a) { return V::sqrt(a); } };
  struct Exp { MSDBG_EXPR_INLINE B run(B a) { return V::exp(a); } };
  struct Log { MSDBG_EXPR_INLINE B run(B a) { return V::log(a); } };
  struct Log2 { MSDBG_EXPR_INLINE B run(B a) { return V::log2(a); } };
  struct Sign {
    MSDBG_EXPR_INLINE B run(B a) {
      const B below = V::select(V::less(a, V::all(T(0))), V::all(T(-1)), a);
      return V::select(V::greater(a, V::all(T(0))), V::all(T(1)), below);
    }
  };
  struct Floor { MSDBG_EXPR_INLINE B run(B a) { return V::floor(a); } };
  struct IsNan { MSDBG_EXPR_INLINE B run(B a) { return truth(is_nan(a)); } };
  struct IsInf { MSDBG_EXPR_INLINE B run(B a) { return truth(V::equal(V::abs(a), V::all(V::kInfinity))); } };
  struct IsFinite { MSDBG_EXPR_INLINE B run(B a) { return truth(V::less(V::abs(a), V::all(V::kInfinity))); } };
  struct Not { MSDBG_EXPR_INLINE B run(B a) { return V::sub(V::all(T(1)), a); } };

  struct Add { MSDBG_EXPR_INLINE B run(B a, B b) { return V::add(a, b); } };
  struct Sub { MSDBG_EXPR_INLINE B run(B a, B b) { return V::sub(a, b); } };
  struct Mul { MSDBG_EXPR_INLINE B run(B a, B b) { return V::mul(a, b); } };
  struct Div { MSDBG_EXPR_INLINE B run(B a, B b) { return V::div(a, b); } };
  struct Pow { MSDBG_EXPR_INLINE B run(B a, B b) { return V::pow(a, b); } };
  // NaN on either side gives NaN.
  struct Min { MSDBG_EXPR_INLINE B run(B a, B b) { return V::select(V::either(V::less(b, a), is_nan(b)), b, a); } };
  struct Max { MSDBG_EXPR_INLINE B run(B a, B b) { return V::select(V::either(V::less(a, b), is_nan(b)), b, a); } };
  struct And { MSDBG_EXPR_INLINE B run(B a, B b) { return V::mul(a, b); } };
  struct Or { MSDBG_EXPR_INLINE B run(B a, B b) { return truth(V::either(holds(a), holds(b))); } };

  struct Less { MSDBG_EXPR_INLINE M test(B a, B b) { return V::less(a, b); } };
  struct LessEqual { MSDBG_EXPR_INLINE M test(B a, B b) { return V::less_equal(a, b); } };
  struct Greater { MSDBG_EXPR_INLINE M test(B a, B b) { return V::greater(a, b); } };
  struct GreaterEqual { MSDBG_EXPR_INLINE M test(B a, B b) { return V::less_equal(b, a); } };
  struct Equal { MSDBG_EXPR_INLINE M test(B a, B b) { return V::equal(a, b); } };
  struct NotEqual { MSDBG_EXPR_INLINE M test(B a, B b) { return V::negation(V::equal(a, b)); } };
  template <class Test>
  struct Truth { MSDBG_EXPR_INLINE B run(B a, B b) { return truth(Test::test(a, b)); } };

  // ---- element by element ----------------------------------------------------------------------------------------
  template <class Op>
  static void unary(T* to, const T* a, size_t n) {
    for (size_t i = 0; i < n; i += V::kSize) V::store(to + i, Op::run(V::load(a + i)));
  }

  template <class Op, int form>
  static void binary(T* to, const T* a, const T* b, T scalar, size_t n) {
    const B s = V::all(scalar);
    for (size_t i = 0; i < n; i += V::kSize) {
      if constexpr (form == kRegisters) V::store(to + i, Op::run(V::load(a + i), V::load(b + i)));
      else if constexpr (form == kRegisterScalar) V::store(to + i, Op::run(V::load(a + i), s));
      else V::store(to + i, Op::run(s, V::load(b + i)));
    }
  }

  static void select(T* to, const T* value, const T* mask, T other, size_t n) {
    const B o = V::all(other);
    for (size_t i = 0; i < n; i += V::kSize) V::store(to + i, V::select(holds(V::load(mask + i)), V::load(value + i), o));
  }

  // ---- preludes ----------------------------------------------------------------------------------------------------
  template <int prelude>
  MSDBG_EXPR_INLINE B prepared(const T* p, B first) {
    const B x = V::load(p);
    if constexpr (prelude == kAdded) return V::add(x, first);
    else if constexpr (prelude == kMultiplied) return V::mul(x, first);
    else if constexpr (prelude == kSquared) return V::mul(x, x);
    else return x;
  }

  // ---- reductions ------------------------------------------------------------------------------------------------
  // Counting in lanes is exact: blocks are far shorter than 2^24.
  static uint64_t count(const T* truth, size_t n) {
    return static_cast<uint64_t>(summed(n, [&](size_t i) __attribute__((always_inline)) { return V::load(truth + i); }));
  }

  template <class Test>
  static uint64_t count_registers(const T* a, const T* b, bool magnitude, size_t n) {
    if (magnitude) {
      return held(n, [&](size_t i) __attribute__((always_inline)) { return Test::test(V::abs(V::load(a + i)), V::load(b + i)); });
    }
    return held(n, [&](size_t i) __attribute__((always_inline)) { return Test::test(V::load(a + i), V::load(b + i)); });
  }

  template <class Test, int prelude>
  static uint64_t count_scalar(const T* a, T first, T scalar, bool magnitude, size_t n) {
    const B s = V::all(scalar), f = V::all(first);
    if (magnitude) {
      return held(n, [&](size_t i) __attribute__((always_inline)) { return Test::test(V::abs(prepared<prelude>(a + i, f)), s); });
    }
    return held(n, [&](size_t i) __attribute__((always_inline)) { return Test::test(prepared<prelude>(a + i, f), s); });
  }

  /// The number of true elements in the masks of `at`.
  template <class At>
  MSDBG_EXPR_INLINE uint64_t held(size_t n, At at) {
    constexpr size_t kStep = 4 * V::kSize;
    typename V::Counts counts[4];
    size_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      counts[0].add(at(i));
      counts[1].add(at(i + V::kSize));
      counts[2].add(at(i + 2 * V::kSize));
      counts[3].add(at(i + 3 * V::kSize));
    }
    for (; i < n; i += V::kSize) counts[0].add(at(i));
    return counts[0].total() + counts[1].total() + counts[2].total() + counts[3].total();
  }

  /// Sums the values of `at` in lanes: four sums at a time, because an addition waits for the previous one.
  template <class At>
  MSDBG_EXPR_INLINE T summed(size_t n, At at) {
    constexpr size_t kStep = 4 * V::kSize;
    B sums[4] = {V::all(T(0)), V::all(T(0)), V::all(T(0)), V::all(T(0))};
    size_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      sums[0] = V::add(sums[0], at(i));
      sums[1] = V::add(sums[1], at(i + V::kSize));
      sums[2] = V::add(sums[2], at(i + 2 * V::kSize));
      sums[3] = V::add(sums[3], at(i + 3 * V::kSize));
    }
    for (; i < n; i += V::kSize) sums[0] = V::add(sums[0], at(i));
    alignas(64) T parts[V::kSize];
    V::store(parts, V::add(V::add(sums[0], sums[1]), V::add(sums[2], sums[3])));
    T sum = 0;
    for (size_t k = 0; k < V::kSize; ++k) sum += parts[k];
    return sum;
  }

  template <int prelude, class Add>
  MSDBG_EXPR_INLINE double double_sum(const T* a, T before, size_t n, double scale, Add add) {
    const B f = V::all(before);
    typename V::Sums first(scale), second(scale);
    size_t i = 0;
    for (; i + 2 * V::kSize <= n; i += 2 * V::kSize) {
      add(first, prepared<prelude>(a + i, f));
      add(second, prepared<prelude>(a + i + V::kSize, f));
    }
    if (i < n) add(first, prepared<prelude>(a + i, f));
    return first.total() + second.total();
  }
  template <int prelude>
  static double sum(const T* a, T first, size_t n, double scale) {
    return double_sum<prelude>(a, first, n, scale, [](auto& sums, B x) __attribute__((always_inline)) { sums.add(x); });
  }
  template <int prelude>
  static double magnitudes(const T* a, T first, size_t n, double scale) {
    return double_sum<prelude>(a, first, n, scale,
                               [](auto& sums, B x) __attribute__((always_inline)) { sums.add(V::abs(x)); });
  }
  template <int prelude>
  static double squares(const T* a, T first, size_t n, double scale) {
    return double_sum<prelude>(a, first, n, scale,
                               [](auto& sums, B x) __attribute__((always_inline)) { sums.add_square(x); });
  }

  template <bool masked>
  MSDBG_EXPR_INLINE CentredSums centred_sums(const T* a, const T* mask, size_t n, double centre, double scale) {
    typename V::Moments moments(centre, scale);
    for (size_t i = 0; i < n; i += V::kSize) {
      if constexpr (masked) moments.add(V::load(a + i), holds(V::load(mask + i)));
      else moments.add(V::load(a + i));
    }
    return CentredSums{moments.sum.total(), moments.squares.total()};
  }
  static CentredSums centred(const T* a, const T* mask, size_t n, double centre, double scale) {
    return mask ? centred_sums<true>(a, mask, n, centre, scale) : centred_sums<false>(a, mask, n, centre, scale);
  }

  /// Comparisons with NaN are false, which skips NaN. Only if the result is still the start value, check whether there was anything
  /// other than NaN.
  template <class Better, int prelude>
  MSDBG_EXPR_INLINE T extreme(const T* a, T first, size_t n) {
    const B f = V::all(first);
    constexpr T kStart = Better::kLess ? V::kInfinity : -V::kInfinity;
    constexpr size_t kStep = 4 * V::kSize;
    B best[4] = {V::all(kStart), V::all(kStart), V::all(kStart), V::all(kStart)};
    const auto keep = [](B & lanes, B x) __attribute__((always_inline)) {
      lanes = Better::kLess ? V::lower(x, lanes) : V::higher(x, lanes);
    };
    size_t i = 0;
    for (; i + kStep <= n; i += kStep) {
      for (size_t k = 0; k < 4; ++k) keep(best[k], prepared<prelude>(a + i + k * V::kSize, f));
    }
    for (; i < n; i += V::kSize) keep(best[0], prepared<prelude>(a + i, f));
    for (size_t k = 1; k < 4; ++k) keep(best[0], best[k]);
    alignas(64) T parts[V::kSize];
    V::store(parts, best[0]);
    T result = kStart;
    for (T part : parts) result = (Better::kLess ? part < result : part > result) ? part : result;
    if (result != kStart) return result;
    B numbers = V::all(T(0));
    for (i = 0; i < n; i += V::kSize) {
      const B x = prepared<prelude>(a + i, f);
      numbers = V::add(numbers, truth(V::equal(x, x)));
    }
    V::store(parts, numbers);
    for (T part : parts) {
      if (part > 0) return kStart;
    }
    return V::kNan;
  }
  struct Lower : Less { static constexpr bool kLess = true; };
  struct Higher : Greater { static constexpr bool kLess = false; };
  template <int prelude>
  static T least(const T* a, T first, size_t n) {
    return extreme<Lower, prelude>(a, first, n);
  }
  template <int prelude>
  static T greatest(const T* a, T first, size_t n) {
    return extreme<Higher, prelude>(a, first, n);
  }

  template <int prelude>
  static T largest(const T* a, T first, size_t n) {
    const B f = V::all(first);
    B best[2] = {V::all(T(0)), V::all(T(0))};
    const auto keep = [](B& lanes, B x) __attribute__((always_inline)) {
      lanes = V::select(V::either(V::greater(x, lanes), is_nan(x)), x, lanes);
    };
    size_t i = 0;
    for (; i + 2 * V::kSize <= n; i += 2 * V::kSize) {
      keep(best[0], V::abs(prepared<prelude>(a + i, f)));
      keep(best[1], V::abs(prepared<prelude>(a + i + V::kSize, f)));
    }
    if (i < n) keep(best[0], V::abs(prepared<prelude>(a + i, f)));
    keep(best[0], best[1]);
    alignas(64) T parts[V::kSize];
    V::store(parts, best[0]);
    T result = parts[0];
    for (T part : parts) {
      if (part > result || part != part) result = part;
    }
    return result;
  }

  // ---- loads -----------------------------------------------------------------------------------------------------
  // Plain loops that the compiler vectorises for the target.
  struct Bool {};
  struct Half {};
  struct BFloat16 {};

  /// Null for types whose values do not all fit the lanes.
  template <class From>
  static constexpr auto loader() -> void (*)(const void*, T*, size_t) {
    if constexpr (std::is_same_v<From, Bool>) return load_bool;
    else if constexpr (std::is_same_v<From, Half>) return load_half;
    else if constexpr (std::is_same_v<From, BFloat16>) return load_bfloat16;
    else if constexpr (sizeof(T) == 8 || sizeof(From) <= 2 || std::is_same_v<From, float>) return load<From>;
    else return nullptr;
  }

  template <class From>
  static void load(const void* from, T* to, size_t n) {
    const char* p = static_cast<const char*>(from);
    for (size_t i = 0; i < n; ++i) {
      From value;
      __builtin_memcpy(&value, p + i * sizeof value, sizeof value);
      to[i] = static_cast<T>(value);
    }
  }
  static void load_bool(const void* from, T* to, size_t n) {
    const unsigned char* p = static_cast<const unsigned char*>(from);
    for (size_t i = 0; i < n; ++i) to[i] = p[i] != 0 ? T(1) : T(0);
  }
  static void load_bfloat16(const void* from, T* to, size_t n) {
    const char* p = static_cast<const char*>(from);
    for (size_t i = 0; i < n; ++i) {
      uint16_t half;
      __builtin_memcpy(&half, p + 2 * i, sizeof half);
      to[i] = static_cast<T>(as_float(static_cast<uint32_t>(half) << 16));
    }
  }
  // Adjusting the exponent by a multiplication is exact and turns denormals into normals.
  static void load_half(const void* from, T* to, size_t n) {
    const char* p = static_cast<const char*>(from);
    for (size_t i = 0; i < n; ++i) {
      uint16_t half;
      __builtin_memcpy(&half, p + 2 * i, sizeof half);
      const uint32_t rest = half & 0x7fffu, sign = (half & 0x8000u) << 16;
      const uint32_t special = rest > 0x7bffu ? 0x7f800000u : 0u;
      const float scaled = as_float(rest << 13) * 0x1p112f;
      to[i] = static_cast<T>(as_float(as_bits(scaled) | special | sign));
    }
  }
  MSDBG_EXPR_INLINE float as_float(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
  }
  MSDBG_EXPR_INLINE uint32_t as_bits(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
  }
};

// clang-format off
#define MSDBG_EXPR_FORMS(OP) {K::template binary<OP, kRegisters>, K::template binary<OP, kRegisterScalar>, K::template binary<OP, kScalarRegister>}
#define MSDBG_EXPR_TEST(TEST) MSDBG_EXPR_FORMS(typename K::template Truth<typename K::TEST>)
#define MSDBG_EXPR_PRELUDES(NAME) {K::template NAME<kPlain>, K::template NAME<kAdded>, K::template NAME<kMultiplied>, K::template NAME<kSquared>}
#define MSDBG_EXPR_COUNT(TEST) {K::template count_scalar<typename K::TEST, kPlain>, K::template count_scalar<typename K::TEST, kAdded>, K::template count_scalar<typename K::TEST, kMultiplied>, K::template count_scalar<typename K::TEST, kSquared>}

template <class V>
constexpr Kernels<typename V::Value> block_kernels() {
  using K = BlockKernels<V>;
  using Bool = typename K::Bool;
  using Half = typename K::Half;
  using BFloat16 = typename K::BFloat16;
  Kernels<typename V::Value> kernels = {
      V::kSize,
      {},
      {K::template unary<typename K::Negate>, K::template unary<typename K::Abs>, K::template unary<typename K::Sqrt>,
       K::template unary<typename K::Exp>, K::template unary<typename K::Log>, K::template unary<typename K::Log2>,
       K::template unary<typename K::Sign>, K::template unary<typename K::Floor>, K::template unary<typename K::IsNan>,
       K::template unary<typename K::IsInf>, K::template unary<typename K::IsFinite>, K::template unary<typename K::Not>},
      {MSDBG_EXPR_FORMS(typename K::Add), MSDBG_EXPR_FORMS(typename K::Sub), MSDBG_EXPR_FORMS(typename K::Mul),
       MSDBG_EXPR_FORMS(typename K::Div), MSDBG_EXPR_FORMS(typename K::Pow), MSDBG_EXPR_FORMS(typename K::Min),
       MSDBG_EXPR_FORMS(typename K::Max), MSDBG_EXPR_TEST(Less), MSDBG_EXPR_TEST(LessEqual), MSDBG_EXPR_TEST(Greater),
       MSDBG_EXPR_TEST(GreaterEqual), MSDBG_EXPR_TEST(Equal), MSDBG_EXPR_TEST(NotEqual),
       MSDBG_EXPR_FORMS(typename K::And), MSDBG_EXPR_FORMS(typename K::Or)},
      K::select,
      K::count,
      {K::template count_registers<typename K::Less>, K::template count_registers<typename K::LessEqual>,
       K::template count_registers<typename K::Greater>, K::template count_registers<typename K::GreaterEqual>,
       K::template count_registers<typename K::Equal>, K::template count_registers<typename K::NotEqual>},
      {MSDBG_EXPR_COUNT(Less), MSDBG_EXPR_COUNT(LessEqual), MSDBG_EXPR_COUNT(Greater), MSDBG_EXPR_COUNT(GreaterEqual),
       MSDBG_EXPR_COUNT(Equal), MSDBG_EXPR_COUNT(NotEqual)},
      MSDBG_EXPR_PRELUDES(sum), MSDBG_EXPR_PRELUDES(magnitudes), MSDBG_EXPR_PRELUDES(squares), K::centred,
      MSDBG_EXPR_PRELUDES(least), MSDBG_EXPR_PRELUDES(greatest), MSDBG_EXPR_PRELUDES(largest)};
#define MSDBG_ROW(NAME, TYPE) kernels.load[static_cast<size_t>(DType::NAME)] = K::template loader<TYPE>();
  MSDBG_EVALUABLE_TYPES(MSDBG_ROW)
#undef MSDBG_ROW
  return kernels;
}
// clang-format on

}  // namespace msdbg::expr
