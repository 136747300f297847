// Converts elements from other layouts to row-major order and native byte order. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "msdbg/tensor.h"

namespace msdbg {

/// Reverses the bytes of each element.
void swap_bytes(std::span<std::byte> elements, size_t item);

/// Flips the sign of each element. Precondition: a float type in native byte order.
void negate(std::span<std::byte> elements, size_t item);

/// Column-major (Fortran order) to row-major.
std::vector<std::byte> to_row_major(std::span<const std::byte> columns, std::span<const int64_t> shape, size_t item);

/// The order of a tensor that views part of a storage, with as few axes as possible. Without elements, it has no runs.
class StridedOrder {
 public:
  /// Precondition: the strides are not negative, and no element is beyond 2^63.
  StridedOrder(std::span<const int64_t> shape, std::span<const int64_t> strides);

  /// Elements `count` of the innermost axis from element `from` of the storage on, `step` apart.
  struct Run {
    uint64_t from = 0, count = 0, step = 1;
  };
  /// The run that begins with element `first` in row-major order, with at most `most` elements. Precondition: `first` exists.
  Run run_at(uint64_t first, uint64_t most) const;
  /// Elements of the innermost axis if they follow each other, else 1.
  uint64_t longest_run() const;

 private:
  struct Axis {
    uint64_t length = 1, stride = 1;
  };
  std::vector<Axis> axes_;
};

/// Copies `out.size() / item` elements from `first` on out of a storage in memory.
void gather(std::span<const std::byte> storage, const StridedOrder& order, size_t item, uint64_t first, std::span<std::byte> out);

}  // namespace msdbg
