// Tells the debugger from a thread of its own that the training is alive.
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
  /// No beat after this; returns when the thread has ended.
  void stop();

 private:
  void run();
  /// False when stop() was called meanwhile.
  bool pause(std::chrono::milliseconds time);

  Caller caller_;
  const std::chrono::milliseconds period_, retry_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace msdbg::agent
