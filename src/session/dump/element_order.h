// Converts elements from other layouts to row-major order and native byte order. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "msdbg/tensor.h"

namespace msdbg::dump {

/// Reverses the bytes of each element.
void swap_bytes(std::span<std::byte> elements, size_t item);

/// Column-major (Fortran order) to row-major.
std::vector<std::byte> to_row_major(std::span<const std::byte> columns, std::span<const int64_t> shape, size_t item);

}  // namespace msdbg::dump
