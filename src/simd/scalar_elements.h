// Reads elements one at a time, for targets without vector instructions. Private to their files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "msdbg/tensor.h"

namespace msdbg::simd::scalar {

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
struct Bool {
  uint8_t value;
};

template <typename T>
T load(const void* data, size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + i * sizeof value, sizeof value);
  return value;
}

template <typename T>
double widen(T value) {
  if constexpr (std::is_same_v<T, Half>) {
    return static_cast<double>(half_to_float(value.bits));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return static_cast<double>(bfloat16_to_float(value.bits));
  } else if constexpr (std::is_same_v<T, Bool>) {
    return value.value != 0 ? 1.0 : 0.0;
  } else {
    return static_cast<double>(value);
  }
}

}  // namespace msdbg::simd::scalar
