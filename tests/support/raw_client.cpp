#include "support/raw_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace msdbg::test {
namespace {

using grpc::ByteBuffer;
using grpc::CompletionQueue;

ByteBuffer buffer_of(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::string bytes_of(const ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

std::string method(live::Rpc rpc) { return "/debugger.EventListener/" + std::string(live::rpc_name(rpc)); }

RawReply reply_of(const grpc::Status& status, const ByteBuffer& buffer) {
  return {static_cast<int>(status.error_code()), status.error_message(), status.ok() ? bytes_of(buffer) : "", false};
}

RawReply late() {
  return {static_cast<int>(grpc::StatusCode::DEADLINE_EXCEEDED), "the test's deadline passed", "", true};
}

/// Every queue serves one call: calls cannot receive each other's events.
struct Call {
  grpc::ClientContext context;
  CompletionQueue queue;

  enum class Event : uint8_t { kDone, kFailed, kNotYet };
  Event next(milliseconds deadline) {
    void* tag = nullptr;
    bool ok = false;
    const auto until = std::chrono::system_clock::now() + deadline;
    if (queue.AsyncNext(&tag, &ok, until) != CompletionQueue::GOT_EVENT) return Event::kNotYet;
    return ok ? Event::kDone : Event::kFailed;
  }
};

/// Ends the call and processes its last events. It must be destroyed first: readers are in the memory of the context, and events
/// write into the reply.
struct Drain {
  Call& call;
  ~Drain() {
    call.context.TryCancel();
    call.queue.Shutdown();
    void* tag = nullptr;
    for (bool ok = false; call.queue.Next(&tag, &ok);) {
    }
  }
};

}  // namespace

debugger::EventReply RawReply::parsed() const {
  debugger::EventReply reply;
  if (!reply.ParseFromString(bytes)) reply.set_status(debugger::EventReply::FAILED);
  return reply;
}

std::string RawReply::describe() const {
  if (timed_out) return "no reply in time";
  if (code != 0) return "status " + std::to_string(code) + ": " + text;
  return parsed().ShortDebugString();
}

struct RawClient::Wait::State {
  Call call;
  ByteBuffer answer;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  std::optional<RawReply> reply;
  Drain drain{call};
};

RawClient::Wait::Wait() : state_(std::make_unique<State>()) {}
RawClient::Wait::~Wait() = default;

std::optional<RawReply> RawClient::Wait::get(milliseconds deadline) {
  if (!state_->reply && state_->call.next(deadline) != Call::Event::kNotYet) {
    state_->reply = reply_of(state_->status, state_->answer);
  }
  return state_->reply;
}

void RawClient::Wait::cancel() { state_->call.context.TryCancel(); }

struct RawClient::Unfinished {
  Call call;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  Drain drain{call};
};

std::unique_ptr<RawClient> RawClient::connect(int port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int second = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (descriptor < 0 || ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(descriptor);
    ::close(second);
    return nullptr;
  }
  const int one = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  auto channel = grpc::CreateInsecureChannelFromFd("training", descriptor);
  return std::unique_ptr<RawClient>(new RawClient(std::make_unique<grpc::GenericStub>(channel), second));
}

RawClient::RawClient(std::unique_ptr<grpc::GenericStub> stub, int descriptor)
    : stub_(std::move(stub)), descriptor_(descriptor) {}

RawClient::~RawClient() {
  stop_heartbeats();
  ::close(descriptor_);
}

RawReply RawClient::unary(live::Rpc rpc, const std::string& message, milliseconds deadline) {
  Call call;
  ByteBuffer answer;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  const Drain drain{call};
  reader = stub_->PrepareUnaryCall(&call.context, method(rpc), buffer_of(message), &call.queue);
  reader->StartCall();
  reader->Finish(&answer, &status, nullptr);
  return call.next(deadline) == Call::Event::kNotYet ? late() : reply_of(status, answer);
}

RawReply RawClient::stream(live::Rpc rpc, std::span<const std::string> messages, milliseconds deadline) {
  return stream(rpc, messages.size(), [&](size_t i) -> const std::string& { return messages[i]; }, deadline);
}

RawReply RawClient::repeat(live::Rpc rpc, const std::string& message, size_t times, milliseconds deadline) {
  return stream(rpc, times, [&](size_t) -> const std::string& { return message; }, deadline);
}

RawReply RawClient::stream(live::Rpc rpc, size_t count, const std::function<const std::string&(size_t)>& message,
                           milliseconds deadline) {
  Call call;
  ByteBuffer answer;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  const Drain drain{call};
  stream = stub_->PrepareCall(&call.context, method(rpc), &call.queue);
  stream->StartCall(nullptr);
  Call::Event event = call.next(deadline);
  for (size_t i = 0; event == Call::Event::kDone && i < count; ++i) {
    stream->Write(buffer_of(message(i)), nullptr);
    event = call.next(deadline);
  }
  if (event == Call::Event::kDone) {
    stream->WritesDone(nullptr);
    event = call.next(deadline);
  }
  if (event == Call::Event::kDone) {
    stream->Read(&answer, nullptr);
    event = call.next(deadline);
  }
  if (event == Call::Event::kNotYet) return late();
  stream->Finish(&status, nullptr);
  return call.next(deadline) == Call::Event::kNotYet ? late() : reply_of(status, answer);
}

bool RawClient::begin_stream(live::Rpc rpc, std::span<const std::string> messages, milliseconds deadline) {
  auto unfinished = std::make_unique<Unfinished>();
  Call& call = unfinished->call;
  unfinished->stream = stub_->PrepareCall(&call.context, method(rpc), &call.queue);
  unfinished->stream->StartCall(nullptr);
  Call::Event event = call.next(deadline);
  for (size_t i = 0; event == Call::Event::kDone && i < messages.size(); ++i) {
    unfinished->stream->Write(buffer_of(messages[i]), nullptr);
    event = call.next(deadline);
  }
  const std::lock_guard lock(mutex_);
  unfinished_.push_back(std::move(unfinished));
  return event == Call::Event::kDone;
}

void RawClient::cancel_streams() {
  const std::lock_guard lock(mutex_);
  unfinished_.clear();
}

std::unique_ptr<RawClient::Wait> RawClient::wait_cmd(const std::string& metadata) {
  std::unique_ptr<Wait> wait(new Wait());
  Wait::State& state = *wait->state_;
  state.reader =
      stub_->PrepareUnaryCall(&state.call.context, method(live::Rpc::kWaitCmd), buffer_of(metadata), &state.call.queue);
  state.reader->StartCall();
  state.reader->Finish(&state.answer, &state.status, nullptr);
  return wait;
}

void RawClient::drop() { ::shutdown(descriptor_, SHUT_RDWR); }

void RawClient::start_heartbeats(const std::string& message, milliseconds period) {
  beater_ = std::thread([this, message, period] {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      lock.unlock();
      const bool fine = unary(live::Rpc::kSendHeartbeat, message).ok();
      lock.lock();
      if (!fine) return;
      ++heartbeats_;
      stop_.wait_for(lock, period, [this] { return stopping_; });
    }
  });
}

void RawClient::stop_heartbeats() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (beater_.joinable()) beater_.join();
}

}  // namespace msdbg::test
