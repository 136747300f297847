#include "expr/machine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "simd/kernels.h"

namespace msdbg::expr {
namespace {

constexpr size_t kRegisterBytes = 8192;  // a few registers fit the L1 cache

template <class T>
const Kernels<T>& kernels_of(const simd::Target& target) {
  if constexpr (std::is_same_v<T, float>) return *target.floats;
  else return *target.doubles;
}

constexpr size_t index(Op op, Op first) { return static_cast<size_t>(op) - static_cast<size_t>(first); }
static_assert(index(Op::kNot, Op::kNegate) + 1 == kUnaryCount);
static_assert(index(Op::kOr, Op::kAdd) + 1 == kBinaryCount);
static_assert(index(Op::kNotEqual, Op::kLess) + 1 == kComparisonCount);

template <class T>
T rounded(double value, Rounding rounding) {
  if (rounding == Rounding::kNegated) return static_cast<T>(-value);
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    const auto nearest = static_cast<float>(value);
    const auto back = static_cast<double>(nearest);
    if (rounding == Rounding::kDown && back > value) return std::nextafterf(nearest, -INFINITY);
    if (rounding == Rounding::kUp && back < value) return std::nextafterf(nearest, INFINITY);
    if (rounding == Rounding::kExact && back != value) return std::numeric_limits<float>::quiet_NaN();
    return nearest;
  }
}

template <class T>
class BlockMachine : public Machine {
 public:
  BlockMachine(const Program& program, DType dtype, DType prev_dtype)
      : program_(program),
        kernels_(kernels_of<T>(simd::current_target())),
        tail_(kernels_of<T>(simd::kScalarTarget)),
        types_{dtype, prev_dtype},
        items_{item_size(dtype), item_size(prev_dtype)} {}

  void prepare(const Code& code, const std::vector<double>& values) override {
    code_ = &code;
    const size_t wanted = static_cast<size_t>(code.registers) * kRegisterBytes + kAlignment;
    if (room_.size() < wanted) room_.resize(wanted);
    void* start = room_.data();
    size_t space = room_.size();
    registers_ = static_cast<T*>(std::align(kAlignment, 1, start, space));
    scalars_.clear();
    for (const Scalar& scalar : code.scalars) {
      scalars_.push_back(rounded<T>(values[static_cast<size_t>(scalar.node)], scalar.rounding));
    }
  }

  void run(const std::byte* block, const std::byte* previous, size_t n, std::vector<Gathered>& gathered) override {
    for (size_t done = 0; done < n; done += kBlock) {
      load(block, previous, done, std::min(kBlock, n - done));
      const size_t coming = std::min(kBlock, n - done - n_);
      ahead_[0] = {block + (done + n_) * items_[0], code_->uses_x ? coming * items_[0] : 0};
      ahead_[1] = {previous + (code_->uses_prev ? (done + n_) * items_[1] : 0), code_->uses_prev ? coming * items_[1] : 0};
      execute(&gathered);
    }
  }

  void run_elements(const std::byte* block, const std::byte* previous, size_t n, double* out) override {
    for (size_t done = 0; done < n; done += kBlock) {
      load(block, previous, done, std::min(kBlock, n - done));
      ahead_ = {};
      execute(nullptr);
      const T* result = at(code_->result);
      for (size_t i = 0; i < n_; ++i) out[done + i] = static_cast<double>(result[i]);
    }
  }

 private:
  static constexpr size_t kBlock = kRegisterBytes / sizeof(T), kLanes = kAlignment / sizeof(T);

  T* own(int reg) { return registers_ + static_cast<size_t>(reg) * kBlock; }
  const T* at(int reg) { return reg < kFirstRegister ? inputs_[static_cast<size_t>(reg)] : own(reg); }
  T scalar(int i) const { return i < 0 ? T(0) : scalars_[static_cast<size_t>(i)]; }

  void load(const std::byte* block, const std::byte* previous, size_t first, size_t n) {
    n_ = n;
    padded_ = (n + kLanes - 1) / kLanes * kLanes;
    if (code_->uses_x) load_input(kXRegister, block, first);
    if (code_->uses_prev) load_input(kPrevRegister, previous, first);
  }

  void load_input(int reg, const std::byte* data, size_t first) {
    const auto i = static_cast<size_t>(reg);
    const std::byte* from = data + first * items_[i];
    const DType own_type = std::is_same_v<T, float> ? DType::kFloat32 : DType::kFloat64;
    // Values that already have the lane type are read in place.
    if (types_[i] == own_type && padded_ == n_ && reinterpret_cast<uintptr_t>(from) % sizeof(T) == 0) {
      inputs_[i] = reinterpret_cast<const T*>(from);
      return;
    }
    T* to = own(reg);
    kernels_.load[static_cast<size_t>(types_[i])](from, to, n_);
    std::fill(to + n_, to + padded_, T(0));
    inputs_[i] = to;
  }

  void execute(std::vector<Gathered>* gathered) {
    size_t left = code_->instructions.size();
    for (const Instruction& instruction : code_->instructions) {
      for (auto& ahead : ahead_) fetch(ahead, ahead.size() / left);
      --left;
      switch (instruction.kind) {
        case Instruction::Kind::kUnary:
          kernels_.unary[index(instruction.op, Op::kNegate)](own(instruction.to), at(instruction.a), padded_);
          break;
        case Instruction::Kind::kBinary: {
          const T* a = instruction.a < 0 ? nullptr : at(instruction.a);
          const T* b = instruction.b < 0 ? nullptr : at(instruction.b);
          kernels_.binary[index(instruction.op, Op::kAdd)][instruction.form](own(instruction.to), a, b,
                                                                             scalar(instruction.scalar), padded_);
          break;
        }
        case Instruction::Kind::kSelect:
          kernels_.select(own(instruction.to), at(instruction.a), at(instruction.b),
                          instruction.op == Op::kIsNan ? std::numeric_limits<T>::quiet_NaN() : T(0), padded_);
          break;
        case Instruction::Kind::kCountCompare:
          count_compare(instruction, (*gathered)[static_cast<size_t>(instruction.to)]);
          break;
        case Instruction::Kind::kGather:
          gather(instruction, (*gathered)[static_cast<size_t>(instruction.to)]);
          break;
      }
    }
  }

  /// Prefetches a share of the next block before each instruction.
  static void fetch(std::span<const std::byte>& ahead, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(ahead.data() + i);
    ahead = ahead.subspan(bytes);
  }

  size_t body() const { return n_ - n_ % kernels_.step; }

  void count_compare(const Instruction& instruction, Gathered& to) {
    const size_t op = index(instruction.op, Op::kLess), whole = body();
    const T* a = at(instruction.a);
    const bool magnitude = instruction.magnitude;
    if (instruction.form == kRegisters) {
      const T* b = at(instruction.b);
      to.count += kernels_.count_registers[op](a, b, magnitude, whole);
      if (whole != n_) to.count += tail_.count_registers[op](a + whole, b + whole, magnitude, n_ - whole);
      return;
    }
    const T first = scalar(instruction.first), s = scalar(instruction.scalar);
    to.count += kernels_.count_scalar[op][instruction.prelude](a, first, s, magnitude, whole);
    if (whole != n_) to.count += tail_.count_scalar[op][instruction.prelude](a + whole, first, s, magnitude, n_ - whole);
  }

  /// The elements of a reduction.
  struct Operand {
    const T* a;
    Prelude prelude;
    T first;
  };
  template <class Kernel>
  using ByPrelude = Kernel (Kernels<T>::*)[kPreludeCount];
  using SumKernel = double (*)(const T*, T, size_t, double);
  using ExtremeKernel = T (*)(const T*, T, size_t);

  double sum(ByPrelude<SumKernel> kernel, const Operand& x, int shift) const {
    const double scale = std::ldexp(1.0, -shift);
    const size_t whole = body();
    const double rest = whole == n_ ? 0.0 : (tail_.*kernel)[x.prelude](x.a + whole, x.first, n_ - whole, scale);
    return (kernels_.*kernel)[x.prelude](x.a, x.first, whole, scale) + rest;
  }

  /// The unit shift for the sums of this block; floats never leave the range of double.
  int shift_of(const Operand& x) const {
    if constexpr (std::is_same_v<T, float>) {
      return 0;
    } else {
      double largest = kernels_.largest[x.prelude](x.a, x.first, body());
      if (body() != n_) largest = std::max(largest, tail_.largest[x.prelude](x.a + body(), x.first, n_ - body()));
      return simd::unit_shift(largest);
    }
  }

  void gather(const Instruction& instruction, Gathered& to) {
    const Operand x{at(instruction.a), instruction.prelude, scalar(instruction.first)};
    const T* a = x.a;
    switch (program_.accumulators[static_cast<size_t>(instruction.to)].gather) {
      case Gather::kCount:
        to.count += kernels_.count(a, body());
        if (body() != n_) to.count += tail_.count(a + body(), n_ - body());
        break;
      case Gather::kSum: {
        const int shift = shift_of(x);
        to.sum.add(sum(&Kernels<T>::sum, x, shift), shift);
        break;
      }
      case Gather::kMagnitudes: {
        const int shift = shift_of(x);
        to.sum.add(sum(&Kernels<T>::magnitudes, x, shift), shift);
        break;
      }
      case Gather::kSquares: {
        const int shift = shift_of(x);
        to.sum.add(sum(&Kernels<T>::squares, x, shift), 2 * shift);
        break;
      }
      case Gather::kMoments: moments(a, instruction.b < 0 ? nullptr : at(instruction.b), to); break;
      case Gather::kLeast:
        extreme(&Kernels<T>::least, x, false, to, [](double value, double best) { return value < best; });
        break;
      case Gather::kGreatest:
        extreme(&Kernels<T>::greatest, x, false, to, [](double value, double best) { return value > best; });
        break;
      case Gather::kLargest:
        extreme(&Kernels<T>::largest, x, true, to, [](double value, double best) { return value > best || std::isnan(value); });
        break;
    }
  }

  /// `keeps_nan`: a NaN is kept; otherwise NaN means that nothing was seen yet.
  template <class Better>
  void extreme(ByPrelude<ExtremeKernel> kernel, const Operand& x, bool keeps_nan, Gathered& to, Better better) {
    const auto join = [&](const Kernels<T>& kernels, const T* from, size_t n) {
      if (n == 0) return;
      const auto value = static_cast<double>((kernels.*kernel)[x.prelude](from, x.first, n));
      const bool replace = !to.any || (!keeps_nan && std::isnan(to.extreme));
      if (replace || better(value, to.extreme)) to.extreme = value;
      to.any = true;
    };
    join(kernels_, x.a, body());
    join(tail_, x.a + body(), n_ - body());
  }

  void moments(const T* a, const T* mask, Gathered& to) {
    const int shift = mask ? shift_of_masked(a, mask) : shift_of({a, kPlain, T(0)});
    const double scale = std::ldexp(1.0, -shift);
    uint64_t n = n_;
    if (mask) {
      n = kernels_.count(mask, body());
      if (body() != n_) n += tail_.count(mask + body(), n_ - body());
      if (n == 0) return;
    }
    if (to.all_equal && equal_so_far(a, mask, to)) {
      to.count += n;
      to.moments.add(n, to.first, 0, 0, 0);
      return;
    }
    // The centre need only be close to the mean.
    const CentredSums rough = centred(a, mask, 0, scale);
    const double centre = std::ldexp(rough.sum / static_cast<double>(n), shift);
    const CentredSums fine = centred(a, mask, centre, scale);
    to.moments.add(n, centre, fine.sum, fine.squares, shift);
  }

  CentredSums centred(const T* a, const T* mask, double centre, double scale) const {
    const size_t whole = body();
    CentredSums sums = kernels_.centred(a, mask, whole, centre, scale);
    if (whole != n_) {
      const CentredSums rest = tail_.centred(a + whole, mask ? mask + whole : nullptr, n_ - whole, centre, scale);
      sums.sum += rest.sum;
      sums.squares += rest.squares;
    }
    return sums;
  }

  /// Keeps rounding of the sums from giving equal values a deviation.
  bool equal_so_far(const T* a, const T* mask, Gathered& to) const {
    for (size_t i = 0; i < n_; ++i) {
      if (mask && mask[i] == 0) continue;
      if (!to.any) {
        to.first = static_cast<double>(a[i]);
        to.any = true;
      }
      if (static_cast<double>(a[i]) == to.first) continue;
      to.all_equal = false;
      return false;
    }
    return true;
  }

  int shift_of_masked(const T* a, const T* mask) const {
    if constexpr (std::is_same_v<T, float>) return 0;
    double largest = 0;
    for (size_t i = 0; i < n_; ++i) {
      if (mask[i] != 0) largest = std::max(largest, std::fabs(static_cast<double>(a[i])));
    }
    return simd::unit_shift(largest);
  }

  const Program& program_;
  const Kernels<T>& kernels_;
  const Kernels<T>& tail_;
  std::array<DType, 2> types_;
  std::array<size_t, 2> items_;
  const Code* code_ = nullptr;
  std::vector<std::byte> room_;
  T* registers_ = nullptr;
  std::array<const T*, 2> inputs_ = {};
  std::vector<T> scalars_;
  std::array<std::span<const std::byte>, 2> ahead_;  // the remaining part of the next block to prefetch
  size_t n_ = 0, padded_ = 0;
};

bool fits_float(DType dtype) {
  MSDBG_CHECK(is_evaluable(dtype));
  return simd::kScalarTarget.floats->load[static_cast<size_t>(dtype)] != nullptr;
}

}  // namespace

std::unique_ptr<Machine> make_machine(const Program& program, DType dtype, DType prev_dtype) {
  const bool prev_narrow = prev_dtype == DType::kUnknown || fits_float(prev_dtype), narrow = fits_float(dtype) && prev_narrow;
  if (narrow) return std::make_unique<BlockMachine<float>>(program, dtype, prev_dtype);
  return std::make_unique<BlockMachine<double>>(program, dtype, prev_dtype);
}

}  // namespace msdbg::expr
