#include "session/live/recording_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "recording.pb.h"
#include "session/live/recording_format.h"

namespace msdbg::live {
namespace {
constexpr size_t kReadAhead = size_t{256} << 10;
constexpr size_t kReadBehind = kReadAhead / 4;
}  // namespace

Result<std::unique_ptr<RecordingReader>> RecordingReader::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return Status(Code::kIoError, fmt::format("recording: cannot open '{}': {}", path, std::strerror(errno)));
  }
  struct stat info {};
  const bool known = ::fstat(descriptor, &info) == 0;
  std::unique_ptr<RecordingReader> reader(
      new RecordingReader(descriptor, path, known ? static_cast<uint64_t>(info.st_size) : 0));
  if (!known || !S_ISREG(info.st_mode)) {
    return Status(Code::kIoError, fmt::format("recording: '{}' is not a regular file", path));
  }
  const bool long_enough = reader->fill(kRecordingMagic.size());
  if (!reader->problem_.ok()) return reader->problem_;
  if (!long_enough || !std::string_view(reader->buffer_).starts_with(kRecordingMagic)) {
    return Status(Code::kCorrupt,
                  fmt::format("recording: '{}' does not begin as a recording; --record writes one", path));
  }
  reader->offset_ = kRecordingMagic.size();
  uint64_t version = 0;
  if (!reader->read_varint(&version)) {
    return Status(Code::kCorrupt, fmt::format("recording: '{}' ends before its version", path));
  }
  if (version != kRecordingVersion) {
    return Status(Code::kUnsupported, fmt::format("recording: '{}' has version {}, this msdbg reads version {}", path,
                                                  version, kRecordingVersion));
  }
  return reader;
}

bool RecordingReader::begins_as_recording(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return false;
  char head[kRecordingMagic.size()];
  const ssize_t size = ::pread(descriptor, head, sizeof head, 0);
  ::close(descriptor);
  return size == ssize_t{sizeof head} && std::string_view(head, sizeof head) == kRecordingMagic;
}

RecordingReader::RecordingReader(int descriptor, std::string path, uint64_t size)
    : descriptor_(descriptor), path_(std::move(path)), size_(size) {}

RecordingReader::~RecordingReader() { ::close(descriptor_); }

bool RecordingReader::next(Frame* frame) {
  if (truncated_ || !problem_.ok() || offset_ >= size_) return false;
  const uint64_t begin = offset_;
  uint64_t length = 0;
  if (!read_varint(&length)) return false;
  if (length > kMaxFrameBytes) {
    offset_ = begin;
    return stop(fmt::format("a frame of {} bytes, longer than any recorder writes", length));
  }
  if (length > size_ - offset_) {
    truncated_ = true;
    return false;
  }
  if (!fill(static_cast<size_t>(length))) return false;
  RecordedFrame parsed;
  const char* data = buffer_.data() + (offset_ - buffer_offset_);
  if (!parsed.ParseFromArray(data, static_cast<int>(length))) {
    offset_ = begin;
    return stop("bytes that are no frame");
  }
  if (!RecordedFrame::Direction_IsValid(parsed.direction()) || parsed.rpc() >= kRecordedRpcs) {
    offset_ = begin;
    return stop(fmt::format("a frame of direction {} and rpc {}", static_cast<int>(parsed.direction()), parsed.rpc()));
  }
  offset_ += length;
  frame->direction = static_cast<Frame::Direction>(parsed.direction());
  frame->rpc = static_cast<Rpc>(parsed.rpc());
  frame->call = parsed.call();
  frame->index = parsed.index();
  frame->at_us = parsed.at_us();
  frame->payload = std::move(*parsed.mutable_payload());
  frame->grpc_status = parsed.grpc_status();
  frame->text = std::move(*parsed.mutable_text());
  frame->offset = begin;
  return true;
}

void RecordingReader::seek(uint64_t offset) {
  offset_ = offset;
  truncated_ = false;
  problem_ = Status();
}

/// Makes `wanted` bytes from offset_ on available in the buffer; false when the file has fewer.
bool RecordingReader::fill(size_t wanted) {
  const bool inside = offset_ >= buffer_offset_ && offset_ <= buffer_offset_ + buffer_.size();
  if (inside && buffer_offset_ + buffer_.size() - offset_ >= wanted) return true;
  // After a jump some of what lies before is read too: a replay goes back to the frame before again and again.
  const uint64_t behind = inside ? 0 : std::min<uint64_t>(offset_, kReadBehind);
  if (inside) {
    buffer_.erase(0, static_cast<size_t>(offset_ - buffer_offset_));
  } else {
    buffer_.clear();
  }
  buffer_offset_ = offset_ - behind;
  wanted += static_cast<size_t>(behind);
  const size_t target =
      static_cast<size_t>(std::min<uint64_t>(std::max(wanted, kReadAhead), size_ - std::min(size_, buffer_offset_)));
  if (target > buffer_.size()) {
    size_t have = buffer_.size();
    if (buffer_.capacity() > 4 * std::max(target, kReadAhead)) buffer_.shrink_to_fit();
    buffer_.resize(target);
    while (have < target) {
      const ssize_t count =
          ::pread(descriptor_, buffer_.data() + have, target - have, static_cast<off_t>(buffer_offset_ + have));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        problem_ = Status(Code::kIoError, fmt::format("recording: cannot read '{}' at byte {}: {}", path_,
                                                      buffer_offset_ + have, std::strerror(errno)));
      }
      if (count <= 0) break;
      have += static_cast<size_t>(count);
    }
    buffer_.resize(have);
  }
  if (buffer_.size() >= wanted) return true;
  truncated_ = problem_.ok();
  return false;
}

bool RecordingReader::read_varint(uint64_t* value) {
  *value = 0;
  const uint64_t begin = offset_;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (offset_ >= size_) {
      truncated_ = true;
      return false;
    }
    if (!fill(1)) return false;
    const auto byte = static_cast<uint8_t>(buffer_[static_cast<size_t>(offset_ - buffer_offset_)]);
    ++offset_;
    *value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return true;
  }
  offset_ = begin;
  return stop("a length that never ends");
}

bool RecordingReader::stop(const std::string& what) {
  problem_ = Status(Code::kCorrupt,
                    fmt::format("recording: '{}' holds {} at byte {}; it is read up to there", path_, what, offset_));
  return false;
}

}  // namespace msdbg::live
