// Where the elements of a value are, as a program says it: checked before anything is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/tensor.h"

namespace msdbg::agent {

/// Error: kInvalidArgument for a type that is not known, a negative size, or more bytes than an address can count.
Result<uint64_t> checked_bytes(DType dtype, const Shape& shape);

/// Elements in memory. `strides` in elements; empty: contiguous. `data` is the element with index 0 in each dimension.
struct ValueLayout {
  DType dtype = DType::kUnknown;
  Shape shape;
  std::vector<int64_t> strides;
  const std::byte* data = nullptr;
  uint64_t bytes = 0;  ///< of all elements, without gaps

  /// Error: as checked_bytes(), and for another number of strides than dimensions, strides that lead out of the address space, or elements
  /// without memory.
  static Result<ValueLayout> create(DType dtype, const Shape& shape, std::span<const int64_t> strides, const void* data);
  /// Writes the elements, row by row. Precondition: `out` has as many bytes; the memory is readable.
  void gather(std::span<std::byte> out) const;
  /// The memory from its first element to its last, in whatever order they lie; empty if there are none.
  std::span<const std::byte> extent() const;
  /// Whether no element is NaN or infinite; reads each place once, in the order of the memory.
  bool is_finite() const;
};

}  // namespace msdbg::agent
