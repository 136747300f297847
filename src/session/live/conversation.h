// The state of the conversation with one training process, and everything that is said in it.
//
// Any thread: each call holds the lock for as long as it waits, so workers of a check may fetch tensors while the
// owner waits for them. Nothing here knows graphs or watchpoints.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "msdbg/live.h"
#include "session/live/peer_profile.h"
#include "session/live/transport.h"

namespace msdbg::live {

/// What the peer said when it was held; the next RunCMD ends it.
struct Suspension {
  uint64_t number = 0;   ///< 0: never held yet
  bool initial = false;  ///< nothing was run since the handshake, or since a graph that came later
  bool late_graph = false;  ///< and it was such a graph
  int64_t cur_step = 0, last_step = 0;
  std::string cur_node, last_node;
  bool node_level = false;
  std::string asked_node;
};

struct ViewItem {
  std::string name;
  uint32_t slot = 0;
  bool previous = false;
};

/// A view of a value.
struct ValueItem : ViewItem {
  uint64_t most_bytes = 0;  ///< of elements; more are refused
};

class Conversation {
 public:
  Conversation(std::unique_ptr<Transport> transport, std::chrono::milliseconds view_deadline);
  ~Conversation();

  /// Takes in what has arrived.
  void drain();
  LiveState state() const;
  PeerProfile profile() const;
  Suspension suspension() const;
  uint64_t handshakes() const;  ///< grows when the peer's table of watchpoints may be empty
  uint64_t processes() const;   ///< grows with every other training process
  bool orphan() const;          ///< it came without a handshake
  bool refused() const;         ///< the last peer speaks a version that is not served
  int64_t goodbye_steps() const;  ///< what the training counted when it ended; -1 while it has not
  std::string address() const { return transport_->address(); }
  int descriptor() const { return transport_->descriptor(); }

  std::vector<std::string> take_graphs();
  std::vector<debugger::WatchpointHit> take_hits();
  std::vector<LiveEvent> take_events();
  void report(Severity severity, std::string text);

  /// Until the state is held, ended or lost. False at the deadline or on an interrupt.
  bool wait_settled(Clock::time_point deadline, bool stop_on_interrupt);
  /// Until the state is held, by any process that connects.
  bool wait_held(Clock::time_point deadline, bool stop_on_interrupt);

  /// A reply that leaves the training held: SetCMD, recheck. Returns when it asks again.
  /// Error: kPeerLost; the text says whether the command was delivered.
  Status tell(const debugger::EventReply& reply, std::string_view what);
  /// A reply that lets it go: RunCMD, exit. Returns at once.
  /// Up to `ahead` suspensions without a hit or another event are answered in the same way, by the transport.
  Status release(const debugger::EventReply& reply, std::string_view what, uint64_t ahead = 0);
  /// Whatever release() said, the next suspension is one again.
  void stop_ahead();
  /// Suspensions that were answered ahead since this was last asked.
  uint64_t take_passed();
  /// The same while it goes on, and the step of the last of them.
  uint64_t passed(int64_t* step);
  Status run_detached(std::vector<debugger::EventReply> first);
  /// Ends run_detached(). How many of its first replies were not given; they are the last ones.
  size_t take_back();
  /// The same while it goes on.
  size_t left_to_say() const;
  Result<std::vector<int>> copy_sockets() { return transport_->copy_sockets(); }
  /// What a training that comes without handshake has said to another debugger, where somebody knows. Set before anything else.
  void recall(std::function<std::optional<debugger::Metadata>(const debugger::Metadata& wait)> recall) { recall_ = std::move(recall); }
  bool recalled() const;  ///< the training came without handshake, and somebody knew

  /// While `suspension` is set, nothing is sent in another one, because callers mean that one. nullopt ends it.
  void pin(std::optional<uint64_t> suspension);

  // Views. Error: kPeerLost, kInterrupted, kCorrupt when the answer does not fit the question.
  Result<std::vector<debugger::TensorBase>> bases(std::span<const ViewItem> items);
  Result<std::vector<debugger::TensorSummary>> summaries(std::span<const ViewItem> items);
  /// One value for each of the items, which differ and fit into one message, in their order; each says what was wrong with it or that
  /// it is missing. An error applies to all of them. Room is made for `reserve` bytes; above `memory` bytes the elements lie in a file.
  Result<std::shared_ptr<ValueUpload>> values(std::span<const ValueItem> items, uint64_t reserve, uint64_t memory);

 private:
  void handle(WireEvent event);
  void take_in_hits(WireEvent event);
  void handle_handshake(const WireEvent& event);
  void handle_wait(WireEvent event);
  void note_passed();
  bool is_known(const WireEvent& wait) const;
  void say(Severity severity, std::string text);
  Status ensure_held(std::string_view what);
  Status await_answer(std::string_view what, bool stop_on_interrupt);
  Status not_held(std::string_view what) const;
  debugger::EventReply view_of(debugger::ViewCMD::Level level) const;
  template <typename Message>
  Result<std::vector<Message>> ask(std::span<const ViewItem> items, debugger::ViewCMD::Level level, std::string_view of,
                                   std::optional<std::vector<Message>>* answer);

  const std::unique_ptr<Transport> transport_;
  const std::chrono::milliseconds view_deadline_;

  mutable std::mutex mutex_;
  LiveState state_ = LiveState::kWaiting;
  PeerProfile profile_;
  Suspension suspension_;
  bool ran_ = false;           // something was run since the handshake
  bool late_graph_ = false;    // a graph that was compiled later has come; the training is held before its first run
  bool awaiting_ = true;       // the next WaitCMD is a new suspension
  uint64_t passed_ = 0;        // suspensions that were answered ahead
  bool busy_ = false;          // it got a command and has not asked again yet
  bool refused_ = false, orphan_ = false, recalled_ = false;
  std::function<std::optional<debugger::Metadata>(const debugger::Metadata&)> recall_;
  std::optional<uint64_t> pinned_;
  bool lost_held_ = false;     // the connection broke while the training was held
  int64_t goodbye_steps_ = -1;
  uint64_t handshakes_ = 0, processes_ = 0;
  std::string peer_;           // address
  std::vector<std::string> graphs_;
  std::vector<debugger::WatchpointHit> hits_;
  std::vector<Charge> graph_charges_, hit_charges_;
  std::vector<LiveEvent> events_;
  std::unordered_map<std::string, size_t> event_counts_;  // of the texts since they were last taken
  size_t dropped_events_ = 0;
  // The answer to the view that is under way.
  std::optional<std::vector<debugger::TensorBase>> bases_;
  std::optional<std::vector<debugger::TensorSummary>> summaries_;
  std::shared_ptr<ValueUpload> values_;
  bool values_done_ = false;
};

}  // namespace msdbg::live
