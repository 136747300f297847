// Ranges and limits in terms of one element type. Private to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "msdbg/simd.h"
#include "msdbg/tensor.h"
#include "simd/kernels.h"

namespace msdbg::simd {

/// The same elements of `dtype` as `range` holds, with ends that its lanes represent; nullopt when it can hold none.
/// Infinite elements are never inside.
std::optional<Bounds> bounds_for(DType dtype, const RangeRequest& range);

/// How many of `n` elements equal the largest value of `dtype` or its counterpart below zero; 0 for bool.
uint64_t count_extreme(DType dtype, const std::byte* data, size_t n);
/// True when a block with these extremes may hold such an element.
bool may_be_extreme(DType dtype, double min, double max);

}  // namespace msdbg::simd
