// The kernels for expressions without vector instructions.
#include "simd/block_kernels.h"
#include "simd/kernels.h"

namespace msdbg::expr {
namespace {

template <class T>
struct ScalarLanes {
  using Value = T;
  using Batch = T;
  using Mask = bool;
  struct Counts {
    uint64_t held = 0;
    void add(bool mask) { held += mask; }
    uint64_t total() const { return held; }
  };
  static constexpr size_t kSize = 1;
  static constexpr bool kWide = sizeof(T) == 8;
  static constexpr T kInfinity = static_cast<T>(__builtin_huge_val());
  static constexpr T kNan = static_cast<T>(__builtin_nan(""));

  MSDBG_EXPR_INLINE T load(const T* p) { return *p; }
  MSDBG_EXPR_INLINE void store(T* p, T a) { *p = a; }
  MSDBG_EXPR_INLINE T all(T value) { return value; }
  MSDBG_EXPR_INLINE T add(T a, T b) { return a + b; }
  MSDBG_EXPR_INLINE T sub(T a, T b) { return a - b; }
  MSDBG_EXPR_INLINE T mul(T a, T b) { return a * b; }
  MSDBG_EXPR_INLINE T div(T a, T b) { return a / b; }
  MSDBG_EXPR_INLINE T abs(T a) {
    return kWide ? static_cast<T>(__builtin_fabs(a)) : static_cast<T>(__builtin_fabsf(static_cast<float>(a)));
  }
#define MSDBG_EXPR_LIBM(NAME)                                              \
  MSDBG_EXPR_INLINE T NAME(T a) {                                          \
    if constexpr (kWide) return static_cast<T>(__builtin_##NAME(a));       \
    else return static_cast<T>(__builtin_##NAME##f(a));                    \
  }
  MSDBG_EXPR_LIBM(sqrt)
  MSDBG_EXPR_LIBM(exp)
  MSDBG_EXPR_LIBM(log)
  MSDBG_EXPR_LIBM(log2)
  MSDBG_EXPR_LIBM(floor)
#undef MSDBG_EXPR_LIBM
  MSDBG_EXPR_INLINE T pow(T a, T b) {
    if constexpr (kWide) return __builtin_pow(a, b);
    else return __builtin_powf(a, b);
  }
  MSDBG_EXPR_INLINE bool less(T a, T b) { return a < b; }
  MSDBG_EXPR_INLINE bool less_equal(T a, T b) { return a <= b; }
  MSDBG_EXPR_INLINE bool greater(T a, T b) { return a > b; }
  MSDBG_EXPR_INLINE bool equal(T a, T b) { return a == b; }
  MSDBG_EXPR_INLINE bool either(bool a, bool b) { return a || b; }
  MSDBG_EXPR_INLINE bool negation(bool a) { return !a; }
  MSDBG_EXPR_INLINE T lower(T a, T b) { return a < b ? a : b; }
  MSDBG_EXPR_INLINE T higher(T a, T b) { return a > b ? a : b; }
  MSDBG_EXPR_INLINE T select(bool mask, T a, T b) { return mask ? a : b; }

  struct Sums {
    double sum = 0, scale;
    explicit Sums(double factor) : scale(factor) {}
    void add(T a) { sum += static_cast<double>(a) * scale; }
    void add_square(T a) {
      const double scaled = static_cast<double>(a) * scale;
      sum += scaled * scaled;
    }
    double total() const { return sum; }
  };
  struct Moments {
    Sums sum{1.0}, squares{1.0};
    double centre, scale;
    Moments(double middle, double factor) : centre(middle * factor), scale(factor) {}
    void add(T a, bool keep = true) {
      if (!keep) return;
      const double d = static_cast<double>(a) * scale - centre;
      sum.sum += d;
      squares.sum += d * d;
    }
  };
};

}  // namespace
}  // namespace msdbg::expr

namespace msdbg::simd {

const expr::Kernels<float> kScalarFloats = expr::block_kernels<expr::ScalarLanes<float>>();
const expr::Kernels<double> kScalarDoubles = expr::block_kernels<expr::ScalarLanes<double>>();

}  // namespace msdbg::simd
