// The connection to the training process: a gRPC listener, or a recording.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "session/live/exchange.h"

namespace msdbg::live {

using Clock = std::chrono::steady_clock;

/// Ends of steps of which the session was not told: the training did not ask, or was answered ahead.
struct Passed {
  uint64_t count = 0;
  debugger::Metadata last;  ///< the training's metadata at the last of them
  std::vector<debugger::EndedStep> ended;
};

/// One user at a time; the Conversation ensures that.
class Transport {
 public:
  virtual ~Transport() = default;

  /// The next event, in order of arrival. False at the deadline, and when `stop_on_interrupt` and the interrupt flag are set. A
  /// deadline in the past does not wait.
  virtual bool next(WireEvent* event, Clock::time_point deadline, bool stop_on_interrupt) = 0;
  /// Answers the open WaitCMD. Error: kPeerLost if the client gave it up; nothing was delivered then.
  virtual Status answer(const debugger::EventReply& reply) = 0;
  /// Answers WaitCMDs for up to `times` ends of steps, from the next one on, with `reply` at once and without an event. Any other call of
  /// the training (hits, graphs, handshakes) ends this, and the next WaitCMD is an event again. The last RunCMD of them says that
  /// somebody looks at the end of its step. Optional: a transport may do nothing.
  virtual void answer_ahead(const debugger::EventReply& /*reply*/, uint64_t /*times*/) {}
  /// Stops answering ahead; returns the suspensions answered since the last call.
  virtual Passed stop_ahead() { return {}; }
  /// The suspensions answered so far; does not stop it.
  virtual Passed passed_ahead() { return {}; }
  /// Sets the destination of the next view's elements; its values are those of the view, in order.
  virtual void expect(std::shared_ptr<ValueUpload> upload) = 0;
  /// Bytes of the current upload that have arrived: shows progress.
  virtual uint64_t received_bytes() const = 0;
  /// From now on the transport answers every WaitCMD without the session, including an open one: first with `replies`, one each,
  /// then with run(step) forever.
  virtual void answer_unattended(std::vector<debugger::EventReply> replies) = 0;
  /// Ends answer_unattended(): the next WaitCMD is an event again. Returns how many replies were not sent; they are the last ones.
  virtual size_t stop_unattended() = 0;
  /// Like stop_unattended(), but without ending it.
  virtual size_t unattended_left() { return 0; }
  /// Copies of the listening sockets for another process. Error: kUnsupported without sockets.
  virtual Result<std::vector<int>> copy_sockets() { return Status(Code::kUnsupported, "nothing listens"); }

  /// Ends all connections. When it returns, nothing arrives any more; next() still gives what arrived before.
  virtual void hang_up() {}

  virtual std::string address() const = 0;  ///< where the training side connects to
  virtual int descriptor() const = 0;       ///< readable from an event on until acknowledge(); -1: none
  /// The user knows of everything that next() has given.
  virtual void acknowledge() = 0;
};

}  // namespace msdbg::live
