// Random formulas and tensors.
#pragma once

#include <random>

#include "expr/interpreter.h"

namespace msdbg::test {

using Random = std::mt19937_64;

/// The allowed contents of a formula.
struct Grammar {
  bool previous = false;
  int depth = 4;
};

FormulaPtr random_condition(Random& random, const Grammar& grammar);
FormulaPtr random_scalar(Random& random, const Grammar& grammar);
/// One value per element.
FormulaPtr random_elements(Random& random, const Grammar& grammar, bool truth);

/// Elements of any type in any alignment.
struct RandomTensor {
  DType dtype = DType::kFloat32;
  uint64_t count = 0;
  size_t offset = 0;
  std::vector<std::byte> bytes;
  Shape shape;

  const std::byte* data() const { return bytes.data() + offset; }
  TensorView view() const { return {dtype, shape, data(), count}; }
};

DType random_dtype(Random& random);
/// Mostly short, sometimes near block boundaries.
uint64_t random_count(Random& random);
RandomTensor random_tensor(Random& random, DType dtype, uint64_t count);
/// Writes `value`, rounded to the type.
void put(DType dtype, double value, std::byte* out);

}  // namespace msdbg::test
