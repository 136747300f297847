// Protobuf's wire format, one field at a time: the only code that decodes tags, numbers and lengths by hand.
//
// A reader walks over the fields of one message and skips their contents until they are requested. It never trusts a length: a
// field that claims more bytes than the message has left ends the walk before memory is reserved for it. Bytes are in memory or
// come from a ByteSource: a file through a window (file.h) or pieces of a message (PieceSource).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"

namespace msdbg {

/// Bytes that are not contiguous in memory.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  /// Fills all of `out` from `offset` on; the range is within size(). Error: the reason for the failure.
  virtual Status read(uint64_t offset, std::span<std::byte> out) = 0;
};

/// A message that arrived in several pieces, which must live longer than this. Reading forward is cheap.
class PieceSource : public ByteSource {
 public:
  explicit PieceSource(std::vector<std::span<const std::byte>> pieces);
  uint64_t size() const override { return size_; }
  Status read(uint64_t offset, std::span<std::byte> out) override;

 private:
  std::vector<std::span<const std::byte>> pieces_;
  uint64_t size_ = 0;
  size_t piece_ = 0;          // where the last read ended
  uint64_t piece_begin_ = 0;  // its offset
};

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t offset = 0;   ///< of the field's tag in the file
  uint64_t value = 0;    ///< kVarint, kFixed32 and kFixed64
  uint64_t start = 0;    ///< kBytes: offset of the contents
  uint64_t size = 0;     ///< kBytes: bytes that the field claims
  uint64_t present = 0;  ///< kBytes: available bytes; less than `size` if the message is cut off inside the field

  bool cut() const { return present < size; }
  bool is(uint32_t wanted, WireType wanted_type) const { return number == wanted && type == wanted_type; }
};

/// Walks over the fields of one message. Not thread-safe; its input must outlive it.
class WireReader {
 public:
  /// `base` is the offset of `bytes` in the file; all offsets count from the start of the file.
  explicit WireReader(std::span<const std::byte> bytes, uint64_t base = 0)
      : memory_(bytes.data()), base_(base), at_(base), end_(base + bytes.size()) {}
  /// The message in [begin, end) of `source`.
  WireReader(ByteSource& source, uint64_t begin, uint64_t end);

  /// Reads the next tag and number or length, and moves past the field. False at the end and at the first invalid field; status()
  /// distinguishes them. Then `field` is empty, unless the message is cut off inside its contents (cut()).
  bool next(WireField& field);
  /// The contents of a field in memory. Only for a reader of memory.
  std::span<const std::byte> bytes(const WireField& field) const;
  /// Copies the first `out.size()` bytes of the contents, which must be at least that long. False if reading fails.
  bool copy(const WireField& field, std::span<std::byte> out);
  /// The contents as text. False if it is longer than `most` or reading fails.
  bool text(const WireField& field, uint64_t most, std::string& out);
  /// A reader of the message, or of the packed numbers, inside the field, as far as it is available.
  WireReader inside(const WireField& field) const;

  /// Reads a bare number without a tag: an element of a packed field, a length before a message. False as for next().
  bool number(uint64_t& value);
  /// Skips `bytes`, at most to the end.
  void skip(uint64_t bytes);

  uint64_t at() const { return at_; }
  uint64_t left() const { return end_ - at_; }
  /// True at the end, and after a failure.
  bool done() const { return at_ >= end_ || !status_.ok(); }
  /// Ok without errors. kCorrupt: the problem and its byte offset, to follow "the file"; else the source's error.
  const Status& status() const { return status_; }

 private:
  bool fail(std::string text);
  bool decode(WireField& field);
  bool read(uint64_t offset, std::span<std::byte> out);
  bool fixed(size_t width, uint64_t& value);

  const std::byte* memory_ = nullptr;  // the byte at base_; null with a source
  ByteSource* source_ = nullptr;
  uint64_t base_ = 0, at_ = 0, end_ = 0;
  Status status_;
};

/// Appends fields to a string.
class WireWriter {
 public:
  explicit WireWriter(std::string& out) : out_(out) {}

  /// Appends a bare number without a tag.
  void number(uint64_t value);
  void field(uint32_t field, uint64_t value);
  void field(uint32_t field, std::string_view bytes);
  /// Appends the tag and length of a field; the caller adds its `size` bytes.
  void begin_bytes(uint32_t field, uint64_t size);

 private:
  std::string& out_;
};

}  // namespace msdbg
