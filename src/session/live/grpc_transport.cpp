#include "session/live/grpc_transport.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <signal.h>

#include "session/live/graph_assembly.h"
#include "session/live/peer_profile.h"
#include "session/live/value_slice.h"
#include "session/live/watch_messages.h"

namespace msdbg::live {
namespace {

constexpr int kMaxMessage = 64 << 20;              // clients send 3 MiB and a little; more is tolerated up to here
constexpr uint64_t kMaxStream = uint64_t{2} << 30; // of graphs, hits and the like; values go to their own place
constexpr int kMaxFrame = 1 << 20, kWindow = 8 << 20;
constexpr std::chrono::milliseconds kShutdown{500};

template <typename Message>
bool parse(grpc::ByteBuffer& buffer, Message* message) {
  grpc::ProtoBufferReader reader(&buffer);
  google::protobuf::io::CodedInputStream in(&reader);
  in.SetTotalBytesLimit(INT32_MAX);
  return message->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

bool is_streaming(Rpc rpc) {
  return rpc != Rpc::kWaitCmd && rpc != Rpc::kSendMetadata && rpc != Rpc::kSendHeartbeat;
}

}  // namespace

class GrpcTransport::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(GrpcTransport& transport) : transport_(transport) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const std::optional<Rpc> rpc = find_rpc(context->method());
    if (!rpc) return CallbackGenericService::CreateReactor(context);
    return new IncomingCall(transport_, *rpc, transport_.next_call_++, context->peer());
  }

 private:
  GrpcTransport& transport_;
};

GrpcTransport::GrpcTransport(std::unique_ptr<Acceptor> acceptor, std::unique_ptr<Recorder> recorder)
    : acceptor_(std::move(acceptor)), recorder_(std::move(recorder)), service_(std::make_unique<Service>(*this)) {}

Result<std::unique_ptr<GrpcTransport>> GrpcTransport::open(const ListenOptions& options) {
  // The library would print to standard error, in the middle of the prompt, that a name is no UTF-8. Names are taken as bytes here
  // and shown escaped; what cannot be parsed at all is an event of the session.
  google::protobuf::SetLogHandler(nullptr);
  Result<std::unique_ptr<Acceptor>> acceptor = Acceptor::open(options.bind, options.port);
  if (!acceptor) return acceptor.status();
  std::unique_ptr<Recorder> recorder;
  if (!options.record.empty()) {
    Result<std::unique_ptr<Recorder>> made = Recorder::create(options.record);
    if (!made) return made.status();
    recorder = std::move(*made);
  }
  std::unique_ptr<GrpcTransport> transport(new GrpcTransport(std::move(*acceptor), std::move(recorder)));

  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(transport->service_.get());
  builder.SetMaxReceiveMessageSize(kMaxMessage);
  builder.SetMaxSendMessageSize(-1);
  // Slices of tensors are 3 MiB: larger frames and a wider window than gRPC's defaults save most of the work around them.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxFrame);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindow);
  // A peer whose machine vanished says nothing; only pings find out.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.keepalive.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.keepalive.count() / 2));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // Signals belong to the thread of the prompt; gRPC's threads inherit the mask.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  transport->server_ = builder.BuildAndStart();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!transport->server_) return Status(Code::kInternal, "the gRPC server could not be started");
  GrpcTransport* self = transport.get();
  transport->acceptor_->start({
      [self](int fd, const std::string& key, const std::string& address) { self->on_opened(fd, key, address); },
      [self](const std::string& key) { self->on_closed(key); },
  });
  return transport;
}

GrpcTransport::~GrpcTransport() {
  acceptor_->stop();
  if (server_) {
    server_->Shutdown(std::chrono::system_clock::now() + kShutdown);
    server_->Wait();
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
    // Replied under the lock: a cancelled call is deleted only after on_cancelled(), which waits for it.
    if (call != nullptr) reply(*call, message);
  }
  if (call == nullptr) return Status(Code::kPeerLost, "the training is not held any more; the command was not delivered");
  return {};
}

void GrpcTransport::expect(std::shared_ptr<ValueUpload> upload) {
  std::lock_guard lock(mutex_);
  upload_ = std::move(upload);
  received_ = 0;
}

void GrpcTransport::answer_alone(std::vector<debugger::EventReply> replies) {
  std::lock_guard lock(mutex_);
  alone_ = true;
  alone_replies_.assign(replies.begin(), replies.end());
  if (IncomingCall* call = std::exchange(held_, nullptr)) reply(*call, next_alone());
}

debugger::EventReply GrpcTransport::next_alone() {
  if (alone_replies_.empty()) return make_run("step");
  debugger::EventReply next = std::move(alone_replies_.front());
  alone_replies_.pop_front();
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

void GrpcTransport::on_closed(const std::string& key) {
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
    ended = ended_;
  }
  WireEvent event;
  event.kind = WireEvent::Kind::kGone;
  event.peer = address;
  event.text = ended ? fmt::format("the training at {} has closed its connection", address)
                     : fmt::format("the connection to the training at {} broke without a goodbye", address);
  if (recorder_) recorder_->gone(event.text);
  mailbox_.put(std::move(event), true);
}

std::string GrpcTransport::address_of(const std::string& key) {
  const auto it = addresses_.find(key);
  return it == addresses_.end() ? key : it->second;
}

// One training per listener: the first connection that calls has it until it ends.
bool GrpcTransport::admit(IncomingCall& call) {
  std::string text;
  {
    std::lock_guard lock(mutex_);
    if (call.peer == current_) return true;
    // The end of a connection may be noticed before the last word on it.
    if (addresses_.find(call.peer) == addresses_.end()) return false;
    if (current_.empty()) {
      current_ = call.peer;
      ended_ = false;
      return true;
    }
    const std::string address = address_of(call.peer);
    text = fmt::format("msdbg debugs the training at {}; start another msdbg with its own --port for {}", address_of(current_), address);
    if (!turned_away_.insert(call.peer).second) {
      call.event.text = text;
      return false;
    }
  }
  call.event.text = text;
  note(WireEvent::Kind::kRefused, "refused a second training: " + text);
  return false;
}

// ---- calls -----------------------------------------------------------------------------------------------------------

void GrpcTransport::on_message(IncomingCall& call, grpc::ByteBuffer& message) {
  if (call.rpc != Rpc::kSendHeartbeat && !admit(call)) {
    return fail(call, grpc::StatusCode::FAILED_PRECONDITION, call.event.text.empty() ? "the connection has ended" : call.event.text);
  }
  if (recorder_) {
    std::vector<grpc::Slice> slices;
    std::vector<std::string_view> parts;
    (void)message.Dump(&slices);
    for (const grpc::Slice& slice : slices) parts.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
    recorder_->client(call.rpc, call.number, call.messages - 1, parts);
  }
  if (!is_streaming(call.rpc) && call.messages > 1) {
    return fail(call, grpc::StatusCode::INVALID_ARGUMENT, fmt::format("{} takes one message", rpc_name(call.rpc)));
  }
  if (call.rpc != Rpc::kSendTensors) call.bytes += message.Length();
  if (call.bytes > kMaxStream) {
    note(WireEvent::Kind::kProblem, fmt::format("{}: more than {} in one call; refused", rpc_name(call.rpc), format_bytes(kMaxStream)));
    return fail(call, grpc::StatusCode::RESOURCE_EXHAUSTED, "too much for one call");
  }
  if (decode(call, message)) return;
  note(WireEvent::Kind::kProblem, fmt::format("{}: message {} cannot be decoded ({} bytes)", rpc_name(call.rpc), call.messages, message.Length()));
  fail(call, grpc::StatusCode::INVALID_ARGUMENT, "the message cannot be decoded");
}

bool GrpcTransport::decode(IncomingCall& call, grpc::ByteBuffer& message) {
  WireEvent& event = call.event;
  switch (call.rpc) {
    case Rpc::kWaitCmd:
    case Rpc::kSendMetadata:
      return parse(message, &event.metadata);
    case Rpc::kSendHeartbeat:
      return true;  // whatever it says, it is a sign of life
    case Rpc::kSendGraph:
    case Rpc::kSendMultiGraphs: {
      debugger::Chunk chunk;
      if (!parse(message, &chunk)) return false;
      if (!call.assembly) call.assembly = std::make_unique<GraphAssembly>(call.rpc == Rpc::kSendMultiGraphs);
      call.assembly->add(chunk);
      return true;
    }
    case Rpc::kSendTensors: {
      if (!event.values) {
        std::lock_guard lock(mutex_);
        event.values = std::exchange(upload_, nullptr);
        if (!event.values) event.values = std::make_shared<ValueUpload>();  // nobody asked; it is thrown away
      }
      return take_slice(message, *event.values, received_);
    }
    case Rpc::kSendTensorBase:
      return parse(message, &event.bases.emplace_back());
    case Rpc::kSendTensorStats:
      return parse(message, &event.summaries.emplace_back());
    case Rpc::kSendWatchpointHits:
      return parse(message, &event.hits.emplace_back());
  }
  return false;
}

void GrpcTransport::on_complete(IncomingCall& call) {
  switch (call.rpc) {
    case Rpc::kSendHeartbeat:
      return reply(call, {});
    case Rpc::kWaitCmd:
      if (call.messages == 1) return complete_wait(call);
      return fail(call, grpc::StatusCode::INVALID_ARGUMENT, "WaitCMD without metadata");
    case Rpc::kSendMetadata:
      if (call.messages == 1) return complete_metadata(call);
      return fail(call, grpc::StatusCode::INVALID_ARGUMENT, "SendMetadata without metadata");
    case Rpc::kSendGraph:
    case Rpc::kSendMultiGraphs:
      return complete_graphs(call);
    case Rpc::kSendTensors:
      if (!call.event.values) {  // the tensor has no elements, which is told by saying nothing
        std::lock_guard lock(mutex_);
        call.event.values = std::exchange(upload_, nullptr);
      }
      call.event.kind = WireEvent::Kind::kValues;
      break;
    case Rpc::kSendTensorBase:
      call.event.kind = WireEvent::Kind::kBases;
      break;
    case Rpc::kSendTensorStats:
      call.event.kind = WireEvent::Kind::kSummaries;
      break;
    case Rpc::kSendWatchpointHits:
      call.event.kind = WireEvent::Kind::kHits;
      break;
  }
  post_and_reply(call, {});
}

void GrpcTransport::on_cancelled(IncomingCall& call) {
  {
    std::lock_guard lock(mutex_);
    if (held_ == &call) held_ = nullptr;
  }
  // A call that was opened ahead of its message says nothing when it ends.
  if (recorder_ && call.messages > 0)
    recorder_->status(call.rpc, call.number, grpc::StatusCode::CANCELLED, "given up by the client");
  if (call.rpc != Rpc::kWaitCmd && call.messages > 0)
    note(WireEvent::Kind::kProblem, fmt::format("{} was broken off after {} messages", rpc_name(call.rpc), call.messages));
}

void GrpcTransport::complete_wait(IncomingCall& call) {
  if (recorder_) {
    if (const Status written = recorder_->flush(); !written.ok()) note(WireEvent::Kind::kProblem, written.message());
  }
  std::lock_guard lock(mutex_);
  if (alone_) return reply(call, next_alone());
  if (call.cancelled()) return;  // from here on on_cancelled() takes it out of held_
  if (held_ != nullptr) fail(*held_, grpc::StatusCode::ABORTED, "another WaitCMD took its place");
  held_ = &call;
  WireEvent event = std::move(call.event);
  event.kind = WireEvent::Kind::kWait;
  event.peer = address_of(call.peer);
  // Posted under the lock, so that the answer to it cannot come before it is known to be open.
  if (mailbox_.put(std::move(event))) return;
  held_ = nullptr;
  fail(call, grpc::StatusCode::RESOURCE_EXHAUSTED, "too many messages wait to be looked at");
}

void GrpcTransport::complete_metadata(IncomingCall& call) {
  debugger::EventReply message;
  WireEvent& event = call.event;
  {
    std::lock_guard lock(mutex_);
    event.peer = address_of(call.peer);
    if (event.metadata.training_done()) ended_ = true;
  }
  if (event.metadata.training_done()) {
    event.kind = WireEvent::Kind::kFarewell;
  } else {
    event.kind = WireEvent::Kind::kHandshake;
    message.set_version_matched(make_profile(event.metadata, event.peer).ok());
  }
  post_and_reply(call, message);
}

void GrpcTransport::complete_graphs(IncomingCall& call) {
  call.event.kind = WireEvent::Kind::kGraphs;
  if (call.assembly) call.event.graphs = call.assembly->finish();
  post_and_reply(call, {});
}

void GrpcTransport::post_and_reply(IncomingCall& call, const debugger::EventReply& message) {
  bool wanted = true;
  {
    std::lock_guard lock(mutex_);
    if (call.event.peer.empty()) call.event.peer = address_of(call.peer);
    // Nobody reads hits of a training that was let go.
    wanted = !alone_ || call.event.kind == WireEvent::Kind::kFarewell || call.event.kind == WireEvent::Kind::kHandshake;
  }
  // Posted first: the client goes on only after the reply, so its next message comes behind this one.
  if (wanted && !mailbox_.put(std::move(call.event)))
    return fail(call, grpc::StatusCode::RESOURCE_EXHAUSTED, "too many messages wait to be looked at");
  reply(call, message);
}

void GrpcTransport::reply(IncomingCall& call, const debugger::EventReply& message) {
  const std::string payload = message.SerializeAsString();
  if (recorder_) recorder_->server(call.rpc, call.number, payload);
  call.reply(payload);
}

void GrpcTransport::fail(IncomingCall& call, grpc::StatusCode code, const std::string& text) {
  if (recorder_) recorder_->status(call.rpc, call.number, code, text);
  call.fail(code, text);
}

void GrpcTransport::note(WireEvent::Kind kind, const std::string& text) {
  if (recorder_) recorder_->note(text);
  WireEvent event;
  event.kind = kind;
  event.text = text;
  mailbox_.put(std::move(event));  // when it is full there is trouble enough to read about
}

}  // namespace msdbg::live
