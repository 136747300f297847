#include "ckpt/cursor.h"

#include <algorithm>

namespace msdbg::ckpt {

bool Cursor::fill() {
  if (done() || !io_.ok()) return false;
  if (at_ >= window_begin_ && at_ < window_begin_ + window_size_) return true;
  window_begin_ = at_;
  window_size_ = std::min<uint64_t>(window_.size(), end_ - at_);
  io_ = file_.read(window_begin_, std::span(window_.data(), window_size_));
  if (!io_.ok()) window_size_ = 0;
  return io_.ok();
}

std::optional<uint8_t> Cursor::byte() {
  if (!fill()) return std::nullopt;
  return std::to_integer<uint8_t>(window_[at_++ - window_begin_]);
}

std::optional<uint64_t> Cursor::varint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto next = byte();
    if (!next) return std::nullopt;
    value |= uint64_t{*next & 0x7Fu} << shift;
    if (*next < 0x80) return value;
  }
  return std::nullopt;  // longer than ten bytes
}

std::optional<std::string> Cursor::text(uint64_t bytes) {
  if (bytes > left() || !io_.ok()) return std::nullopt;
  std::string out(bytes, '\0');
  io_ = file_.read(at_, std::as_writable_bytes(std::span(out.data(), out.size())));
  if (!io_.ok()) return std::nullopt;
  at_ += bytes;
  return out;
}

}  // namespace msdbg::ckpt
