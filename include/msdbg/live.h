// A live session: one training process that connects to us, is held, stepped and watched.
//
// The thread that created the session owns it; `read`, `describe` and `previous` may also be called from the check's
// workers. Every wait ends at its deadline or when the interrupt flag is set. No gRPC type appears here.
//
// Protocol: docs/live-protocol.md. The training side of it: msdbg/agent.h.
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
  kHeld,       ///< suspended; tensors can be read, commands are obeyed
  kRunning,
  kEnded,      ///< it said goodbye
  kLost,       ///< the connection broke without a goodbye
};
inline std::string_view live_state_name(LiveState state) {
  constexpr std::string_view kNames[] = {"waiting", "connected", "held", "running", "ended", "lost"};
  return kNames[static_cast<size_t>(state)];
}

/// The training process and how it differs from others.
struct LivePeer {
  std::string address;          ///< "127.0.0.1:41234"; the path of a recording
  std::string version;          ///< as it says itself, "1.0.x" when it says nothing
  std::string backend;          ///< "GPU" or "Ascend"
  std::string device;           ///< device id
  bool counts_after_hold = false;  ///< from 1.6: the suspension at the end of step k still says k
  bool has_levels = false;         ///< from 1.5: statistics and shapes without the elements
  bool has_recheck = false;        ///< from 1.1
  bool has_previous = false;       ///< it keeps the previous value of parameters
  std::vector<std::string> notes;  ///< one sentence per peculiarity, for people
};

struct ListenOptions {
  std::string bind = "127.0.0.1";
  int port = 50051;                         ///< 0: any free one
  std::string record;                       ///< file for the whole conversation; "" for none
  uint64_t mem_limit_bytes = uint64_t{16384} << 20;
  int history_steps = 16;                   ///< steps whose statistics are kept
  size_t history_tensors = 0;               ///< loss, learning rate and weights: of up to so many the statistics are asked for in each step
  std::string graph_from;                   ///< a recording with the graph of a training that comes without one; "" for none
  std::vector<int> sockets;                 ///< that listen already, instead of `bind` and `port`; they are taken over
  std::chrono::milliseconds view_deadline{30000};  ///< without a sign of life of the peer while a tensor is awaited
  std::chrono::milliseconds keepalive{10000};      ///< a silent connection is pinged this often; half of it is waited for the answer
};

/// What is kept of each step without being asked for.
struct LiveHistory {
  int steps = 0;
  size_t tensors = 0;
  size_t weights = 0, all_weights = 0;  ///< among `tensors`, and in the graphs
};
/// Tensors of the history where nobody says otherwise.
inline constexpr size_t kHistoryTensors = 64;

/// What a run command is about.
enum class RunKind : uint8_t {
  kStep,      ///< `count` steps
  kContinue,  ///< until a hit, the end, or an interrupt
  kNextNode,  ///< until the next operator has run
  kToNode,    ///< until `node` has run
  kFinish,    ///< until the step that is under way has ended
};
/// How far a command has come.
struct RunProgress {
  int64_t step = 0;       ///< as the peer counts it
  int64_t steps_run = 0;  ///< by this command
  std::chrono::nanoseconds elapsed{};
  std::chrono::nanoseconds held{};  ///< of `elapsed`: the training waited for msdbg
};
struct RunRequest {
  RunKind kind = RunKind::kStep;
  int64_t count = 1;
  std::string node;                          ///< full name
  std::optional<std::chrono::milliseconds> timeout;  ///< for the whole command; then the training is paused
  /// Called on the owner's thread at the end of every step that was not stopped at; false stops there.
  std::function<bool(int64_t step)> on_step{};
  /// Called on the owner's thread with each suspension that has hits, those from `first` on. What it takes out does not stop the run.
  std::function<void(CheckResult& check, size_t first)> on_hits{};
  /// Called on the owner's thread a few times a second.
  std::function<void(const RunProgress& progress)> on_progress{};
};

enum class StopReason : uint8_t {
  kDone,         ///< the steps are done, the node was reached, the recheck is finished
  kHit,
  kNodeNotMet,   ///< the step ended before the node ran
  kPaused,       ///< on_step said so, pause(), or the timeout
  kInterrupted,  ///< Ctrl-C
  kEnded,
  kLost,
  kNotChecked,   ///< a watched tensor holds NaN or Inf, so its condition cannot be judged
};
inline std::string_view stop_reason_name(StopReason reason) {
  constexpr std::string_view kNames[] = {"done", "hit", "node not met", "paused", "interrupted", "ended", "lost",
                                         "not checked"};
  return kNames[static_cast<size_t>(reason)];
}

struct RunResult {
  LiveState state = LiveState::kHeld;
  StopReason reason = StopReason::kDone;
  int64_t step = 0;             ///< as the peer counts it
  int64_t completed_steps = 0;  ///< that have run to their end
  int64_t steps_run = 0;        ///< by this command
  std::string node;             ///< operator that ran last; "" when the peer does not say
  bool held = false;            ///< false after an interrupt: it will be held at its next suspension point
  CheckResult check;            ///< hits and what could not be checked, of the peer and of our own conditions
};

/// An event the user did not request: connect, hold, hit, loss, refusal, odd input.
struct LiveEvent {
  Severity severity = Severity::kInfo;
  std::string text;
};

class LiveSession : public Session {
 public:
  bool can_step() const override { return true; }

  /// Processes what has arrived, without waiting.
  virtual LiveState state() = 0;
  virtual const LivePeer& peer() const = 0;
  /// Address to hand to the training side, with the real port.
  virtual std::string address() const = 0;
  virtual int64_t current_step() const = 0;
  virtual int64_t completed_steps() const = 0;
  virtual std::string current_node() const = 0;

  /// Waits until the training is held, has ended or is lost. Error: kNotFound when none connected within `timeout`,
  /// kInterrupted, kUnsupported when the only peer that connected was refused.
  virtual Status wait_until_held(std::optional<std::chrono::milliseconds> timeout) = 0;

  /// Replaces the watchpoints; `watchpoints` is copied. Sent when the peer is held, before anything else.
  /// Error: a selector that matches nothing (unless optional); nothing is changed then.
  virtual Status set_watchpoints(std::span<const Watchpoint> watchpoints) = 0;

  /// Error: kInvalidArgument (node unknown, count < 1, kFinish while no step is under way), kUnsupported (what this peer cannot do),
  /// kPeerLost when the training is not held: the message says whether the command was delivered.
  virtual Result<RunResult> run(const RunRequest& request) = 0;
  /// Judges every watchpoint again on the current values; nothing runs.
  virtual Result<RunResult> recheck() = 0;
  /// Waits for the next suspension. `held` is false when it did not come in time.
  virtual Result<RunResult> pause(std::chrono::milliseconds timeout) = 0;
  /// Ends the training at the end of the current step. Returns when it said goodbye or disconnected.
  virtual Result<RunResult> terminate(std::chrono::milliseconds timeout) = 0;
  /// Removes all watchpoints and lets the training run to its end; every later suspension is answered at once, even
  /// while nothing waits here.
  virtual Status detach() = 0;
  /// Takes detach() back: the training is held again at its next suspension, within `timeout`. The watchpoints have to be set again.
  /// Error: kUnsupported when it is not detached.
  virtual Result<RunResult> attach(std::chrono::milliseconds timeout) = 0;
  /// After detach(): until the watchpoints are removed over there and the training runs. Error: kPeerLost after `timeout`.
  virtual Status wait_until_detached(std::chrono::milliseconds /*timeout*/) { return {}; }
  /// Copies of the sockets that listen, for ListenOptions::sockets of another process. Error: a recording has none.
  virtual Result<std::vector<int>> copy_sockets() { return Status(Code::kUnsupported, "nothing listens"); }
  /// True from detach() until attach(), or until another training connects, which is held like the first.
  virtual bool detached() const = 0;
  /// After detach(): until the training has ended. Error: kInterrupted, kPeerLost.
  virtual Status wait_until_ended(std::optional<std::chrono::milliseconds> timeout) = 0;

  virtual LiveHistory history() { return {}; }
  /// Makes the training keep the value of this tensor in the steps that follow, where it keeps only what is watched. False: it keeps it
  /// already, or keeps everything. Error: kUnsupported.
  virtual Result<bool> keep_readable(const TensorId& /*id*/) { return false; }
  /// Frees the elements of a tensor now instead of with the next step.
  virtual void drop_elements(const TensorId& id) = 0;

  virtual std::vector<LiveEvent> take_events() = 0;
  /// Readable when take_events() or state() may have news; for poll(). -1 when there is none.
  virtual int event_descriptor() const = 0;
};

/// Opens the port and returns at once in state kWaiting. Error: kIoError naming the address and who may hold it.
Result<std::unique_ptr<LiveSession>> listen(const ListenOptions& options);

/// Replays a file that ListenOptions::record wrote: the same session, its commands move through what was recorded.
/// Error: kCorrupt, kIoError; a file that ends early is replayed up to there.
Result<std::unique_ptr<LiveSession>> open_recording(const std::string& path);
/// True when the file begins as a recording does.
bool is_recording(const std::string& path);

}  // namespace msdbg
