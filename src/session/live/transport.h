// The way to the training process: a gRPC listener, or a recording.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "session/live/exchange.h"

namespace msdbg::live {

using Clock = std::chrono::steady_clock;

/// Suspensions that were answered ahead and not shown.
struct Passed {
  uint64_t count = 0;
  debugger::Metadata last;  ///< what the training said at the last of them
};

/// One user at a time; the Conversation sees to that.
class Transport {
 public:
  virtual ~Transport() = default;

  /// The next event, in order of arrival. False at the deadline, and when `stop_on_interrupt` and the interrupt flag is
  /// set. A deadline in the past takes what is there.
  virtual bool next(WireEvent* event, Clock::time_point deadline, bool stop_on_interrupt) = 0;
  /// Answers the open WaitCMD. Error: kPeerLost when it was given up meanwhile; nothing was delivered then.
  virtual Status answer(const debugger::EventReply& reply) = 0;
  /// Up to `times` WaitCMDs from the next one on are answered with `reply` at once and make no event, as long as the training says
  /// nothing else: its hits, graphs and handshakes end this, and the WaitCMD after them is an event again. A transport may not be able to.
  virtual void answer_ahead(const debugger::EventReply& /*reply*/, uint64_t /*times*/) {}
  /// Ends that, and returns what was answered ahead since the last call.
  virtual Passed stop_ahead() { return {}; }
  /// What it has led to so far; it goes on.
  virtual Passed passed_ahead() { return {}; }
  /// Where the elements of the next value view go; the values are those of the view, in its order.
  virtual void expect(std::shared_ptr<ValueUpload> upload) = 0;
  /// Bytes of the current upload that have arrived: a sign of life.
  virtual uint64_t received_bytes() const = 0;
  /// From now on every WaitCMD, an open one included, is answered without the session: first `replies`, one each, then
  /// run(step) forever.
  virtual void answer_unattended(std::vector<debugger::EventReply> replies) = 0;
  /// Ends answer_unattended(): the next WaitCMD is an event again. How many of its replies were not given; they are the last ones.
  virtual size_t stop_alone() = 0;
  /// The same while it goes on.
  virtual size_t left_alone() { return 0; }
  /// Of the sockets that listen, for another process. Error: kUnsupported without any.
  virtual Result<std::vector<int>> copy_sockets() { return Status(Code::kUnsupported, "nothing listens"); }

  virtual std::string address() const = 0;  ///< where the training side connects to
  virtual int descriptor() const = 0;       ///< readable while next() has something; -1: none
};

}  // namespace msdbg::live
