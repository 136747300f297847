#include "session/live/recording_index.h"

#include <algorithm>
#include <compare>
#include <map>
#include <utility>

#include "session/live/recording_format.h"

namespace msdbg::live {
namespace {

class Indexer {
 public:
  void take(const Frame& frame) {
    if (frame.direction == Frame::Direction::kNote) {
      if (frame.grpc_status == kDisconnectedStatus) disconnected(frame.text);
      return;
    }
    if (frame.rpc == Rpc::kSendHeartbeat) return;
    if (frame.direction == Frame::Direction::kClient) {
      Open& call = open_.try_emplace(frame.call, Open{frame.rpc, {}, {}, {}}).first->second;
      if (call.rpc != frame.rpc) return;  // damage: no recorder mixes calls
      call.frames.push_back(frame.offset);
      if (frame.rpc == Rpc::kSendMetadata) call.metadata = frame.payload;
      if (frame.rpc == Rpc::kSendTensors) call.slices.push_back(identity(frame.payload));
      if (frame.rpc == Rpc::kWaitCmd) hold(frame.offset);
      return;
    }
    const auto found = open_.find(frame.call);
    if (found == open_.end() || found->second.rpc != frame.rpc) return;  // a second client that was refused, or damage
    Open call = std::move(found->second);
    open_.erase(found);
    if (frame.grpc_status == 0) complete(frame, std::move(call));
  }

  RecordingIndex finish() {
    if (!ended_) disconnected("the recording ends here");
    index_.tail = std::move(pending_);
    return std::move(index_);
  }

 private:
  struct Identity {
    std::string node, slot, iter;
    auto operator<=>(const Identity&) const = default;
  };
  struct Open {
    Rpc rpc;
    std::vector<uint64_t> frames;
    std::string metadata;
    std::vector<Identity> slices;  // of a value upload
  };

  static Identity identity(const std::string& payload) {
    debugger::TensorProto tensor;
    if (!tensor.ParsePartialFromString(payload)) return {};
    return {tensor.node_name(), tensor.slot(), tensor.iter()};
  }

  void disconnected(const std::string& text) {
    held_ = false;
    if (!std::exchange(ended_, true)) pending_.push_back({WireEvent::Kind::kDisconnected, Rpc::kWaitCmd, {}, text});
  }

  RecordedHold* current() { return held_ ? &index_.holds.back() : nullptr; }

  void hold(uint64_t frame) {
    ended_ = false;
    if (held_) return;  // the same suspension asks again
    held_ = true;
    RecordedHold& made = index_.holds.emplace_back();
    made.wait = frame;
    made.before = std::exchange(pending_, {});
    command_.Clear();
  }

  void complete(const Frame& frame, Open call) {
    switch (frame.rpc) {
      case Rpc::kWaitCmd:
        return commanded(frame.payload);
      case Rpc::kSendMetadata:
        return introduced(std::move(call));
      case Rpc::kSendGraph:
      case Rpc::kSendMultiGraphs:
        pending_.push_back({WireEvent::Kind::kGraphs, frame.rpc, std::move(call.frames), {}});
        return;
      case Rpc::kSendWatchpointHits:
        if (current() != nullptr && !current()->rechecks.empty() && command_.run_cmd().run_level() == "recheck") {
          current()->rechecks.back() = std::move(call.frames);
        } else {
          pending_.push_back({WireEvent::Kind::kHits, frame.rpc, std::move(call.frames), {}});
        }
        return;
      case Rpc::kSendTensors:
        return uploaded_values(std::move(call));
      case Rpc::kSendTensorBase:
      case Rpc::kSendTensorStats:
        return uploaded(frame.rpc, call);
      case Rpc::kSendHeartbeat:
        return;
    }
  }

  void commanded(const std::string& payload) {
    command_.Clear();
    if (!held_ || !command_.ParseFromString(payload)) return;
    if (command_.has_exit()) held_ = false;
    if (!command_.has_run_cmd()) return;
    if (command_.run_cmd().run_level() == "recheck") {
      current()->rechecks.emplace_back();
      return;
    }
    current()->left = command_.run_cmd();
    held_ = false;
  }

  void introduced(Open call) {
    debugger::Metadata metadata;
    if (!metadata.ParseFromString(call.metadata)) return;
    if (metadata.training_done()) {
      pending_.push_back({WireEvent::Kind::kFarewell, Rpc::kSendMetadata, std::move(call.frames), {}});
      ended_ = true;
      held_ = false;
      return;
    }
    held_ = ended_ = false;
    pending_.push_back({WireEvent::Kind::kHandshake, Rpc::kSendMetadata, std::move(call.frames), {}});
  }

  /// Base and statistics messages carry no names: they come in the order of the question.
  void uploaded(Rpc rpc, const Open& call) {
    if (current() == nullptr || !command_.has_view_cmd()) return;
    const auto& asked = command_.view_cmd().tensors();
    const auto count = std::min(static_cast<size_t>(asked.size()), call.frames.size());
    for (size_t i = 0; i < count; ++i) {
      const debugger::TensorProto& tensor = asked[static_cast<int>(i)];
      current()->uploads.push_back(
          {rpc == Rpc::kSendTensorBase ? debugger::ViewCMD::base : debugger::ViewCMD::statistics,
           tensor.node_name(),
           tensor.slot(),
           tensor.iter(),
           {call.frames[i]}});
    }
  }

  void uploaded_values(Open call) {
    if (current() == nullptr || !command_.has_view_cmd()) return;
    std::map<Identity, std::vector<uint64_t>> frames;
    for (size_t i = 0; i < call.frames.size(); ++i) frames[call.slices[i]].push_back(call.frames[i]);
    for (const debugger::TensorProto& asked : command_.view_cmd().tensors()) {
      RecordedUpload upload{debugger::ViewCMD::value, asked.node_name(), asked.slot(), asked.iter(), {}};
      const auto sent = frames.find({upload.node, upload.slot, upload.iter});
      if (sent != frames.end()) upload.frames = std::exchange(sent->second, {});
      current()->uploads.push_back(std::move(upload));
    }
  }

  RecordingIndex index_;
  std::map<uint64_t, Open> open_;
  std::vector<RecordedCall> pending_;
  debugger::EventReply command_;  // the last one of the current suspension
  bool held_ = false;
  bool ended_ = false;
};

}  // namespace

bool RecordedHold::has_hits() const {
  return std::any_of(before.begin(), before.end(),
                     [](const RecordedCall& call) { return call.kind == WireEvent::Kind::kHits; });
}

std::vector<RecordingIndex> index_recording(RecordingReader& reader) {
  std::vector<Indexer> indexers(static_cast<size_t>(reader.ranks()));
  for (Frame frame; reader.next(&frame);) indexers[static_cast<size_t>(frame.rank)].take(frame);
  std::vector<RecordingIndex> out;
  for (Indexer& indexer : indexers) out.push_back(indexer.finish());
  if (!reader.problem().ok())
    out.front().note = reader.problem().message();
  else if (reader.truncated())
    out.front().note = "the recording ends in the middle of a message; it is played up to there";
  return out;
}

}  // namespace msdbg::live
