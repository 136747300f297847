#include "session/live/value_slice.h"

#include <fmt/format.h>

#include <algorithm>

#include "msdbg/wire_fields.h"
#include "session/live/limits.h"

namespace msdbg::live {
namespace {

enum Field { kNodeName = 1, kSlot = 2, kContent = 3, kDims = 4, kDataType = 5, kFinished = 6, kIter = 7 };

constexpr uint64_t kShownName = 200;

/// A name in a slice. If it is longer than any requested name, only a prefix for messages is read.
struct Name {
  std::string text;
  bool given = false, cut = false;

  /// A missing name is accepted if a single value was requested.
  bool is(const std::string& wanted, bool may_be_left_out) const { return given || !may_be_left_out ? !cut && text == wanted : true; }
};

/// A slice without its elements.
struct Head {
  Name node, slot, iter;
  std::vector<int64_t> dims;
  int data_type = 0;
  bool finished = false;
};

WireType wire_type_of(uint32_t number) {
  return number == kDataType || number == kFinished ? WireType::kVarint : WireType::kBytes;
}

bool add_dims(WireReader& reader, const WireField& field, std::vector<int64_t>* dims) {
  if (field.type == WireType::kVarint) {
    dims->push_back(static_cast<int64_t>(field.value));
    return dims->size() <= limits::kAxes;
  }
  if (field.type != WireType::kBytes) return false;
  WireReader packed = reader.inside(field);
  for (uint64_t value = 0; !packed.done();) {
    if (!packed.number(value) || dims->size() >= limits::kAxes) return false;
    dims->push_back(static_cast<int64_t>(value));
  }
  return true;
}

uint64_t longest_name(const ValueUpload& upload) {
  size_t longest = 0;
  for (const UploadedValue& value : upload.values) longest = std::max({longest, value.node.size(), value.slot.size(), value.iter.size()});
  return longest;
}

void read_name(WireReader& reader, const WireField& field, uint64_t longest, Name* name) {
  name->given = true;
  name->cut = field.size > longest;
  name->text.resize(name->cut ? std::min(field.size, kShownName) : field.size);
  (void)reader.copy(field, std::as_writable_bytes(std::span(name->text)));
}

/// False for anything but a TensorProto. Without an upload names are ignored.
bool read_head(WireReader reader, const ValueUpload* upload, Head* head) {
  const uint64_t longest = upload == nullptr ? 0 : longest_name(*upload);
  for (WireField field; reader.next(field);) {
    if (field.number == kDims) {
      if (!add_dims(reader, field, &head->dims)) return false;
      continue;
    }
    if (field.number < kNodeName || field.number > kIter) continue;
    if (field.type != wire_type_of(field.number)) return false;
    if (field.number == kDataType) head->data_type = static_cast<int>(field.value);
    if (field.number == kFinished) head->finished = field.value != 0;
    if (upload == nullptr) continue;
    if (field.number == kNodeName) read_name(reader, field, longest, &head->node);
    if (field.number == kSlot) read_name(reader, field, longest, &head->slot);
    if (field.number == kIter) read_name(reader, field, longest, &head->iter);
  }
  return reader.status().ok();
}

/// The index of the value that the slice names, searching from the awaited one; the number of values if it names none.
size_t place_of(const Head& head, const ValueUpload& upload) {
  const size_t count = upload.values.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t place = (upload.at + i) % count;
    const UploadedValue& value = upload.values[place];
    if (head.node.is(value.node, count == 1) && head.slot.is(value.slot, count == 1) && head.iter.is(value.iter, count == 1)) return place;
  }
  return count;
}

SliceResult take_content(WireReader& reader, const WireField& field, ValueUpload& upload, UploadedValue& value,
                         std::atomic<uint64_t>& received) {
  if (!value.problem.empty()) return SliceResult::kTaken;  // this value already failed
  if (field.size > value.most_bytes - value.bytes) return SliceResult::kTooMuch;
  Result<std::span<std::byte>> place = upload.buffer.grow(field.size);
  if (!place) {
    value.problem = place.status().message();
    return SliceResult::kTaken;
  }
  if (!reader.copy(field, *place)) return SliceResult::kUndecodable;
  upload.buffer.commit(field.size);
  value.bytes += field.size;
  received.fetch_add(field.size, std::memory_order_relaxed);
  return SliceResult::kTaken;
}

}  // namespace

SliceResult take_slice(MessagePieces message, ValueUpload* upload, std::atomic<uint64_t>& received) {
  PieceSource source(std::move(message));
  WireReader reader(source, 0, source.size());
  Head head;
  if (!read_head(reader, upload, &head)) return SliceResult::kUndecodable;
  if (upload == nullptr || upload->values.empty()) return SliceResult::kTaken;
  const size_t place = place_of(head, *upload);
  if (place == upload->values.size()) {
    UploadedValue& instead = upload->values[std::min(upload->at, place - 1)];
    ++instead.slices;
    instead.problem = fmt::format("it answered with {}:{}{}", printable(head.node.text), printable(head.slot.text),
                                  head.iter.text.empty() ? "" : " (previous)");
    return SliceResult::kTaken;
  }
  UploadedValue& value = upload->values[place];
  ++value.slices;
  if (place < upload->at) {
    value.problem = value.finished ? "it sent slices after the last one"
                                   : "its slices came after those of a tensor that was requested later";
    return SliceResult::kTaken;
  }
  upload->at = place;
  if (value.slices == 1) value.first = upload->buffer.bytes().size();
  for (WireField field; reader.next(field);) {
    if (field.number != kContent) continue;
    if (const SliceResult taken = take_content(reader, field, *upload, value, received); taken != SliceResult::kTaken) return taken;
  }
  if (!reader.status().ok()) return SliceResult::kUndecodable;
  if (head.data_type != 0) {
    value.data_type = head.data_type;
    value.dims = std::move(head.dims);
  }
  value.finished = head.finished;
  if (value.finished) ++upload->at;
  return SliceResult::kTaken;
}

}  // namespace msdbg::live
