// Decodes the calls of a training, passes them to the session, and answers them.
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <utility>

#include "session/live/ended_steps.h"
#include "session/live/graph_assembly.h"
#include "session/live/grpc_listener.h"
#include "session/live/limits.h"
#include "session/live/peer_profile.h"
#include "session/live/value_slice.h"

namespace msdbg::live {
namespace {

template <typename Message>
bool parse(grpc::ByteBuffer& buffer, Message* message) {
  grpc::ProtoBufferReader reader(&buffer);
  google::protobuf::io::CodedInputStream in(&reader);
  in.SetTotalBytesLimit(INT32_MAX);
  return message->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

template <typename Message>
bool append(grpc::ByteBuffer& buffer, std::vector<Message>* messages) {
  return parse(buffer, &messages->emplace_back());
}

/// The message in memory, and its owner.
struct Pieces {
  explicit Pieces(const grpc::ByteBuffer& buffer) {
    (void)buffer.Dump(&slices);
    for (const grpc::Slice& slice : slices) bytes.push_back(std::as_bytes(std::span(slice.begin(), slice.size())));
  }
  std::vector<grpc::Slice> slices;
  MessagePieces bytes;
};

}  // namespace

void GrpcListener::on_message(IncomingCall& call, grpc::ByteBuffer& message) {
  bool admitted = call.rpc == Rpc::kSendHeartbeat;
  {
    std::lock_guard lock(mutex_);
    call.line = line_of(call.peer);
    admitted = admitted || call.line != nullptr;
    if (call.line != nullptr && call.messages == 1 && is_streaming(call.rpc)) call.event.charge = Charge(call.line->waiting);
  }
  if (!admitted && is_streaming(call.rpc)) return fail(call, grpc::StatusCode::FAILED_PRECONDITION, "another connection took its place");
  if (admitted) record(call, message);
  if (!is_streaming(call.rpc) && call.messages > 1)
    return fail(call, grpc::StatusCode::INVALID_ARGUMENT, fmt::format("{} takes one message", rpc_name(call.rpc)));
  call.bytes += message.Length() + limits::kMessageOverhead;
  const bool long_ones = call.rpc == Rpc::kSendTensors || call.rpc == Rpc::kSendGraph || call.rpc == Rpc::kSendMultiGraphs;
  if (!long_ones && message.Length() > limits::kSmallMessageBytes)
    return refuse(call, fmt::format("a message of {}, more than {}", format_bytes(message.Length()),
                                    format_bytes(limits::kSmallMessageBytes)));
  std::string too_much;
  const bool decoded = decode(call, message, &too_much);
  if (!too_much.empty()) return refuse(call, too_much);
  if (!decoded) {
    note(call.line,
         fmt::format("{}: message {} cannot be decoded ({} bytes)", rpc_name(call.rpc), call.messages.load(), message.Length()));
    return fail(call, grpc::StatusCode::INVALID_ARGUMENT, "the message cannot be decoded");
  }
  if (admitted) return;
  // Only after decoding: a peer that sends nonsense must not take the place of the training.
  if (const grpc::Status refusal = admit(call); !refusal.ok()) return call.fail(refusal.error_code(), refusal.error_message());
  record(call, message);
}

void GrpcListener::record(const IncomingCall& call, grpc::ByteBuffer& message) {
  if (!recorder_ || call.line == nullptr) return;
  const Pieces pieces(message);
  std::vector<std::string_view> parts;
  for (const auto& piece : pieces.bytes) parts.emplace_back(reinterpret_cast<const char*>(piece.data()), piece.size());
  recorder_->client(call.line->rank, call.rpc, call.number, call.messages - 1, parts);
}

/// Ends a call that needs more memory than its limit.
void GrpcListener::refuse(IncomingCall& call, const std::string& what) {
  note(call.line, fmt::format("{}: {}; refused", rpc_name(call.rpc), what));
  if (call.line != nullptr && call.rpc == Rpc::kSendTensors && call.event.values) {
    // A reader waits for these values: wake it before the client continues.
    call.event.values->problem = what;
    call.event.kind = WireEvent::Kind::kValues;
    (void)call.line->mailbox.put(std::move(call.event));
  }
  fail(call, grpc::StatusCode::RESOURCE_EXHAUSTED, what);
}

/// False if the message has another type. `too_much` gets the reason if it exceeds a limit.
bool GrpcListener::decode(IncomingCall& call, grpc::ByteBuffer& message, std::string* too_much) {
  WireEvent& event = call.event;
  const auto keep = [&](uint64_t bytes) {
    if (event.charge.add(bytes)) return true;
    *too_much =
        fmt::format("more than {} of graphs, hits and answers that are not processed yet", format_bytes(event.charge.limit()));
    return false;
  };
  switch (call.rpc) {
    case Rpc::kWaitCmd:
    case Rpc::kSendMetadata:
      return parse(message, &event.metadata);
    case Rpc::kSendHeartbeat:
      return true;  // any message is a sign of life
    case Rpc::kSendGraph:
    case Rpc::kSendMultiGraphs: {
      debugger::Chunk chunk;
      if (!keep(message.Length() + limits::kMessageOverhead)) return false;
      if (!parse(message, &chunk)) return false;
      if (!call.assembly) call.assembly = std::make_unique<GraphAssembly>(call.rpc == Rpc::kSendMultiGraphs);
      call.assembly->add(chunk);
      return true;
    }
    case Rpc::kSendTensors:
      return decode_slice(call, message, too_much);
    case Rpc::kSendTensorBase:
    case Rpc::kSendTensorStats:
      if (call.messages > limits::kAnswers) {
        *too_much = fmt::format("more than {} answers in one call", limits::kAnswers);
        return false;
      }
      // Packed numbers can take eight times as much memory.
      if (!keep(sizeof(debugger::TensorSummary) + 8 * message.Length())) return false;
      return call.rpc == Rpc::kSendTensorBase ? append(message, &event.bases) : append(message, &event.summaries);
    case Rpc::kSendWatchpointHits: {
      debugger::WatchpointHit hit;
      if (!parse(message, &hit)) return false;
      // Keep the hits that came before the limit.
      if (event.hits.size() < limits::kHits && event.charge.add(hit.SpaceUsedLong())) event.hits.push_back(std::move(hit));
      else ++event.left_out;
      return true;
    }
  }
  return false;
}

bool GrpcListener::decode_slice(IncomingCall& call, grpc::ByteBuffer& message, std::string* too_much) {
  WireEvent& event = call.event;
  if (call.messages == 1) {
    std::lock_guard lock(mutex_);
    event.values = std::exchange(call.line->upload, nullptr);
  }
  // Without an upload nothing was requested: skip the elements, and refuse far more than a mistake.
  const uint64_t most = event.values ? event.values->most_bytes() : 0;
  if (call.bytes > most + std::max(most / 2, limits::kUnaskedBytes)) {
    *too_much = event.values ? "far more than was requested" : "a tensor that was not requested";
    return false;
  }
  const SliceResult taken = take_slice(Pieces(message).bytes, event.values.get(), call.line->received);
  if (taken == SliceResult::kTooMuch)
    *too_much = fmt::format("more than the {} that the tensor has", format_bytes(event.values->values[event.values->at].most_bytes));
  return taken == SliceResult::kTaken;
}

void GrpcListener::on_complete(IncomingCall& call) {
  forget_unknown_call(call);  // before on_closed(): the client may see the reply and send its next call first
  if (call.messages == 0 && is_streaming(call.rpc)) {
    std::lock_guard lock(mutex_);
    call.line = line_of(call.peer);
  }
  if (call.line == nullptr && is_streaming(call.rpc))
    return fail(call, grpc::StatusCode::FAILED_PRECONDITION, "another connection took its place");
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
      if (call.messages == 0) {  // no tensor has elements; the client reports that by sending nothing
        std::lock_guard lock(mutex_);
        call.event.values = std::exchange(call.line->upload, nullptr);
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

void GrpcListener::on_cancelled(IncomingCall& call) {
  Line* line = nullptr;
  {
    std::lock_guard lock(mutex_);
    line = call.line;
    if (line != nullptr && line->held == &call) line->held = nullptr;
  }
  // A call opened before its message exists ends silently.
  if (recorder_ && line != nullptr && call.messages > 0)
    recorder_->status(line->rank, call.rpc, call.number, grpc::StatusCode::CANCELLED, "given up by the client");
  if (call.rpc == Rpc::kWaitCmd) return;
  // The library silently drops a message that is too long, together with its call.
  note(line, fmt::format("{} was broken off after {} messages; the next one may have been above {}, which is refused",
                         rpc_name(call.rpc), call.messages.load(), format_bytes(limits::kMessageBytes)));
}

void GrpcListener::on_closed(IncomingCall& call) noexcept { forget_unknown_call(call); }

void GrpcListener::forget_unknown_call(const IncomingCall& call) noexcept {
  std::lock_guard lock(mutex_);
  if (const auto it = unknown_calls_.find(call.number); it != unknown_calls_.end()) unknown_calls_.erase(it);
}

void GrpcListener::on_exception(IncomingCall& call, const char* what) noexcept {
  Line* line = nullptr;
  {
    std::lock_guard lock(mutex_);
    line = call.line;
    if (line != nullptr && line->held == &call) line->held = nullptr;
  }
  try {
    note(line, fmt::format("{} was ended by an error in msdbg: {}", rpc_name(call.rpc), what));
  } catch (...) {  // without memory for the text, still end the call
  }
  call.fail(grpc::StatusCode::INTERNAL, "an error in msdbg");
}

void GrpcListener::complete_wait(IncomingCall& call) {
  Line& line = *call.line;
  if (recorder_) {
    if (const Status written = recorder_->flush(); !written.ok()) note(&line, written.message());
  }
  std::lock_guard lock(mutex_);
  const auto connection = connections_.find(call.peer);
  const bool refused_before = connection != connections_.end() && connection->second.turned_away;
  // A new connection is the same training, unless it has sent a handshake before.
  if (line.unattended && call.peer != line.unattended_key && refused_before) line.unattended = false;
  if (line.unattended) {
    line.unattended_key = call.peer;
    return reply(call, next_unattended_reply(line));
  }
  if (call.cancelled()) return;  // from here on, on_cancelled() removes it from the line
  if (!call.event.metadata.cut_short().empty()) line.ahead_times = 0;  // the session is to know
  if (line.ahead_times > 0) return answer_ahead(call, line);
  if (line.held != nullptr) fail(*line.held, grpc::StatusCode::ABORTED, "another WaitCMD took its place");
  line.held = &call;
  line.ended = false;
  WireEvent event = std::move(call.event);
  if (refused_before) {
    event.turned_away = std::exchange(connection->second.handshake_refused, false);
    connection->second.turned_away = false;
  }
  event.kind = WireEvent::Kind::kWait;
  event.peer = address_of(call.peer);
  // Posted under the lock: its answer must not come before the call is known to be open.
  if (line.mailbox.put(std::move(event))) return;
  line.held = nullptr;
  fail(call, grpc::StatusCode::RESOURCE_EXHAUSTED, "too many messages wait to be processed");
}

void GrpcListener::answer_ahead(IncomingCall& call, Line& line) {
  debugger::Metadata& metadata = call.event.metadata;
  const uint64_t ends = uint64_t{metadata.passed()} + 1;
  line.ahead_times -= std::min(line.ahead_times, ends);
  line.passed.count += ends;
  if (line.ahead.has_run_cmd()) {
    debugger::RunCMD& run = *line.ahead.mutable_run_cmd();
    take_ended(metadata, run.report(), line.passed.ended);
    if (run.has_ahead()) allow_ahead(run, line.ahead_times);
    if (line.ahead_times == 0) run.set_looked_at(true);
  }
  line.passed.last.Swap(&metadata);
  reply(call, line.ahead);
}

void GrpcListener::complete_metadata(IncomingCall& call) {
  debugger::EventReply message;
  WireEvent& event = call.event;
  {
    std::lock_guard lock(mutex_);
    Line& line = *call.line;
    event.peer = address_of(call.peer);
    line.ended = event.metadata.training_done();
    line.ahead_times = 0;
    if (line.ended || call.peer != line.unattended_key) line.unattended = false;  // later suspensions are held again
  }
  if (event.metadata.training_done()) {
    event.kind = WireEvent::Kind::kFarewell;
  } else {
    event.kind = WireEvent::Kind::kHandshake;
    message.set_version_matched(make_profile(event.metadata, event.peer).ok());
  }
  post_and_reply(call, message);
}

void GrpcListener::complete_graphs(IncomingCall& call) {
  call.event.kind = WireEvent::Kind::kGraphs;
  if (call.assembly) call.event.graphs = call.assembly->finish();
  post_and_reply(call, {});
}

void GrpcListener::post_and_reply(IncomingCall& call, const debugger::EventReply& message) {
  bool wanted = true;
  {
    std::lock_guard lock(mutex_);
    if (call.event.peer.empty()) call.event.peer = address_of(call.peer);
    call.line->ahead_times = 0;  // the session must process this before the training continues
    // Hits of a detached training are not read.
    wanted = !call.line->unattended || call.event.kind == WireEvent::Kind::kFarewell || call.event.kind == WireEvent::Kind::kHandshake;
  }
  // Posted first: the client continues only after the reply, so its next message follows this one.
  if (wanted && !call.line->mailbox.put(std::move(call.event)))
    return fail(call, grpc::StatusCode::RESOURCE_EXHAUSTED, "too many messages wait to be processed");
  reply(call, message);
}

void GrpcListener::reply(IncomingCall& call, const debugger::EventReply& message) {
  const std::string payload = message.SerializeAsString();
  if (recorder_ && call.line != nullptr) recorder_->server(call.line->rank, call.rpc, call.number, payload);
  call.reply(payload);
}

void GrpcListener::fail(IncomingCall& call, grpc::StatusCode code, const std::string& text) {
  if (recorder_ && call.line != nullptr) recorder_->status(call.line->rank, call.rpc, call.number, code, text);
  call.fail(code, text);
}

void GrpcListener::note(Line* about, std::string text) {
  Line& line = about != nullptr ? *about : *lines_.front();
  const size_t reported = line.notes.fetch_add(1);
  if (reported > limits::kNotes) return;
  if (reported == limits::kNotes) text = fmt::format("{} problems and refusals were reported; further ones are not", reported);
  if (recorder_) recorder_->note(line.rank, text);
  WireEvent event;
  event.kind = about != nullptr ? WireEvent::Kind::kProblem : WireEvent::Kind::kRefused;
  event.text = std::move(text);
  (void)line.mailbox.put(std::move(event));  // a full mailbox reports enough trouble already
}

}  // namespace msdbg::live
