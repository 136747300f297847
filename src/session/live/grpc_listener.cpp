#include "session/live/grpc_listener.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <algorithm>

#include "msdbg/threads.h"
#include "session/live/ended_steps.h"
#include "session/live/limits.h"
#include "session/live/watch_messages.h"

namespace msdbg::live {
namespace {

constexpr int kMaxFrame = 1 << 20, kWindow = 8 << 20;
constexpr std::chrono::milliseconds kShutdown{500};

/// The device id of "<device id>:<graph id>".
std::string device_of(const debugger::Metadata& metadata) {
  return printable(metadata.device_name().substr(0, metadata.device_name().find(':')));
}

}  // namespace

class GrpcListener::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(GrpcListener& listener) : listener_(listener) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    taken_over(this);
    try {
      const std::optional<Rpc> rpc = find_rpc(context->method());
      if (!rpc) return CallbackGenericService::CreateReactor(context);
      const uint64_t number = listener_.next_call_++;
      const std::string peer = context->peer();
      if (const grpc::Status refusal = listener_.may_call(*rpc, peer, number); !refusal.ok()) return new RefusedCall(refusal);
      return new IncomingCall(listener_, *rpc, number, peer);
    } catch (const std::exception& error) {
      return new RefusedCall({grpc::StatusCode::INTERNAL, error.what()});
    }
  }

 private:
  GrpcListener& listener_;
};

GrpcListener::GrpcListener(std::unique_ptr<Acceptor> acceptor, std::unique_ptr<Recorder> recorder, int ranks, uint64_t mem_limit_bytes)
    : acceptor_(std::move(acceptor)), recorder_(std::move(recorder)), service_(std::make_unique<Service>(*this)) {
  const auto count = static_cast<uint64_t>(ranks);
  for (int rank = 0; rank < ranks; ++rank)
    lines_.push_back(std::make_unique<Line>(rank, limits::waiting_bytes(mem_limit_bytes / count)));
}

Result<std::shared_ptr<GrpcListener>> GrpcListener::open(const ListenOptions& options) {
  // The library would print names that are not UTF-8 to standard error, in the middle of the prompt. Here names are bytes and are
  // escaped for output; a message that cannot be parsed becomes an event of the session.
  google::protobuf::SetLogHandler(nullptr);
  Result<std::unique_ptr<Acceptor>> acceptor =
      options.sockets.empty() ? Acceptor::open(options.bind, options.port) : Acceptor::take_over(options.sockets);
  if (!acceptor) return acceptor.status();
  std::unique_ptr<Recorder> recorder;
  if (!options.record.empty()) {
    Result<std::unique_ptr<Recorder>> made = Recorder::create(options.record, options.ranks);
    if (!made) return made.status();
    recorder = std::move(*made);
  }
  std::shared_ptr<GrpcListener> listener(
      new GrpcListener(std::move(*acceptor), std::move(recorder), options.ranks, options.mem_limit_bytes));

  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(listener->service_.get());
  builder.SetMaxReceiveMessageSize(limits::kMessageBytes);
  builder.SetMaxSendMessageSize(-1);
  // Slices of tensors are 3 MiB: larger frames and a wider window than gRPC's defaults avoid most of the overhead.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxFrame);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindow);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits::kCallsPerConnection);
  // A peer whose machine vanished sends nothing; only pings detect it.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.keepalive.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.keepalive_timeout.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // Signals belong to the prompt's thread; gRPC's threads inherit the mask.
  {
    const SignalsBlocked blocked;
    handed_over(listener->service_.get());
    listener->server_ = builder.BuildAndStart();
  }
  if (!listener->server_) return Status(Code::kInternal, "the gRPC server could not be started");
  GrpcListener* self = listener.get();
  const Status started = listener->acceptor_->start({
      [self](int fd, const std::string& key, const std::string& address) { self->on_opened(fd, key, address); },
      [self](const std::string& key) { self->on_disconnected(key); },
      [self](const std::string& key) { return self->is_current(key); },
  }, limits::connections(options.ranks));
  if (!started.ok()) return started;
  return listener;
}

GrpcListener::~GrpcListener() {
  close(kShutdown);
  if (recorder_) (void)recorder_->flush();
}

void GrpcListener::close(std::chrono::milliseconds patience) {
  acceptor_->stop();
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now() + patience);
  server_->Wait();
  taken_over(static_cast<CallHandler*>(this));
  server_.reset();
}

debugger::EventReply GrpcListener::next_unattended_reply(Line& line) {
  if (line.unattended_replies.empty()) {
    debugger::EventReply run = make_run("step", {}, false);
    if (!recorder_) allow_ahead(*run.mutable_run_cmd(), UINT64_MAX);
    return run;
  }
  debugger::EventReply next = std::move(line.unattended_replies.front());
  line.unattended_replies.pop_front();
  return next;
}

// ---- connections -----------------------------------------------------------------------------------------------------

void GrpcListener::on_opened(int descriptor, const std::string& key, const std::string& address) {
  {
    std::lock_guard lock(mutex_);
    connections_[key] = {address, nullptr, false, false};
  }
  grpc::AddInsecureChannelFromFd(server_.get(), descriptor);
}

void GrpcListener::on_disconnected(const std::string& key) {
  std::string address;
  Line* line = nullptr;
  bool ended = false;
  {
    std::lock_guard lock(mutex_);
    const auto it = connections_.find(key);
    if (it == connections_.end()) return;
    address = it->second.address;
    // Another connection may get the same key.
    if (Line* const last = it->second.line; last != nullptr && last->unattended_key == key) last->unattended_key.clear();
    line = line_of(key);
    connections_.erase(it);
    if (line == nullptr) return;
    line->current.clear();
    line->ahead_times = 0;
    ended = line->ended;
  }
  WireEvent event;
  event.kind = WireEvent::Kind::kDisconnected;
  event.peer = address;
  event.text = ended ? fmt::format("the training at {} has closed its connection", address)
                     : fmt::format("the connection to the training at {} broke without a goodbye", address);
  if (recorder_) recorder_->disconnected(line->rank, event.text);
  line->mailbox.put(std::move(event), true);
}

std::string GrpcListener::address_of(const std::string& key) {
  const auto it = connections_.find(key);
  return it == connections_.end() ? key : it->second.address;
}

Line* GrpcListener::line_of(const std::string& key) {
  const auto it = connections_.find(key);
  if (it == connections_.end() || it->second.line == nullptr || it->second.line->current != key) return nullptr;
  return it->second.line;
}

bool GrpcListener::is_current(const std::string& key) {
  std::lock_guard lock(mutex_);
  return line_of(key) != nullptr;
}

bool GrpcListener::has_free_line() const {
  return std::any_of(lines_.begin(), lines_.end(), [](const auto& line) { return line->is_free(); });
}

/// Checked before a call is read: an unknown peer may only send a handshake, and only while a rank has no process.
grpc::Status GrpcListener::may_call(Rpc rpc, const std::string& peer, uint64_t number) {
  std::string why;
  {
    std::lock_guard lock(mutex_);
    if (line_of(peer) != nullptr) return grpc::Status::OK;
    // The end of a connection may be noticed before its last call.
    if (connections_.find(peer) == connections_.end()) return {grpc::StatusCode::FAILED_PRECONDITION, "the connection has ended"};
    if (has_free_line()) {
      if (is_streaming(rpc)) return {grpc::StatusCode::FAILED_PRECONDITION, "SendMetadata or WaitCMD comes first"};
      const size_t most = limits::kUnknownCalls * lines_.size();
      if (unknown_calls_.size() >= most) return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls at once"};
      unknown_calls_.insert(number);
      return grpc::Status::OK;
    }
    why = all_taken();
  }
  return refuse_call(rpc, peer, why);
}

std::string GrpcListener::all_taken() const {
  if (lines_.size() > 1) {
    return fmt::format("all {} ranks are connected; a training of more needs a higher --ranks, another training an msdbg with its own "
                       "--port", lines_.size());
  }
  const auto it = connections_.find(lines_.front()->current);
  return fmt::format("msdbg debugs the training at {}; a training of several processes needs --ranks N, another training an msdbg with "
                     "its own --port", it == connections_.end() ? "another address" : it->second.address);
}

/// The line for a process that introduces itself. Null: `why` says why there is none for it. Sets `why` also if the rank was guessed.
Line* GrpcListener::choose_line(const debugger::Metadata& metadata, std::string* why) {
  const auto is_free = [](const auto& line) { return line->is_free(); };
  const auto first_free = std::find_if(lines_.begin(), lines_.end(), is_free);
  if (first_free == lines_.end()) return *why = all_taken(), nullptr;
  if (lines_.size() == 1) return first_free->get();
  const int last = static_cast<int>(lines_.size()) - 1;
  if (metadata.has_rank()) {
    if (metadata.rank() < 0 || metadata.rank() > last) {
      *why = fmt::format("it says that it is rank {}, and --ranks {} is for ranks 0 to {}", metadata.rank(), lines_.size(), last);
      return nullptr;
    }
    Line& line = *lines_[static_cast<size_t>(metadata.rank())];
    if (line.is_free()) return &line;
    *why = fmt::format("it says that it is rank {}, which the training at {} is already; give each process its own RANK_ID",
                       metadata.rank(), address_of(line.current));
    return nullptr;
  }
  // MindSpore sends the device only. It is the rank on one machine with all of its devices; then comes the order of arrival.
  const std::string device = device_of(metadata);
  const auto known = std::find_if(lines_.begin(), lines_.end(), [&](const auto& line) {
    return line->is_free() && !device.empty() && line->device == device;
  });
  if (known != lines_.end()) return known->get();
  const auto number = parse_int(device);
  if (number && *number >= 0 && *number <= last && lines_[static_cast<size_t>(*number)]->is_free())
    return lines_[static_cast<size_t>(*number)].get();
  *why = fmt::format("device {} is taken as rank {}, by the order of arrival", device.empty() ? "?" : device, (*first_free)->rank);
  return first_free->get();
}

grpc::Status GrpcListener::admit(IncomingCall& call) {
  std::string why;
  Line* line = nullptr;
  {
    std::lock_guard lock(mutex_);
    call.line = line_of(call.peer);
    if (call.line != nullptr) return grpc::Status::OK;
    const auto connection = connections_.find(call.peer);
    if (connection == connections_.end()) return {grpc::StatusCode::FAILED_PRECONDITION, "the connection has ended"};
    line = choose_line(call.event.metadata, &why);
    if (line != nullptr) {
      call.line = connection->second.line = line;
      line->current = call.peer;
      line->device = device_of(call.event.metadata);
      line->ended = false;
      line->notes = 0;
      // Memory of the previous process does not count for this one; that of earlier ones does.
      if (line->former_waiting.expired()) {
        line->former_waiting = line->waiting;
        line->waiting = std::make_shared<WaitingMemory>(line->waiting->limit());
      }
    }
  }
  if (line == nullptr) return refuse_call(call.rpc, call.peer, why);
  if (!why.empty()) note(line, why);
  return grpc::Status::OK;
}

grpc::Status GrpcListener::refuse_call(Rpc rpc, const std::string& peer, const std::string& why) {
  std::string from;
  {
    std::lock_guard lock(mutex_);
    const auto connection = connections_.find(peer);
    if (connection == connections_.end()) return {grpc::StatusCode::FAILED_PRECONDITION, why};
    connection->second.handshake_refused = connection->second.handshake_refused || rpc == Rpc::kSendMetadata;
    if (!std::exchange(connection->second.turned_away, true)) from = connection->second.address;
  }
  if (!from.empty()) note(nullptr, fmt::format("refused a {}training at {}: {}", lines_.size() == 1 ? "second " : "", from, why));
  return {grpc::StatusCode::FAILED_PRECONDITION, why};
}

}  // namespace msdbg::live
