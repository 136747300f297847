#include "session/live/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "msdbg/wire_fields.h"
#include "recording.pb.h"
#include "session/live/recording_format.h"

namespace msdbg::live {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

/// Only empty files and recordings may be overwritten.
bool may_overwrite(int descriptor) {
  std::array<char, kRecordingMagic.size()> head{};
  const ssize_t size = ::pread(descriptor, head.data(), head.size(), 0);
  return size == 0 ||
         (size == ssize_t{kRecordingMagic.size()} && std::string_view(head.data(), head.size()) == kRecordingMagic);
}

}  // namespace

struct Recorder::Head {
  RecordedFrame::Direction direction;
  int rank = 0;
  Rpc rpc{};
  uint64_t call = 0;
  uint32_t index = 0;
  int grpc_status = 0;
  std::string_view text;
};

Result<std::unique_ptr<Recorder>> Recorder::create(const std::string& path, int ranks) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return Status(Code::kIoError, fmt::format("record: cannot write '{}': {}", path, std::strerror(errno)));
  }
  if (!may_overwrite(descriptor)) {
    ::close(descriptor);
    return Status(Code::kInvalidArgument,
                  fmt::format("record: '{}' exists and is not a recording; name another file or remove it", path));
  }
  std::unique_ptr<Recorder> recorder(new Recorder(descriptor, path));
  if (::ftruncate(descriptor, 0) != 0 && errno != EINVAL) {  // EINVAL: a pipe or device has no length
    return Status(Code::kIoError, fmt::format("record: cannot empty '{}': {}", path, std::strerror(errno)));
  }
  recorder->buffer_.append(kRecordingMagic);
  WireWriter head(recorder->buffer_);
  head.number(ranks == 1 ? kRecordingVersion : kRecordingOfRanksVersion);
  if (ranks != 1) head.number(static_cast<uint64_t>(ranks));
  Status written = recorder->flush();
  if (!written.ok()) return written;
  return recorder;
}

Recorder::Recorder(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

Recorder::~Recorder() {
  const Status unreported = flush();
  if (!unreported.ok()) log(LogLevel::kWarning, unreported.message());
  ::close(descriptor_);
}

void Recorder::client(int rank, Rpc rpc, uint64_t call, uint32_t index, std::span<const std::string_view> parts) noexcept {
  append({.direction = RecordedFrame::client, .rank = rank, .rpc = rpc, .call = call, .index = index, .text = {}}, parts,
         rpc == Rpc::kWaitCmd);
}

void Recorder::server(int rank, Rpc rpc, uint64_t call, std::string_view payload) noexcept {
  append({.direction = RecordedFrame::server, .rank = rank, .rpc = rpc, .call = call, .text = {}}, {&payload, 1}, false);
}

void Recorder::status(int rank, Rpc rpc, uint64_t call, int grpc_code, std::string_view text) noexcept {
  append({.direction = RecordedFrame::server, .rank = rank, .rpc = rpc, .call = call, .grpc_status = grpc_code, .text = text}, {},
         false);
}

void Recorder::note(int rank, std::string_view text) noexcept {
  append({.direction = RecordedFrame::note, .rank = rank, .text = text}, {}, false);
}

void Recorder::disconnected(int rank, std::string_view text) noexcept {
  append({.direction = RecordedFrame::note, .rank = rank, .grpc_status = kDisconnectedStatus, .text = text}, {}, false);
}

Status Recorder::flush() noexcept {
  const std::lock_guard lock(mutex_);
  write_out();
  return std::exchange(problem_, Status());
}

void Recorder::append(const Head& head, std::span<const std::string_view> parts, bool flush_after) noexcept {
  const std::lock_guard lock(mutex_);
  if (broken_) return;
  size_t payload = 0;
  for (const std::string_view part : parts) payload += part.size();
  const size_t before = buffer_.size();
  try {
    RecordedFrame frame;
    frame.set_direction(head.direction);
    frame.set_rank(static_cast<uint32_t>(head.rank));
    frame.set_rpc(static_cast<uint32_t>(head.rpc));
    frame.set_call(head.call);
    frame.set_index(head.index);
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    frame.set_at_us(static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count()));
    frame.set_grpc_status(head.grpc_status);
    frame.set_text(std::string(head.text));
    if (payload > kMaxFrameBytes - 4096) {
      frame.set_direction(RecordedFrame::note);
      frame.set_text(fmt::format("a message of {} bytes is too long for a recording and was left out", payload));
      payload = 0;
      parts = {};
    }
    // The payload is the last field: the parts go into the buffer without another copy.
    std::string bytes;
    frame.AppendToString(&bytes);
    if (payload != 0) WireWriter(bytes).begin_bytes(RecordedFrame::kPayloadFieldNumber, payload);
    WireWriter(buffer_).number(bytes.size() + payload);
    buffer_.append(bytes);
    for (const std::string_view part : parts) buffer_.append(part);
    if (flush_after || buffer_.size() >= kBufferBytes) write_out();
  } catch (const std::bad_alloc&) {
    buffer_.resize(before);  // shrinking does not allocate
    fail(ENOMEM);
  }
}

void Recorder::write_out() {
  if (broken_ || buffer_.empty()) return;
  if (!write_all(buffer_.data(), buffer_.size())) {
    fail(errno);
    return;
  }
  written_ += buffer_.size();
  buffer_.clear();
  if (buffer_.capacity() > 8 * kBufferBytes) buffer_ = std::string();
}

void Recorder::fail(int error) {
  broken_ = true;
  // A reader would report half a frame at the end as damage.
  const bool cut = ::ftruncate(descriptor_, static_cast<off_t>(written_)) == 0;
  buffer_ = std::string();
  problem_ =
      Status(Code::kIoError, fmt::format("record: writing '{}' failed after {}: {}; the recording ends here{}, the "
                                         "session continues",
                                         path_, format_bytes(written_), std::strerror(error),
                                         cut ? "" : " (with a broken last frame)"));
}

bool Recorder::write_all(const char* data, size_t size) {
  while (size != 0) {
    const ssize_t count = ::write(descriptor_, data, size);
    if (count < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    data += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

}  // namespace msdbg::live
