// Opens live sessions and recordings, of one rank or of several.
#include <fmt/format.h>

#include "session/live/grpc_transport.h"
#include "session/live/live_ranks.h"
#include "session/live/replay.h"

namespace msdbg {
namespace {

/// The session of the transports, one per rank; `options` are for all of them together.
std::unique_ptr<LiveSession> session_of(std::vector<std::unique_ptr<live::Transport>> transports, const live::SessionOptions& options,
                                        const std::vector<live::RecordedTraining>& graphs_from, const ListenOptions& listening) {
  std::vector<std::unique_ptr<live::LiveSessionImpl>> sessions;
  const size_t count = transports.size();
  for (size_t rank = 0; rank < count; ++rank) {
    live::SessionOptions own = options;
    own.rank = static_cast<int>(rank);
    if (count > 1) own.who = fmt::format("rank {}: ", rank);
    own.mem_limit_bytes /= count;
    if (rank < graphs_from.size() && !graphs_from[rank].graphs.empty())
      own.graph_from = std::make_shared<const live::RecordedTraining>(graphs_from[rank]);
    sessions.push_back(std::make_unique<live::LiveSessionImpl>(std::move(transports[rank]), std::move(own)));
  }
  if (count == 1) return std::move(sessions.front());
  return std::make_unique<live::LiveRanks>(
      std::move(sessions), live::RanksOptions{options.kind, options.source, listening.answer_only, listening.late_after});
}

}  // namespace

Result<std::unique_ptr<LiveSession>> listen(const ListenOptions& options) {
  if (options.ranks < 1 || options.ranks > kMostLiveRanks) {
    return Status(Code::kInvalidArgument,
                  fmt::format("ranks: give the number of processes of the training, 1 to {}, not {}", kMostLiveRanks, options.ranks));
  }
  // Read it before the file is overwritten.
  const bool again = options.graph_from.empty() && !options.record.empty() && is_recording(options.record);
  std::vector<live::RecordedTraining> graphs_from;
  if (again || !options.graph_from.empty()) {
    Result<std::vector<live::RecordedTraining>> before =
        live::read_recorded_trainings(again ? options.record : options.graph_from);
    if (!before && !again) return before.status();
    if (before) graphs_from = std::move(*before);
  }
  Result<std::shared_ptr<live::GrpcListener>> listener = live::GrpcListener::open(options);
  if (!listener) return listener.status();
  std::vector<std::unique_ptr<live::Transport>> transports;
  for (int rank = 0; rank < options.ranks; ++rank) transports.push_back(std::make_unique<live::GrpcTransport>(*listener, rank));
  live::SessionOptions session;
  session.mem_limit_bytes = options.mem_limit_bytes;
  session.history_steps = options.history_steps;
  session.history_tensors = options.history_tensors;
  session.view_deadline = options.view_deadline;
  session.recording = !options.record.empty();
  return session_of(std::move(transports), session, graphs_from, options);
}

Result<std::unique_ptr<LiveSession>> open_recording(const std::string& path) {
  Result<std::vector<std::unique_ptr<live::ReplayTransport>>> replays = live::ReplayTransport::open(path);
  if (!replays) return replays.status();
  std::vector<std::unique_ptr<live::Transport>> transports;
  for (auto& replay : *replays) transports.push_back(std::move(replay));
  live::SessionOptions options;
  options.kind = SessionKind::kRecording;
  options.source = path;
  options.recorded = true;
  options.history_tensors = kHistoryTensors;
  return session_of(std::move(transports), options, {}, {});
}

bool is_recording(const std::string& path) { return live::RecordingReader::begins_as_recording(path); }

}  // namespace msdbg
