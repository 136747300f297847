#include "ckpt/crc.h"

#include <array>

namespace msdbg::ckpt {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320;  // zlib's polynomial, bits reversed

// kTables[k][b]: the effect of byte b on the state when k zero bytes follow it. Eight tables process eight bytes at a time, because
// a checkpoint of gigabytes is hashed completely before it is used.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = state;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}();

}  // namespace

void Crc32::update(std::span<const std::byte> bytes) {
  uint32_t state = state_;
  const auto at = [&](size_t i) { return std::to_integer<uint32_t>(bytes[i]); };
  while (bytes.size() >= 8) {
    const uint32_t low = state ^ (at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24);
    state = kTables[7][low & 0xFF] ^ kTables[6][low >> 8 & 0xFF] ^ kTables[5][low >> 16 & 0xFF] ^ kTables[4][low >> 24] ^
            kTables[3][at(4)] ^ kTables[2][at(5)] ^ kTables[1][at(6)] ^ kTables[0][at(7)];
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes) state = (state >> 8) ^ kTables[0][(state ^ std::to_integer<uint32_t>(byte)) & 0xFF];
  state_ = state;
}

}  // namespace msdbg::ckpt
