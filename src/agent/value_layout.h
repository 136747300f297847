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

/// The elements, row by row. `strides` in elements; empty: contiguous. `data` is the element with index 0 in each dimension.
/// Error: as checked_bytes(), and for another number of strides than dimensions, or strides that lead out of the address space.
/// Precondition: the memory that shape and strides describe is readable.
Result<std::vector<std::byte>> gather(DType dtype, const Shape& shape, std::span<const int64_t> strides, const void* data);

}  // namespace msdbg::agent
