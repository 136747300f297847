// Runs code over blocks, in lanes of float or of double. Private to the module; one thread.
#pragma once

#include <array>
#include <memory>

#include "expr/program.h"
#include "simd/sums.h"

namespace msdbg::expr {

/// What one accumulator has gathered so far.
struct Gathered {
  uint64_t count = 0;
  simd::ScaledSum sum;
  simd::ScaledMoments moments;
  double extreme;       ///< of kLeast, kGreatest, kLargest; NaN before the first element
  bool any = false;
  bool all_equal = true;  ///< of moments: every element so far is `first`
  double first = 0;
};

class Machine {
 public:
  virtual ~Machine() = default;
  /// Makes room for `code` and rounds its scalars; `values` are those of all nodes. Runs of the code follow.
  virtual void prepare(const Code& code, const std::vector<double>& values) = 0;
  virtual void run(const std::byte* block, const std::byte* previous, size_t n, std::vector<Gathered>& gathered) = 0;
  /// The same for the code of an element-wise root.
  virtual void run_elements(const std::byte* block, const std::byte* previous, size_t n, double* out) = 0;
};

/// Lanes of float when both types fit them: bool, integers up to 16 bits, floats up to 32 bits.
std::unique_ptr<Machine> make_machine(const Program& program, DType dtype, DType prev_dtype);

}  // namespace msdbg::expr
