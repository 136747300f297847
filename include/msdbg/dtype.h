// The element types. This header defines no function: the files of the SIMD targets include it, and their flags must not affect
// other files.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace msdbg {

enum class DType : uint8_t {
  kUnknown,
  kBool, kInt8, kInt16, kInt32, kInt64, kUInt8, kUInt16, kUInt32, kUInt64,
  kFloat16, kBFloat16, kFloat32, kFloat64,
  // Shown, never evaluated:
  kComplex64, kComplex128, kString, kInt4, kFloat8,
};
constexpr size_t kDTypeCount = static_cast<size_t>(DType::kFloat8) + 1;

/// The types with statistics and conditions: X(enumerator, element). Bool, Half and BFloat16 are structs of the user's. The table
/// of kernels is generated from this list; the compiler reports everything else that a new type needs.
#define MSDBG_EVALUABLE_TYPES(X)                                                                   \
  X(kBool, Bool) X(kInt8, int8_t) X(kInt16, int16_t) X(kInt32, int32_t) X(kInt64, int64_t)         \
  X(kUInt8, uint8_t) X(kUInt16, uint16_t) X(kUInt32, uint32_t) X(kUInt64, uint64_t)                \
  X(kFloat16, Half) X(kBFloat16, BFloat16) X(kFloat32, float) X(kFloat64, double)

}  // namespace msdbg
