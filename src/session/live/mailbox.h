// The bounded queue between the transport's threads and the session: many writers, one reader.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>

#include "session/live/transport.h"

namespace msdbg::live {

class Mailbox {
 public:
  /// The conversation has one message at a time: anything near this is a misbehaving peer.
  static constexpr size_t kMaxEvents = 1024;

  Mailbox();
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// False if it is full; the event is dropped then and the sender must be answered. `always` is for events that a peer cannot
  /// multiply (the end of a connection).
  bool put(WireEvent event, bool always = false);
  bool take(WireEvent* event, Clock::time_point deadline, bool stop_on_interrupt);
  /// Becomes readable when an event arrives with no reader in take(), and stays so until acknowledge(): whoever took the event may not
  /// have told the user about it.
  int descriptor() const { return descriptor_; }
  /// The user knows of all events that were taken. The descriptor stays readable if there are others.
  void acknowledge();

 private:
  void signal();  // under mutex_

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<WireEvent> events_;
  bool taking_ = false;     ///< a reader waits in take(); under mutex_
  bool signalled_ = false;  ///< the descriptor is readable; under mutex_
  int descriptor_;
};

}  // namespace msdbg::live
