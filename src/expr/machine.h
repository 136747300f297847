// Runs code over blocks in lanes of float or double. Private to the module; one thread.
#pragma once

#include <array>
#include <memory>

#include "expr/program.h"
#include "simd/sums.h"

namespace msdbg::expr {

/// The current value of one accumulator.
struct Gathered {
  uint64_t count = 0;
  simd::ScaledSum sum;
  simd::ScaledMoments moments;
  double extreme;       ///< of kLeast, kGreatest, kLargest; NaN before the first element
  bool any = false;
  bool all_equal = true;  ///< for moments: every element so far equals `first`
  double first = 0;
};

class Machine {
 public:
  virtual ~Machine() = default;
  /// Allocates registers for `code` and rounds its scalars; `values` are those of all nodes. Call it before runs of the code.
  virtual void prepare(const Code& code, const std::vector<double>& values) = 0;
  virtual void run(const std::byte* block, const std::byte* previous, size_t n, std::vector<Gathered>& gathered) = 0;
  /// The same for the code of an element-wise root.
  virtual void run_elements(const std::byte* block, const std::byte* previous, size_t n, double* out) = 0;
};

/// Uses lanes of float if both types fit: bool, integers up to 16 bits, floats up to 32 bits.
std::unique_ptr<Machine> make_machine(const Program& program, DType dtype, DType prev_dtype);

}  // namespace msdbg::expr
