#include "msdbg/bytes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace msdbg {

void ByteWriter::grow(size_t bytes) {
  constexpr size_t kLeast = 64;
  out_.resize(std::max({kLeast, 2 * out_.size(), size_ + bytes}));
}

std::string ByteWriter::take() {
  out_.resize(std::exchange(size_, 0));
  return std::exchange(out_, {});
}

void ByteWriter::append(const void* bytes, size_t size) {
  if (size == 0) return;
  std::memcpy(room(size), bytes, size);
  size_ += size;
}

void ByteWriter::long_number(uint64_t value) {
  constexpr size_t kMost = 10;
  char* to = room(kMost);
  const char* const start = to;
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>((value & 0x7f) | 0x80);
  *to++ = static_cast<char>(value);
  size_ += static_cast<size_t>(to - start);
}

void ByteWriter::real(double value) { word(std::bit_cast<uint64_t>(value)); }

void ByteWriter::reals(std::span<const double> values) {
  if constexpr (std::endian::native == std::endian::little) {
    append(values.data(), values.size_bytes());
  } else {
    for (const double value : values) real(value);
  }
}

void ByteWriter::word(uint64_t value) {
  if constexpr (std::endian::native == std::endian::little) {
    append(&value, sizeof value);
  } else {
    for (int i = 0; i < 8; ++i) byte(static_cast<unsigned>(value >> (8 * i) & 0xff));
  }
}

void ByteWriter::text(std::string_view value) {
  number(value.size());
  append(value.data(), value.size());
}

void ByteWriter::status(const Status& value) {
  byte(static_cast<unsigned>(value.code()));
  text(value.message());
}

bool ByteReader::flag() {
  const uint8_t value = byte();
  require(value <= 1);
  return value == 1;
}

uint64_t ByteReader::long_number() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t next = byte();
    if (shift == 63 && next > 1) break;
    value |= uint64_t{next & 0x7fu} << shift;
    if (next < 0x80) return value;
  }
  fail();
  return 0;
}

uint64_t ByteReader::number(uint64_t most) {
  const uint64_t value = number();
  require(value <= most);
  return good_ ? value : 0;
}

int64_t ByteReader::whole() {
  const uint64_t value = number();
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

int ByteReader::small() {
  const int64_t value = whole();
  require(value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max());
  return good_ ? static_cast<int>(value) : 0;
}

double ByteReader::real() { return std::bit_cast<double>(word()); }

uint64_t ByteReader::word() {
  if (rest_.size() < 8) {
    fail();
    return 0;
  }
  uint64_t value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
  } else {
    for (int shift = 0; shift < 64; shift += 8) value |= uint64_t{byte()} << shift;
  }
  return value;
}

std::string_view ByteReader::text() {
  const uint64_t size = number();
  if (size > rest_.size()) {
    fail();
    return {};
  }
  const std::string_view value = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return value;
}

Status ByteReader::status() {
  const auto code = static_cast<Code>(number(static_cast<uint64_t>(Code::kInternal)));
  std::string message(text());
  return code == Code::kOk ? Status() : Status(code, std::move(message));
}

size_t ByteReader::items(uint64_t most) {
  const uint64_t count = number();
  if (count > most || count > rest_.size()) {
    fail();
    return 0;
  }
  return static_cast<size_t>(count);
}

}  // namespace msdbg
