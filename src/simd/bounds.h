// Converts ranges and limits to one element type. Private to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "msdbg/simd.h"
#include "msdbg/tensor.h"
#include "simd/kernels.h"

namespace msdbg::simd {

/// The elements of `dtype` in `range`, as ends that its lanes can represent; nullopt if there are none. Infinite elements are never
/// inside.
std::optional<Bounds> bounds_for(DType dtype, const RangeRequest& range);

/// How many of `n` elements equal the largest value of `dtype` or its negative counterpart; 0 for bool.
uint64_t count_extreme(DType dtype, const std::byte* data, size_t n);
/// True if a block with these extremes may contain such an element.
bool may_be_extreme(DType dtype, double min, double max);

}  // namespace msdbg::simd
