// Sends heartbeats to the debugger on a separate thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "agent/channel.h"

namespace msdbg::agent {

class Heartbeat {
 public:
  Heartbeat(const ChannelPtr& channel, std::chrono::milliseconds period, std::chrono::milliseconds retry);
  ~Heartbeat();  ///< stop()
  /// Ends the heartbeats; returns when the thread has ended.
  void stop();

 private:
  void run();
  /// False if stop() was called meanwhile.
  bool pause(std::chrono::milliseconds time);

  Caller caller_;
  const std::chrono::milliseconds period_, retry_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace msdbg::agent
