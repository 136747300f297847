#include "msdbg/wire_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace msdbg {

// ---- pieces ------------------------------------------------------------------------------------------------------

PieceSource::PieceSource(std::vector<std::span<const std::byte>> pieces) : pieces_(std::move(pieces)) {
  for (const auto& piece : pieces_) size_ += piece.size();
}

Status PieceSource::read(uint64_t offset, std::span<std::byte> out) {
  MSDBG_CHECK(offset <= size_ && out.size() <= size_ - offset);
  if (offset < piece_begin_) piece_ = 0, piece_begin_ = 0;
  while (!out.empty()) {
    const auto& piece = pieces_[piece_];
    const uint64_t skipped = offset - piece_begin_;
    if (skipped >= piece.size()) {
      piece_begin_ += piece.size();
      ++piece_;
      continue;
    }
    const size_t count = std::min<uint64_t>(out.size(), piece.size() - skipped);
    std::memcpy(out.data(), piece.data() + skipped, count);
    out = out.subspan(count);
    offset += count;
  }
  return {};
}

// ---- reader ------------------------------------------------------------------------------------------------------

WireReader::WireReader(ByteSource& source, uint64_t begin, uint64_t end) : source_(&source), at_(begin), end_(end) {
  MSDBG_CHECK(begin <= end && end <= source.size());
}

bool WireReader::fail(std::string text) {
  if (status_.ok()) status_ = Status(Code::kCorrupt, std::move(text));
  return false;
}

bool WireReader::read(uint64_t offset, std::span<std::byte> out) {
  if (source_ == nullptr) {
    if (!out.empty()) std::memcpy(out.data(), memory_ + (offset - base_), out.size());
    return true;
  }
  Status status = source_->read(offset, out);
  if (status.ok()) return true;
  if (status_.ok()) status_ = std::move(status);
  return false;
}

bool WireReader::number(uint64_t& value) {
  if (!status_.ok()) return false;
  if (source_ == nullptr && at_ < end_) {  // most numbers are small
    const auto byte = std::to_integer<uint8_t>(memory_[at_ - base_]);
    if (byte < 0x80) {
      value = byte;
      ++at_;
      return true;
    }
  }
  value = 0;
  const uint64_t begin = at_;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ >= end_) return fail(fmt::format("ends early, inside a number at byte {}", at_));
    std::byte byte;
    if (source_ == nullptr) {
      byte = memory_[at_ - base_];
    } else if (!read(at_, {&byte, 1})) {
      return false;
    }
    ++at_;
    value |= uint64_t{std::to_integer<uint8_t>(byte) & 0x7Fu} << shift;
    if ((byte & std::byte{0x80}) == std::byte{}) return true;
  }
  return fail(fmt::format("has no valid number at byte {}", begin));
}

bool WireReader::fixed(size_t width, uint64_t& value) {
  std::byte raw[8] = {};
  if (!read(at_, {raw, width})) return false;
  at_ += width;
  value = 0;
  for (size_t i = width; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(raw[i]);
  return true;
}

bool WireReader::next(WireField& field) {
  field = {};
  if (done()) return false;
  if (source_ == nullptr && end_ - at_ >= 2) {  // most fields are bytes, and most of these are few
    const std::byte* const start = memory_ + (at_ - base_);
    const auto tag = std::to_integer<uint8_t>(start[0]), size = std::to_integer<uint8_t>(start[1]);
    if (tag < 0x80 && tag >= 8 && (tag & 7) == static_cast<uint8_t>(WireType::kBytes) && size < 0x80 && size <= end_ - at_ - 2) {
      field.number = tag >> 3;
      field.type = WireType::kBytes;
      field.offset = at_;
      field.start = at_ + 2;
      field.size = field.present = size;
      at_ += 2 + size;
      return true;
    }
  }
  if (decode(field)) return true;
  if (!field.cut()) field = {};
  return false;
}

bool WireReader::decode(WireField& field) {
  field.offset = at_;
  uint64_t tag = 0;
  if (!number(tag)) return false;
  field.number = static_cast<uint32_t>(tag >> 3);
  if (tag >> 32 != 0 || field.number == 0) return fail(fmt::format("has no valid field at byte {}", field.offset));
  field.type = static_cast<WireType>(tag & 7);
  uint64_t size = 0;
  switch (field.type) {
    case WireType::kVarint:
      return number(field.value);
    case WireType::kFixed64:
    case WireType::kFixed32:
      size = field.type == WireType::kFixed64 ? 8 : 4;
      if (size <= left()) return fixed(size, field.value);
      break;
    case WireType::kBytes:
      if (!number(size)) return false;
      field.start = at_;
      field.size = size;
      field.present = std::min(size, left());
      at_ += field.present;
      if (!field.cut()) return true;
      break;
    default:
      return fail(fmt::format("has a field of unknown kind at byte {}", field.offset));
  }
  const uint64_t there = field.type == WireType::kBytes ? field.present : left();
  return fail(fmt::format("ends early: field {} at byte {} promises {} bytes, {} are there", field.number, field.offset,
                          size, there));
}

std::span<const std::byte> WireReader::bytes(const WireField& field) const {
  MSDBG_CHECK(source_ == nullptr && field.start >= base_ && field.start <= end_ && field.present <= end_ - field.start);
  return {memory_ + (field.start - base_), static_cast<size_t>(field.present)};
}

bool WireReader::copy(const WireField& field, std::span<std::byte> out) {
  MSDBG_CHECK(field.start <= end_ && field.present <= end_ - field.start && out.size() <= field.present);
  return read(field.start, out);
}

bool WireReader::text(const WireField& field, uint64_t most, std::string& out) {
  if (field.size > most) {
    return fail(fmt::format("has a text of {} bytes at byte {}; at most {} make sense there", field.size, field.offset, most));
  }
  out.resize(field.present);
  return copy(field, std::as_writable_bytes(std::span(out.data(), out.size())));
}

WireReader WireReader::inside(const WireField& field) const {
  if (source_ != nullptr) return {*source_, field.start, field.start + field.present};
  return WireReader(bytes(field), field.start);
}

void WireReader::skip(uint64_t bytes) { at_ += std::min(bytes, left()); }

// ---- writer ------------------------------------------------------------------------------------------------------

void WireWriter::number(uint64_t value) {
  for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
  out_ += static_cast<char>(value);
}

void WireWriter::field(uint32_t field, uint64_t value) {
  number(uint64_t{field} << 3);
  number(value);
}

void WireWriter::field(uint32_t field, std::string_view bytes) {
  begin_bytes(field, bytes.size());
  out_ += bytes;
}

void WireWriter::begin_bytes(uint32_t field, uint64_t size) {
  number(uint64_t{field} << 3 | 2);
  number(size);
}

}  // namespace msdbg
