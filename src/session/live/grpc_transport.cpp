#include "session/live/grpc_transport.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include "msdbg/threads.h"
#include "session/live/limits.h"
#include "session/live/watch_messages.h"

namespace msdbg::live {
namespace {

constexpr int kMaxFrame = 1 << 20, kWindow = 8 << 20;
constexpr std::chrono::milliseconds kShutdown{500};

}  // namespace

class GrpcTransport::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(GrpcTransport& transport) : transport_(transport) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    taken_over(this);
    try {
      const std::optional<Rpc> rpc = find_rpc(context->method());
      if (!rpc) return CallbackGenericService::CreateReactor(context);
      const uint64_t number = transport_.next_call_++;
      const std::string peer = context->peer();
      if (const grpc::Status refusal = transport_.may_call(*rpc, peer, number); !refusal.ok()) return new RefusedCall(refusal);
      return new IncomingCall(transport_, *rpc, number, peer);
    } catch (const std::exception& error) {
      return new RefusedCall({grpc::StatusCode::INTERNAL, error.what()});
    }
  }

 private:
  GrpcTransport& transport_;
};

GrpcTransport::GrpcTransport(std::unique_ptr<Acceptor> acceptor, std::unique_ptr<Recorder> recorder, uint64_t mem_limit_bytes)
    : acceptor_(std::move(acceptor)),
      recorder_(std::move(recorder)),
      service_(std::make_unique<Service>(*this)),
      waiting_(std::make_shared<WaitingMemory>(limits::waiting_bytes(mem_limit_bytes))) {}

Result<std::unique_ptr<GrpcTransport>> GrpcTransport::open(const ListenOptions& options) {
  // The library would print names that are not UTF-8 to standard error, in the middle of the prompt. Here names are bytes and are
  // escaped for output; a message that cannot be parsed becomes an event of the session.
  google::protobuf::SetLogHandler(nullptr);
  Result<std::unique_ptr<Acceptor>> acceptor =
      options.sockets.empty() ? Acceptor::open(options.bind, options.port) : Acceptor::take_over(options.sockets);
  if (!acceptor) return acceptor.status();
  std::unique_ptr<Recorder> recorder;
  if (!options.record.empty()) {
    Result<std::unique_ptr<Recorder>> made = Recorder::create(options.record);
    if (!made) return made.status();
    recorder = std::move(*made);
  }
  std::unique_ptr<GrpcTransport> transport(new GrpcTransport(std::move(*acceptor), std::move(recorder), options.mem_limit_bytes));

  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(transport->service_.get());
  builder.SetMaxReceiveMessageSize(limits::kMessageBytes);
  builder.SetMaxSendMessageSize(-1);
  // Slices of tensors are 3 MiB: larger frames and a wider window than gRPC's defaults avoid most of the overhead.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxFrame);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindow);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits::kCallsPerConnection);
  // A peer whose machine vanished sends nothing; only pings detect it.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.keepalive.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.keepalive.count() / 2));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // Signals belong to the prompt's thread; gRPC's threads inherit the mask.
  {
    const SignalsBlocked blocked;
    handed_over(transport->service_.get());
    transport->server_ = builder.BuildAndStart();
  }
  if (!transport->server_) return Status(Code::kInternal, "the gRPC server could not be started");
  GrpcTransport* self = transport.get();
  const Status started = transport->acceptor_->start({
      [self](int fd, const std::string& key, const std::string& address) { self->on_opened(fd, key, address); },
      [self](const std::string& key) { self->on_disconnected(key); },
      [self](const std::string& key) { return self->is_current(key); },
  });
  if (!started.ok()) return started;
  return transport;
}

GrpcTransport::~GrpcTransport() {
  acceptor_->stop();
  if (server_) {
    server_->Shutdown(std::chrono::system_clock::now() + kShutdown);
    server_->Wait();
    taken_over(static_cast<CallHandler*>(this));
  }
  if (recorder_) (void)recorder_->flush();
}

// ---- the session's side ----------------------------------------------------------------------------------------------

bool GrpcTransport::next(WireEvent* event, Clock::time_point deadline, bool stop_on_interrupt) {
  return mailbox_.take(event, deadline, stop_on_interrupt);
}

Status GrpcTransport::answer(const debugger::EventReply& message) {
  IncomingCall* call = nullptr;
  {
    std::lock_guard lock(mutex_);
    std::swap(call, held_);
    // Reply under the lock: a cancelled call is deleted only after on_cancelled(), which waits for the lock.
    if (call != nullptr) reply(*call, message);
  }
  if (call == nullptr) return Status(Code::kPeerLost, "the training is no longer held; the command was not delivered");
  return {};
}

void GrpcTransport::answer_ahead(const debugger::EventReply& message, uint64_t times) {
  std::lock_guard lock(mutex_);
  ahead_ = message;
  ahead_times_ = times;
}

Passed GrpcTransport::stop_ahead() {
  std::lock_guard lock(mutex_);
  ahead_times_ = 0;
  return std::exchange(passed_, {});
}

Passed GrpcTransport::passed_ahead() {
  std::lock_guard lock(mutex_);
  return passed_;
}

void GrpcTransport::expect(std::shared_ptr<ValueUpload> upload) {
  std::lock_guard lock(mutex_);
  upload_ = std::move(upload);
  received_ = 0;
}

void GrpcTransport::answer_unattended(std::vector<debugger::EventReply> replies) {
  std::lock_guard lock(mutex_);
  unattended_ = true;
  unattended_key_ = current_;
  unattended_replies_.assign(replies.begin(), replies.end());
  if (IncomingCall* call = std::exchange(held_, nullptr)) reply(*call, next_unattended_reply());
}

size_t GrpcTransport::stop_unattended() {
  std::lock_guard lock(mutex_);
  unattended_ = false;
  return std::exchange(unattended_replies_, {}).size();
}

size_t GrpcTransport::unattended_left() {
  std::lock_guard lock(mutex_);
  return unattended_replies_.size();
}

debugger::EventReply GrpcTransport::next_unattended_reply() {
  if (unattended_replies_.empty()) return make_run("step");
  debugger::EventReply next = std::move(unattended_replies_.front());
  unattended_replies_.pop_front();
  return next;
}

std::string GrpcTransport::address() const { return fmt::format("{}:{}", acceptor_->host(), acceptor_->port()); }

// ---- connections -----------------------------------------------------------------------------------------------------

void GrpcTransport::on_opened(int descriptor, const std::string& key, const std::string& address) {
  {
    std::lock_guard lock(mutex_);
    addresses_[key] = address;
    turned_away_.erase(key);
  }
  grpc::AddInsecureChannelFromFd(server_.get(), descriptor);
}

void GrpcTransport::on_disconnected(const std::string& key) {
  std::string address;
  bool ended = false;
  {
    std::lock_guard lock(mutex_);
    const auto it = addresses_.find(key);
    if (it == addresses_.end()) return;
    address = it->second;
    addresses_.erase(it);
    turned_away_.erase(key);
    if (key != current_) return;
    current_.clear();
    ahead_times_ = 0;
    ended = ended_;
  }
  WireEvent event;
  event.kind = WireEvent::Kind::kDisconnected;
  event.peer = address;
  event.text = ended ? fmt::format("the training at {} has closed its connection", address)
                     : fmt::format("the connection to the training at {} broke without a goodbye", address);
  if (recorder_) recorder_->disconnected(event.text);
  mailbox_.put(std::move(event), true);
}

std::string GrpcTransport::address_of(const std::string& key) {
  const auto it = addresses_.find(key);
  return it == addresses_.end() ? key : it->second;
}

bool GrpcTransport::is_current(const std::string& peer) {
  std::lock_guard lock(mutex_);
  return peer == current_;
}

/// Checked before a call is read: an unknown peer may only send a handshake, and only while no training is connected.
grpc::Status GrpcTransport::may_call(Rpc rpc, const std::string& peer, uint64_t number) {
  {
    std::lock_guard lock(mutex_);
    if (peer == current_) return grpc::Status::OK;
    // The end of a connection may be noticed before its last call.
    if (addresses_.find(peer) == addresses_.end()) return {grpc::StatusCode::FAILED_PRECONDITION, "the connection has ended"};
    if (current_.empty() || ended_) {
      if (is_streaming(rpc)) return {grpc::StatusCode::FAILED_PRECONDITION, "SendMetadata or WaitCMD comes first"};
      if (unknown_calls_.size() >= limits::kUnknownCalls) return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls at once"};
      unknown_calls_.insert(number);
      return grpc::Status::OK;
    }
  }
  return refuse_call(rpc, peer);
}

// One training per listener: the first connection that sends a handshake owns it until the connection ends.
grpc::Status GrpcTransport::admit(const IncomingCall& call) {
  {
    std::lock_guard lock(mutex_);
    if (call.peer == current_) return grpc::Status::OK;
    if (addresses_.find(call.peer) == addresses_.end()) return {grpc::StatusCode::FAILED_PRECONDITION, "the connection has ended"};
    if (current_.empty() || ended_) {  // a process may linger after its farewell
      current_ = call.peer;
      ended_ = false;
      notes_ = 0;
      // Memory of the previous training does not count for this one; that of earlier ones does.
      if (former_waiting_.expired()) {
        former_waiting_ = waiting_;
        waiting_ = std::make_shared<WaitingMemory>(waiting_->limit());
      }
      return grpc::Status::OK;
    }
  }
  return refuse_call(call.rpc, call.peer);
}

grpc::Status GrpcTransport::refuse_call(Rpc rpc, const std::string& peer) {
  std::string text;
  bool reported = false;
  {
    std::lock_guard lock(mutex_);
    text = fmt::format("msdbg debugs the training at {}; start another msdbg with its own --port for {}", address_of(current_),
                       address_of(peer));
    const auto [refused, first] = turned_away_.try_emplace(peer, false);
    refused->second = refused->second || rpc == Rpc::kSendMetadata;
    reported = !first;
  }
  if (!reported) note(WireEvent::Kind::kRefused, "refused a second training: " + text);
  return {grpc::StatusCode::FAILED_PRECONDITION, text};
}

}  // namespace msdbg::live
