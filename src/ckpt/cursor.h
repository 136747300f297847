// Protobuf's wire format over a file: varints and lengths through a small window, contents skipped. 64-bit offsets.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "ckpt/file.h"

namespace msdbg::ckpt {

/// Reads forward from `begin`, never behind `end`. The first failed read is kept in io_status(); a value that does not
/// fit gives nullopt with an ok io_status().
class Cursor {
 public:
  Cursor(const File& file, uint64_t begin, uint64_t end) : file_(file), at_(begin), end_(end) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return end_ - at_; }
  bool done() const { return at_ >= end_; }
  const Status& io_status() const { return io_; }

  std::optional<uint8_t> byte();
  std::optional<uint64_t> varint();
  std::optional<std::string> text(uint64_t bytes);
  void skip(uint64_t bytes) { at_ += bytes; }

 private:
  bool fill();

  const File& file_;
  uint64_t at_, end_;
  Status io_;
  std::array<std::byte, 4096> window_;
  uint64_t window_begin_ = 0, window_size_ = 0;
};

}  // namespace msdbg::ckpt
