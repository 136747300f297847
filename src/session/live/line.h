// What the listener keeps for one rank: the connection of its training process, and what the session and that process want from
// each other. Everything but the mailbox and the counters is under the listener's mutex.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>

#include "session/live/incoming_call.h"
#include "session/live/mailbox.h"
#include "session/live/transport.h"

namespace msdbg::live {

struct Line {
  Line(int number, uint64_t waiting_bytes) : rank(number), waiting(std::make_shared<WaitingMemory>(waiting_bytes)) {}

  /// A process that has said farewell may linger.
  bool is_free() const { return current.empty() || ended; }

  const int rank;
  Mailbox mailbox;
  std::atomic<uint64_t> received{0};
  std::atomic<size_t> notes{0};                  ///< number reported about the current process

  std::shared_ptr<WaitingMemory> waiting;        ///< for messages of the current process
  std::weak_ptr<WaitingMemory> former_waiting;   ///< for messages of the previous one, until the session has processed them
  std::string current;                           ///< key of its connection; "" without one
  std::string device;                            ///< as the last process gave it
  bool ended = false;                            ///< it has sent its farewell
  IncomingCall* held = nullptr;                  ///< the open WaitCMD
  debugger::EventReply ahead;                    ///< the answer for the next `ahead_times` ends of steps
  uint64_t ahead_times = 0;
  Passed passed;
  std::shared_ptr<ValueUpload> upload;
  bool unattended = false;                       ///< the process was detached
  std::string unattended_key;                    ///< its connection
  std::deque<debugger::EventReply> unattended_replies;
};

}  // namespace msdbg::live
