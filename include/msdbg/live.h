// A live session: a training that connects to msdbg, and is held, stepped and watched. Each of its ranks is a process with its own
// connection; all of them are held, stepped and watched together.
//
// The thread that created the session owns it; the workers of a check may also call `read`, `describe` and `previous`. Every wait
// ends at its deadline or when the interrupt flag is set. No gRPC type appears here.
//
// Protocol: docs/live-protocol.md. The training side: msdbg/agent.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msdbg/check.h"


namespace msdbg {

enum class LiveState : uint8_t {
  kWaiting,    ///< no training process yet
  kConnected,  ///< handshake done, not held yet
  kHeld,       ///< suspended: tensors can be read, and commands are executed
  kRunning,
  kEnded,      ///< after its farewell
  kLost,       ///< the connection broke without a farewell
};
inline std::string_view live_state_name(LiveState state) {
  constexpr std::string_view kNames[] = {"waiting", "connected", "held", "running", "ended", "lost"};
  return kNames[static_cast<size_t>(state)];
}

/// The training process and its specific behaviour.
struct LivePeer {
  std::string address;          ///< "127.0.0.1:41234"; the path of a recording
  std::string program = "MindSpore";  ///< what trains; another name if the training says so
  bool named = false;           ///< it says so: an agent in the program, which `backend` describes to old debuggers only
  std::string version;          ///< of the program, as reported; "1.0.x" if MindSpore reports none
  std::string backend;          ///< "GPU" or "Ascend"
  std::string device;           ///< device id
  bool counts_after_hold = false;  ///< since 1.6: the suspension at the end of step k still reports k
  bool has_levels = false;         ///< since 1.5: statistics and shapes without the elements
  bool has_recheck = false;        ///< since 1.1
  bool has_previous = false;       ///< it keeps the previous value of parameters
  std::vector<std::string> notes;  ///< one sentence per peculiarity, for display

  /// "MindSpore 2.2.0, GPU", "PyTorch 2.15.0, device": printable; the number of the device follows.
  std::string program_text() const;
};

/// The state of one rank.
struct LiveRank {
  int rank = 0;
  LiveState state = LiveState::kWaiting;
  int64_t step = 0;             ///< in the peer's count
  int64_t completed_steps = 0;
  std::string node;             ///< the operator that ran last; "" if the peer does not report it
  LivePeer peer;
};

/// The largest number of ranks in one session.
inline constexpr int kMostLiveRanks = 256;

struct ListenOptions {
  std::string bind = "127.0.0.1";
  int port = 50051;                         ///< 0: any free one
  int ranks = 1;                            ///< number of processes of the training, each with its own connection
  std::string record;                       ///< file for the whole conversation; "" for none
  uint64_t mem_limit_bytes = uint64_t{16384} << 20;
  int history_steps = 16;                   ///< number of steps with statistics
  size_t history_tensors = 0;               ///< loss, learning rate and weights: requests the statistics of up to this many in each step
  std::string graph_from;                   ///< a recording with the graph of a training that connects without one; "" for none
  bool answer_only = false;                 ///< several ranks: lets each run as it comes, whoever is still missing
  std::vector<int> sockets;                 ///< listening sockets to take over instead of `bind` and `port`
  std::chrono::milliseconds view_deadline{30000};  ///< longest silence of the peer while waiting for a tensor
  std::chrono::milliseconds keepalive{10000};      ///< interval of pings on a silent connection
  /// For the answer. In a long step, a client's gRPC looks at its connection only every 5 s.
  std::chrono::milliseconds keepalive_timeout{20000};
  /// Several ranks: how long after the first of them a rank may end a step before a warning names it.
  std::chrono::milliseconds late_after{60000};
};

/// What the session records of each step by itself.
struct LiveHistory {
  int steps = 0;
  size_t tensors = 0;
  size_t weights = 0, all_weights = 0;  ///< among `tensors`, and in the graphs
};
/// Default number of tensors in the history.
inline constexpr size_t kHistoryTensors = 64;

/// The target of a run command.
enum class RunKind : uint8_t {
  kStep,      ///< `count` steps
  kContinue,  ///< until a hit, the end, or an interrupt
  kNextNode,  ///< until the next operator has run
  kToNode,    ///< until `node` has run
  kFinish,    ///< until the current step has ended
};
/// The progress of a command.
struct RunProgress {
  int64_t step = 0;       ///< in the peer's count
  int64_t steps_run = 0;  ///< by this command
  std::chrono::nanoseconds elapsed{};
  std::chrono::nanoseconds held{};  ///< part of `elapsed` in which the training waited for msdbg
  std::string late;       ///< the ranks that the others wait for: "rank 1 since 12 s"; "" without any
};
struct RunRequest {
  RunKind kind = RunKind::kStep;
  int64_t count = 1;
  std::string node;                          ///< full name
  std::optional<std::chrono::milliseconds> timeout;  ///< for the whole command; then the training is paused
  /// Called on the owner's thread at the end of every step at which the command does not stop; false stops there.
  std::function<bool(int64_t step)> on_step{};
  /// Called on the owner's thread for each suspension with hits, which start at `first`, or with tensors that were not checked. What it
  /// removes does not stop the run.
  std::function<void(CheckResult& check, size_t first)> on_hits{};
  /// Called on the owner's thread a few times per second.
  std::function<void(const RunProgress& progress)> on_progress{};
};

enum class StopReason : uint8_t {
  kDone,         ///< the steps have run, the node was reached, or the recheck is finished
  kHit,
  kNodeNotMet,   ///< the step ended before the node ran
  kPaused,       ///< by on_step, pause(), or the timeout
  kInterrupted,  ///< Ctrl-C
  kEnded,
  kLost,
  kNotChecked,   ///< a watched tensor holds NaN or Inf: its condition cannot be judged
  kCutShort,     ///< the step ended in its midst, as by an exception
};
inline std::string_view stop_reason_name(StopReason reason) {
  constexpr std::string_view kNames[] = {"done", "hit", "node not met", "paused", "interrupted", "ended", "lost",
                                         "not checked", "cut short"};
  return kNames[static_cast<size_t>(reason)];
}

struct RunResult {
  LiveState state = LiveState::kHeld;
  StopReason reason = StopReason::kDone;
  int64_t step = 0;             ///< in the peer's count
  int64_t completed_steps = 0;  ///< number of completed steps
  int64_t steps_run = 0;        ///< by this command
  std::string node;             ///< the operator that ran last; "" if the peer does not report it
  bool at_begin = false;        ///< nothing of the step has run: a parameter is bad that the last step left good
  bool held = false;            ///< false after an interrupt: it will be held at the next suspension point
  CheckResult check;            ///< hits and unchecked tensors, from the peer and from conditions judged here
};

/// An event that the user did not request: connect, hold, hit, disconnect, refusal, unexpected input.
struct LiveEvent {
  Severity severity = Severity::kInfo;
  std::string text;
};

class LiveSession : public Session {
 public:
  bool can_step() const override { return true; }
  std::optional<int64_t> held_step() override {
    return state() == LiveState::kHeld ? std::optional(current_step()) : std::nullopt;
  }

  /// Processes what has arrived, without waiting.
  virtual LiveState state() = 0;
  /// The training process; of several ranks, the first one that has connected.
  virtual const LivePeer& peer() const = 0;
  /// One entry per rank, in order.
  virtual std::vector<LiveRank> live_ranks() = 0;
  /// The address for the training side, with the actual port.
  virtual std::string address() const = 0;
  virtual int64_t current_step() const = 0;
  virtual int64_t completed_steps() const = 0;
  virtual std::string current_node() const = 0;

  /// Waits until the training is held (with all its ranks), has ended or is lost. Error: kNotFound if none connected within `timeout`
  /// (or not all ranks; the message names those that are missing), kInterrupted, kUnsupported if the only peer that connected was refused.
  virtual Status wait_until_held(std::optional<std::chrono::milliseconds> timeout) = 0;

  /// Replaces the watchpoints; copies `watchpoints`. They are sent when the peer is held, before anything else.
  /// Error: a selector that matches nothing (unless optional); then nothing changes.
  virtual Status set_watchpoints(std::span<const Watchpoint> watchpoints) = 0;

  /// Error: kInvalidArgument (unknown node, count < 1, kFinish without a running step), kUnsupported (not supported by this peer),
  /// kPeerLost if the training is not held: the message says whether the command was delivered.
  virtual Result<RunResult> run(const RunRequest& request) = 0;
  /// Judges every watchpoint again on the current values; nothing runs.
  virtual Result<RunResult> recheck() = 0;
  /// Waits for the next suspension. `held` is false after the timeout.
  virtual Result<RunResult> pause(std::chrono::milliseconds timeout) = 0;
  /// Ends the training at the end of the current step. Returns after its farewell or when it disconnected.
  virtual Result<RunResult> terminate(std::chrono::milliseconds timeout) = 0;
  /// Removes all watchpoints and lets the training run to its end; every later suspension is answered at once, even while no call
  /// waits here.
  virtual Status detach() = 0;
  /// Undoes detach(): the training is held again at its next suspension, within `timeout`. The watchpoints must be set again.
  /// Error: kUnsupported if it is not detached.
  virtual Result<RunResult> attach(std::chrono::milliseconds timeout) = 0;
  /// After detach(): waits until the training has removed the watchpoints and runs. Error: kPeerLost after `timeout`.
  virtual Status wait_until_detached(std::chrono::milliseconds /*timeout*/) { return {}; }
  /// Copies of the listening sockets, for ListenOptions::sockets of another process. Error: a recording has none.
  virtual Result<std::vector<int>> copy_sockets() { return Status(Code::kUnsupported, "nothing listens"); }
  /// Closes every connection, for a process that has the sockets. A goodbye that came before the last one was closed is in state().
  virtual void hang_up() {}
  /// True from detach() until attach(), or until another training connects, which is held again.
  virtual bool detached() const = 0;
  /// After detach(): waits until the training has ended. Error: kInterrupted, kPeerLost.
  virtual Status wait_until_ended(std::optional<std::chrono::milliseconds> timeout) = 0;

  virtual LiveHistory history() { return {}; }
  /// Makes the training keep the value of this tensor in the following steps, for trainings that keep only watched tensors. False:
  /// it already keeps this tensor, or everything. Error: kUnsupported.
  virtual Result<bool> keep_readable(const TensorId& /*id*/) { return false; }
  /// Frees the elements of a tensor now instead of at the next step.
  virtual void drop_elements(const TensorId& id) = 0;

  virtual std::vector<LiveEvent> take_events() = 0;
  /// For poll(): readable when take_events() or state() may have news. -1 if not available.
  virtual int event_descriptor() const = 0;
};

/// Opens the port and returns at once in state kWaiting. Error: kIoError with the address and who may be using it.
Result<std::unique_ptr<LiveSession>> listen(const ListenOptions& options);

/// Replays a file from ListenOptions::record: the same session, whose commands move through the recorded run.
/// Error: kCorrupt, kIoError; a truncated file is replayed up to its end.
Result<std::unique_ptr<LiveSession>> open_recording(const std::string& path);
/// True if the file starts like a recording.
bool is_recording(const std::string& path);

}  // namespace msdbg
