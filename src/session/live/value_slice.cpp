#include "session/live/value_slice.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

namespace msdbg::live {
namespace {

using google::protobuf::internal::WireFormatLite;

enum Field { kNodeName = 1, kSlot = 2, kContent = 3, kDims = 4, kDataType = 5, kFinished = 6, kIter = 7 };

/// The length of a field; false when the message has fewer bytes left, so nothing is reserved for what cannot come.
bool read_length(google::protobuf::io::CodedInputStream& in, int* size) {
  uint32_t length = 0;
  if (!in.ReadVarint32(&length) || in.BytesUntilLimit() < 0 || length > static_cast<uint32_t>(in.BytesUntilLimit())) return false;
  *size = static_cast<int>(length);
  return true;
}

bool read_text(google::protobuf::io::CodedInputStream& in, std::string* text) {
  int size = 0;
  return read_length(in, &size) && in.ReadString(text, size);
}

bool read_packed(google::protobuf::io::CodedInputStream& in, std::vector<int64_t>* values) {
  int size = 0;
  if (!read_length(in, &size)) return false;
  const auto limit = in.PushLimit(size);
  while (in.BytesUntilLimit() > 0) {
    uint64_t value = 0;
    if (!in.ReadVarint64(&value)) return false;
    values->push_back(static_cast<int64_t>(value));
  }
  in.PopLimit(limit);
  return true;
}

}  // namespace

bool take_slice(grpc::ByteBuffer& message, ValueUpload& upload, std::atomic<uint64_t>& received) {
  grpc::ProtoBufferReader stream(&message);
  google::protobuf::io::CodedInputStream in(&stream);
  if (message.Length() > INT32_MAX) return false;
  in.SetTotalBytesLimit(INT32_MAX);
  in.PushLimit(static_cast<int>(message.Length()));
  std::string node, slot, iter;
  std::vector<int64_t> dims;
  int data_type = 0;
  bool finished = false, foreign = false;
  while (const uint32_t tag = in.ReadTag()) {
    const bool text = WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    uint64_t number = 0;
    switch (WireFormatLite::GetTagFieldNumber(tag)) {
      case kNodeName:
        if (!text || !read_text(in, &node)) return false;
        foreign = foreign || node != upload.node;
        break;
      case kSlot:
        if (!text || !read_text(in, &slot)) return false;
        foreign = foreign || slot != upload.slot;
        break;
      case kContent: {
        int size = 0;
        if (!text || !read_length(in, &size)) return false;
        const auto bytes = static_cast<uint64_t>(size);
        std::byte* place = foreign ? nullptr : upload.landing.grow(bytes);
        if (place == nullptr) {
          if (!foreign) upload.problem = fmt::format("no room for its {} bytes", upload.landing.bytes().size() + bytes);
          if (!in.Skip(size)) return false;
          break;
        }
        if (!in.ReadRaw(place, size)) return false;
        upload.landing.commit(bytes);
        received.fetch_add(bytes, std::memory_order_relaxed);
        break;
      }
      case kDims:
        if (text) {
          if (!read_packed(in, &dims)) return false;
        } else {
          if (!in.ReadVarint64(&number)) return false;
          dims.push_back(static_cast<int64_t>(number));
        }
        break;
      case kDataType:
        if (text || !in.ReadVarint64(&number)) return false;
        data_type = static_cast<int>(number);
        break;
      case kFinished:
        if (text || !in.ReadVarint64(&number)) return false;
        finished = number != 0;
        break;
      case kIter:
        if (!text || !read_text(in, &iter)) return false;
        foreign = foreign || iter != upload.iter;
        break;
      default:
        if (!WireFormatLite::SkipField(&in, tag)) return false;
    }
  }
  if (!in.ConsumedEntireMessage()) return false;
  ++upload.slices;
  if (foreign) {
    upload.problem = fmt::format("it answered with {}:{}{}", printable(node), printable(slot), iter.empty() ? "" : " (previous)");
    return true;
  }
  if (upload.finished) upload.problem = "it sent slices behind the last one";
  if (data_type != 0) {
    upload.data_type = data_type;
    upload.dims = std::move(dims);
  }
  upload.finished = upload.finished || finished;
  return true;
}

}  // namespace msdbg::live
