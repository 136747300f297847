// What the calls of a training say, decoded and handed to the session; and how they are answered.
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <utility>

#include "session/live/graph_assembly.h"
#include "session/live/grpc_transport.h"
#include "session/live/peer_profile.h"
#include "session/live/value_slice.h"

namespace msdbg::live {
namespace {

constexpr uint64_t kMaxStream = uint64_t{2} << 30; // of graphs, hits and the like; values go to their own place

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
  note(WireEvent::Kind::kProblem,
       fmt::format("{}: message {} cannot be decoded ({} bytes)", rpc_name(call.rpc), call.messages, message.Length()));
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
  if (ahead_times_ > 0) {
    --ahead_times_;
    ++passed_.count;
    passed_.last.Swap(&call.event.metadata);
    return reply(call, ahead_);
  }
  if (held_ != nullptr) fail(*held_, grpc::StatusCode::ABORTED, "another WaitCMD took its place");
  held_ = &call;
  ended_ = false;
  WireEvent event = std::move(call.event);
  if (const auto refused = turned_away_.extract(call.peer)) event.turned_away = refused.mapped();
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
    ended_ = event.metadata.training_done();
    ahead_times_ = 0;
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
    ahead_times_ = 0;  // somebody has to look at this before the training goes on
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
