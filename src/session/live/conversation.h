// The conversation with one training process: its state and its messages.
//
// Any thread: each call holds the lock while it waits, so workers of a check may fetch tensors while the owner waits for them.
// Nothing here knows graphs or watchpoints.
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

/// The peer's report when it was held; the next RunCMD ends the suspension.
struct Suspension {
  uint64_t number = 0;   ///< 0: not held yet
  bool initial = false;  ///< nothing has run since the handshake, or since a graph that arrived later
  bool late_graph = false;  ///< such a graph arrived
  bool begins = false;      ///< nothing of the step has run: a parameter is bad that was not when the last one ended
  bool computed = false;    ///< all operators of the step have run, whatever the current one is
  int64_t cur_step = 0, last_step = 0;
  std::string cur_node, last_node;
  std::vector<std::string> skipped;  ///< full names of operators that change a parameter and did not run in the step
  std::string cut_short;             ///< why the step ended in its midst; "" if it did not
  std::string device;    ///< as sent: "<device id>:<graph id>"
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
  uint64_t most_bytes = 0;  ///< of elements; a longer value is refused
};

class Conversation {
 public:
  /// `who` begins every text about this process: "rank 1: ", or "" for the only one.
  Conversation(std::unique_ptr<Transport> transport, std::chrono::milliseconds view_deadline, std::string who = "");
  ~Conversation();

  /// Processes what has arrived.
  void drain();
  LiveState state() const;
  PeerProfile profile() const;
  Suspension suspension() const;
  uint64_t handshakes() const;  ///< incremented when the peer's table of watchpoints may be empty
  uint64_t processes() const;   ///< incremented with every new training process
  bool orphan() const;          ///< it connected without a handshake
  bool refused() const;         ///< the last peer's version is not supported
  int64_t goodbye_steps() const;  ///< the training's step count when it ended; -1 before that
  std::string address() const { return transport_->address(); }
  int descriptor() const { return transport_->descriptor(); }

  std::vector<std::string> take_graphs();
  std::vector<debugger::WatchpointHit> take_hits();
  std::vector<LiveEvent> take_events();
  void report(Severity severity, std::string text);

  /// Waits until the state is held, ended or lost. False at the deadline or on an interrupt.
  bool wait_settled(Clock::time_point deadline, bool stop_on_interrupt);
  /// Waits until a training is held, including one that connects meanwhile.
  bool wait_held(Clock::time_point deadline, bool stop_on_interrupt);

  /// Sends a command that leaves the training held: SetCMD, recheck. Returns when it asks again.
  /// Error: kPeerLost; the text says whether the command was delivered.
  Status send(const debugger::EventReply& reply, std::string_view what);
  /// Sends a command that releases the training: RunCMD, exit. Returns at once. The transport answers up to `ahead` suspensions in
  /// the same way, as long as they have no hit or other event.
  Status release(const debugger::EventReply& reply, std::string_view what, uint64_t ahead = 0);
  /// Stops answering ahead: the next suspension is reported again.
  void stop_ahead();
  /// Ends of steps at which the training was not held, since the last call.
  uint64_t take_passed();
  /// What the training told of ends of steps since the last call, as the report of the last release() wanted it; in order.
  std::vector<debugger::EndedStep> take_ended();
  /// Like take_passed(), but without ending it; also the step of the last suspension.
  uint64_t passed(int64_t* step);
  Status run_detached(std::vector<debugger::EventReply> first);
  /// Ends run_detached(). Returns how many of its first replies were not sent; they are the last ones.
  size_t stop_detached();
  /// Like stop_detached(), but without ending run_detached().
  size_t detached_left() const;
  Result<std::vector<int>> copy_sockets() { return transport_->copy_sockets(); }
  void hang_up() { transport_->hang_up(); }
  /// Sets a lookup for the handshake of a training that connects without one. Call it before anything else.
  void recall(std::function<std::optional<debugger::Metadata>(const debugger::Metadata& wait)> recall) { recall_ = std::move(recall); }
  bool recalled() const;  ///< the training connected without handshake, and the lookup found one

  /// While set, commands are sent only in this suspension, because callers mean that one. nullopt ends it.
  void pin(std::optional<uint64_t> suspension);

  // Views. Error: kPeerLost, kInterrupted, kCorrupt when the answer does not match the question.
  Result<std::vector<debugger::TensorBase>> bases(std::span<const ViewItem> items);
  Result<std::vector<debugger::TensorSummary>> summaries(std::span<const ViewItem> items);
  /// Fetches one value for each item, in order; items are distinct and fit into one message. Each value has its own problem, if
  /// any, or is marked as missing; an error applies to all of them. Reserves `reserve` bytes; above `memory` bytes the elements are
  /// stored in a file.
  Result<std::shared_ptr<ValueUpload>> values(std::span<const ValueItem> items, uint64_t reserve, uint64_t memory);

 private:
  void handle(WireEvent event);
  void take_in_hits(WireEvent event);
  void handle_handshake(const WireEvent& event);
  void handle_wait(WireEvent event);
  void note_passed();
  void take_in_ends(debugger::Metadata& metadata, int64_t last_step);
  bool is_known(const WireEvent& wait) const;
  void add_event(Severity severity, const std::string& text) { add_text(severity, who_ + text); }
  void add_text(Severity severity, std::string text);
  Status ensure_held(std::string_view what);
  Status await_answer(std::string_view what, bool stop_on_interrupt);
  Status not_held(std::string_view what) const;
  debugger::EventReply view_of(debugger::ViewCMD::Level level) const;
  template <typename Message>
  Result<std::vector<Message>> ask(std::span<const ViewItem> items, debugger::ViewCMD::Level level, std::string_view of,
                                   std::optional<std::vector<Message>>* answer);

  const std::unique_ptr<Transport> transport_;
  const std::chrono::milliseconds view_deadline_;
  const std::string who_;

  mutable std::mutex mutex_;
  LiveState state_ = LiveState::kWaiting;
  PeerProfile profile_;
  Suspension suspension_;
  bool ran_ = false;           // something has run since the handshake
  bool late_graph_ = false;    // a graph compiled later has arrived; the training is held before its first run
  bool awaiting_ = true;       // the next WaitCMD is a new suspension
  uint64_t passed_ = 0;        // ends of steps at which it was not held
  debugger::Report report_;    // of the last release()
  std::vector<debugger::EndedStep> ended_;
  bool busy_ = false;          // it got a command and has not asked for another one yet
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
  std::unordered_map<std::string, size_t> event_counts_;  // count of each text since the last take_events()
  size_t dropped_events_ = 0;
  // The answer to the current view.
  std::optional<std::vector<debugger::TensorBase>> bases_;
  std::optional<std::vector<debugger::TensorSummary>> summaries_;
  std::shared_ptr<ValueUpload> values_;
  bool values_done_ = false;
};

}  // namespace msdbg::live
