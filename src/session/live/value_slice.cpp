#include "session/live/value_slice.h"

#include <fmt/format.h>

#include "msdbg/wire_fields.h"
#include "session/live/limits.h"

namespace msdbg::live {
namespace {

enum Field { kNodeName = 1, kSlot = 2, kContent = 3, kDims = 4, kDataType = 5, kFinished = 6, kIter = 7 };

constexpr size_t kShownName = 200;

/// Everything of a slice but its elements.
struct Head {
  std::string node, slot, iter;
  std::vector<int64_t> dims;
  int data_type = 0;
  bool finished = false, foreign = false;
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

/// The text of a field; false when it says something else than `wanted`, of which no more is read than can be shown.
bool same_text(WireReader& reader, const WireField& field, const std::string& wanted, std::string* text) {
  if (field.size == wanted.size()) return reader.text(field, field.size, *text) && *text == wanted;
  text->resize(std::min<uint64_t>(field.size, kShownName));
  (void)reader.copy(field, std::as_writable_bytes(std::span(*text)));
  return false;
}

SliceResult take_content(WireReader& reader, const WireField& field, ValueUpload& upload, std::atomic<uint64_t>& received) {
  if (!upload.problem.empty()) return SliceResult::kTaken;  // it is lost already
  if (field.size > upload.most_bytes - upload.landing.bytes().size()) return SliceResult::kTooMuch;
  Result<std::span<std::byte>> place = upload.landing.grow(field.size);
  if (!place) {
    upload.problem = place.status().message();
    return SliceResult::kTaken;
  }
  if (!reader.copy(field, *place)) return SliceResult::kUndecodable;
  upload.landing.commit(field.size);
  received.fetch_add(field.size, std::memory_order_relaxed);
  return SliceResult::kTaken;
}

}  // namespace

SliceResult take_slice(MessagePieces message, ValueUpload* upload, std::atomic<uint64_t>& received) {
  PieceSource source(std::move(message));
  WireReader reader(source, 0, source.size());
  Head head;
  const auto names = [&](const WireField& field, const std::string& wanted, std::string* text) {
    if (!same_text(reader, field, wanted, text)) head.foreign = true;
  };
  for (WireField field; reader.next(field);) {
    if (field.number == kDims) {
      if (!add_dims(reader, field, &head.dims)) return SliceResult::kUndecodable;
      continue;
    }
    if (field.number < kNodeName || field.number > kIter) continue;
    if (field.type != wire_type_of(field.number)) return SliceResult::kUndecodable;
    if (field.number == kDataType) head.data_type = static_cast<int>(field.value);
    if (field.number == kFinished) head.finished = field.value != 0;
    if (upload == nullptr) continue;
    if (field.number == kNodeName) names(field, upload->node, &head.node);
    if (field.number == kSlot) names(field, upload->slot, &head.slot);
    if (field.number == kIter) names(field, upload->iter, &head.iter);
    if (field.number != kContent || head.foreign) continue;
    if (const SliceResult taken = take_content(reader, field, *upload, received); taken != SliceResult::kTaken) return taken;
  }
  if (!reader.status().ok()) return SliceResult::kUndecodable;
  if (upload == nullptr) return SliceResult::kTaken;
  ++upload->slices;
  if (head.foreign) {
    upload->problem = fmt::format("it answered with {}:{}{}", printable(head.node), printable(head.slot),
                                  head.iter.empty() ? "" : " (previous)");
    return SliceResult::kTaken;
  }
  if (upload->finished) upload->problem = "it sent slices behind the last one";
  if (head.data_type != 0) {
    upload->data_type = head.data_type;
    upload->dims = std::move(head.dims);
  }
  upload->finished = upload->finished || head.finished;
  return SliceResult::kTaken;
}

}  // namespace msdbg::live
