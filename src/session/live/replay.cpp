#include "session/live/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "msdbg/live.h"
#include "session/live/graph_assembly.h"
#include "session/live/value_slice.h"

namespace msdbg::live {

Result<std::vector<std::unique_ptr<ReplayTransport>>> ReplayTransport::open(const std::string& path) {
  Result<std::unique_ptr<RecordingReader>> reader = RecordingReader::open(path);
  if (!reader) return reader.status();
  std::vector<RecordingIndex> indexes = index_recording(**reader);
  std::vector<std::unique_ptr<ReplayTransport>> out;
  for (RecordingIndex& index : indexes) {
    Result<std::unique_ptr<RecordingReader>> own = RecordingReader::open(path);
    if (!own) return own.status();
    out.emplace_back(new ReplayTransport(std::move(*own), std::move(index), path));
  }
  return out;
}

ReplayTransport::ReplayTransport(std::unique_ptr<RecordingReader> reader, RecordingIndex index, std::string path)
    : reader_(std::move(reader)), index_(std::move(index)), path_(std::move(path)) {
  if (!index_.note.empty()) {
    WireEvent event;
    event.kind = WireEvent::Kind::kProblem;
    event.text = index_.note;
    post(std::move(event));
  }
  arrive();
}

bool ReplayTransport::next(WireEvent* event, Clock::time_point deadline, bool stop_on_interrupt) {
  if (mailbox_.take(event, Clock::time_point::min(), false)) return true;
  // Start the next process when the session waits for it, not while the end of the previous one is shown.
  if (!later_.empty() && deadline > Clock::now()) deliver_all(std::exchange(later_, {}));
  // Recorded events are queued as soon as they are due: there is nothing to wait for.
  return mailbox_.take(event, Clock::time_point::min(), stop_on_interrupt);
}

Status ReplayTransport::answer(const debugger::EventReply& reply) {
  if (!open_) return Status(Code::kPeerLost, "the recording is at its end; the command was not delivered");
  open_ = false;
  if (reply.has_exit()) {
    finish();
  } else if (reply.has_run_cmd() && reply.run_cmd().run_level() != "recheck") {
    advance(reply.run_cmd());
  } else {
    if (reply.has_run_cmd()) {
      const auto& rechecks = index_.holds[at_].rechecks;
      if (rechecks_ < rechecks.size()) {
        deliver({WireEvent::Kind::kHits, Rpc::kSendWatchpointHits, rechecks[rechecks_++], {}});
      }
    } else if (reply.has_view_cmd()) {
      view(reply.view_cmd());
    }
    hold_again();
  }
  return {};
}

void ReplayTransport::answer_unattended(std::vector<debugger::EventReply>) {
  open_ = false;
  finish();
}

// ---- moving through the recording ----------------------------------------------------------

void ReplayTransport::advance(const debugger::RunCMD& command) {
  const int64_t step = metadata_of(at_).cur_step();
  for (++at_; at_ < index_.holds.size(); ++at_) {
    if (fits(at_, command) || metadata_of(at_).cur_step() != step) break;
    for (const RecordedCall& call : index_.holds[at_].before) deliver(call);
  }
  arrive();
}

/// Whether a training with this `command` would have been held where the recorded one was.
bool ReplayTransport::fits(size_t candidate, const debugger::RunCMD& command) {
  const RecordedHold& hold = index_.holds[candidate];
  const auto& left = index_.holds[candidate - 1].left;
  const bool other_process = std::any_of(hold.before.begin(), hold.before.end(), [](const RecordedCall& call) {
    return call.kind == WireEvent::Kind::kHandshake || call.kind == WireEvent::Kind::kDisconnected;
  });
  if (hold.has_hits() || other_process || !left || left->run_level() != "node") return true;
  const std::string node = metadata_of(candidate).cur_node();
  if (command.run_level() == "node") return command.node_name().empty() || node == command.node_name();
  return !left->node_name().empty() && node != left->node_name();  // node not met: the end of the step
}

void ReplayTransport::arrive() {
  if (at_ >= index_.holds.size()) return finish();
  rechecks_ = 0;
  deliver_all(index_.holds[at_].before);
}

/// Delivers up to the end of a process, or everything including the next suspension.
void ReplayTransport::deliver_all(const std::vector<RecordedCall>& calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    deliver(calls[i]);
    const bool ends = calls[i].kind == WireEvent::Kind::kDisconnected || calls[i].kind == WireEvent::Kind::kFarewell;
    if (!ends || (i + 1 == calls.size() && over_)) continue;
    later_.assign(calls.begin() + static_cast<std::ptrdiff_t>(i) + 1, calls.end());
    if (later_.empty()) later_.push_back({});  // only the suspension
    return;
  }
  if (!over_) hold_again();
}

void ReplayTransport::hold_again() {
  WireEvent event;
  event.kind = WireEvent::Kind::kWait;
  event.metadata = metadata_of(at_);
  if (at_ > 0 && index_.holds[at_ - 1].left) {
    const debugger::Metadata before = metadata_of(at_ - 1);
    const debugger::RunCMD& left = *index_.holds[at_ - 1].left;
    event.came_from = CameFrom{left.run_level(), left.node_name(), before.cur_step(), before.cur_node()};
  }
  open_ = true;
  post(std::move(event));
}

void ReplayTransport::finish() {
  at_ = index_.holds.size();
  if (std::exchange(over_, true)) return;
  deliver_all(index_.tail);
}

debugger::Metadata ReplayTransport::metadata_of(size_t hold) {
  debugger::Metadata metadata;
  read(index_.holds[hold].wait, &metadata);
  return metadata;
}

// ---- reading the file --------------------------------------------------------------------------------

template <typename Message>
bool ReplayTransport::read(uint64_t frame, Message* message) {
  reader_->seek(frame);
  Frame read;
  return reader_->next(&read) && message->ParsePartialFromString(read.payload);
}

void ReplayTransport::post(WireEvent event) {
  event.peer = path_;
  mailbox_.put(std::move(event), true);
}

void ReplayTransport::deliver(const RecordedCall& call) {
  if (call.kind == WireEvent::Kind::kProblem) return;
  WireEvent event;
  event.kind = call.kind;
  event.text = call.text;
  GraphAssembly assembly(call.rpc == Rpc::kSendMultiGraphs);
  for (const uint64_t frame : call.frames) {
    bool readable = true;
    switch (call.kind) {
      case WireEvent::Kind::kHandshake:
      case WireEvent::Kind::kFarewell:
        readable = read(frame, &event.metadata);
        break;
      case WireEvent::Kind::kHits:
        readable = read(frame, &event.hits.emplace_back());
        break;
      case WireEvent::Kind::kGraphs: {
        debugger::Chunk chunk;
        readable = read(frame, &chunk);
        assembly.add(chunk);
        break;
      }
      default:
        break;
    }
    if (!readable) {  // the file changed after indexing, or the peer sent something unreadable
      event = {};
      event.text = "a recorded " + std::string(rpc_name(call.rpc)) + " cannot be read and is left out";
      break;
    }
  }
  if (event.kind == WireEvent::Kind::kGraphs) event.graphs = assembly.finish();
  post(std::move(event));
}

// ---- views --------------------------------------------------------------------------------

const RecordedUpload* ReplayTransport::find(debugger::ViewCMD::Level level, const debugger::TensorProto& asked) {
  const auto question = [](int of, const std::string& node, const std::string& slot, const std::string& iter) {
    return fmt::format("{} {} {} {}{}{}", of, node.size(), slot.size(), node, slot, iter);
  };
  if (found_in_ != at_) {
    found_.clear();
    found_in_ = at_;
    for (const RecordedUpload& upload : index_.holds[at_].uploads)
      found_.try_emplace(question(upload.level, upload.node, upload.slot, upload.iter), &upload);
  }
  const auto found = found_.find(question(level, asked.node_name(), asked.slot(), asked.iter()));
  return found == found_.end() ? nullptr : found->second;
}

void ReplayTransport::view(const debugger::ViewCMD& command) {
  WireEvent event;
  switch (command.level()) {
    case debugger::ViewCMD::base:
      event.kind = WireEvent::Kind::kBases;
      for (const auto& asked : command.tensors()) event.bases.push_back(base_of(asked));
      break;
    case debugger::ViewCMD::statistics:
      event.kind = WireEvent::Kind::kSummaries;
      for (const auto& asked : command.tensors()) {
        debugger::TensorSummary& summary = event.summaries.emplace_back();
        const RecordedUpload* upload = find(debugger::ViewCMD::statistics, asked);
        if (upload == nullptr || !read(upload->frames.front(), &summary)) summary.Clear();
      }
      break;
    default:
      event.kind = WireEvent::Kind::kValues;
      event.values = std::exchange(upload_, nullptr);
      received_ = 0;
      for (const auto& asked : command.tensors()) {
        if (event.values && event.values->at < event.values->values.size()) fill(asked, *event.values);
      }
  }
  post(std::move(event));
}

/// Every view of the tensor has its type and shape.
debugger::TensorBase ReplayTransport::base_of(const debugger::TensorProto& asked) {
  debugger::TensorBase base;
  if (const RecordedUpload* upload = find(debugger::ViewCMD::base, asked); upload != nullptr) {
    if (read(upload->frames.front(), &base)) return base;
  }
  if (const RecordedUpload* upload = find(debugger::ViewCMD::statistics, asked); upload != nullptr) {
    debugger::TensorSummary summary;
    if (read(upload->frames.front(), &summary)) return summary.tensor_base();
  }
  base.Clear();
  const RecordedUpload* upload = find(debugger::ViewCMD::value, asked);
  for (const uint64_t frame : upload != nullptr ? upload->frames : std::vector<uint64_t>()) {
    debugger::TensorProto slice;
    if (!read(frame, &slice)) break;
    base.set_data_type(slice.data_type());
    base.mutable_shape()->CopyFrom(slice.dims());
    base.set_data_size(base.data_size() + static_cast<int64_t>(slice.tensor_content().size()));
  }
  if (base.data_type() == 0) base.add_shape(0);  // "not available", as a client says it
  return base;
}

/// Fills the awaited value and moves on to the next one.
void ReplayTransport::fill(const debugger::TensorProto& asked, ValueUpload& into) {
  const size_t place = into.at;
  UploadedValue& value = into.values[place];
  const RecordedUpload* upload = find(debugger::ViewCMD::value, asked);
  if (upload == nullptr) {  // for a missing tensor a client sends one message without type and elements
    value.slices = 1;
    value.finished = true;
  }
  for (const uint64_t frame : upload != nullptr ? upload->frames : std::vector<uint64_t>()) {
    reader_->seek(frame);
    Frame read;
    if (!reader_->next(&read)) {
      value.problem = "the recording can no longer be read";
      break;
    }
    const SliceResult taken = take_slice({std::as_bytes(std::span(read.payload))}, &into, received_);
    if (taken == SliceResult::kTaken) continue;
    value.problem = taken == SliceResult::kTooMuch ? "the recording has more elements than the tensor"
                                                   : "a recorded slice cannot be decoded";
    break;
  }
  into.at = place + 1;
}

}  // namespace msdbg::live
