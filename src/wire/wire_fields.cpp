#include "wire/wire_fields.h"

#include <fmt/format.h>

namespace msdbg {

bool WireReader::fail(std::string text) {
  problem_ = std::move(text);
  at_ = bytes_.size();
  return false;
}

bool WireReader::read_varint(uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ >= bytes_.size()) return fail(fmt::format("ends early, inside a number at byte {}", base_ + at_));
    const auto byte = static_cast<uint8_t>(bytes_[at_++]);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if ((byte & 0x80u) == 0) return true;
  }
  return fail(fmt::format("has no valid number at byte {}", base_ + at_));
}

bool WireReader::next(WireField& field) {
  if (at_ >= bytes_.size()) return false;
  const uint64_t offset = base_ + at_;
  uint64_t tag = 0;
  if (!read_varint(tag)) return false;
  field = {};
  field.offset = offset;
  field.number = static_cast<uint32_t>(tag >> 3);
  if (tag >> 32 != 0 || field.number == 0) return fail(fmt::format("has no valid field at byte {}", offset));
  uint64_t size = 0;
  switch (tag & 7) {
    case 0:
      field.type = WireType::kVarint;
      return read_varint(field.varint);
    case 1:
      field.type = WireType::kFixed64, size = 8;
      break;
    case 2:
      field.type = WireType::kBytes;
      if (!read_varint(size)) return false;
      break;
    case 5:
      field.type = WireType::kFixed32, size = 4;
      break;
    default:
      return fail(fmt::format("has a field of unknown kind at byte {}", offset));
  }
  const size_t left = bytes_.size() - at_;
  if (size > left) {
    return fail(fmt::format("ends early: field {} at byte {} promises {} bytes, {} are there", field.number, offset,
                            size, left));
  }
  field.bytes = bytes_.subspan(at_, size);
  at_ += size;
  return true;
}

}  // namespace msdbg
