#include "agent/channel.h"

#include <fmt/format.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>

namespace msdbg::agent {
namespace {

// Each operation of a caller is awaited before the next one starts: one tag serves all.
void* const kTag = nullptr;

// A debugger without a command answers within this time. Polling for that long before the thread sleeps saves the training the cost
// of waking up: cold caches, perhaps another core.
constexpr auto kPatience = std::chrono::microseconds(500);

constexpr int64_t kLeastPauseMs = 10, kMostPauseMs = 2000;
constexpr int kLeastAttemptMs = 1000;
// By then, a new debugger has replaced the old one.
constexpr auto kReplacement = std::chrono::milliseconds(kMostPauseMs + 1000);

std::string path_of(const char* method) { return fmt::format("/debugger.EventListener/{}", method); }

}  // namespace

ChannelPtr open_channel(const std::string& target, std::chrono::milliseconds reconnect) {
  grpc::ChannelArguments arguments;
  const int pause = static_cast<int>(std::clamp<int64_t>(reconnect.count(), kLeastPauseMs, kMostPauseMs));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, pause);
  // For one attempt: on a busy machine, even a connection within it may take a while.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, std::max(pause, kLeastAttemptMs));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, static_cast<int>(kMostPauseMs));
  // Two agents in one process (tests) are two peers, and a proxy never leads to an address in this network.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // The agent makes its own attempts. With gRPC 1.51's retries, a call that lost its connection before its first message may never end.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

grpc::ByteBuffer to_buffer(const google::protobuf::MessageLite& message) {
  const size_t size = message.ByteSizeLong();
  grpc::Slice slice(size);
  message.SerializeToArray(const_cast<uint8_t*>(slice.begin()), static_cast<int>(size));
  return {&slice, 1};
}

/// Makes the current call visible to cancel().
class Caller::Running {
 public:
  Running(Caller& caller, grpc::ClientContext& context) : caller_(caller) {
    const std::lock_guard lock(caller_.mutex_);
    caller_.running_ = &context;
    if (caller_.cancelled_) context.TryCancel();
  }
  ~Running() {
    const std::lock_guard lock(caller_.mutex_);
    caller_.running_ = nullptr;
  }

 private:
  Caller& caller_;
};

/// A call that was started without sending a message.
struct Caller::Opened {
  std::string method;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
};

Caller::Caller(const ChannelPtr& channel) : channel_(channel), stub_(channel) {}

Caller::~Caller() {
  drop_opened();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) continue;
}

void Caller::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (running_ != nullptr) running_->TryCancel();
}

void Caller::allow() {
  const std::lock_guard lock(mutex_);
  cancelled_ = false;
}

bool Caller::wait_for_tag() {
  void* tag = nullptr;
  bool ok = false;
  for (const auto end = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < end;) {
    if (queue_.AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC)) == grpc::CompletionQueue::GOT_EVENT) return ok;
  }
  return queue_.Next(&tag, &ok) && ok;
}

bool Caller::wait_until_connected(std::chrono::milliseconds timeout) {
  return channel_->WaitForConnected(std::chrono::system_clock::now() + timeout);
}

bool Caller::wait_until_released(const BorrowedMemory& borrowed, std::chrono::milliseconds timeout) {
  const auto end = std::chrono::system_clock::now() + timeout;
  while (!borrowed.released()) {
    const auto now = std::chrono::system_clock::now();
    if (now > end) return false;
    void* tag = nullptr;
    bool ok = false;
    queue_.AsyncNext(&tag, &ok, now + std::chrono::milliseconds(5));  // nothing is due; this only services the sockets
  }
  return true;
}

Reply Caller::finish_reply(const grpc::Status& status, const grpc::ByteBuffer& bytes) {
  Reply reply;
  if (!status.ok()) {
    reply.reached = status.error_code() != grpc::StatusCode::UNAVAILABLE;
    reply.problem = fmt::format("error {}: {}", static_cast<int>(status.error_code()), status.error_message());
    return reply;
  }
  grpc::Slice slice;
  if (bytes.Valid() && !bytes.DumpToSingleSlice(&slice).ok()) {
    reply.problem = "the answer cannot be read";
    return reply;
  }
  if (!reply.message.ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    reply.message.Clear();
    reply.problem = fmt::format("the answer of {} bytes is not an EventReply", slice.size());
    return reply;
  }
  reply.answered = true;
  reply.ok = reply.message.status() == debugger::EventReply::OK;
  if (!reply.ok) reply.problem = fmt::format("status {}", static_cast<int>(reply.message.status()));
  return reply;
}

void Caller::open_ahead(const char* method) {
  drop_opened();
  auto opened = std::make_unique<Opened>();
  opened->method = method;
  opened->call = stub_.PrepareCall(&opened->context, path_of(method), &queue_);
  opened->call->StartCall(kTag);
  const bool started = wait_for_tag();
  opened_ = std::move(opened);
  if (!started) drop_opened();
}

void Caller::drop_opened() {
  const std::unique_ptr<Opened> opened = std::move(opened_);
  if (!opened) return;
  opened->context.TryCancel();
  grpc::Status status;
  opened->call->Finish(&status, kTag);
  wait_for_tag();
}

/// nullopt if the call did not survive the time before its first message.
std::optional<Reply> Caller::finish_opened(const grpc::ByteBuffer& request) {
  const std::unique_ptr<Opened> opened = std::move(opened_);
  const Running running(*this, opened->context);
  opened->call->WriteLast(request, grpc::WriteOptions(), kTag);
  const bool sent = wait_for_tag();
  grpc::ByteBuffer answer;
  bool answered = false;
  if (sent) {
    opened->call->Read(&answer, kTag);
    answered = wait_for_tag();
  }
  grpc::Status status;
  opened->call->Finish(&status, kTag);
  wait_for_tag();
  // A lost connection may show before or after the message; the debugger that is connected now has not received it.
  if (!sent || status.error_code() == grpc::StatusCode::UNAVAILABLE) return std::nullopt;
  if (status.ok() && !answered) return Reply{false, true, false, "the call was closed without an answer", {}};
  return finish_reply(status, answer);
}

Reply Caller::call(const char* method, const grpc::ByteBuffer& request,
                   std::optional<std::chrono::milliseconds> deadline) {
  if (!deadline && opened_ && opened_->method == method) {
    if (std::optional<Reply> reply = finish_opened(request)) return std::move(*reply);
    // The connection broke before the first message. A call before the next connection would fail and use up an attempt.
    wait_until_connected(kReplacement);
  }
  grpc::ClientContext context;
  if (deadline) context.set_deadline(std::chrono::system_clock::now() + *deadline);
  const Running running(*this, context);
  const auto reader = stub_.PrepareUnaryCall(&context, path_of(method), request, &queue_);
  reader->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  reader->Finish(&answer, &status, kTag);
  wait_for_tag();
  return finish_reply(status, answer);
}

Reply Caller::stream(const char* method, const std::function<bool(grpc::ByteBuffer&)>& next) {
  grpc::ClientContext context;
  const Running running(*this, context);
  const auto call = stub_.PrepareCall(&context, path_of(method), &queue_);
  call->StartCall(kTag);
  bool writable = wait_for_tag();
  grpc::ByteBuffer message;
  while (writable && next(message)) {
    call->Write(message, kTag);
    message.Clear();
    writable = wait_for_tag();
  }
  if (writable) {
    call->WritesDone(kTag);
    wait_for_tag();
  }
  grpc::ByteBuffer answer;
  call->Read(&answer, kTag);
  const bool answered = wait_for_tag();
  grpc::Status status;
  call->Finish(&status, kTag);
  wait_for_tag();
  if (status.ok() && !answered) return Reply{false, true, false, "the stream was closed without an answer", {}};
  return finish_reply(status, answer);
}

}  // namespace msdbg::agent
