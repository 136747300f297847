// Numbers and texts as bytes for another process or a later one: little endian, whatever the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "msdbg/base.h"

namespace msdbg {

/// Appends values to a string.
class ByteWriter {
 public:
  void byte(unsigned value) {
    *room(1) = static_cast<char>(value);
    ++size_;
  }
  void flag(bool value) { byte(value ? 1 : 0); }
  /// Small numbers take one byte.
  void number(uint64_t value) {
    if (value < 0x80) byte(static_cast<unsigned>(value));
    else long_number(value);
  }
  /// Small negative numbers are short, too.
  void whole(int64_t value) { number((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63)); }
  void real(double value);
  void reals(std::span<const double> values);
  /// Eight bytes.
  void word(uint64_t value);
  void text(std::string_view value);
  void status(const Status& value);

  void reserve(size_t bytes) { (void)room(bytes); }
  size_t size() const { return size_; }
  std::string take();

 private:
  /// Where the next `bytes` go.
  char* room(size_t bytes) {
    if (out_.size() - size_ < bytes) grow(bytes);
    return out_.data() + size_;
  }
  void grow(size_t bytes);
  void append(const void* bytes, size_t size);
  void long_number(uint64_t value);

  std::string out_;  // longer than what was written: that saves a look at its capacity for each byte
  size_t size_ = 0;
};

/// Reads them again and trusts none of them. After the first fault everything is zero or empty.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  uint8_t byte() {
    if (rest_.empty()) {
      fail();
      return 0;
    }
    const auto value = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  bool flag();
  uint64_t number() {
    // Most numbers are small.
    if (!rest_.empty() && static_cast<uint8_t>(rest_.front()) < 0x80) return byte();
    return long_number();
  }
  /// A number up to `most`; anything larger is a fault.
  uint64_t number(uint64_t most);
  int64_t whole();
  /// A whole number that fits into an int.
  int small();
  double real();
  uint64_t word();
  std::string_view text();
  Status status();
  /// A count of items that take at least one byte each.
  size_t items(uint64_t most);

  void require(bool holds) {
    if (!holds) fail();
  }
  void fail() {
    good_ = false;
    rest_ = {};
  }
  bool good() const { return good_; }
  /// True if everything was read without a fault.
  bool at_end() const { return good_ && rest_.empty(); }

 private:
  uint64_t long_number();

  std::string_view rest_;
  bool good_ = true;
};

}  // namespace msdbg
