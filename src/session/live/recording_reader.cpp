#include "session/live/recording_reader.h"

#include <fmt/format.h>

#include <utility>

#include "msdbg/live.h"
#include "recording.pb.h"
#include "session/live/recording_format.h"

namespace msdbg::live {
namespace {

constexpr size_t kWindowBytes = size_t{64} << 10;

bool has_magic(const File& file) {
  std::string head(kRecordingMagic.size(), '\0');
  return file.size() >= head.size() && file.read(0, std::as_writable_bytes(std::span(head.data(), head.size()))).ok() &&
         head == kRecordingMagic;
}

}  // namespace

Result<std::unique_ptr<RecordingReader>> RecordingReader::open(const std::string& path) {
  Result<File> file = File::open(path);
  if (!file) return Status(file.status().code(), "recording: " + file.status().message());
  if (!has_magic(*file)) {
    return Status(Code::kCorrupt, fmt::format("recording: '{}' does not begin as a recording; --record writes one", path));
  }
  std::unique_ptr<RecordingReader> reader(new RecordingReader(std::move(*file)));
  WireReader head = reader->rest();
  uint64_t version = 0;
  if (!head.number(version)) return Status(Code::kCorrupt, fmt::format("recording: '{}' ends before its version", path));
  if (version != kRecordingVersion && version != kRecordingOfRanksVersion) {
    return Status(Code::kUnsupported, fmt::format("recording: '{}' has version {}, this msdbg reads versions {} and {}", path,
                                                  version, kRecordingVersion, kRecordingOfRanksVersion));
  }
  uint64_t ranks = 1;
  if (version == kRecordingOfRanksVersion && (!head.number(ranks) || ranks < 1 || ranks > kMostLiveRanks))
    return Status(Code::kCorrupt, fmt::format("recording: '{}' does not say how many ranks it has, 1 to {}", path, kMostLiveRanks));
  reader->ranks_ = static_cast<int>(ranks);
  reader->offset_ = head.at();
  return reader;
}

bool RecordingReader::begins_as_recording(const std::string& path) {
  const Result<File> file = File::open(path);
  return file && has_magic(*file);
}

RecordingReader::RecordingReader(File file)
    : file_(std::move(file)), window_(file_, kWindowBytes), offset_(kRecordingMagic.size()) {}

WireReader RecordingReader::rest() { return WireReader(window_, offset_, file_.size()); }

bool RecordingReader::next(Frame* frame) {
  if (truncated_ || !problem_.ok() || offset_ >= file_.size()) return false;
  WireReader reader = rest();
  uint64_t length = 0;
  if (!reader.number(length)) {
    if (reader.status().code() != Code::kCorrupt) return stop(reader.status());
    truncated_ = reader.left() == 0;
    return truncated_ ? false : stop("a length that never ends");
  }
  if (length > kMaxFrameBytes) return stop(fmt::format("a frame of {} bytes, longer than any recorder writes", length));
  if (length > reader.left()) {
    truncated_ = true;
    return false;
  }
  *frame = Frame();
  frame->offset = offset_;
  if (!read_frame(WireReader(window_, reader.at(), reader.at() + length), frame)) return false;
  offset_ = reader.at() + length;
  return true;
}

bool RecordingReader::read_frame(WireReader reader, Frame* frame) {
  uint64_t direction = RecordedFrame::client, rpc = 0, rank = 0;
  WireField field;
  while (reader.next(field)) {
    const bool bytes = field.type == WireType::kBytes;
    if (bytes && field.number == RecordedFrame::kTextFieldNumber) reader.text(field, kMaxFrameBytes, frame->text);
    if (bytes && field.number == RecordedFrame::kPayloadFieldNumber) reader.text(field, kMaxFrameBytes, frame->payload);
    if (field.type != WireType::kVarint) continue;
    switch (field.number) {
      case RecordedFrame::kDirectionFieldNumber:
        direction = field.value;
        break;
      case RecordedFrame::kRpcFieldNumber:
        rpc = field.value;
        break;
      case RecordedFrame::kRankFieldNumber:
        rank = field.value;
        break;
      case RecordedFrame::kCallFieldNumber:
        frame->call = field.value;
        break;
      case RecordedFrame::kIndexFieldNumber:
        frame->index = static_cast<uint32_t>(field.value);
        break;
      case RecordedFrame::kAtUsFieldNumber:
        frame->at_us = field.value;
        break;
      case RecordedFrame::kGrpcStatusFieldNumber:
        frame->grpc_status = static_cast<int>(field.value);
        break;
      default:
        break;
    }
  }
  if (reader.status().code() == Code::kCorrupt) return stop("bytes that are not a frame");
  if (!reader.status().ok()) return stop(reader.status());
  if (direction > RecordedFrame::note || rpc >= kRpcCount) {
    return stop(fmt::format("a frame of direction {} and rpc {}", direction, rpc));
  }
  if (rank >= static_cast<uint64_t>(ranks_)) return stop(fmt::format("a frame of rank {}, and {} ranks", rank, ranks_));
  frame->rank = static_cast<int>(rank);
  frame->direction = static_cast<Frame::Direction>(direction);
  frame->rpc = static_cast<Rpc>(rpc);
  return true;
}

void RecordingReader::seek(uint64_t offset) {
  offset_ = offset;
  truncated_ = false;
  problem_ = Status();
}

bool RecordingReader::stop(const std::string& what) {
  return stop(Status(Code::kCorrupt,
                     fmt::format("recording: '{}' holds {} at byte {}; it is read up to there", file_.path(), what, offset_)));
}

bool RecordingReader::stop(Status status) {
  problem_ = std::move(status);
  return false;
}

}  // namespace msdbg::live
