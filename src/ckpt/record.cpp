#include "ckpt/record.h"

#include <fmt/format.h>

namespace msdbg::ckpt {
namespace {

constexpr uint64_t kMostName = 64 << 10;

/// The problem that stopped a reader: damage, or a file that could not be read.
void keep_problem(const WireReader& reader, std::string& damage, Status& io) {
  if (reader.status().ok()) return;
  if (reader.status().code() != Code::kCorrupt && io.ok()) io = reader.status();
  if (damage.empty()) damage = reader.status().message();
}

/// The numbers of a packed field; at most one more than kMostDims.
void read_dims(WireReader packed, Piece& piece, std::string& damage, Status& io) {
  uint64_t dim = 0;
  while (piece.dims.size() <= kMostDims && !packed.done() && packed.number(dim)) piece.dims.push_back(dim);
  keep_problem(packed, damage, io);
}

/// Reads a TensorProto. Returns the damage, or "".
std::string read_tensor(WireReader reader, Piece& piece, Status& io) {
  const uint64_t begin = reader.at();
  std::string damage;
  WireField field;
  while (damage.empty() && reader.next(field)) {
    if (field.is(1, WireType::kVarint)) {
      piece.dims.push_back(field.value);
    } else if (field.is(1, WireType::kBytes)) {
      read_dims(reader.inside(field), piece, damage, io);
    } else if (field.is(2, WireType::kBytes)) {
      reader.text(field, kMostName, piece.type);
    } else if (field.is(3, WireType::kBytes)) {
      piece.content = {field.start, field.size};
    }
    if (piece.dims.size() > kMostDims) damage = fmt::format("more than {} dimensions at byte {}", kMostDims, field.offset);
  }
  if (field.is(3, WireType::kBytes) && field.cut()) {
    piece.content = {field.start, field.present};
    return fmt::format("{} of {} bytes of its values are there (from offset {})", field.present, field.size, field.start);
  }
  keep_problem(reader, damage, io);
  if (damage.empty() && piece.type.empty()) damage = fmt::format("no element type in the tensor at offset {}", begin);
  return damage;
}

}  // namespace

Record read_record(WireReader reader) {
  Record record;
  record.offset = reader.at();
  const auto add_tensor = [&record](WireReader inside) {
    std::string damage = read_tensor(inside, record.tensors.emplace_back(), record.io);
    if (record.damage.empty()) record.damage = std::move(damage);
  };
  const auto add_map = [&](WireReader inside) {
    record.is_map = true;
    WireField part;
    while (record.damage.empty()) {
      const bool whole = inside.next(part);
      if (part.is(1, WireType::kBytes)) {
        add_tensor(inside.inside(part));
      } else if (whole) {
        record.damage = fmt::format("no tensor of a map parameter at byte {}", part.offset);
      }
      if (!whole) break;
    }
    keep_problem(inside, record.damage, record.io);
  };
  WireField field;
  for (bool whole = true; whole && record.damage.empty();) {
    whole = reader.next(field);
    if (field.is(1, WireType::kBytes) && whole) {
      reader.text(field, kMostName, record.tag);
    } else if (field.is(2, WireType::kBytes)) {
      add_tensor(reader.inside(field));  // the available part of a field that is cut off
    } else if (field.is(3, WireType::kBytes)) {
      add_map(reader.inside(field));
    }
  }
  keep_problem(reader, record.damage, record.io);
  if (record.damage.empty() && record.tag.empty()) record.damage = "no name";
  return record;
}

}  // namespace msdbg::ckpt
