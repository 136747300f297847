#include "ckpt/record.h"

#include <fmt/format.h>

#include <algorithm>

#include "ckpt/cursor.h"

namespace msdbg::ckpt {
namespace {

constexpr uint64_t kMostName = 64 << 10;

enum WireType : unsigned { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

struct Field {
  unsigned number = 0, wire = 0;
  uint64_t length = 0;  // kLength: bytes that follow; kVarint: the value
  bool cut = false;     // the length reaches behind the end of what there is
};

/// The next field's key and length; fixed-width values are skipped.
std::optional<Field> next_field(Cursor& cursor) {
  const auto key = cursor.varint();
  if (!key) return std::nullopt;
  Field field{static_cast<unsigned>(*key >> 3 & 0x1FFFFFFF), static_cast<unsigned>(*key & 7)};
  if (field.wire == kVarint || field.wire == kLength) {
    const auto value = cursor.varint();
    if (!value) return std::nullopt;
    field.length = *value;
    field.cut = field.wire == kLength && *value > cursor.left();
    return field;
  }
  const uint64_t width = field.wire == kFixed64 ? 8 : field.wire == kFixed32 ? 4 : UINT64_MAX;
  if (width > cursor.left()) return std::nullopt;
  cursor.skip(width);
  return field;
}

std::string damage_at(const Cursor& cursor, std::string_view what) { return fmt::format("{} at offset {}", what, cursor.at()); }

/// Contents of a TensorProto in [begin, end). Gives the damage, "" without.
std::string read_tensor(const File& file, uint64_t begin, uint64_t end, Piece& piece, Status& io) {
  Cursor cursor(file, begin, end);
  while (!cursor.done()) {
    const auto field = next_field(cursor);
    if (!field) {
      io = cursor.io_status();
      return damage_at(cursor, "no field of a tensor");
    }
    if (field->number == 1 && field->wire == kVarint) {
      piece.dims.push_back(field->length);
    } else if (field->number == 1 && field->wire == kLength && !field->cut) {
      const uint64_t packed_end = cursor.at() + field->length;
      while (cursor.at() < packed_end) {
        const auto dim = cursor.varint();
        if (!dim || piece.dims.size() > kMostDims) return damage_at(cursor, "no dimensions");
        piece.dims.push_back(*dim);
      }
    } else if (field->number == 2 && field->wire == kLength) {
      if (field->length > kMostName || field->cut) return damage_at(cursor, fmt::format("a type name of {} bytes", field->length));
      auto text = cursor.text(field->length);
      if (!text) {
        io = cursor.io_status();
        return damage_at(cursor, "no type name");
      }
      piece.type = std::move(*text);
    } else if (field->number == 3 && field->wire == kLength) {
      piece.content = {cursor.at(), std::min(field->length, cursor.left())};
      if (field->cut) {
        return fmt::format("{} of {} bytes of its values are there (from offset {})", cursor.left(), field->length, cursor.at());
      }
      cursor.skip(field->length);
    } else if (field->wire == kLength) {
      if (field->cut) return damage_at(cursor, fmt::format("a field of {} bytes", field->length));
      cursor.skip(field->length);
    }
    if (piece.dims.size() > kMostDims) return damage_at(cursor, fmt::format("more than {} dimensions", kMostDims));
  }
  if (piece.type.empty()) return fmt::format("no element type in the tensor at offset {}", begin);
  return "";
}

}  // namespace

Record read_record(const File& file, uint64_t begin, uint64_t end) {
  Record record;
  record.offset = begin;
  Cursor cursor(file, begin, end);
  const auto spoil = [&](std::string what) {
    if (record.damage.empty()) record.damage = std::move(what);
    if (record.io.ok()) record.io = cursor.io_status();
  };
  const auto add_tensor = [&](uint64_t from, uint64_t to) {
    Piece piece;
    std::string damage = read_tensor(file, from, to, piece, record.io);
    if (!damage.empty()) spoil(std::move(damage));
    record.tensors.push_back(std::move(piece));
  };
  while (!cursor.done() && record.damage.empty()) {
    const auto field = next_field(cursor);
    if (!field) {
      spoil(damage_at(cursor, "no field of a parameter"));
      break;
    }
    const uint64_t from = cursor.at();
    const uint64_t to = field->wire == kLength ? from + std::min(field->length, cursor.left()) : from;
    if (field->number == 1 && field->wire == kLength && field->length <= kMostName && !field->cut) {
      if (auto text = cursor.text(field->length)) record.tag = std::move(*text);
      else spoil("no name");
    } else if (field->number == 2 && field->wire == kLength) {
      add_tensor(from, to);
      cursor.skip(to - from);
    } else if (field->number == 3 && field->wire == kLength) {
      record.is_map = true;
      Cursor inside(file, from, to);
      while (!inside.done()) {
        const auto part = next_field(inside);
        if (!part || part->wire != kLength || part->number != 1) {
          spoil(damage_at(inside, "no tensor of a map parameter"));
          break;
        }
        const uint64_t stop = inside.at() + std::min(part->length, inside.left());
        add_tensor(inside.at(), stop);
        inside.skip(stop - inside.at());
      }
      cursor.skip(to - from);
    } else if (field->wire == kLength) {
      if (field->cut || field->number == 1) spoil(damage_at(cursor, fmt::format("a length of {} bytes", field->length)));
      else cursor.skip(field->length);
    }
  }
  if (record.damage.empty() && record.tag.empty()) spoil("no name");
  return record;
}

}  // namespace msdbg::ckpt
