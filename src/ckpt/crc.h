// CRC-32 as in zlib, for data that arrives in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace msdbg::ckpt {

class Crc32 {
 public:
  void update(std::span<const std::byte> bytes);
  uint32_t value() const { return ~state_; }

 private:
  uint32_t state_ = ~uint32_t{0};
};

}  // namespace msdbg::ckpt
