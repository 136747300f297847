// The outermost layer of the protobuf wire format, read by hand: a graph file is one message of up to a few hundred
// megabytes, and its nodes are decoded one at a time, so that a cut file can be described and memory stays bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace msdbg {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t varint = 0;               ///< kVarint
  std::span<const std::byte> bytes;  ///< kBytes
  uint64_t offset = 0;               ///< of the field's tag in the file
};

/// Walks over the fields of one message. Not thread-safe.
class WireReader {
 public:
  /// `base` is the offset of `bytes` in the file, for messages only.
  explicit WireReader(std::span<const std::byte> bytes, uint64_t base = 0) : bytes_(bytes), base_(base) {}

  /// False at the end and at the first field that does not fit; problem() tells which.
  bool next(WireField& field);
  /// Empty while all is well, else what is wrong and at which byte.
  const std::string& problem() const { return problem_; }

 private:
  bool fail(std::string text);
  bool read_varint(uint64_t& value);

  std::span<const std::byte> bytes_;
  uint64_t base_;
  size_t at_ = 0;
  std::string problem_;
};

}  // namespace msdbg
