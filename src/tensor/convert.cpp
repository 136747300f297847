// 16-bit floats and widening of single elements.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "msdbg/tensor.h"

namespace msdbg {
namespace {

// Rounds a double once, to nearest even, into a 16-bit format. Going through float would round twice.
template <int kExponentBits, int kMantissaBits>
uint16_t narrow(double value) noexcept {
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr auto kInfinity = static_cast<uint16_t>(((1 << kExponentBits) - 1) << kMantissaBits);
  constexpr auto kQuiet = static_cast<uint16_t>(kInfinity | (1 << (kMantissaBits - 1)));
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 63) << 15);
  const double magnitude = std::fabs(value);

  if (std::isnan(value)) return sign | kQuiet;
  if (magnitude >= std::ldexp(1.0, kBias + 1)) return sign | kInfinity;
  if (magnitude < std::ldexp(1.0, 1 - kBias)) {
    // Scaling by a power of two is exact; a carry out of the mantissa correctly gives the smallest normal number.
    return static_cast<uint16_t>(
        sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(magnitude, kBias - 1 + kMantissaBits))));
  }
  constexpr int kShift = 52 - kMantissaBits;
  const uint64_t rebased = (bits & ~(uint64_t{1} << 63)) - (static_cast<uint64_t>(1023 - kBias) << 52);
  const uint64_t even = (rebased >> kShift) & 1;
  return static_cast<uint16_t>(sign | ((rebased + (uint64_t{1} << (kShift - 1)) - 1 + even) >> kShift));
}

struct Bool {
  uint8_t byte;
  explicit operator double() const { return byte != 0 ? 1.0 : 0.0; }
};
struct Half {
  uint16_t bits;
  explicit operator double() const { return static_cast<double>(half_to_float(bits)); }
};
struct BFloat16 {
  uint16_t bits;
  explicit operator double() const { return static_cast<double>(bfloat16_to_float(bits)); }
};

template <typename T>
double widen(const std::byte* bytes) noexcept {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

float half_to_float(uint16_t bits) noexcept {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

float bfloat16_to_float(uint16_t bits) noexcept { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t float_to_half(double value) noexcept { return narrow<5, 10>(value); }

uint16_t float_to_bfloat16(double value) noexcept { return narrow<8, 7>(value); }

double element_as_double(DType dtype, const std::byte* bytes) noexcept {
  switch (dtype) {
#define MSDBG_ROW(NAME, TYPE) \
  case DType::NAME:           \
    return widen<TYPE>(bytes);
    MSDBG_EVALUABLE_TYPES(MSDBG_ROW)
#undef MSDBG_ROW
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace msdbg
